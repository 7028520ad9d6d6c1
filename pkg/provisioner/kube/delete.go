package kube

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
)

// deletion is an order to delete a pod.
type deletion struct {
	lane string
	pod  podKey
	// uid is empty if it is not known whether there is such a pod.
	uid types.UID
	// grace is the grace period in seconds; negative means the pod's own.
	grace    int64
	attempts int
}

// order orders the deletion of an instance's pod, with a grace period in seconds or
// else its own. A spare instance has nothing to finish. It must be called with the lock.
func (r *Runtime) order(in *instance, grace *int64) {
	if r.ended {
		return
	}
	in.deleting = true
	if _, ofPool := spare.PoolOf(in.id.functionUID); ofPool {
		grace = new(brokenGrace)
	}
	d := deletion{lane: in.id.functionUID, pod: in.pod, uid: in.uid, grace: -1}
	if grace != nil {
		d.grace = *grace
	}
	r.condemned[d.pod] = true
	r.deletions.push(d.lane, d, 0)
}

// answered notes that the deletion of a pod needs nothing more.
func (r *Runtime) answered(d deletion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.condemned, d.pod)
}

// delete makes one attempt to delete a pod.
func (r *Runtime) delete(ctx context.Context, d deletion) {
	ask, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.client.CoreV1().Pods(d.pod.namespace).Delete(ask, d.pod.name, d.options())
	switch {
	case err == nil:
		r.answered(d)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		r.answered(d)
		r.missing(d.pod, d.uid)
	case ctx.Err() != nil:
	default:
		d.attempts++
		again := time.Now().Add(retryDelay(d.attempts, 30*time.Second))
		r.log.Warn("deleting a pod is tried again", "pod", d.pod.name, "namespace", d.pod.namespace, "at", again, "err", err)
		r.deletions.pushBack(d.lane, d, again)
	}
}

func (d deletion) options() metav1.DeleteOptions {
	var o metav1.DeleteOptions
	if d.grace >= 0 {
		o.GracePeriodSeconds = &d.grace
	}
	if d.uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &d.uid}
	}
	return o
}

// missing notes that a pod does not exist, which the informer may never tell.
func (r *Runtime) missing(key podKey, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.book.byPod[key]
	if in == nil || in.uid != uid || in.stage != there {
		return
	}
	v := verdict{reason: reasonStopped}
	if !in.stopping {
		v = judgeMissing
	}
	r.ledger.removePod(key)
	r.finish(in, v)
}
