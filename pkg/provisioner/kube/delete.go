package kube

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deletion is a request to delete a pod.
type deletion struct {
	flow string
	pod  podKey
	// uid is empty if it is unknown whether the pod exists.
	uid types.UID
	// grace is the grace period in seconds; negative means the pod's own.
	grace    int64
	attempts int
}

// deleter deletes pods, each until the API has answered.
type deleter struct {
	client Client
	queue  *workerPool[deletion]
	limit  int
	// missing is called for pods that do not exist.
	missing func(podKey, types.UID)
	// unreached is called for pods about which the API could not be asked.
	unreached func(podKey, types.UID)

	failures failureLog

	mu sync.Mutex
	// pending are pods whose deletion was requested and has not been answered.
	pending map[podKey]bool
}

func newDeleter(config Config, deps Deps, missing, unreached func(podKey, types.UID)) *deleter {
	d := &deleter{
		client: deps.Client, limit: config.MaxQueue, missing: missing, unreached: unreached,
		failures: failureLog{log: deps.Log}, pending: make(map[podKey]bool),
	}
	d.queue = newWorkerPool(config, d.delete)
	return d
}

// enqueue queues a deletion. The pods that exist bound their number. Of others, which may be as many
// as the attempts to create one while the API is away, none is added beyond the limit: Drift finds
// such a pod if it exists.
func (d *deleter) enqueue(del deletion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if del.uid == "" && len(d.pending) >= d.limit {
		return
	}
	d.pending[del.pod] = true
	d.queue.push(del.flow, del, 0)
}

// markDone records that the deletion of a pod is complete.
func (d *deleter) markDone(del deletion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, del.pod)
}

// isPending reports whether the deletion of a pod was requested and has not been answered.
func (d *deleter) isPending(pod podKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[pod]
}

// delete makes one attempt to delete a pod.
func (d *deleter) delete(ctx context.Context, del deletion) {
	ask, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := d.client.Pods(del.pod.namespace).Delete(ask, del.pod.name, del.options())
	switch {
	case err == nil:
		d.markDone(del)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		d.markDone(del)
		d.missing(del.pod, del.uid)
	case ctx.Err() != nil:
	default:
		if !answered(err) {
			d.unreached(del.pod, del.uid)
		}
		del.attempts++
		pause := retryDelay(del.attempts, 30*time.Second)
		d.failures.warn("deleting pods is tried again", "pod", del.pod.name, "namespace", del.pod.namespace, "at", time.Now().Add(pause), "err", err)
		// The API may refuse this pod only, so no other waits for it.
		time.AfterFunc(pause, func() { d.queue.push(del.flow, del, 0) })
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
