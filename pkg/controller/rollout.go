package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// planRollout decides about the function's revisions, and about their and the function's
// conditions.
func planRollout(in input, out *outcome) {
	look := conditionInput(in)
	if needsDecision(look) {
		look.Plan, look.Revisions = rollout.Advance(in.now, look.Function, in.revisions, look.Units)
		if look.Plan.Create != nil && in.notCreated == nil {
			out.create = look.Plan.Create
			return
		}
		if look.Plan.Again > 0 {
			out.sooner(look.Plan.Again)
		}
		recordImages(in.pods, look.Revisions)
		recordDeserted(in, look.Revisions)
		entry := rollout.Compose(look.Function, look.Revisions)
		planLeftovers(in, entry, look.Revisions, out)
		planRevisions(in, look.Revisions, out)
		planScales(in, entry, look.Revisions, out)
		out.remove = removable(in, look.Plan.Remove)
	} else if look.Function.DeletionTimestamp.IsZero() {
		// Schedulers go on serving the revisions of a function that is refused.
		look.Plan.State, look.Revisions = rollout.StateOf(look.Function), in.revisions
		planScales(in, rollout.Compose(look.Function, in.revisions), in.revisions, out)
	} else if in.budgeted {
		planScales(in, &rollout.Entry{}, in.revisions, out)
	}
	planStatus(in, look, out)
}

// recordImages writes into the status of each revision which image its first instance ran. A
// tag may be moved later; what calls were answered by stays on record.
func recordImages(pods []pod, revisions []*v1alpha1.FunctionRevision) {
	for _, r := range revisions {
		if r.Status.ImageID != "" {
			continue
		}
		var first *pod
		for i, p := range pods {
			if p.revision == r.UID && p.imageID != "" && (first == nil || p.created.Before(first.created)) {
				first = &pods[i]
			}
		}
		if first != nil {
			r.Status.ImageID = first.imageID
		}
	}
}

// recordDeserted writes into the status of each deserted revision that it has no instances.
func recordDeserted(in input, revisions []*v1alpha1.FunctionRevision) {
	for _, r := range revisions {
		if deserted(in, r) {
			r.Status.Instances.Ready = 0
		}
	}
}

// deserted reports whether a revision has no instances though no scheduler says so. They
// report units only: not how the last instance of a revision goes that is none any more.
func deserted(in input, r *v1alpha1.FunctionRevision) bool {
	_, reported := in.units[r.Name]
	return !reported && !in.settling && !hasPods(in, r)
}

func hasPods(in input, r *v1alpha1.FunctionRevision) bool {
	return slices.ContainsFunc(in.pods, func(p pod) bool { return p.revision == r.UID })
}

// planLeftovers deletes pods of revisions that no scheduler serves.
func planLeftovers(in input, entry *rollout.Entry, revisions []*v1alpha1.FunctionRevision, out *outcome) {
	for _, p := range in.pods {
		at := slices.IndexFunc(revisions, func(r *v1alpha1.FunctionRevision) bool { return r.UID == p.revision })
		if at < 0 || !p.stays() {
			continue
		}
		switch deadline, left := entry.LeaveBy(revisions[at], p.created); {
		case !left:
		case in.now.Before(deadline):
			out.sooner(deadline.Sub(in.now))
		default:
			out.deletePods = append(out.deletePods, podDeletion{p.name, revisionRetired})
		}
	}
}

// needsDecision reports whether something has to be decided about a function's revisions.
func needsDecision(look rollout.ConditionInput) bool {
	return look.Refused == nil && look.Function.DeletionTimestamp.IsZero()
}

// conditionInput is the state of a function before anything is decided.
func conditionInput(in input) rollout.ConditionInput {
	f := in.function.DeepCopy()
	// They are missing in an object that came through a typed client.
	f.APIVersion, f.Kind = v1alpha1.APIVersion, v1alpha1.KindFunction
	v1alpha1.DefaultFor(f, in.runtime)
	look := rollout.ConditionInput{
		Now: in.now, Function: f, Refused: refusal(f, in), Hosts: hostsCondition(in), Settling: in.settling,
		Class: classCondition(f, in.classes), NotCreated: in.notCreated,
		Units: make(map[string]rollout.Observation, len(in.units)),
	}
	for _, r := range in.revisions {
		if observed, ok := in.units[r.Name]; ok {
			look.Units[r.Name] = observationOf(r, observed)
		}
	}
	return look
}

