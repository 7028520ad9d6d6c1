package kube

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// watcher does what the state of pods and nodes means for instances.
type watcher struct {
	client   kubernetes.Interface
	ledger   *ledger
	registry *registry
	creator  *creator
	cluster  *cluster
}

func newWatcher(deps Deps, registry *registry, creator *creator) (*watcher, error) {
	w := &watcher{client: deps.Client, ledger: registry.ledger, registry: registry, creator: creator}
	var err error
	w.cluster, err = newCluster(deps.Client, w, w)
	return w, err
}

// podChanged is told of every pod that there is.
func (w *watcher) podChanged(pod *corev1.Pod) {
	w.ledger.setPod(pod)
	w.follow(pod)
}

// follow does what the state of a pod means for its instance.
func (w *watcher) follow(pod *corev1.Pod) {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	in := w.registry.instanceOf(pod)
	if in == nil {
		return
	}
	if in.stage == queued {
		// The answer to an attempt was lost.
		w.creator.withdraw(in)
	}
	in.seen = true
	w.registry.exists(in, pod)
	in.noteSandbox(pod, time.Now())
	in.noteEnd(pod, time.Now())
	switch v := judge(pod, w.ledger.ready(in.node)); {
	case v.ended && half(pod):
		w.registry.discard(in, pod)
	case v.ended:
		w.registry.conclude(in, pod, v)
	}
}

// podGone is told of every pod that is there no more, as it was last seen.
func (w *watcher) podGone(pod *corev1.Pod) {
	w.ledger.removePod(keyOf(pod))
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	if in := w.registry.instanceOf(pod); in != nil {
		// Nothing is left to delete.
		in.deleting = true
		w.registry.conclude(in, pod, judgeGone(pod))
	}
}

// nodeChanged is told of every node that there is.
func (w *watcher) nodeChanged(n *corev1.Node) {
	if !w.ledger.setNode(n) {
		return
	}
	for _, pod := range w.podsOn(n.Name) {
		w.follow(pod)
	}
}

// nodeGone is told of every node that is there no more.
func (w *watcher) nodeGone(name string) {
	w.ledger.removeNode(name)
	pods := w.podsOn(name)
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	for _, pod := range pods {
		if in := w.registry.instanceOf(pod); in != nil {
			w.registry.conclude(in, pod, verdict{ended: true, code: v1alpha1.ReasonNodeLost,
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
