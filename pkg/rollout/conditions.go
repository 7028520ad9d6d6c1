package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1000

// ConditionInput is all that Conditions decides from.
type ConditionInput struct {
	Now time.Time
	// Function as Decide had it or, while it is refused, as its author wrote it. Its
	// status has the conditions that were so far.
	Function *v1alpha1.Function
	// Refused says why the function is not valid, with ReasonInvalid or ReasonRuntimeNotFound;
	// nil if it is. Nothing is planned then: Plan has the state in the function's status.
	Refused *Failure
	// NotCreated says why Plan.Create could not be created: with ReasonRevisionRefused, or with
	// ReasonPending if the next attempt may succeed. It is nil if nothing is known against it.
	NotCreated *Failure
	// Plan and Revisions are what Advance says.
	Plan      Plan
	Revisions []*v1alpha1.FunctionRevision
	// Units are the observations of the revisions, by their names.
	Units map[string]Observation
	// Hosts has status, reason and message of the condition HostsAccepted; without a status
	// the function has no such condition.
	Hosts metav1.Condition
	// Class is the same for the condition SchedulingClass.
	Class metav1.Condition
	// Settling says that the observer has just started, so that missing observations mean
	// nothing: previous conditions stay.
	Settling bool
}

// view is one Conditions.
type view struct {
	ConditionInput
	// serving are the revisions that have calls.
	serving []weightedRevision
	// latest is the revision of the template, or nil while it has to be made.
	latest *v1alpha1.FunctionRevision
}

// weightedRevision is a revision and its part of the calls in percent.
type weightedRevision struct {
	revision *v1alpha1.FunctionRevision
	weight   int32
}

// Conditions are the conditions of a function, and the generation that they describe. A
// transition time stays as long as the condition's status.
func Conditions(l ConditionInput) (conditions []metav1.Condition, observed int64) {
	v := newView(l)
	if v.settling() {
		return slices.Clone(l.Function.Status.Conditions), l.Function.Status.ObservedGeneration
	}
	observed = v.observed()
	conditions = slices.DeleteFunc(slices.Clone(l.Function.Status.Conditions), isDefault)
	for _, c := range v.conditions() {
		if c.Status == "" {
			meta.RemoveStatusCondition(&conditions, c.Type)
			continue
		}
		c.ObservedGeneration, c.LastTransitionTime = observed, metav1.NewTime(l.Now).Rfc3339Copy()
		c.Message = excerpt(c.Message)
		meta.SetStatusCondition(&conditions, c)
	}
	return conditions, observed
}

// isDefault reports whether a condition is the API server's default for a function that no
// controller has seen. It has no time of its own.
func isDefault(c metav1.Condition) bool { return c.LastTransitionTime.Unix() <= 0 }

func newView(l ConditionInput) *view {
	v := &view{ConditionInput: l}
	if l.Plan.Create == nil {
		v.latest = v.named(l.Plan.State.Latest)
	}
	for _, t := range l.Plan.State.Traffic {
		r := v.named(t.RevisionName)
		if r == nil || t.Weight == 0 {
			continue
		}
		if i := slices.IndexFunc(v.serving, func(p weightedRevision) bool { return p.revision == r }); i >= 0 {
			v.serving[i].weight += t.Weight
			continue
		}
		v.serving = append(v.serving, weightedRevision{r, t.Weight})
	}
	return v
}

