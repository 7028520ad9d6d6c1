package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// runtimeInput is all that planRuntime decides from. It changes none of it.
type runtimeInput struct {
	now time.Time
	// runtime is as it was read, without defaults.
	runtime  *v1alpha1.ClusterRuntime
	observed runtimeFacts
	// settles is the time until a silent scheduler counts as one that does not report; 0 if it
	// is over.
	settles time.Duration
	// written is when the status was written last; zero if it was not.
	written time.Time
	pace    pace
}

// runtimeOutcome is what planRuntime wants to be done.
type runtimeOutcome struct {
	// status is nil if it must not be written now; pace is that after the write.
	status *v1alpha1.ClusterRuntimeStatus
	pace   pace
	// again is when to plan again even if nothing happens; 0 means never.
	again time.Duration
}

// planRuntime decides whether to write the status of a ClusterRuntime now, later or not at
// all.
func planRuntime(in runtimeInput) runtimeOutcome {
	before := &in.runtime.Status
	// A controller that has just started has reports of only some schedulers.
	if in.settles > 0 && in.observed.incomplete && before.ObservedGeneration == in.runtime.Generation {
		return runtimeOutcome{pace: in.pace, again: in.settles}
	}
	next := runtimeStatusOf(in)
	if equality.Semantic.DeepEqual(*before, next) {
		return runtimeOutcome{pace: in.pace}
	}
	as := counts
	if conditionsDiffer(before.Conditions, next.Conditions) {
		as = conditions
	}
	if wait := in.pace.delay(in.now, in.written, as); wait > 0 {
		return runtimeOutcome{pace: in.pace, again: wait}
	}
	return runtimeOutcome{status: &next, pace: in.pace.spend(in.now, as)}
}

// runtimeStatusOf is the status that a ClusterRuntime should have.
func runtimeStatusOf(in runtimeInput) v1alpha1.ClusterRuntimeStatus {
	rt := in.runtime.DeepCopy()
	rt.APIVersion, rt.Kind = v1alpha1.APIVersion, v1alpha1.KindClusterRuntime
	v1alpha1.DefaultClusterRuntime(rt)
	next := v1alpha1.ClusterRuntimeStatus{ObservedGeneration: observedOf(rt, in.observed)}
	for _, p := range rt.Spec.WarmPools {
		counted := v1alpha1.SpareCounts{Ready: clampInt32(in.observed.pools[p.Name].ready), Desired: clampInt32(in.observed.pools[p.Name].desired)}
		next.WarmPools = append(next.WarmPools, v1alpha1.WarmPoolStatus{Name: p.Name, SpareCounts: counted})
		next.SpareInstances.Ready += counted.Ready
		next.SpareInstances.Desired += counted.Desired
	}
	next.Conditions = slices.DeleteFunc(slices.Clone(in.runtime.Status.Conditions), func(c metav1.Condition) bool { return c.LastTransitionTime.Unix() <= 0 })
	for _, c := range runtimeConditions(rt, in.observed) {
		if c.Status == "" {
			meta.RemoveStatusCondition(&next.Conditions, c.Type)
			continue
		}
		c.ObservedGeneration, c.LastTransitionTime, c.Message = next.ObservedGeneration, metav1.NewTime(in.now).Rfc3339Copy(), truncate(c.Message)
		meta.SetStatusCondition(&next.Conditions, c)
	}
	return next
}

// observedOf is the generation that a status is about: that which all schedulers have
// considered if they have to, but never an earlier one than before.
func observedOf(rt *v1alpha1.ClusterRuntime, observed runtimeFacts) int64 {
	if len(rt.Spec.WarmPools) == 0 || observed.schedulers == 0 {
		return rt.Generation
	}
	return min(rt.Generation, max(rt.Status.ObservedGeneration, observed.generation))
}

// runtimeConditions are the conditions of every type; those without a status are left out.
func runtimeConditions(rt *v1alpha1.ClusterRuntime, observed runtimeFacts) []metav1.Condition {
	say := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	if errs := v1alpha1.ValidateClusterRuntime(rt); len(errs) > 0 {
		why := sentence(errs)
		return []metav1.Condition{
			say(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalid, why),
			say(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid, why),
			say(v1alpha1.ConditionWarmPoolsReady, metav1.ConditionFalse, v1alpha1.ReasonInvalid, why),
			say(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalid, why),
		}
	}
	return []metav1.Condition{
		runtimeReady(rt, observed),
		say(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the runtime is valid"),
		warmPoolsReady(rt, observed),
		{Type: v1alpha1.ConditionStalled},
	}
}

// runtimeReady says whether functions can run on the ClusterRuntime, as far as spare instances
// show it: without them nothing is known before a function starts.
func runtimeReady(rt *v1alpha1.ClusterRuntime, observed runtimeFacts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted,
		Message: "functions can use the runtime; the first start pulls its image"}
	for _, p := range rt.Spec.WarmPools {
		switch of := observed.pools[p.Name]; {
		case of.ready > 0:
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonStarted, "functions can use the runtime; its spare instances have started"
			return c
		case of.desired > 0 && of.problem.reason != "" && c.Status == metav1.ConditionTrue:
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, of.problem.reason, "its spare instances do not start: "+missingSpares(p.Name, of)
		}
	}
	return c
}

// warmPoolsReady says whether the pools have their sizes; if not, why the first incomplete one
// does not.
func warmPoolsReady(rt *v1alpha1.ClusterRuntime, observed runtimeFacts) metav1.Condition {
	say := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionWarmPoolsReady, Status: status, Reason: reason, Message: message}
	}
	switch {
	case len(rt.Spec.WarmPools) == 0:
		return say(metav1.ConditionTrue, v1alpha1.ReasonNoPools, "the runtime has no warm pools")
	case observed.schedulers == 0:
		return say(metav1.ConditionUnknown, v1alpha1.ReasonUnobserved, "no scheduler reports on warm pools")
	case observed.generation < rt.Generation:
		return say(metav1.ConditionUnknown, v1alpha1.ReasonSchedulerBehind, "a scheduler has not taken up the latest change yet")
	}
	all := int64(0)
	for _, p := range rt.Spec.WarmPools {
		of := observed.pools[p.Name]
		all += of.desired
		if of.ready >= of.desired {
			continue
		}
		reason := v1alpha1.ReasonCreating
		switch {
		case of.problem.reason != "":
			reason = of.problem.reason
		case of.noRoom:
			reason = v1alpha1.ReasonNoCapacity
		}
		return say(metav1.ConditionFalse, reason, missingSpares(p.Name, of))
	}
	if all == 0 {
		return say(metav1.ConditionTrue, v1alpha1.ReasonNotNeeded, "no function can use a spare instance, so Windlass starts none")
	}
	return say(metav1.ConditionTrue, v1alpha1.ReasonFull, fmt.Sprintf("all %d spare instances are ready", all))
}

// missingSpares says how much of a pool is missing, and why.
func missingSpares(name string, of poolFacts) string {
	text := fmt.Sprintf("warm pool %s has %d of %d spare instances", name, of.ready, of.desired)
	switch {
	case of.problem.detail != "":
		return text + "; " + of.problem.detail
	case of.noRoom:
		return text + "; nodes have no room, or functions need it"
	}
	return text
}
