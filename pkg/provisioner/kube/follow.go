package kube

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// podChanged is told of every pod that there is.
func (r *Runtime) podChanged(pod *corev1.Pod) {
	r.ledger.setPod(pod)
	r.follow(pod)
}

// follow does what the state of a pod means for its instance.
func (r *Runtime) follow(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.instanceOf(pod)
	if in == nil {
		return
	}
	if in.stage == queued {
		// The answer to an attempt was lost.
		r.creations.remove(in.id.functionUID, in)
	}
	in.seen = true
	r.exists(in, pod)
	in.noteSandbox(pod, time.Now())
	in.noteEnd(pod, time.Now())
	switch v := judge(pod, r.ledger.ready(in.node)); {
	case v.ended && half(pod):
		r.discard(in, pod)
	case v.ended:
		r.conclude(in, pod, v)
	}
}

// discard deletes what is left of the pod of an instance that has ended.
func (r *Runtime) discard(in *instance, pod *corev1.Pod) {
	if pod.DeletionTimestamp == nil && !in.deleting {
		r.order(in, new(brokenGrace))
	}
}

// podGone is told of every pod that is there no more, as it was last seen.
func (r *Runtime) podGone(pod *corev1.Pod) {
	r.ledger.removePod(keyOf(pod))
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.instanceOf(pod); in != nil {
		// Nothing is left to delete.
		in.deleting = true
		r.conclude(in, pod, judgeGone(pod))
	}
}

// instanceOf is the instance of a pod, if it is one of ours.
func (r *Runtime) instanceOf(pod *corev1.Pod) *instance {
	in := r.book.byPod[keyOf(pod)]
	if in == nil || in.uid != "" && in.uid != pod.UID {
		return nil
	}
	if of, ours := identity(pod); !ours || of != in.id {
		return nil
	}
	return in
}

// exists notes that the pod of an instance is there.
func (r *Runtime) exists(in *instance, pod *corev1.Pod) {
	in.uid = pod.UID
	if in.stage != there {
		now := time.Now()
		in.stage, in.changed, in.created, in.spec = there, now, now, provisioner.InstanceSpec{}
		in.revision = pod.Labels[v1alpha1.LabelRevision]
	}
	if in.stopping && !in.deleting {
		r.order(in, nil)
	}
}

// conclude ends an instance whose pod says that it has ended, and deletes what
// is left of the pod. What a pod that was stopped says of its end may be true of
// the time before as well: whoever stopped it knows.
func (r *Runtime) conclude(in *instance, pod *corev1.Pod, v verdict) {
	if in.stopping {
		nodeLost := v.code == v1alpha1.ReasonNodeLost && v.blameNode
		if !nodeLost && v.code != v1alpha1.ReasonOutOfMemory && v.code != v1alpha1.ReasonFunctionExited {
			v = verdict{reason: reasonStopped, logTail: v.logTail}
		}
	} else if d := disrupted(pod); d.ended && pod.DeletionTimestamp != nil {
		d.logTail = v.logTail
		v = d
	}
	r.discard(in, pod)
	r.finish(in, v)
}

// nodeChanged is told of every node that there is.
func (r *Runtime) nodeChanged(n *corev1.Node) {
	if !r.ledger.setNode(n) {
		return
	}
	for _, pod := range r.podsOn(n.Name) {
		r.follow(pod)
	}
}

// nodeGone is told of every node that is there no more.
func (r *Runtime) nodeGone(name string) {
	r.ledger.removeNode(name)
	pods := r.podsOn(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pod := range pods {
		if in := r.instanceOf(pod); in != nil {
			r.conclude(in, pod, verdict{ended: true, code: v1alpha1.ReasonNodeLost,
				reason: fmt.Sprintf("the node %s is gone", name)})
		}
	}
}

// podsOn are the pods of instances on a node, as far as they have been seen.
func (r *Runtime) podsOn(node string) []*corev1.Pod {
	r.mu.Lock()
	var keys []podKey
	for key, in := range r.book.byPod {
		if in.node == node {
			keys = append(keys, key)
		}
	}
	r.mu.Unlock()
	var pods []*corev1.Pod
	for _, key := range keys {
		if pod := r.cluster.pod(key); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}