// refusal says why a function that the API server has let in cannot be carried out; nil
// if it can.
func refusal(f *v1alpha1.Function, in input) *rollout.Failure {
	if errs := append(v1alpha1.Validate(f), v1alpha1.ValidateCluster(f)...); len(errs) > 0 {
		return &rollout.Failure{Reason: v1alpha1.ReasonInvalid, Message: sentence(errs)}
	}
	if name := f.Spec.Template.RuntimeRef.Name; name != "" && in.runtime == nil {
		return &rollout.Failure{Reason: v1alpha1.ReasonRuntimeNotFound, Message: missingRuntime(name, in.runtimes)}
	}
	if err := protocolChange(f, in.revisions); err != nil {
		return &rollout.Failure{Reason: v1alpha1.ReasonInvalid, Message: err.Error()}
	}
	return nil
}

// protocolChange says that a function, complete with its defaults, has another protocol than its newest
// revision; nil if it has not. The API server cannot say it: it does not know the default of a ClusterRuntime.
func protocolChange(f *v1alpha1.Function, revisions []*v1alpha1.FunctionRevision) *field.Error {
	var newest *v1alpha1.FunctionRevision
	for _, r := range revisions {
		if r.Of(f) && (newest == nil || r.Spec.Number > newest.Spec.Number) {
			newest = r
		}
	}
	if newest == nil || newest.Spec.Template.Protocol == f.Spec.Template.Protocol {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "template", "protocol"), f.Spec.Template.Protocol, fmt.Sprintf(
		"cannot change from %s, because calls that wait were made for the old one; make a new function, or delete this one first", newest.Spec.Template.Protocol))
}

// namedRuntimes is how many ClusterRuntimes a message names at most.
const namedRuntimes = 10

// missingRuntime says that the ClusterRuntime does not exist, and what to write instead.
func missingRuntime(name v1alpha1.RuntimeName, there []v1alpha1.RuntimeName) string {
	text := fmt.Sprintf("ClusterRuntime %q does not exist; create it, or set spec.template.runtimeRef.name to one that \"kubectl get clusterruntimes\" lists", name)
	there = slices.Sorted(slices.Values(there))
	if similar := v1alpha1.SimilarRuntime(name, there); similar != "" {
		text += ", such as " + string(similar)
	}
	for i, known := range there[:min(len(there), namedRuntimes)] {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + string(known)
	}
	return text
}

// sentence joins errors to one text.
func sentence(errs field.ErrorList) string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func observationOf(r *v1alpha1.FunctionRevision, observed facts) rollout.Observation {
	return rollout.Observation{
		Observed: true, Generation: observed.generation, Started: observed.started, Failure: failureOf(r, observed.problem),
		NoRoom: observed.noRoom, Unconfirmed: observed.unconfirmed, Ready: observed.created,
	}
}

// planRevisions decides whose status to write now.
func planRevisions(in input, after []*v1alpha1.FunctionRevision, out *outcome) {
	for _, r := range after {
		i := slices.IndexFunc(in.revisions, func(b *v1alpha1.FunctionRevision) bool { return b.Name == r.Name })
		before := in.revisions[i]
		if !equality.Semantic.DeepEqual(before.Status, r.Status) &&
			out.mayWrite(in, in.written.revisions[r.Name], revisionUrgency(&before.Status, &r.Status)) {
			out.revisions = append(out.revisions, r)
		}
	}
}

// planScales decides whose scale to write now.
//
// A disruption budget is decided by the scale: Kubernetes reads it when a pod has changed, and
// not again. A number that comes after the pods would count until the next pod changes, and
// let all of them be evicted, or none. So where budgets exist, the scale is written without
// delay, and delays nothing else: pods are created and deleted for each change.
func planScales(in input, entry *rollout.Entry, revisions []*v1alpha1.FunctionRevision, out *outcome) {
	for _, r := range revisions {
		n, known := wantedInstances(in, entry, r)
		if wanted := clampInt32(n); known && wanted != r.Spec.Instances && (in.budgeted || out.mayWrite(in, time.Time{}, counts)) {
			scaled := r.DeepCopy()
			scaled.Spec.Instances = wanted
			out.scales = append(out.scales, scaled)
		}
	}
}

