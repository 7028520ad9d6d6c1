package kube

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// registry has the instances that have not ended, under one lock, and ends them. Callers of
// its methods hold the lock, except where a comment says that the method takes it.
type registry struct {
	resources *resourceCache
	deleter   *deleter
	exits     *exitQueue

	mu sync.Mutex
	instanceIndex
	// ended says that Run has ended: nothing is started or deleted any more.
	ended bool
}

// close takes the lock and records that Run has ended.
func (r *registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// instanceOf is the instance of a pod, if it is one of ours.
func (r *registry) instanceOf(pod *corev1.Pod) *instance {
	in := r.byPod[keyOf(pod)]
	if in == nil || in.uid != "" && in.uid != pod.UID {
		return nil
	}
	if of, ours := identity(pod); !ours || of != in.id {
		return nil
	}
	return in
}

// podCreated records that the pod of an instance exists.
func (r *registry) podCreated(in *instance, pod *corev1.Pod) {
	in.uid = pod.UID
	if in.stage != stageCreated {
		now := time.Now()
		in.stage, in.changed, in.created, in.spec = stageCreated, now, now, provisioner.InstanceSpec{}
		in.revision = pod.Labels[wellknown.LabelRevision]
	}
	if in.stopping && !in.deleting {
		r.deleteStopped(in)
	}
}

// deleteStopped deletes the pod of an instance that was stopped, with the time that it needs.
func (r *registry) deleteStopped(in *instance) {
	if in.finished {
		r.hurry(in)
	} else {
		r.deletePod(in, nil)
	}
}

// deletePod requests the deletion of an instance's pod, with a grace period in seconds or else
// its own. A spare instance has nothing to finish.
func (r *registry) deletePod(in *instance, grace *int64) {
	if r.ended {
		return
	}
	in.deleting = true
	if _, ofPool := warmpool.PoolOf(in.id.functionUID); ofPool {
		grace = new(brokenGrace)
	}
	d := deletion{flow: in.id.functionUID, pod: in.pod, uid: in.uid, grace: -1}
	if grace != nil {
		d.grace = *grace
	}
	r.deleter.enqueue(d)
}

// deleteRemains deletes the rest of the pod of an instance that has ended. One that counts as
// ended because its node is silent may still run calls there, so if it is being deleted it keeps
// its time.
func (r *registry) deleteRemains(in *instance, pod *corev1.Pod) {
	given := pod.DeletionGracePeriodSeconds
	switch {
	case given != nil && *given <= brokenGrace:
	case !in.deleting && pod.DeletionTimestamp == nil, partEnded(pod):
		r.hurry(in)
	}
}

// hurry deletes, once, the pod of an instance that has finished its calls. Where the pod is
// being deleted already, this shortens the grace period, which counts until the kubelet begins
// to stop the pod: it begins with the grace period of that moment, and keeps to that. Without
// this, a function that ignores SIGTERM, or that gets it before its program has begun, stays
// for as long as a call may take.
func (r *registry) hurry(in *instance) {
	if !in.hurried {
		in.hurried = true
		r.deletePod(in, new(brokenGrace))
	}
}

// endByPod ends an instance whose pod reports its end, and deletes the rest of the pod.
func (r *registry) endByPod(in *instance, pod *corev1.Pod, v podOutcome) {
	r.deleteRemains(in, pod)
	if more := in.surplus(pod); v.code == v1alpha1.ReasonNodeFull && more != (placement.Amount{}) {
		r.resources.reject(in.node, in.id.functionUID, more, time.Now().Add(rejectedFor))
	}
	r.endInstance(in, classifyEnd(pod, v, in.stopping))
}

// endInstance ends an instance.
func (r *registry) endInstance(in *instance, v podOutcome) {
	if v.code == "" && in.unmounted != "" {
		v.code, v.reason = v1alpha1.ReasonStartTimeout, in.unmounted
	}
	r.removeInstance(in)
	r.resources.dropAssumed(in.pod)
	if v.avoidNode {
		r.resources.avoid(in.node, time.Now().Add(avoidFor))
	}
	r.exits.push(provisioner.Exit{
		FunctionUID: in.id.functionUID, CID: in.id.cid, Code: v.code, Reason: v.reason, LogTail: v.logTail, LogEmpty: v.logEmpty,
		CutOff: in.cutOff,
	})
}

// podMissing takes the lock and records that a pod does not exist, which the informer may
// never report.
func (r *registry) podMissing(key podKey, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.byPod[key]
	if in == nil || in.uid != uid || in.stage != stageCreated {
		return
	}
	r.resources.removePod(key)
	r.endInstance(in, classifyMissing(in.stopping))
}

// podUnreached takes the lock and records that the API could not be asked about a pod that is to be
// deleted. If it did not start, its node could not ask either, for the pod or for its volumes.
func (r *registry) podUnreached(key podKey, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.byPod[key]; in != nil && in.uid == uid {
		in.cutOffUnlessStarted()
	}
}

// apiUnreached takes the lock and records that the API could not be asked while pods were to start.
func (r *registry) apiUnreached() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.byID {
		if in.stage == stageCreated {
			in.cutOffUnlessStarted()
		}
	}
}

// instanceIndex holds the instances that have not ended.
type instanceIndex struct {
	byID       map[id]*instance
	byPod      map[podKey]*instance
	byFunction map[string]map[*instance]bool
}

func newInstanceIndex() instanceIndex {
	return instanceIndex{
		byID:       make(map[id]*instance),
		byPod:      make(map[podKey]*instance),
		byFunction: make(map[string]map[*instance]bool),
	}
}

func (b *instanceIndex) addInstance(in *instance) {
	b.byID[in.id] = in
	b.byPod[in.pod] = in
	of := b.byFunction[in.id.functionUID]
	if of == nil {
		of = make(map[*instance]bool)
		b.byFunction[in.id.functionUID] = of
	}
	of[in] = true
}

func (b *instanceIndex) removeInstance(in *instance) {
	delete(b.byID, in.id)
	delete(b.byPod, in.pod)
	of := b.byFunction[in.id.functionUID]
	delete(of, in)
	if len(of) == 0 {
		delete(b.byFunction, in.id.functionUID)
	}
}

// contains says whether the instance has not ended.
func (b *instanceIndex) contains(in *instance) bool { return b.byID[in.id] == in }
