package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
)

// taking is what is known of a spare instance while a function takes it.
type taking struct {
	spare id
	// uid is its pod's.
	uid types.UID
	// told is told whether the pod is the function's.
	told func(taken bool)
}

// Take makes the pod of a spare instance that of an instance of a function, by one
// request, and then calls told, from another goroutine, with whether it is. A spare
// instance that cannot be taken is deleted, and neither has an Exit. Told is not
// called if the instance is stopped or released before the API was asked.
func (r *Runtime) Take(poolUID string, cid invoke.CID, spec provisioner.InstanceSpec, told func(taken bool)) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.book.byID[id{poolUID, cid}]
	of := id{string(spec.Function.UID), spec.CID}
	if r.ended || old == nil || old.stage != there || old.stopping || !old.endBy.IsZero() || r.book.byID[of] != nil {
		return false
	}
	in := &instance{
		id: of, pod: old.pod, node: old.node, spec: spec, requests: old.requests, uid: old.uid,
		started: now, changed: now, sandboxed: now, taking: &taking{spare: old.id, uid: old.uid, told: told},
	}
	r.book.remove(old)
	r.book.add(in)
	if !r.creations.push(of.functionUID, in, r.config.MaxQueue) {
		r.book.remove(in)
		r.book.add(old)
		return false
	}
	return true
}

// take makes the one attempt to take a spare instance. Whatever goes wrong, the pod is
// of no use any more: it may be the function's.
func (r *Runtime) take(ctx context.Context, in *instance, spec provisioner.InstanceSpec) {
	pod, err := r.claim(ctx, in, spec)
	taken := err == nil && pod.DeletionTimestamp == nil
	result := resultTaken
	if !taken {
		result = resultRefused
		r.log.Warn("a spare instance could not be taken", "pod", in.pod.name, "namespace", in.pod.namespace, "err", err)
	}
	r.metrics.creations.WithLabelValues(result).Inc()
	told := in.taking.told
	r.mu.Lock()
	if taken {
		r.took(in, pod)
	} else {
		r.spoil(in, apierrors.IsNotFound(err))
	}
	r.mu.Unlock()
	told(taken)
}

func (r *Runtime) claim(ctx context.Context, in *instance, spec provisioner.InstanceSpec) (*corev1.Pod, error) {
	input, _ := r.input(spec, in.started)
	pool, _ := spare.PoolOf(in.taking.spare.functionUID)
	patch, err := podspec.Claim(input, pool, in.taking.uid)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	return r.client.CoreV1().Pods(in.pod.namespace).Patch(ctx, in.pod.name, types.JSONPatchType, patch, metav1.PatchOptions{})
}

// took notes that a pod is the function's from now on. One that somebody else looks
// after meanwhile is found by its labels.
func (r *Runtime) took(in *instance, pod *corev1.Pod) {
	in.taking = nil
	if r.book.has(in) {
		r.exists(in, pod)
	}
}

// spoil ends an attempt that has failed: nobody hears of that instance, and the pod
// is deleted unless there is none.
func (r *Runtime) spoil(in *instance, gone bool) {
	if !r.book.has(in) {
		return
	}
	r.book.remove(in)
	if !gone {
		r.order(in, new(brokenGrace))
	}
}