// wantedInstances is the scale of a revision. Of one that no scheduler serves any more, the
// instances that still finish calls are wanted: with more, or with fewer, a disruption budget would
// allow no eviction of the function's other pods, or too many.
func wantedInstances(in input, entry *rollout.Entry, r *v1alpha1.FunctionRevision) (n int64, known bool) {
	observed, reported := in.units[r.Name]
	served := slices.ContainsFunc(entry.Units, func(fn *v1alpha1.Function) bool { return fn.UID == r.UID })
	switch {
	case !served && (!reported || !in.function.DeletionTimestamp.IsZero()):
		for _, p := range in.pods {
			if p.revision == r.UID && p.stays() {
				n++
			}
		}
		return n, true
	case reported:
		return observed.creating + observed.created, true
	}
	return 0, deserted(in, r)
}

// revisionUrgency is why to write a revision's status. Decisions about the other revisions
// depend on whether it is proven, and when it had calls.
func revisionUrgency(before, after *v1alpha1.FunctionRevisionStatus) urgency {
	for _, c := range after.Conditions {
		if findCondition(before.Conditions, c.Type).Status != c.Status {
			return decisions
		}
	}
	switch {
	case !before.FullTrafficTime.Equal(&after.FullTrafficTime):
		return decisions
	case conditionsDiffer(before.Conditions, after.Conditions):
		return conditions
	default:
		return counts
	}
}

// removable are revisions that nothing is left of: no scheduler reports any that has no calls
// for long. A pod belongs to its revision and goes with it, in the middle of a call too.
func removable(in input, names []string) []*v1alpha1.FunctionRevision {
	var found []*v1alpha1.FunctionRevision
	for _, r := range in.revisions {
		observed, ok := in.units[r.Name]
		gone := (ok || !in.settling) && !observed.waiting && observed.creating+observed.created == 0 && !hasPods(in, r)
		if gone && slices.Contains(names, r.Name) {
			found = append(found, r)
		}
	}
	return found
}

// planStatus decides whether to write the function's status now, later or not at all.
func planStatus(in input, look rollout.ConditionInput, out *outcome) {
	before, next := in.function.Status, statusOf(in, look)
	if equality.Semantic.DeepEqual(next, before) || !out.mayWrite(in, in.written.function, statusUrgency(&before, &next)) {
		return
	}
	out.status = &next
	out.changes = slices.DeleteFunc(transitions(&before, &next), func(change functionEvent) bool {
		// An event that was just emitted need not be emitted again as a change.
		return slices.ContainsFunc(in.events, func(observed functionEvent) bool { return observed.reason == change.reason })
	})
}

// statusUrgency is why to write a function's status. Gateways and schedulers read from it
// where calls go, and people wait for the latest revision.
func statusUrgency(before, after *v1alpha1.FunctionStatus) urgency {
	proof := func(s *v1alpha1.FunctionStatus) metav1.ConditionStatus {
		return findCondition(s.Conditions, v1alpha1.ConditionRevisionReady).Status
	}
	switch {
	case proof(before) != proof(after) || !equality.Semantic.DeepEqual(stateIn(before), stateIn(after)):
		return decisions
	case conditionsDiffer(before.Conditions, after.Conditions):
		return conditions
	default:
		return counts
	}
}

func stateIn(s *v1alpha1.FunctionStatus) rollout.State {
	return rollout.StateOf(&v1alpha1.Function{Status: *s})
}

// conditionsDiffer compares all but the times of transition.
func conditionsDiffer(a, b []metav1.Condition) bool {
	if len(a) != len(b) {
		return true
	}
	for _, c := range a {
		old := meta.FindStatusCondition(b, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message || old.ObservedGeneration != c.ObservedGeneration {
			return true
		}
	}
	return false
}
