package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// lookups bounds how many pods are asked for in one round.
const lookups = 10

var judgeMissing = verdict{ended: true, code: v1alpha1.ReasonNodeLost, reason: "the pod was deleted, and not by Windlass"}

// watchOver looks every second for what no event tells: pods that were created
// and never seen, and pods that do not end.
func (r *Runtime) watchOver(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, in := range r.unseen(time.Now()) {
				r.lookFor(ctx, in)
			}
			r.giveUp(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// unseen are some instances whose pods should have been seen by now.
func (r *Runtime) unseen(now time.Time) []*instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*instance
	for _, in := range r.book.byID {
		if in.stage == there && !in.seen && now.Sub(in.changed) > sightPatience && len(found) < lookups {
			in.changed = now
			found = append(found, in)
		}
	}
	return found
}

func (r *Runtime) lookFor(ctx context.Context, in *instance) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pod, err := r.client.CoreV1().Pods(in.pod.namespace).Get(ctx, in.pod.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && pod.UID != in.uid {
		r.missing(in.pod, in.uid)
	}
}

// giveUp ends the instances whose nodes do not end their pods.
func (r *Runtime) giveUp(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.book.byID {
		if !in.endBy.IsZero() && now.After(in.endBy) {
			r.finish(in, verdict{code: v1alpha1.ReasonNodeLost, blameNode: true,
				reason: fmt.Sprintf("the node %s did not end the pod in time", in.node)})
		}
	}
}
