package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// watcher does what the state of pods and nodes means for instances.
type watcher struct {
	client    Client
	resources *resourceCache
	registry  *registry
	creator   *creator
	cluster   *cluster
}

func newWatcher(deps Deps, registry *registry, creator *creator) (*watcher, error) {
	w := &watcher{client: deps.Client, resources: registry.resources, registry: registry, creator: creator}
	var err error
	w.cluster, err = newCluster(deps.Client, w, w, registry.apiUnreached)
	return w, err
}

// podChanged receives every new or changed pod.
func (w *watcher) podChanged(pod *corev1.Pod) {
	w.resources.setPod(pod)
	w.applyPod(pod)
}

// applyPod does what the state of a pod means for its instance.
func (w *watcher) applyPod(pod *corev1.Pod) {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	in := w.registry.instanceOf(pod)
	if in == nil {
		return
	}
	if in.stage == stageQueued {
		// The answer to an attempt was lost.
		w.creator.dequeue(in)
	}
	in.seen = true
	w.registry.podCreated(in, pod)
	in.observeSandbox(pod, time.Now())
	in.observeDeletion(pod, time.Now())
	switch v := classifyPod(pod, w.resources.ready(in.node)); {
	case v.ended && functionStatusPending(pod):
		w.registry.deleteRemains(in, pod)
	case v.ended:
		w.registry.endByPod(in, pod, v)
	}
}

// podGone receives every deleted pod in its last known state.
func (w *watcher) podGone(pod *corev1.Pod) {
	w.resources.removePod(keyOf(pod))
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	if in := w.registry.instanceOf(pod); in != nil {
		in.hurried = true
		w.registry.endByPod(in, pod, classifyGone(pod))
	}
}

// nodeChanged receives every new or changed node.
func (w *watcher) nodeChanged(n *corev1.Node) {
	if !w.resources.setNode(n) {
		return
	}
	for _, pod := range w.podsOn(n.Name) {
		w.applyPod(pod)
	}
}

// nodeGone receives every deleted node.
func (w *watcher) nodeGone(name string) {
	w.resources.removeNode(name)
	pods := w.podsOn(name)
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	for _, pod := range pods {
		if in := w.registry.instanceOf(pod); in != nil {
			w.registry.endByPod(in, pod, podOutcome{ended: true, code: v1alpha1.ReasonNodeLost,
				reason: fmt.Sprintf("the node %s is gone", name)})
		}
	}
}

// podsOn are the pods of instances on a node, as far as they have been seen.
func (w *watcher) podsOn(node string) []*corev1.Pod {
	w.registry.mu.Lock()
	var keys []podKey
	for key, in := range w.registry.byPod {
		if in.node == node {
			keys = append(keys, key)
		}
	}
	w.registry.mu.Unlock()
	var pods []*corev1.Pod
	for _, key := range keys {
		if pod := w.cluster.pod(key); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// maxVerified bounds how many pods the driver asks the API for in one round.
const maxVerified = 10

// resyncLoop checks every second what no event reports: pods that were created
// and never seen, and pods that do not end.
func (w *watcher) resyncLoop(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.verifyAll(ctx, w.unobserved(time.Now()))
			w.endOverdue(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// unobserved are some pods that should have been seen by now.
func (w *watcher) unobserved(now time.Time) map[podKey]types.UID {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	found := make(map[podKey]types.UID)
	for _, in := range w.registry.byID {
		if in.stage == stageCreated && !in.seen && now.Sub(in.changed) > observeTimeout && len(found) < maxVerified {
			in.changed = now
			found[in.pod] = in.uid
		}
	}
	return found
}

// verifyAll asks the API for pods. Those that it does not answer for in time are asked for again.
func (w *watcher) verifyAll(ctx context.Context, pods map[podKey]types.UID) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for pod, uid := range pods {
		w.verify(ctx, pod, uid)
	}
}

func (w *watcher) verify(ctx context.Context, key podKey, uid types.UID) {
	pod, err := w.client.Pods(key.namespace).Get(ctx, key.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && pod.UID != uid {
		w.registry.podMissing(key, uid)
	}
}

// endOverdue ends the instances whose nodes do not end their pods.
func (w *watcher) endOverdue(now time.Time) {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	for _, in := range w.registry.byID {
		if !in.endBy.IsZero() && now.After(in.endBy) {
			w.registry.endInstance(in, podOutcome{code: v1alpha1.ReasonNodeLost, avoidNode: true,
				reason: fmt.Sprintf("the node %s did not end the pod in time", in.node)})
		}
	}
}
