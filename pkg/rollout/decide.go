package rollout

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// State is the part of a Function's status about its revisions.
type State struct {
	// Latest is the revision of the template, and Ready the last proven one; "" for none.
	Latest, Ready string
	Traffic       []v1alpha1.TrafficStatus
	Rollout       v1alpha1.RolloutStatus
}

// StateOf is what a function's status says.
func StateOf(f *v1alpha1.Function) State {
	return State{
		Latest: f.Status.LatestCreatedRevisionName, Ready: f.Status.LatestReadyRevisionName,
		Traffic: f.Status.Traffic, Rollout: f.Status.Rollout,
	}
}

// Write makes a status say it.
func (s State) Write(status *v1alpha1.FunctionStatus) {
	status.LatestCreatedRevisionName, status.LatestReadyRevisionName = s.Latest, s.Ready
	status.Traffic, status.Rollout = s.Traffic, s.Rollout
}

// Phase is how far the latest revision has come.
type Phase int

const (
	// Verifying says that it is not proven yet.
	Verifying Phase = iota
	// Overdue says that it is not proven, and has had the time for it.
	Overdue
	// Stepping says that a part of the calls goes to it.
	Stepping
	// Done says that the calls go to their final revisions.
	Done
)

// Plan is what Decide wants.
type Plan struct {
	// Create is the revision that the template needs, or nil. It must exist before anything
	// else is done.
	Create *v1alpha1.FunctionRevision
	// State is the new state in the function's status.
	State State
	Phase Phase
	// Missing are revisions that spec.traffic names and that do not exist. Their calls
	// go where they went before.
	Missing []string
	// Remove are the names of revisions that the history has no room for.
	Remove []string
	// Again is when the next decision is due without an event; 0 means never.
	Again time.Duration
}

// Decide decides what to do with a function's revisions. The function must be valid and have
// its defaults. Revisions of other functions are ignored.
func Decide(now time.Time, f *v1alpha1.Function, revisions []*v1alpha1.FunctionRevision) Plan {
	d := decision{now: now, f: f, revisions: ofFunction(f, revisions), was: StateOf(f)}
	// 1. The template has a revision.
	latest := d.newest(func(r *v1alpha1.FunctionRevision) bool { return r.Is(f) })
	if latest == nil {
		return Plan{Create: v1alpha1.NewRevision(f), State: d.was, Phase: Verifying}
	}
	d.latest = latest
	d.plan.State = State{Latest: latest.Name, Rollout: d.currentRollout()}
	d.plan.State.Ready = d.ready()
	// 2. It is proven, and takes its steps.
	d.progress()
	// 3. Calls go to it, or to whom spec.traffic says.
	d.plan.State.Traffic = d.traffic()
	// 4. Remove revisions that are no longer needed.
	d.plan.Remove = d.surplus()
	return d.plan
}

// decision is one Decide.
type decision struct {
	now       time.Time
	f         *v1alpha1.Function
	revisions []*v1alpha1.FunctionRevision // by number
	was       State
	latest    *v1alpha1.FunctionRevision
	plan      Plan
}

// ofFunction are the revisions of a function, the first one first.
func ofFunction(f *v1alpha1.Function, all []*v1alpha1.FunctionRevision) []*v1alpha1.FunctionRevision {
	var own []*v1alpha1.FunctionRevision
	for _, r := range all {
		if r.Of(f) && r.DeletionTimestamp.IsZero() {
			own = append(own, r)
		}
	}
	slices.SortFunc(own, func(a, b *v1alpha1.FunctionRevision) int {
		return cmp.Or(cmp.Compare(a.Spec.Number, b.Spec.Number), cmp.Compare(a.Name, b.Name))
	})
	return own
}

// newest is the newest revision that is so, or nil.
func (d *decision) newest(so func(*v1alpha1.FunctionRevision) bool) *v1alpha1.FunctionRevision {
	for _, r := range slices.Backward(d.revisions) {
		if so(r) {
			return r
		}
	}
	return nil
}

func (d *decision) named(name string) *v1alpha1.FunctionRevision {
	return d.newest(func(r *v1alpha1.FunctionRevision) bool { return r.Name == name })
}

// trusted reports whether calls may go to the latest revision.
func (d *decision) trusted() bool {
	return d.latest.Proven() || d.f.Spec.Rollout.Verify == v1alpha1.VerifyNone || d.letIn()
}

// letIn reports whether calls go to the latest revision because rollout.verify was None. A later
// setting takes none away. One that was deleted and made again under its name gets none.
func (d *decision) letIn() bool {
	return d.was.Ready == d.latest.Name && meta.IsStatusConditionTrue(d.latest.Status.Conditions, v1alpha1.ConditionActive)
}

// currentRollout is the rollout as it was, or a new one if the latest revision is another. A clock that was
// ahead when a step began, and was set right, must not hold the step until it shows that time again.
func (d *decision) currentRollout() v1alpha1.RolloutStatus {
	now, r := metav1.NewTime(d.now).Rfc3339Copy(), d.was.Rollout
	if r.RevisionName != d.latest.Name {
		return v1alpha1.RolloutStatus{RevisionName: d.latest.Name, StableRevisionName: d.stable(), Since: now}
	}
	if r.Since.After(d.now) {
		r.Since = now
	}
	return r
}

// stable is the revision that keeps the calls until the latest has them all. A rollout that
// replaces an unfinished one keeps its stable revision.
func (d *decision) stable() string {
	name := cmp.Or(d.was.Rollout.StableRevisionName, d.was.Ready)
	if d.named(name) == nil || name == d.latest.Name {
		return ""
	}
	return name
}

