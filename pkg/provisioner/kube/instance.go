package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// id names an instance.
type id struct {
	functionUID string
	cid         invocation.CID
}

func (i id) key() provisioner.Key {
	return provisioner.Key{FunctionUID: i.functionUID, CID: i.cid}
}

// stage is how far the pod of an instance is.
type stage int

const (
	// stageQueued pods wait to be created, for the first time or again.
	stageQueued stage = iota
	// stageCreating pods are being asked for.
	stageCreating
	// stageCreated are pods that exist.
	stageCreated
)

// instance was started or adopted and has not ended. The registry's lock guards all fields but
// id, pod and node.
type instance struct {
	id   id
	pod  podKey
	node string
	// spec is what to create; it is empty once the pod exists.
	spec     provisioner.InstanceSpec
	revision string
	requests placement.Amount
	// started is when it was launched, firstAttempt when its creation was first
	// requested, and changed when it reached its stage.
	started      time.Time
	firstAttempt time.Time
	changed      time.Time
	// created is when its pod was there, and sandboxed when the pod was seen to have
	// a network.
	created, sandboxed time.Time

	stage    stage
	attempts int
	// mayExist says that an attempt ended with an error after which the pod may exist.
	mayExist bool
	// uid is the pod's, once it is known; seen says that the informer has
	// shown the pod.
	uid  types.UID
	seen bool
	// stopping says that Stop was called, finished that it has no calls to finish, deleting that the pod's deletion was requested, and
	// hurried that it was requested with brokenGrace, or that no pod is left.
	stopping bool
	finished bool
	deleting bool
	hurried  bool
	// unmounted names the volumes that its pod waited for when Stop was called.
	unmounted string
	// cutOff says that the API could not be reached while its pod had no network yet.
	cutOff bool
	// endBy is when a pod that is ending must have ended.
	endBy time.Time
	// ran says that the pod was ready when it was adopted.
	ran bool
	// assigning is not nil while the pod still belongs to the spare instance that becomes this
	// one.
	assigning *assignment
}

// surplus is what a pod requests beyond what its node was chosen by: admission adds the overhead of
// a RuntimeClass, and sidecars.
func (in *instance) surplus(pod *corev1.Pod) placement.Amount {
	return podAmount(pod).Beyond(in.requests)
}

// functionOf is the UID of the unit that a pod's labels name or, if it is a spare
// instance, that of its pool; empty if it is neither.
func functionOf(pod *corev1.Pod) string {
	labels := pod.Labels
	if labels[wellknown.LabelManagedBy] != wellknown.ManagedBy {
		return ""
	}
	if labels[wellknown.LabelComponent] == wellknown.ComponentSpare {
		return warmpool.Pool{Scheduler: labels[wellknown.LabelScheduler], Namespace: pod.Namespace, Runtime: labels[wellknown.LabelRuntime], Name: labels[wellknown.LabelPool]}.UID()
	}
	return labels[wellknown.LabelRevisionUID]
}

// identity is the instance that a pod belongs to, by its labels. ok is false unless the pod's
// owner agrees, and its name, which is that of the instance unless it was a spare one before.
func identity(pod *corev1.Pod) (id, bool) {
	of := id{functionUID: functionOf(pod), cid: invocation.CID(pod.Labels[wellknown.LabelCID])}
	if of.functionUID == "" || of.cid == "" || len(of.cid) > podspec.MaxCID {
		return id{}, false
	}
	_, ofPool := warmpool.PoolOf(of.functionUID)
	for _, owner := range pod.OwnerReferences {
		if owner.APIVersion != v1alpha1.APIVersion || owner.Controller == nil || !*owner.Controller {
			continue
		}
		switch {
		case ofPool && owner.Kind == v1alpha1.KindClusterRuntime:
			return of, owner.Name == pod.Labels[wellknown.LabelRuntime]
		case !ofPool && ownsUnits(owner.Kind) && string(owner.UID) == of.functionUID:
			wasSpare := pod.Labels[wellknown.LabelPool] != ""
			return of, wasSpare || pod.Name == podspec.Name(pod.Labels[wellknown.LabelFunction], of.functionUID, of.cid)
		}
	}
	return id{}, false
}

// ownsUnits reports whether objects of a kind own the pods of units; see podspec.Pod.
func ownsUnits(kind string) bool {
	return kind == v1alpha1.KindFunctionRevision || kind == v1alpha1.KindFunction
}

// startedAt is when a pod was launched.
func startedAt(pod *corev1.Pod) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, pod.Annotations[podspec.AnnotationDecided]); err == nil {
		return t
	}
	return pod.CreationTimestamp.Time
}

// adoptedInstance is the instance of a pod that another scheduler created.
func adoptedInstance(pod *corev1.Pod, of id, now time.Time) *instance {
	return &instance{
		id:       of,
		pod:      keyOf(pod),
		node:     pod.Spec.NodeName,
		revision: pod.Labels[wellknown.LabelRevision],
		requests: podAmount(pod),
		started:  startedAt(pod),
		changed:  now,
		stage:    stageCreated,
		uid:      pod.UID,
		seen:     true,
		ran:      isReady(pod),
	}
}

func isReady(pod *corev1.Pod) bool { return conditionTrue(pod, corev1.PodReady) }

// hasSandbox says whether a pod has its network.
func hasSandbox(pod *corev1.Pod) bool {
	return conditionTrue(pod, corev1.PodReadyToStartContainers) || isReady(pod)
}

// conditionTrue says whether a condition of a pod is true.
func conditionTrue(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

// observeSandbox records when a pod's network was first seen.
func (in *instance) observeSandbox(pod *corev1.Pod, now time.Time) {
	if in.sandboxed.IsZero() && hasSandbox(pod) {
		in.sandboxed = now
	}
}

// cutOffUnlessStarted records that the API could not be reached. A node needs it until a pod has its network.
func (in *instance) cutOffUnlessStarted() { in.cutOff = in.cutOff || in.sandboxed.IsZero() }

// existing is what Adopt returns of an instance.
func (in *instance) existing() provisioner.Existing {
	return provisioner.Existing{
		CID:      in.id.cid,
		Revision: in.revision,
		Node:     in.node,
		Requests: in.requests,
		Started:  in.started,
		Ran:      in.ran,
		Ending:   in.stopping || in.deleting || !in.endBy.IsZero(),
	}
}

// observeDeletion records by when a pod that is ending must have ended.
func (in *instance) observeDeletion(pod *corev1.Pod, now time.Time) {
	if pod.DeletionTimestamp == nil || !in.endBy.IsZero() {
		return
	}
	var grace time.Duration
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	in.endBy = now.Add(grace + endTimeout)
}
