package controller

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

const (
	// endedGrace is how long a pod is kept after its agent has ended, so that
	// the scheduler, which deletes it as a rule, can do so first.
	endedGrace = 10 * time.Second
	// drainGrace is how long pods of a Function that is being deleted have beyond the timeout of
	// their calls until they are deleted.
	drainGrace = 30 * time.Second
)

// input is all that plan decides from. It changes none of it.
type input struct {
	now time.Time
	// function is as it was read, without defaults.
	function *v1alpha1.Function
	// runtime is nil if the function names none, or one that does not exist; runtimes then has
	// the names of existing ones.
	runtime  *v1alpha1.ClusterRuntime
	runtimes []v1alpha1.RuntimeName
	// notCreated says why the revision that it needs could not be created just now; nil if that
	// was not tried.
	notCreated *rollout.Failure
	// revisions are the function's revisions, and units the schedulers' reports about them, by
	// name. A revision that no scheduler reports has none.
	revisions []*v1alpha1.FunctionRevision
	units     map[string]facts
	// settling says that no scheduler reports a unit only because the controller has just
	// started.
	settling bool
	// pods are the pods with the function's UID.
	pods []pod
	// budgeted says that the namespace has PodDisruptionBudgets.
	budgeted bool
	// events have not been emitted yet.
	events []functionEvent
	// written are the last writes.
	written writes
	// hosts say where functions are called, and claims which functions ask for each host
	// that this one asks for.
	hosts  address.Rules
	claims map[string][]address.Claim
	// classes say what the function gets of what it asks for.
	classes classes
}

// writes are the last ones for a function.
type writes struct {
	// function is when its status was last written, and revisions when those of its revisions
	// were, by name; zero if never.
	function  time.Time
	revisions map[string]time.Time
	pace      pace
}

// pod is what matters of a function's pod.
type pod struct {
	name string
	// revision is the UID of its FunctionRevision.
	revision types.UID
	created  time.Time
	// imageID is the image of its function, as its node reports; "" until it does.
	imageID string
	// ended is when its agent, or all of it, ended; zero while it runs.
	ended time.Time
	// deleting says that it is being deleted already.
	deleting bool
}

// stays reports whether a pod goes on for now.
func (p pod) stays() bool { return !p.deleting && p.ended.IsZero() }

// facts are what a scheduler observes of one revision of a function, as far as something
// follows from it here.
type facts struct {
	generation        int64
	creating, created int64
	// waiting says that calls wait for an instance.
	waiting bool
	// problem is none unless instances do not start.
	problem problem
	// noRoom is not empty while no node has room: why not.
	noRoom string
	// unconfirmed says that etcd cannot be reached.
	unconfirmed bool
	// started says that an instance has started.
	started bool
}

// problem says why instances do not start; it has no reason if they do.
type problem struct {
	// reason is one of the condition reasons of a Function.
	reason string
	detail string
}

// functionEvent is an Event to emit about a Function.
type functionEvent struct {
	reason, message string
	warning         bool
}

// finalizerChange is what to do with the finalizer of a Function.
type finalizerChange int

const (
	finalizerKeep finalizerChange = iota
	finalizerAdd
	finalizerRemove
)

// outcome is what plan wants to be done.
type outcome struct {
	// deletePods are names of pods, and why they must go.
	deletePods []podDeletion
	finalizer  finalizerChange
	// create is a revision to make, or nil. Nothing is written before it exists, or could not be
	// created.
	create *v1alpha1.FunctionRevision
	// scales are the revisions whose spec.instances has to be written now, and revisions those
	// whose status has.
	scales, revisions []*v1alpha1.FunctionRevision
	// status is nil if it must not be written now.
	status *v1alpha1.FunctionStatus
	// pace is that after all these writes.
	pace pace
	// remove are revisions to delete.
	remove []*v1alpha1.FunctionRevision
	// events are emitted in any case, and changes after everything else has been done.
	events, changes []functionEvent
	// again is when to plan again even if nothing happens; 0 means never.
	again time.Duration
}

// podDeletion is a pod to delete.
type podDeletion struct {
	name string
	why  string
}

// Reasons to delete a pod.
const (
	agentEnded      = "AgentEnded"
	drainTimedOut   = "DrainTimedOut"
	neverStarted    = "NeverStarted"
	revisionRetired = "RevisionRetired"
	schedulerGone   = "SchedulerGone"
)

