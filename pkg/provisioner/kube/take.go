package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
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
func (r *Runtime) Take(poolUID string, cid invocation.CID, spec provisioner.InstanceSpec, told func(taken bool)) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.byID[id{poolUID, cid}]
	of := id{string(spec.Function.UID), spec.CID}
	if r.ended || old == nil || old.stage != there || old.stopping || !old.endBy.IsZero() || r.byID[of] != nil {
		return false
	}
	in := &instance{
		id: of, pod: old.pod, node: old.node, spec: spec, requests: old.requests, uid: old.uid,
		started: now, changed: now, sandboxed: now, taking: &taking{spare: old.id, uid: old.uid, told: told},
	}
	r.remove(old)
	r.add(in)
	if !r.creator.push(in) {
		r.remove(in)
		r.add(old)
		return false
	}
	return true
}

// take makes the one attempt to take a spare instance. Whatever goes wrong, the pod is
// of no use any more: it may be the function's.
func (c *creator) take(ctx context.Context, in *instance, spec provisioner.InstanceSpec) {
	pod, err := c.claim(ctx, in, spec)
	taken := err == nil && pod.DeletionTimestamp == nil
	result := resultTaken
	if !taken {
		result = resultRefused
		c.log.Warn("a spare instance could not be taken", "pod", in.pod.name, "namespace", in.pod.namespace, "err", err)
	}
	c.metrics.creations.WithLabelValues(result).Inc()
	told := in.taking.told
	c.registry.mu.Lock()
	if taken {
		c.took(in, pod)
	} else {
		c.spoil(in, apierrors.IsNotFound(err))
	}
	c.registry.mu.Unlock()
	told(taken)
}

func (c *creator) claim(ctx context.Context, in *instance, spec provisioner.InstanceSpec) (*corev1.Pod, error) {
	input, _ := c.input(spec, in.started)
	pool, _ := warmpool.PoolOf(in.taking.spare.functionUID)
	patch, err := podspec.Claim(input, pool, in.taking.uid)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	return c.client.CoreV1().Pods(in.pod.namespace).Patch(ctx, in.pod.name, types.JSONPatchType, patch, metav1.PatchOptions{})
}

// took notes that a pod is the function's from now on. One that somebody else looks
// after meanwhile is found by its labels.
func (c *creator) took(in *instance, pod *corev1.Pod) {
	in.taking = nil
	if c.registry.has(in) {
		c.registry.exists(in, pod)
	}
}

// spoil ends an attempt that has failed: nobody hears of that instance, and the pod
// is deleted unless there is none.
func (c *creator) spoil(in *instance, gone bool) {
	if !c.registry.has(in) {
		return
	}
	c.registry.remove(in)
	if !gone {
		c.registry.condemn(in, new(brokenGrace))
	}
}