// ready is the name of the last revision that was proven.
func (d *decision) ready() string {
	if d.trusted() {
		return d.latest.Name
	}
	if stable := d.named(d.plan.State.Rollout.StableRevisionName); stable != nil {
		return stable.Name
	}
	if proven := d.newest((*v1alpha1.FunctionRevision).Proven); proven != nil {
		return proven.Name
	}
	return ""
}

// progress waits for the proof, and then takes the steps.
func (d *decision) progress() {
	r := &d.plan.State.Rollout
	if !d.trusted() {
		deadline := d.f.Spec.Rollout.ProgressDeadline.Duration
		d.plan.Phase = Overdue
		if left := deadline - d.now.Sub(r.Since.Time); left > 0 {
			d.plan.Phase, d.plan.Again = Verifying, left
		}
		return
	}
	steps := d.f.Spec.Rollout.Steps
	if d.named(r.StableRevisionName) == nil || !d.latest.Status.FullTrafficTime.IsZero() {
		steps = nil
	}
	// Of fewer steps than before the last one is taken again: who takes some away wants fewer calls at the
	// latest revision, not all of them.
	for at := min(max(r.Step, 1), int32(len(steps))); at > 0 && int(at) <= len(steps); at++ {
		d.enterStep(at)
		if left := steps[at-1].Hold.Duration - d.now.Sub(r.Since.Time); left > 0 {
			d.plan.Phase, d.plan.Again = Stepping, left
			return
		}
	}
	d.enterStep(0)
	r.StableRevisionName = ""
	d.plan.Phase = Done
}

// enterStep begins a step, unless the rollout is already in it.
func (d *decision) enterStep(step int32) {
	r := &d.plan.State.Rollout
	if r.Step != step {
		r.Step, r.Since = step, metav1.NewTime(d.now).Rfc3339Copy()
	}
}

// traffic is where calls go.
func (d *decision) traffic() []v1alpha1.TrafficStatus {
	if d.f.Spec.Traffic == nil {
		return d.steps()
	}
	var parts []v1alpha1.TrafficStatus
	for _, target := range d.f.Spec.Traffic {
		part := v1alpha1.TrafficStatus{Tag: target.Tag, RevisionName: target.RevisionName, Weight: target.Weight}
		switch {
		case target.RevisionName == "":
			part.RevisionName = d.defaultRevision()
		case d.named(target.RevisionName) == nil:
			d.plan.Missing = append(d.plan.Missing, target.RevisionName)
			part.RevisionName = d.earlierTarget(target.Tag)
		}
		parts = append(parts, part)
	}
	return parts
}

// steps is where calls go when spec.traffic does not say it.
func (d *decision) steps() []v1alpha1.TrafficStatus {
	if d.plan.Phase != Stepping {
		return []v1alpha1.TrafficStatus{{RevisionName: d.defaultRevision(), Weight: 100}}
	}
	r := d.plan.State.Rollout
	weight := d.f.Spec.Rollout.Steps[r.Step-1].Weight
	return []v1alpha1.TrafficStatus{
		{RevisionName: r.StableRevisionName, Weight: 100 - weight}, {RevisionName: d.latest.Name, Weight: weight},
	}
}

// defaultRevision is the revision for calls without a preference: the ready one or, while none
// was ever proven, the latest, where they wait for its first instance.
func (d *decision) defaultRevision() string {
	if d.plan.State.Ready != "" {
		return d.plan.State.Ready
	}
	return d.latest.Name
}

// earlierTarget is where the calls of a tag went, if that still exists.
func (d *decision) earlierTarget(tag string) string {
	for _, part := range d.was.Traffic {
		if part.Tag == tag && d.named(part.RevisionName) != nil {
			return part.RevisionName
		}
	}
	return d.defaultRevision()
}

// surplus are the oldest revisions that nothing needs, beyond the history.
func (d *decision) surplus() []string {
	needed := map[string]bool{d.latest.Name: true, d.plan.State.Ready: true}
	for _, part := range d.plan.State.Traffic {
		needed[part.RevisionName] = true
	}
	for _, target := range d.f.Spec.Traffic {
		needed[target.RevisionName] = true
	}
	room := int(*d.f.Spec.RevisionHistoryLimit)
	var names []string
	for _, r := range slices.Backward(d.revisions) {
		if needed[r.Name] {
			continue
		}
		if room--; room < 0 {
			names = append(names, r.Name)
		}
	}
	return names
}

// leaveGrace is how much longer than a call may take an instance has to end by itself.
const leaveGrace = 30 * time.Second

// LeaveBy is the time by which an instance of a revision, created at a given time, must be
// gone; left is false while the revision is a unit, or calls go to it by its status.
//
// The scheduler that serves a unit drains its instances when it is no longer a unit. But
// schedulers do not know revisions that are no units: an instance that was launched and does
// not start would stay as long as the revision, and the revision as long as the instance.
func (e *Entry) LeaveBy(r *v1alpha1.FunctionRevision, created time.Time) (deadline time.Time, left bool) {
	unit := slices.ContainsFunc(e.Units, func(u *v1alpha1.Function) bool { return u.UID == r.UID })
	since := created
	if active := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionActive); active != nil {
		unit = unit || active.Status == metav1.ConditionTrue
		if active.LastTransitionTime.After(since) {
			since = active.LastTransitionTime.Time
		}
	}
	return since.Add(r.Spec.Template.Timeout.Duration + leaveGrace), !unit
}
