package controller

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// Reasons of Events that are not reasons of conditions.
const (
	reasonReady         = "Ready"
	reasonRevisionReady = "RevisionReady"
	reasonTrafficMoved  = "TrafficMoved"
	reasonDrained       = "Drained"
)

// Names of the containers that every pod has.
const (
	agentContainer    = "agent"
	functionContainer = "function"
)

// maxImageID bounds FunctionRevisionStatus.ImageID, in bytes.
const maxImageID = 2048

// maxMessage bounds the message of an Event, in bytes.
const maxMessage = 1000

// statusOf is the status that a function should have.
func statusOf(in input, look rollout.ConditionInput) v1alpha1.FunctionStatus {
	f := in.function
	next := *f.Status.DeepCopy()
	next.Selector = wellknown.LabelFunctionUID + "=" + string(f.UID)
	next.Conditions, next.ObservedGeneration = rollout.Conditions(look)
	if needsDecision(look) {
		look.Plan.State.Write(&next)
	}
	writeURLs(in.hosts.URLs, f, &next)
	next.Hosts = hostStates(in)
	if len(in.units) > 0 {
		next.Instances = countsOf(in)
	}
	return next
}

// writeURLs writes the addresses of the function and of the tags of its traffic.
func writeURLs(urls address.URLs, f *v1alpha1.Function, status *v1alpha1.FunctionStatus) {
	status.URL = urls.Function(f.Key())
	status.Traffic = slices.Clone(status.Traffic)
	for i := range status.Traffic {
		status.Traffic[i].URL = urls.Tag(f.Key(), status.Traffic[i].Tag)
	}
}

// countsOf are the instances of all revisions together. A revision with calls that nobody reports has
// the last ones for as long as it has pods: its scheduler may be away while they run.
func countsOf(in input) v1alpha1.InstanceCounts {
	var ready, desired int64
	for _, r := range in.revisions {
		observed, reported := in.units[r.Name]
		if !reported && meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionActive) && !deserted(in, r) {
			ready += int64(r.Status.Instances.Ready)
			desired += int64(r.Spec.Instances)
		}
		ready += observed.created
		desired += observed.created + observed.creating
	}
	return v1alpha1.InstanceCounts{Ready: clampInt32(ready), Desired: clampInt32(desired)}
}

// reasonPattern is what Kubernetes takes as the reason of a condition.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// failureOf is a problem as a scheduler reports it, in the words of a condition.
func failureOf(r *v1alpha1.FunctionRevision, observed problem) *rollout.Failure {
	if observed.reason == "" {
		return nil
	}
	why := &rollout.Failure{Reason: observed.reason, Message: observed.detail}
	if !reasonPattern.MatchString(why.Reason) {
		why.Reason = v1alpha1.ReasonStartFailed
	}
	if why.Message == "" {
		why.Message = "the last instance could not start"
	}
	if image := r.Spec.Template.Image; why.Reason == v1alpha1.ReasonImagePullFailed && image != "" && !strings.Contains(why.Message, image) {
		why.Message = fmt.Sprintf("image %s: %s", image, why.Message)
	}
	return why
}

// transitions are the Events for the difference between two statuses. What both
// the function and its latest revision say is emitted once.
func transitions(before, after *v1alpha1.FunctionStatus) []functionEvent {
	var events []functionEvent
	tell := func(reason, message string, warning bool) {
		if !slices.ContainsFunc(events, func(e functionEvent) bool { return e.reason == reason }) {
			events = append(events, functionEvent{reason, message, warning})
		}
	}
	old, now := findCondition(before.Conditions, v1alpha1.ConditionReady), findCondition(after.Conditions, v1alpha1.ConditionReady)
	switch {
	case now.Status == metav1.ConditionFalse && (old.Status != now.Status || old.Reason != now.Reason):
		tell(now.Reason, now.Message, now.Reason != v1alpha1.ReasonDraining)
	case now.Status == metav1.ConditionTrue && old.Status == metav1.ConditionFalse:
		tell(reasonReady, "the function can be called again", false)
	}
	isNew := before.LatestCreatedRevisionName != after.LatestCreatedRevisionName
	old, now = findCondition(before.Conditions, v1alpha1.ConditionRevisionReady), findCondition(after.Conditions, v1alpha1.ConditionRevisionReady)
	switch {
	case now.Status == metav1.ConditionTrue && (isNew || old.Status != now.Status):
		tell(reasonRevisionReady, now.Message, false)
	case now.Status == metav1.ConditionFalse && now.Reason != v1alpha1.ReasonDraining && (isNew || old.Status != now.Status || old.Reason != now.Reason):
		tell(now.Reason, now.Message, true)
	}
	if len(before.Traffic) > 0 && !slices.EqualFunc(before.Traffic, after.Traffic, sameCalls) {
		tell(reasonTrafficMoved, rollout.Split(after.Traffic), false)
	}
	old, now = findCondition(before.Conditions, v1alpha1.ConditionStalled), findCondition(after.Conditions, v1alpha1.ConditionStalled)
	if now.Status == metav1.ConditionTrue && now.Reason != old.Reason && now.Reason == v1alpha1.ReasonRevisionMissing {
		tell(now.Reason, now.Message, true)
	}
	for _, kind := range []string{v1alpha1.ConditionHostsAccepted, v1alpha1.ConditionSchedulingClass} {
		old, now = findCondition(before.Conditions, kind), findCondition(after.Conditions, kind)
		if now.Status == metav1.ConditionFalse && (old.Status != now.Status || old.Reason != now.Reason) {
			tell(now.Reason, now.Message, true)
		}
	}
	return events
}

// sameCalls reports whether the same calls go to the same revision.
func sameCalls(a, b v1alpha1.TrafficStatus) bool {
	return a.Tag == b.Tag && a.RevisionName == b.RevisionName && a.Weight == b.Weight
}

// findCondition is the condition of a type, or a zero one.
func findCondition(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func clampInt32(n int64) int32 { return int32(min(n, math.MaxInt32)) }

// truncate shortens a text to maxMessage without breaking a character.
func truncate(s string) string { return invocation.ExcerptOf(strings.ToValidUTF8(s, "?"), maxMessage) }
