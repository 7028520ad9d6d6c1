package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
)

// create makes one attempt to create the pod of an instance.
func (r *Runtime) create(ctx context.Context, in *instance) {
	spec, wanted := r.begin(in)
	if !wanted {
		return
	}
	if in.taking != nil {
		r.take(ctx, in, spec)
		return
	}
	pod, v := r.podOf(spec, in.started)
	if pod == nil {
		r.settle(in, func() { r.finish(in, v) })
		return
	}
	created, err := r.post(ctx, pod)
	switch {
	case err == nil:
		r.metrics.creations.WithLabelValues(resultCreated).Inc()
		r.settle(in, func() { r.arrived(in, created) })
	case apierrors.IsAlreadyExists(err):
		r.taken(ctx, in)
	default:
		r.failed(in, err)
	}
}

// begin says whether an instance still has to be created, and of what.
func (r *Runtime) begin(in *instance) (provisioner.InstanceSpec, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.book.has(in) || in.stage != queued {
		return provisioner.InstanceSpec{}, false
	}
	in.stage, in.changed = creating, time.Now()
	if in.attempts == 0 {
		in.tried = in.changed
	}
	in.attempts++
	return in.spec, true
}

// podOf is the pod to create, or nil and why there is none.
func (r *Runtime) podOf(spec provisioner.InstanceSpec, decided time.Time) (*corev1.Pod, verdict) {
	in, v := r.input(spec, decided)
	if v.ended {
		return nil, v
	}
	build := podspec.Pod
	if _, ofPool := spare.PoolOf(string(spec.Function.UID)); ofPool {
		build = podspec.Spare
	}
	pod, err := build(in)
	if err != nil {
		return nil, verdict{code: v1alpha1.ReasonInvalid, reason: err.Error()}
	}
	return pod, verdict{}
}

// input is what the pod of an instance depends on. The verdict has ended if there
// can be none.
func (r *Runtime) input(spec provisioner.InstanceSpec, decided time.Time) (podspec.Input, verdict) {
	in := podspec.Input{Config: r.config.Pod, Function: spec.Function, CID: spec.CID, Node: spec.Node, Decided: decided}
	if name := string(spec.Function.Spec.Runtime); name != "" {
		runtime, known := r.runtimes.Get(name)
		if !known {
			return in, verdict{ended: true, code: v1alpha1.ReasonUnknownRuntime,
				reason: fmt.Sprintf("spec.runtime: there is no Runtime %q: correct the name or create it", name)}
		}
		in.Runtime = runtime
	}
	return in, verdict{}
}

func (r *Runtime) post(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	begin := time.Now()
	created, err := r.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	r.metrics.seconds.Observe(time.Since(begin).Seconds())
	return created, err
}

// settle does something about an instance whose creation was tried, unless it has
// ended or been seen meanwhile.
func (r *Runtime) settle(in *instance, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.book.has(in) {
		// What came of it is seen, if it came to anything.
		r.ledger.dropAssumed(in.pod)
		return
	}
	if in.stage == creating {
		do()
	}
}

// arrived notes that the API has the pod.
func (r *Runtime) arrived(in *instance, pod *corev1.Pod) {
	r.ledger.created(pod)
	r.exists(in, pod)
}

// taken deals with a name that is taken: by the same pod, if the answer to an
// earlier attempt was lost, or by another one.
func (r *Runtime) taken(ctx context.Context, in *instance) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pod, err := r.client.CoreV1().Pods(in.pod.namespace).Get(ctx, in.pod.name, metav1.GetOptions{})
	if err != nil {
		// It may be gone meanwhile; the next attempt tells.
		r.failed(in, apierrors.NewServerTimeout(corev1.Resource("pods"), "get", 0))
		return
	}
	if of, ours := identity(pod); ours && of == in.id && pod.DeletionTimestamp == nil {
		r.metrics.creations.WithLabelValues(resultExists).Inc()
		r.settle(in, func() { r.arrived(in, pod) })
		return
	}
	r.metrics.creations.WithLabelValues(resultRefused).Inc()
	r.settle(in, func() {
		r.finish(in, verdict{code: v1alpha1.ReasonPodRefused, reason: fmt.Sprintf("there is another pod %s, or one that is ending", in.pod.name)})
	})
}

// failed tries again later what may pass, as long as it is worth it.
func (r *Runtime) failed(in *instance, err error) {
	why := refused(err, in.pod.namespace)
	r.settle(in, func() {
		now := time.Now()
		again := now.Add(max(why.delay, retryDelay(in.attempts, 2*time.Second)))
		if !why.passing || in.stopping || again.Sub(in.tried) > startPatience {
			r.metrics.creations.WithLabelValues(resultRefused).Inc()
			if in.attempts > 1 || why.passing {
				// An attempt may have succeeded without an answer.
				r.order(in, new(brokenGrace))
			}
			r.finish(in, verdict{code: why.code, reason: why.reason})
			return
		}
		r.metrics.creations.WithLabelValues(resultRetried).Inc()
		r.log.Debug("creating a pod is tried again", "pod", in.pod.name, "namespace", in.pod.namespace, "at", again, "err", err)
		in.stage, in.changed = queued, now
		r.creations.pushBack(in.id.functionUID, in, again)
	})
}