func (v *view) named(name string) *v1alpha1.FunctionRevision {
	for _, r := range v.Revisions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// settling reports whether it is too early to cancel previous conditions.
func (v *view) settling() bool {
	if !v.Settling || !v.Function.DeletionTimestamp.IsZero() || v.unobserved() == nil {
		return false
	}
	was := meta.FindStatusCondition(v.Function.Status.Conditions, v1alpha1.ConditionReady)
	return was != nil && was.Reason != v1alpha1.ReasonPending
}

// unobserved is a revision that has calls, and that no scheduler reports; or nil.
func (v *view) unobserved() *v1alpha1.FunctionRevision {
	for _, p := range v.serving {
		if !v.observation(p.revision).Observed {
			return p.revision
		}
	}
	return nil
}

// observation is the observed state of a revision. A revision that has just got its calls has
// none yet and counts as one without instances.
func (v *view) observation(r *v1alpha1.FunctionRevision) Observation {
	u := v.Units[r.Name]
	if !u.Observed && observeTimeLeft(v.Now, r) > 0 {
		return Observation{Observed: true, Generation: v.Function.Generation}
	}
	return u
}

// observed is the generation that the schedulers of all revisions that matter have taken
// up.
func (v *view) observed() int64 {
	generation := v.Function.Generation
	if v.Refused != nil || !v.Function.DeletionTimestamp.IsZero() {
		return generation
	}
	for _, r := range v.relevant() {
		if u := v.Units[r.Name]; u.Observed {
			generation = min(generation, u.Generation)
		}
	}
	return generation
}

// relevant are the revisions that have calls, and the latest.
func (v *view) relevant() []*v1alpha1.FunctionRevision {
	var all []*v1alpha1.FunctionRevision
	for _, p := range v.serving {
		all = append(all, p.revision)
	}
	if v.latest != nil && !slices.Contains(all, v.latest) {
		all = append(all, v.latest)
	}
	return all
}

// conditions are the conditions of every type; those without a status are left out.
func (v *view) conditions() []metav1.Condition {
	switch {
	case !v.Function.DeletionTimestamp.IsZero():
		return refusedConditions(Failure{v1alpha1.ReasonDraining,
			"the function is being deleted: it takes no more calls, and its instances finish"}, "")
	case v.Refused != nil:
		return v.refused()
	}
	ready := v.ready()
	reconciling, stalled := v.progress(ready)
	return []metav1.Condition{
		ready,
		condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the function is valid and may run"),
		v.revisionReady(), v.minInstancesReady(), reconciling, stalled, v.instancesFailing(),
		condition(v1alpha1.ConditionHostsAccepted, v.Hosts.Status, v.Hosts.Reason, v.Hosts.Message),
		condition(v1alpha1.ConditionSchedulingClass, v.Class.Status, v.Class.Reason, v.Class.Message),
	}
}

// refused are the conditions of a function that is not valid. The revisions that it has are served
// as before.
func (v *view) refused() []metav1.Condition {
	all := refusedConditions(*v.Refused, metav1.ConditionTrue)
	if len(v.serving) == 0 {
		return all
	}
	for _, c := range []metav1.Condition{v.ready(), v.minInstancesReady(), v.instancesFailing()} {
		all[slices.IndexFunc(all, func(general metav1.Condition) bool { return general.Type == c.Type })] = c
	}
	return all
}

// refusedConditions are the conditions of a function that nothing is done for.
func refusedConditions(why Failure, stalled metav1.ConditionStatus) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionAccepted, v1alpha1.ConditionRevisionReady, v1alpha1.ConditionMinInstancesReady,
	} {
		all = append(all, condition(kind, metav1.ConditionFalse, why.Reason, why.Message))
	}
	return append(all,
		condition(v1alpha1.ConditionHostsAccepted, "", "", ""),
		condition(v1alpha1.ConditionSchedulingClass, "", "", ""),
		condition(v1alpha1.ConditionReconciling, "", "", ""),
		condition(v1alpha1.ConditionStalled, stalled, why.Reason, why.Message),
		condition(v1alpha1.ConditionInstancesFailing, "", "", ""))
}

