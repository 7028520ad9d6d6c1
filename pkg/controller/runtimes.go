package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// fieldOwner owns the fields of what the controller applies.
const fieldOwner = client.FieldOwner("windlass-controller")

// runtimeStatusReconciler is the only writer of the statuses of ClusterRuntimes.
type runtimeStatusReconciler struct {
	client  client.Client
	facts   *factStore
	metrics *metrics

	mu      sync.Mutex
	written map[string]runtimeWrites
}

// runtimeWrites are the last ones for a ClusterRuntime.
type runtimeWrites struct {
	at   time.Time
	pace pace
}

// Reconcile updates one status.
func (r *runtimeStatusReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	rt := &v1alpha1.ClusterRuntime{}
	if err := r.client.Get(ctx, request.NamespacedName, rt); err != nil {
		if apierrors.IsNotFound(err) {
			r.recordWrite(request.Name, runtimeWrites{})
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	was := r.writtenAt(rt.Name)
	out := planRuntime(runtimeInput{
		now: time.Now(), runtime: rt, observed: r.facts.pools.get(rt.Name), settles: r.facts.settlesIn(), written: was.at, pace: was.pace,
	})
	if out.status == nil {
		return reconcile.Result{RequeueAfter: out.again}, nil
	}
	before := rt.DeepCopy()
	rt.Status = *out.status
	err := r.client.Status().Patch(ctx, rt, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		// Another client has changed it since it was read; the change will arrive.
		return reconcile.Result{RequeueAfter: minWritePause / 4}, nil
	case err != nil:
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.metrics.statusWrites.Inc()
	r.recordWrite(rt.Name, runtimeWrites{time.Now(), out.pace})
	return reconcile.Result{}, nil
}

// recordWrite remembers the last write; a zero one is none.
func (r *runtimeStatusReconciler) recordWrite(name string, w runtimeWrites) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w == (runtimeWrites{}) {
		delete(r.written, name)
		return
	}
	r.written[name] = w
}

func (r *runtimeStatusReconciler) writtenAt(name string) runtimeWrites {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written[name]
}

// runtimeReconciler installs the ClusterRuntimes that the controller was given, when
// it starts and when one of them is deleted. What others write into them stays
// until then.
type runtimeReconciler struct {
	client   client.Client
	runtimes map[string]v1alpha1.ClusterRuntime
	log      *slog.Logger
}

// Reconcile installs the ClusterRuntime of that name, if it is a configured one.
func (r *runtimeReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wanted, ok := r.runtimes[request.Name]
	if !ok {
		return reconcile.Result{}, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot write ClusterRuntime %s: %w", request.Name, err)
	}
	applied := &unstructured.Unstructured{Object: content}
	applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindClusterRuntime))
	unstructured.RemoveNestedField(applied.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(applied.Object, "status")
	labels := applied.GetLabels()
	if labels == nil {
		labels = make(map[string]string)
	}
	labels[wellknown.LabelManagedBy] = wellknown.ManagedBy
	applied.SetLabels(labels)
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), fieldOwner, client.ForceOwnership)
	if apierrors.IsInvalid(err) {
		// Trying again would not help.
		r.log.Error("a ClusterRuntime was refused", "runtime", request.Name, "err", err)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot apply ClusterRuntime %s: %w", request.Name, err)
	}
	r.log.Info("installed a ClusterRuntime", "runtime", request.Name, "image", wanted.Spec.Image)
	return reconcile.Result{}, nil
}
