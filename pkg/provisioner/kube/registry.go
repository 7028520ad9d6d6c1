package kube

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// registry holds the instances that have not ended, under the lock that all changes of
// instances need, and brings them to their end. Its methods are called with the lock,
// but for those that say that they take it.
type registry struct {
	ledger  *ledger
	deleter *deleter
	outbox  *outbox

	mu sync.Mutex
	book
	// ended says that Run has ended: nothing is started or deleted any more.
	ended bool
}

// close takes the lock and notes that Run has ended.
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

// exists notes that the pod of an instance is there.
func (r *registry) exists(in *instance, pod *corev1.Pod) {
	in.uid = pod.UID
	if in.stage != there {
		now := time.Now()
		in.stage, in.changed, in.created, in.spec = there, now, now, provisioner.InstanceSpec{}
		in.revision = pod.Labels[v1alpha1.LabelRevision]
	}
	if in.stopping && !in.deleting {
		r.condemn(in, nil)
	}
}

// condemn orders the deletion of an instance's pod, with a grace period in seconds or
// else its own. A spare instance has nothing to finish.
func (r *registry) condemn(in *instance, grace *int64) {
	if r.ended {
		return
	}
	in.deleting = true
	if _, ofPool := warmpool.PoolOf(in.id.functionUID); ofPool {
		grace = new(brokenGrace)
	}
	d := deletion{lane: in.id.functionUID, pod: in.pod, uid: in.uid, grace: -1}
	if grace != nil {
		d.grace = *grace
	}
	r.deleter.order(d)
}

// discard deletes what is left of the pod of an instance that has ended.
func (r *registry) discard(in *instance, pod *corev1.Pod) {
	if pod.DeletionTimestamp == nil && !in.deleting {
		r.condemn(in, new(brokenGrace))
	}
}

// conclude ends an instance whose pod says that it has ended, and deletes what
// is left of the pod.
func (r *registry) conclude(in *instance, pod *corev1.Pod, v verdict) {
	r.discard(in, pod)
	r.finish(in, judgeEnd(pod, v, in.stopping))
}

// finish ends an instance.
func (r *registry) finish(in *instance, v verdict) {
	if v.code == "" && in.unmounted != "" {
		v.code, v.reason = v1alpha1.ReasonStartTimeout, in.unmounted
	}
	r.remove(in)
	r.ledger.dropAssumed(in.pod)
	if v.blameNode {
		r.ledger.avoid(in.node, time.Now().Add(avoidFor))
	}
	r.outbox.tell(provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid, Code: v.code, Reason: v.reason, LogTail: v.logTail})
}

// missing takes the lock and notes that a pod does not exist, which the informer may
// never tell.
func (r *registry) missing(key podKey, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.byPod[key]
	if in == nil || in.uid != uid || in.stage != there {
		return
	}
	r.ledger.removePod(key)
	r.finish(in, judgeMissing(in.stopping))
}

// book holds the instances that have not ended.
type book struct {
	byID       map[id]*instance
	byPod      map[podKey]*instance
	byFunction map[string]map[*instance]bool
}

func newBook() book {
	return book{
		byID:       make(map[id]*instance),
		byPod:      make(map[podKey]*instance),
		byFunction: make(map[string]map[*instance]bool),
	}
}

func (b *book) add(in *instance) {
	b.byID[in.id] = in
	b.byPod[in.pod] = in
	of := b.byFunction[in.id.functionUID]
	if of == nil {
		of = make(map[*instance]bool)
		b.byFunction[in.id.functionUID] = of
	}
	of[in] = true
}

func (b *book) remove(in *instance) {
	delete(b.byID, in.id)
	delete(b.byPod, in.pod)
	of := b.byFunction[in.id.functionUID]
	delete(of, in)
	if len(of) == 0 {
		delete(b.byFunction, in.id.functionUID)
	}
}

// has says whether the instance has not ended.
func (b *book) has(in *instance) bool { return b.byID[in.id] == in }