// excerpt is a text that fits the message of a condition: its beginning and its end, where
// the last log line stands.
func excerpt(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxMessage {
		return text
	}
	from := len(text) - maxMessage/2
	for !utf8.RuneStart(text[from]) {
		from++
	}
	return invocation.ExcerptOf(text[:from], maxMessage/2) + text[from:]
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// ready reports the worst state of the revisions that have calls.
func (v *view) ready() metav1.Condition {
	if len(v.serving) == 0 {
		return v.creating(v1alpha1.ConditionReady, "the controller is creating the first revision of the function")
	}
	rank := map[metav1.ConditionStatus]int{metav1.ConditionUnknown: 1, metav1.ConditionFalse: 2}
	worst := v.callable(v.serving[0].revision)
	for _, p := range v.serving[1:] {
		if c := v.callable(p.revision); rank[c.Status] > rank[worst.Status] {
			worst = c
		}
	}
	return worst
}

// callable is what Ready is if all calls go to a revision.
func (v *view) callable(r *v1alpha1.FunctionRevision) metav1.Condition {
	say := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionReady, status, reason, message)
	}
	u, why := v.observation(r), v.failure(r)
	switch {
	case !u.Observed:
		return say(metav1.ConditionUnknown, v1alpha1.ReasonUnobserved, "no scheduler reports on "+r.Name+"; the rest of the status is the last known state")
	case u.Ready > 0:
		return say(metav1.ConditionTrue, v1alpha1.ReasonStarted, v.split())
	case why != nil:
		return say(metav1.ConditionFalse, why.Reason, r.Name+": "+why.Message)
	case u.NoRoom != "":
		return say(metav1.ConditionFalse, v1alpha1.ReasonNoCapacity, u.NoRoom)
	case r.Proven():
		return say(metav1.ConditionTrue, v1alpha1.ReasonStarted, v.split())
	case v.unverified(r):
		return say(metav1.ConditionTrue, v1alpha1.ReasonNotVerified, v.split()+"; no instance of it has started yet, because rollout.verify is None")
	case r == v.latest:
		return say(metav1.ConditionUnknown, v1alpha1.ReasonVerifying, "the first instance of "+r.Name+" is starting")
	default:
		return say(metav1.ConditionUnknown, v1alpha1.ReasonNotVerified, "no instance of "+r.Name+" has started yet")
	}
}

// unverified reports whether the author wants calls to go to a revision without a proof.
func (v *view) unverified(r *v1alpha1.FunctionRevision) bool {
	return r == v.latest && v.Function.Spec.Rollout.Verify == v1alpha1.VerifyNone
}

// failure is why instances of a revision do not start; nil if nothing is known against it.
// A revision that is not proven has failed until it is, though no scheduler reports it just now.
func (v *view) failure(r *v1alpha1.FunctionRevision) *Failure {
	if why := v.Units[r.Name].Failure; why != nil {
		return why
	}
	if was := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); was != nil && was.Status == metav1.ConditionFalse {
		return &Failure{was.Reason, was.Message}
	}
	return nil
}

// split says where calls go.
func (v *view) split() string { return Split(v.Plan.State.Traffic) }

// Split says in words where calls go.
func Split(traffic []v1alpha1.TrafficStatus) string {
	var names []string
	weights := make(map[string]int32)
	for _, t := range traffic {
		if t.Weight > 0 && weights[t.RevisionName] == 0 {
			names = append(names, t.RevisionName)
		}
		weights[t.RevisionName] += t.Weight
	}
	if len(names) == 1 {
		return "calls go to " + names[0]
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %% to %s", weights[name], name)
	}
	return "calls go " + strings.Join(names, ", ")
}

