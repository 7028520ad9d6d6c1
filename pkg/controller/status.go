package controller

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Reasons of Events that are not reasons of conditions.
const (
	reasonReady   = "Ready"
	reasonDrained = "Drained"
)

// agentContainer is the name of the container that every pod has beside that of
// the function.
const agentContainer = "agent"

// maxMessage bounds the message of a condition or an Event, in bytes.
const maxMessage = 1000

// statusOf is the status that a function should have. A time of transition
// stays for as long as the condition's status does.
func statusOf(in input) v1alpha1.FunctionStatus {
	f := in.function
	next := *f.Status.DeepCopy()
	next.Selector = v1alpha1.LabelFunctionUID + "=" + string(f.UID)
	next.URL = urlOf(in.gateway, f)
	v := view(in)
	if v == nil {
		return next
	}
	if in.facts != nil {
		next.Instances = countsOf(in.facts)
		next.Queued = in.facts.queued
		next.MeanExecutionTime, next.MeanStartTime = meanOf(in.facts.means.Execution), meanOf(in.facts.means.Start)
	}
	next.ObservedGeneration = v.generation
	for _, c := range []metav1.Condition{v.ready, v.provisioned, v.progressing} {
		c.ObservedGeneration = v.generation
		c.Message = cut(c.Message)
		c.LastTransitionTime = metav1.NewTime(in.now)
		meta.SetStatusCondition(&next.Conditions, c)
	}
	return next
}

// seen are the conditions of a function at a time.
type seen struct {
	generation                      int64
	ready, provisioned, progressing metav1.Condition
}

// same are conditions of which all but the last, which is false, say the same.
func same(generation int64, status metav1.ConditionStatus, reason, message string) *seen {
	return &seen{
		generation:  generation,
		ready:       condition(v1alpha1.ConditionReady, status, reason, message),
		provisioned: condition(v1alpha1.ConditionProvisioned, status, reason, message),
		progressing: condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, reason, message),
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// view says what is to be said of a function, or nil if it is too early to
// unsay what was said before.
func view(in input) *seen {
	f := in.function
	if !f.DeletionTimestamp.IsZero() {
		v := same(f.Generation, metav1.ConditionFalse, v1alpha1.ReasonDraining,
			"the function is being deleted: it takes no calls any more, and its instances finish")
		v.progressing.Status = metav1.ConditionTrue
		return v
	}
	if errs := invalid(in); len(errs) > 0 {
		return same(f.Generation, metav1.ConditionFalse, v1alpha1.ReasonInvalid, sentence(errs))
	}
	if f.Spec.Template.RuntimeRef.Name != "" && in.runtime == nil {
		return same(f.Generation, metav1.ConditionFalse, v1alpha1.ReasonUnknownRuntime, fmt.Sprintf(
			"there is no ClusterRuntime %q; make it, or write in spec.template.runtimeRef.name one that \"kubectl get clusterruntimes\" lists", f.Spec.Template.RuntimeRef.Name))
	}
	if in.facts == nil {
		if in.settling && meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionReady) != nil {
			return nil
		}
		return same(f.Generation, metav1.ConditionUnknown, v1alpha1.ReasonUnobserved,
			"no scheduler tells of the function; what the status says besides is the last that is known")
	}
	return &seen{
		generation:  min(in.facts.generation, f.Generation),
		ready:       readyOf(f, in.facts),
		provisioned: provisionedOf(f, in.facts),
		progressing: progressingOf(f, in.facts),
	}
}

func readyOf(f *v1alpha1.Function, facts *facts) metav1.Condition {
	why, failing := obstacle(f, facts)
	switch {
	case failing && facts.created == 0:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, why.reason, why.detail)
	case failing:
		return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, started(facts),
			"the function can be called, but further instances do not start: "+why.reason+": "+why.detail)
	case facts.started:
		return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonStarted, v1alpha1.MessageStarted)
	default:
		return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAccepted, v1alpha1.MessageAccepted)
	}
}

