package controller

import (
	"context"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// fieldOwner owns the fields of what the controller applies.
const fieldOwner = client.FieldOwner("windlass-controller")

// runtimeReconciler installs the ClusterRuntimes that the controller was given, when
// it starts and when one of them is deleted. What others write into them stays
// until then.
type runtimeReconciler struct {
	client   client.Client
	runtimes map[string]v1alpha1.ClusterRuntime
	log      *slog.Logger
}

// Reconcile installs the Runtime of that name, if it is one of those.
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
	labels := applied.GetLabels()
	if labels == nil {
		labels = make(map[string]string)
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
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
