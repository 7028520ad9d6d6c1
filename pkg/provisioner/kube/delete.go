package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
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

// deleter deletes pods, each until the API has answered.
type deleter struct {
	client kubernetes.Interface
	log    *slog.Logger
	queue  *pump[deletion]
	// missing is told of pods that do not exist.
	missing func(podKey, types.UID)

	mu sync.Mutex
	// condemned are pods whose deletion was ordered and has not been answered.
	condemned map[podKey]bool
}

func newDeleter(config Config, deps Deps, missing func(podKey, types.UID)) *deleter {
	d := &deleter{client: deps.Client, log: deps.Log, missing: missing, condemned: make(map[podKey]bool)}
	d.queue = newPump(config, d.delete)
	return d
}

// order orders a deletion.
func (d *deleter) order(del deletion) {
	d.mu.Lock()
	d.condemned[del.pod] = true
	d.mu.Unlock()
	d.queue.push(del.lane, del, 0)
}

// answered notes that the deletion of a pod needs nothing more.
func (d *deleter) answered(del deletion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.condemned, del.pod)
}

// ordered tells whether the deletion of a pod was ordered and has not been answered.
func (d *deleter) ordered(pod podKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.condemned[pod]
}

// delete makes one attempt to delete a pod.
func (d *deleter) delete(ctx context.Context, del deletion) {
	ask, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := d.client.CoreV1().Pods(del.pod.namespace).Delete(ask, del.pod.name, del.options())
	switch {
	case err == nil:
		d.answered(del)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		d.answered(del)
		d.missing(del.pod, del.uid)
	case ctx.Err() != nil:
	default:
		del.attempts++
		again := time.Now().Add(retryDelay(del.attempts, 30*time.Second))
		d.log.Warn("deleting a pod is tried again", "pod", del.pod.name, "namespace", del.pod.namespace, "at", again, "err", err)
		d.queue.pushBack(del.lane, del, again)
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