func provisionedOf(f *v1alpha1.Function, facts *facts) metav1.Condition {
	least := int64(f.Spec.Scaling.MinInstances)
	why, failing := obstacle(f, facts)
	switch {
	case facts.unconfirmed:
		return condition(v1alpha1.ConditionProvisioned, metav1.ConditionUnknown, v1alpha1.ReasonUnconfirmed,
			"etcd cannot be reached: calls are served, but no more than a fifth more instances are created until it is back")
	case least == 0:
		return condition(v1alpha1.ConditionProvisioned, metav1.ConditionTrue, v1alpha1.ReasonProvisioned,
			"instances come and go with the calls; scaling.minInstances asks for none")
	case facts.created >= least:
		return condition(v1alpha1.ConditionProvisioned, metav1.ConditionTrue, v1alpha1.ReasonProvisioned,
			fmt.Sprintf("there are as many instances as scaling.minInstances asks for, %d", least))
	case failing:
		return condition(v1alpha1.ConditionProvisioned, metav1.ConditionFalse, why.reason, why.detail)
	default:
		return condition(v1alpha1.ConditionProvisioned, metav1.ConditionFalse, v1alpha1.ReasonCreating,
			fmt.Sprintf("scaling.minInstances asks for %d instances; they are being created", least))
	}
}

func progressingOf(f *v1alpha1.Function, facts *facts) metav1.Condition {
	switch {
	case facts.generation < f.Generation:
		return condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonReplacing,
			"the scheduler has not taken up the latest change yet")
	case facts.outdated > 0:
		return condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonReplacing,
			"instances of an older revision finish, and new ones take their place")
	case facts.creating > 0:
		return condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonCreating,
			"instances are being created")
	default:
		return condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonStable,
			"nothing is being created or replaced")
	}
}

// started is the reason of a function that is ready.
func started(facts *facts) string {
	if facts.started {
		return v1alpha1.ReasonStarted
	}
	return v1alpha1.ReasonAccepted
}

// reasonPattern is what Kubernetes takes as the reason of a condition.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// obstacle says why no further instances start.
func obstacle(f *v1alpha1.Function, facts *facts) (problem, bool) {
	switch {
	case facts.problem != nil:
		why := *facts.problem
		if !reasonPattern.MatchString(why.reason) {
			why.reason = v1alpha1.ReasonStartFailed
		}
		if why.detail == "" {
			why.detail = "the last instance could not start"
		}
		if why.reason == v1alpha1.ReasonImagePullFailed && f.Spec.Template.Image != "" && !strings.Contains(why.detail, f.Spec.Template.Image) {
			why.detail = fmt.Sprintf("image %s: %s", f.Spec.Template.Image, why.detail)
		}
		return why, true
	case facts.noRoom != "":
		return problem{v1alpha1.ReasonNoCapacity, facts.noRoom}, true
	default:
		return problem{}, false
	}
}

// transitions are the Events that tell of the difference between conditions.
func transitions(before, after []metav1.Condition) []happening {
	var events []happening
	old, now := find(before, v1alpha1.ConditionReady), find(after, v1alpha1.ConditionReady)
	switch {
	case now.Status == metav1.ConditionFalse && (old.Status != now.Status || old.Reason != now.Reason):
		events = append(events, happening{now.Reason, now.Message, now.Reason != v1alpha1.ReasonDraining})
	case now.Status == metav1.ConditionTrue && old.Status == metav1.ConditionFalse:
		events = append(events, happening{reason: reasonReady, message: "the function can be called again"})
	}
	old, now = find(before, v1alpha1.ConditionProgressing), find(after, v1alpha1.ConditionProgressing)
	if now.Reason == v1alpha1.ReasonReplacing && old.Reason != now.Reason {
		events = append(events, happening{reason: now.Reason, message: now.Message})
	}
	return events
}

// find is the condition of a type, or a zero one.
func find(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func countsOf(facts *facts) v1alpha1.InstanceCounts {
	busy := min(facts.busy, facts.created)
	return v1alpha1.InstanceCounts{
		Creating: small(facts.creating),
		Created:  small(facts.created),
		Busy:     small(busy),
		Idle:     small(facts.created - busy),
	}
}

func small(n int64) int32 { return int32(min(n, math.MaxInt32)) }

// meanOf is the mean with three digits: more of them would only make the status
// change more often.
func meanOf(mean time.Duration) *metav1.Duration {
	if mean <= 0 {
		return nil
	}
	unit := time.Duration(1)
	for mean/unit >= 1000 {
		unit *= 10
	}
	return &metav1.Duration{Duration: mean.Round(unit)}
}

// sentence joins errors to one text.
func sentence(errs field.ErrorList) string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// cut shortens a text to maxMessage without breaking a character.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage - len("...")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