// plan decides what to do with a Function.
func plan(in input) outcome {
	out := outcome{pace: in.written.pace}
	deleting := !in.function.DeletionTimestamp.IsZero()
	held := slices.Contains(in.function.Finalizers, wellknown.FinalizerDrain)
	out.deletePods, out.again = podsToDelete(in)
	out.events = slices.Clone(in.events)
	switch {
	case !deleting && !held:
		out.finalizer = finalizerAdd
	case deleting && !held:
		return out
	case deleting && drained(in):
		out.finalizer = finalizerRemove
		out.changes = append(out.changes, functionEvent{reason: reasonDrained, message: "the last instance is gone"})
		out.again = 0
		return out
	case deleting && len(in.pods) == 0:
		// A scheduler that has reported instances may never report that they are gone.
		deadline, _ := drainDeadline(in, "")
		out.sooner(deadline.Sub(in.now))
	}
	planRollout(in, &out)
	return out
}

// mayWrite reports whether an object that was last written at a given time may be written now;
// if not, it schedules another look. Counts of one function are written together, so that they
// agree: all of them if the first may be.
func (o *outcome) mayWrite(in input, last time.Time, as urgency) bool {
	if wait := in.written.pace.delay(in.now, last, as); wait > 0 {
		o.sooner(wait)
		return false
	}
	o.pace = o.pace.spend(in.now, as)
	return true
}

func (o *outcome) sooner(d time.Duration) {
	if o.again == 0 || d < o.again {
		o.again = d
	}
}

// podsToDelete are the pods to delete now, and the time until there may be more.
func podsToDelete(in input) (now []podDeletion, again time.Duration) {
	out := outcome{}
	for _, p := range in.pods {
		if p.deleting {
			continue
		}
		if !p.ended.IsZero() {
			if wait := endedGrace - in.now.Sub(p.ended); wait > 0 {
				out.sooner(wait)
			} else {
				now = append(now, podDeletion{p.name, agentEnded})
				continue
			}
		}
		if deadline, draining := drainDeadline(in, p.revision); draining {
			if wait := deadline.Sub(in.now); wait > 0 {
				out.sooner(wait)
			} else {
				now = append(now, podDeletion{p.name, drainTimedOut})
			}
		}
	}
	return now, out.again
}

// drainDeadline is when the pods of a revision must have drained if the Function is being deleted.
// Their calls have the timeout of that revision, or that of the Function if it is unknown.
func drainDeadline(in input, revision types.UID) (time.Time, bool) {
	if in.function.DeletionTimestamp.IsZero() {
		return time.Time{}, false
	}
	timeout := in.function.Spec.Template.Timeout.Duration
	if i := slices.IndexFunc(in.revisions, func(r *v1alpha1.FunctionRevision) bool { return r.UID == revision }); i >= 0 {
		timeout = in.revisions[i].Spec.Template.Timeout.Duration
	}
	if timeout <= 0 {
		timeout = v1alpha1.DefaultTimeout
	}
	return in.function.DeletionTimestamp.Add(min(timeout, v1alpha1.MaxTimeout) + drainGrace), true
}

// drained reports that no instance is left. A scheduler may know an instance whose pod has not
// been seen here yet; its report counts until the deadline.
func drained(in input) bool {
	if len(in.pods) > 0 {
		return false
	}
	deadline, _ := drainDeadline(in, "")
	there := int64(0)
	for _, observed := range in.units {
		there += observed.creating + observed.created
	}
	return there == 0 || !in.now.Before(deadline)
}

// endedAt is when a pod's agent, or the whole pod, has ended; zero while it runs.
func endedAt(p *corev1.Pod) time.Time {
	var latest time.Time
	for _, c := range p.Status.ContainerStatuses {
		t := c.State.Terminated
		if t == nil {
			continue
		}
		if c.Name == agentContainer {
			return orCreation(t.FinishedAt, p)
		}
		if t.FinishedAt.After(latest) {
			latest = t.FinishedAt.Time
		}
	}
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return orCreation(metav1.NewTime(latest), p)
	}
	return time.Time{}
}

// imageIDOf is the image that a pod's function runs, with its digest; "" while its node has
// not reported, or if it reports more than a status takes.
func imageIDOf(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == functionContainer && len(c.ImageID) <= maxImageID {
			return c.ImageID
		}
	}
	return ""
}

// orCreation is t, or the time of the pod's creation where no time was noted.
func orCreation(t metav1.Time, p *corev1.Pod) time.Time {
	if t.IsZero() {
		return p.CreationTimestamp.Time
	}
	return t.Time
}