// revisionReady repeats the Ready condition of the latest revision. If calls go to it without
// a proof, its function's author asked for that.
func (v *view) revisionReady() metav1.Condition {
	const kind = v1alpha1.ConditionRevisionReady
	if v.latest == nil {
		return v.creating(kind, "the controller is creating the revision of spec.template")
	}
	c := readyCondition(v.Function, v.latest, v.Units[v.latest.Name])
	c.Type, c.Message = kind, v.latest.Name+": "+c.Message
	if c.Reason == v1alpha1.ReasonNotVerified && v.unverified(v.latest) {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// creating is a condition that depends on a revision that does not exist yet.
func (v *view) creating(kind, message string) metav1.Condition {
	switch why := v.NotCreated; {
	case why == nil:
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonPending, message)
	case v.refusesRevision():
		return condition(kind, metav1.ConditionFalse, why.Reason, why.Message)
	default:
		return condition(kind, metav1.ConditionUnknown, why.Reason, why.Message)
	}
}

// refusesRevision reports whether somebody has to change something before the revision of the
// template can be created.
func (v *view) refusesRevision() bool {
	return v.NotCreated != nil && v.NotCreated.Reason == v1alpha1.ReasonRevisionRefused
}

func (v *view) minInstancesReady() metav1.Condition {
	const kind = v1alpha1.ConditionMinInstancesReady
	if len(v.serving) == 0 {
		return v.creating(kind, "the controller is creating the first revision of the function")
	}
	if r := v.unobserved(); r != nil {
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonUnobserved, "no scheduler reports on "+r.Name)
	}
	var ready int64
	var unconfirmed bool
	var why *Failure
	for _, p := range v.serving {
		u := v.observation(p.revision)
		ready += u.Ready
		unconfirmed = unconfirmed || u.Unconfirmed
		if why == nil {
			why = v.obstacle(p.revision)
		}
	}
	least, _ := minInstances(v.Now, v.Function)
	switch {
	case unconfirmed:
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonUnconfirmed,
			"schedulers cannot reach etcd: they serve calls, but until etcd is back they create at most a fifth more instances")
	case least == 0:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonEnoughInstances,
			"scaling asks for no instances now; they come and go with the calls")
	case ready >= least:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonEnoughInstances,
			fmt.Sprintf("all instances that scaling asks for now (%d) are ready", least))
	case why != nil:
		return condition(kind, metav1.ConditionFalse, why.Reason, why.Message)
	default:
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonCreating,
			fmt.Sprintf("scaling asks for %d instances now; schedulers are creating them", least))
	}
}

// obstacle is why a revision gets no further instances; nil if it does.
func (v *view) obstacle(r *v1alpha1.FunctionRevision) *Failure {
	if why := v.failure(r); why != nil {
		return why
	}
	if noRoom := v.Units[r.Name].NoRoom; noRoom != "" {
		return &Failure{v1alpha1.ReasonNoCapacity, noRoom}
	}
	return nil
}

// progress says whether the last change of the spec is taking effect, or never will. Neither
// applies to a function without instances because the cluster is full: that says nothing about
// its spec.
func (v *view) progress(ready metav1.Condition) (reconciling, stalled metav1.Condition) {
	reconciling, stalled = condition(v1alpha1.ConditionReconciling, "", "", ""), condition(v1alpha1.ConditionStalled, "", "", "")
	proof := v.revisionReady()
	set := func(c *metav1.Condition, reason, message string) {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reason, message
	}
	switch {
	case v.refusesRevision():
		set(&stalled, proof.Reason, proof.Message)
	case len(v.Plan.Missing) > 0:
		set(&stalled, v1alpha1.ReasonRevisionMissing, fmt.Sprintf(
			"spec.traffic names revisions that do not exist: %s; their calls go where they went before; use names that \"kubectl get functionrevisions\" lists",
			strings.Join(v.Plan.Missing, ", ")))
	case v.Plan.Phase == Overdue && proof.Status == metav1.ConditionFalse:
		set(&stalled, proof.Reason, proof.Message)
	case v.Plan.Phase == Stepping:
		r := v.Plan.State.Rollout
		set(&reconciling, v1alpha1.ReasonStepping, fmt.Sprintf("step %d of %d: %s", r.Step, len(v.Function.Spec.Rollout.Steps), v.split()))
	case v.Plan.Phase == Verifying || v.Plan.Phase == Overdue:
		if ready.Reason == v1alpha1.ReasonNoCapacity {
			break
		}
		reason := v1alpha1.ReasonVerifying
		if proof.Reason == v1alpha1.ReasonVerificationDeferred {
			reason = proof.Reason
		}
		set(&reconciling, reason, proof.Message)
	case v.observed() < v.Function.Generation:
		set(&reconciling, v1alpha1.ReasonSchedulerBehind, "a scheduler has not taken up the latest change yet")
	}
	return reconciling, stalled
}

// instancesFailing says that further instances do not start although some exist.
func (v *view) instancesFailing() metav1.Condition {
	for _, p := range v.serving {
		if why := v.obstacle(p.revision); why != nil && v.Units[p.revision.Name].Ready > 0 {
			return condition(v1alpha1.ConditionInstancesFailing, metav1.ConditionTrue, why.Reason, p.revision.Name+": "+why.Message)
		}
	}
	return condition(v1alpha1.ConditionInstancesFailing, "", "", "")
}
