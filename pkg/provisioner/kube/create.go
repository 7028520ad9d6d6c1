package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// creator creates the pods of instances, and takes spare ones for them.
type creator struct {
	// pod is what all pods have in common.
	pod      podspec.Config
	ca       func() string
	client   Client
	runtimes Runtimes
	log      *slog.Logger
	metrics  *metrics
	registry *registry
	// untaken has the spare instances that could not be taken.
	untaken failureLog

	queue *workerPool[*instance]
	limit int
}

func newCreator(config Config, deps Deps, registry *registry) (*creator, error) {
	c := &creator{
		pod: config.Pod, ca: deps.CA, client: deps.Client, runtimes: deps.Runtimes, log: deps.Log,
		registry: registry, untaken: failureLog{log: deps.Log}, limit: config.MaxQueue,
	}
	c.queue = newWorkerPool(config, c.create)
	var err error
	c.metrics, err = newMetrics(deps.Registerer, func() float64 { return float64(c.queue.length()) })
	return c, err
}

// push has the pod of an instance created, or taken, unless too many wait for that.
func (c *creator) push(in *instance) bool {
	return c.queue.push(in.id.functionUID, in, c.limit)
}

// dequeue takes an instance out of the queue.
func (c *creator) dequeue(in *instance) { c.queue.remove(in.id.functionUID, in) }

// create makes one attempt to create the pod of an instance.
func (c *creator) create(ctx context.Context, in *instance) {
	spec, wanted := c.startAttempt(in)
	if !wanted {
		return
	}
	if in.assigning != nil {
		c.assign(ctx, in, spec)
		return
	}
	pod, v := c.podOf(spec, in.started)
	if pod == nil {
		c.ifCreating(in, func() { c.registry.endInstance(in, v) })
		return
	}
	created, err := c.post(ctx, pod)
	switch {
	case err == nil:
		c.metrics.creations.WithLabelValues(resultCreated).Inc()
		c.ifCreating(in, func() { c.podCreated(in, created) })
	case apierrors.IsAlreadyExists(err):
		c.resolveConflict(ctx, in)
	default:
		c.retryOrFail(in, refusalOf(err, in.pod.namespace))
	}
}

// startAttempt reports whether an instance still has to be created, and from which spec.
func (c *creator) startAttempt(in *instance) (provisioner.InstanceSpec, bool) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	if !c.registry.contains(in) || in.stage != stageQueued {
		return provisioner.InstanceSpec{}, false
	}
	in.stage, in.changed = stageCreating, time.Now()
	if in.attempts == 0 {
		in.firstAttempt = in.changed
	}
	in.attempts++
	return in.spec, true
}

// podOf is the pod to create, or nil with the reason.
func (c *creator) podOf(spec provisioner.InstanceSpec, decided time.Time) (*corev1.Pod, podOutcome) {
	in, v := c.input(spec, decided)
	if v.ended {
		return nil, v
	}
	build := podspec.Pod
	if _, ofPool := warmpool.PoolOf(string(spec.Function.UID)); ofPool {
		build = podspec.Spare
	}
	pod, err := build(in)
	if err != nil {
		return nil, podOutcome{code: v1alpha1.ReasonInvalid, reason: err.Error()}
	}
	return pod, podOutcome{}
}

// input is what the pod of an instance depends on. The outcome has ended if there
// can be none.
func (c *creator) input(spec provisioner.InstanceSpec, decided time.Time) (podspec.Input, podOutcome) {
	in := podspec.Input{Config: c.pod, Function: spec.Function, CID: spec.CID, Node: spec.Node, Decided: decided}
	if c.ca != nil {
		in.Config.CA = c.ca()
	}
	if name := string(spec.Function.Spec.Template.RuntimeRef.Name); name != "" {
		runtime, known := c.runtimes.Get(name)
		if !known {
			return in, podOutcome{ended: true, code: v1alpha1.ReasonRuntimeNotFound,
				reason: fmt.Sprintf("spec.template.runtimeRef.name: there is no ClusterRuntime %q: correct the name or create it", name)}
		}
		in.Runtime = runtime
	}
	return in, podOutcome{}
}

func (c *creator) post(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	begin := time.Now()
	created, err := c.client.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	c.metrics.seconds.Observe(time.Since(begin).Seconds())
	return created, err
}

// ifCreating does something about an instance whose creation was tried, unless it has
// ended or been seen meanwhile.
func (c *creator) ifCreating(in *instance, do func()) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	if !c.registry.contains(in) {
		// The informer shows the pod if it was created.
		c.registry.resources.dropAssumed(in.pod)
		return
	}
	if in.stage == stageCreating {
		do()
	}
}

// podCreated records that the API has the pod.
func (c *creator) podCreated(in *instance, pod *corev1.Pod) {
	c.registry.resources.confirm(pod)
	c.registry.podCreated(in, pod)
}

// resolveConflict deals with a name that is taken: by the same pod, if the answer to an
// earlier attempt was lost, or by another one.
func (c *creator) resolveConflict(ctx context.Context, in *instance) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pod, err := c.client.Pods(in.pod.namespace).Get(ctx, in.pod.name, metav1.GetOptions{})
	if err != nil {
		// It may be gone meanwhile; the next attempt will show. This attempt has created nothing,
		// so a pod of that name may be another one, which must not be deleted.
		why := refusalOf(apierrors.NewServerTimeout(corev1.Resource("pods"), "get", 0), in.pod.namespace)
		why.mayExist = false
		c.retryOrFail(in, why)
		return
	}
	if of, ours := identity(pod); ours && of == in.id && pod.DeletionTimestamp == nil {
		c.metrics.creations.WithLabelValues(resultExists).Inc()
		c.ifCreating(in, func() { c.podCreated(in, pod) })
		return
	}
	c.metrics.creations.WithLabelValues(resultRefused).Inc()
	c.ifCreating(in, func() {
		c.registry.endInstance(in, podOutcome{code: v1alpha1.ReasonPodRefused, reason: fmt.Sprintf("there is another pod %s, or one that is ending", in.pod.name)})
	})
}

// retryOrFail schedules a retry after a transient error, within retryWindow.
func (c *creator) retryOrFail(in *instance, why refusal) {
	c.ifCreating(in, func() {
		in.mayExist = in.mayExist || why.mayExist
		now := time.Now()
		again := now.Add(max(why.delay, retryDelay(in.attempts, 2*time.Second)))
		if !why.transient || in.stopping || again.Sub(in.firstAttempt) > retryWindow {
			c.metrics.creations.WithLabelValues(why.result()).Inc()
			if in.mayExist {
				c.registry.deletePod(in, new(brokenGrace))
			}
			c.registry.endInstance(in, podOutcome{code: why.code, reason: why.reason})
			return
		}
		c.metrics.creations.WithLabelValues(resultRetried).Inc()
		c.log.Debug("creating a pod is tried again", "pod", in.pod.name, "namespace", in.pod.namespace, "at", again, "reason", why.reason)
		in.stage, in.changed = stageQueued, now
		c.queue.pushBack(in.id.functionUID, in, again)
	})
}
