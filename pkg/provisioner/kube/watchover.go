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

// watchOver looks every second for what no event tells: pods that were created
// and never seen, and pods that do not end.
func (w *watcher) watchOver(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, in := range w.unseen(time.Now()) {
				w.lookFor(ctx, in)
			}
			w.giveUp(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// unseen are some instances whose pods should have been seen by now.
func (w *watcher) unseen(now time.Time) []*instance {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	var found []*instance
	for _, in := range w.registry.byID {
		if in.stage == there && !in.seen && now.Sub(in.changed) > sightPatience && len(found) < lookups {
			in.changed = now
			found = append(found, in)
		}
	}
	return found
}

func (w *watcher) lookFor(ctx context.Context, in *instance) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pod, err := w.client.CoreV1().Pods(in.pod.namespace).Get(ctx, in.pod.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && pod.UID != in.uid {
		w.registry.missing(in.pod, in.uid)
	}
}

// giveUp ends the instances whose nodes do not end their pods.
func (w *watcher) giveUp(now time.Time) {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	for _, in := range w.registry.byID {
		if !in.endBy.IsZero() && now.After(in.endBy) {
			w.registry.finish(in, verdict{code: v1alpha1.ReasonNodeLost, blameNode: true,
				reason: fmt.Sprintf("the node %s did not end the pod in time", in.node)})
		}
	}
}
