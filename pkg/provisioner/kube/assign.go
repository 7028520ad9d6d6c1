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

// assignment is the state of a spare instance while it is being assigned to a function.
type assignment struct {
	spare id
	// uid is its pod's.
	uid types.UID
	// done receives what became of it.
	done func(provisioner.AssignResult)
}

// Assign makes the pod of a spare instance that of an instance of a function, by one
// request, and then calls done, from another goroutine, with the result. A spare
// instance that cannot be taken is deleted, and neither has an Exit. Done is not
// called if the instance is stopped or released before the API was asked.
func (d *Driver) Assign(poolUID string, cid invocation.CID, spec provisioner.InstanceSpec, done func(provisioner.AssignResult)) bool {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.byID[id{poolUID, cid}]
	of := id{string(spec.Function.UID), spec.CID}
	if d.ended || old == nil || old.stage != stageCreated || old.stopping || !old.endBy.IsZero() || d.byID[of] != nil {
		return false
	}
	in := &instance{
		id: of, pod: old.pod, node: old.node, spec: spec, requests: old.requests, uid: old.uid,
		started: now, changed: now, sandboxed: now, assigning: &assignment{spare: old.id, uid: old.uid, done: done},
	}
	d.removeInstance(old)
	d.addInstance(in)
	if !d.creator.push(in) {
		d.removeInstance(in)
		d.addInstance(old)
		return false
	}
	return true
}

// assign makes the one attempt to assign a spare instance. After any failure the pod is
// unusable, because it may belong to the function.
func (c *creator) assign(ctx context.Context, in *instance, spec provisioner.InstanceSpec) {
	pod, err := c.patchPod(ctx, in, spec)
	outcome := assignResult(pod, err)
	result := resultTaken
	if outcome != provisioner.AssignTaken {
		result = resultRefused
		if err != nil {
			result = refusalOf(err, in.pod.namespace).result()
		}
		c.untaken.warn("spare instances could not be taken", "function", spec.Function.Key().String(), "pod", in.pod.name, "namespace", in.pod.namespace, "err", err)
	}
	c.metrics.creations.WithLabelValues(result).Inc()
	done := in.assigning.done
	c.registry.mu.Lock()
	if outcome == provisioner.AssignTaken {
		c.podAssigned(in, pod)
	} else {
		c.discard(in, apierrors.IsNotFound(err))
	}
	c.registry.mu.Unlock()
	done(outcome)
}

// assignResult is what the answer to the request that assigns a pod says.
func assignResult(pod *corev1.Pod, err error) provisioner.AssignResult {
	switch {
	case apierrors.IsNotFound(err), err == nil && pod.DeletionTimestamp != nil:
		return provisioner.AssignGone
	case err != nil:
		return provisioner.AssignFailed
	}
	return provisioner.AssignTaken
}

func (c *creator) patchPod(ctx context.Context, in *instance, spec provisioner.InstanceSpec) (*corev1.Pod, error) {
	input, _ := c.input(spec, in.started)
	pool, _ := warmpool.PoolOf(in.assigning.spare.functionUID)
	patch, err := podspec.AssignPatch(input, pool, in.assigning.uid)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, assignTimeout)
	defer cancel()
	return c.client.Pods(in.pod.namespace).Patch(ctx, in.pod.name, types.JSONPatchType, patch, metav1.PatchOptions{})
}

// podAssigned records that a pod belongs to the function from now on. If another scheduler has
// taken the function over meanwhile, that finds the pod by its labels.
func (c *creator) podAssigned(in *instance, pod *corev1.Pod) {
	in.assigning = nil
	if c.registry.contains(in) {
		c.registry.podCreated(in, pod)
	}
}

// discard ends a failed attempt: the instance is not reported, and its pod is deleted if it
// exists.
func (c *creator) discard(in *instance, gone bool) {
	if !c.registry.contains(in) {
		return
	}
	c.registry.removeInstance(in)
	if !gone {
		c.registry.deletePod(in, new(brokenGrace))
	}
}
