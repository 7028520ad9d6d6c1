package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// cleanupPoll is how often Cleanup looks whether pods are gone.
const cleanupPoll = time.Second

// Cleanup removes the objects that Windlass has created and that nothing else would remove:
// the finalizers of Functions, the pods of functions and spare instances, NetworkPolicies and
// ClusterRuntimes. Functions and CRDs stay. It returns when the pods are gone or ctx ends, and
// may be repeated. Empty namespaces mean all; ClusterRuntimes belong to no namespace, and are
// removed in any case. The client must know the kinds of Scheme and read without a cache. At
// the end it removes the Lease in the controllers' namespace home, once they have ended; an
// empty home keeps it.
func Cleanup(ctx context.Context, c client.Client, home string, namespaces []string, log *slog.Logger) error {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var errs []error
	for _, namespace := range namespaces {
		errs = append(errs,
			releaseFunctions(ctx, c, namespace, log),
			deleteListed(ctx, c, &corev1.PodList{}, log, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: instancePods()}),
			deleteListed(ctx, c, &networkingv1.NetworkPolicyList{}, log, client.InNamespace(namespace), client.MatchingLabels(managedLabels)),
		)
	}
	errs = append(errs, deleteListed(ctx, c, &v1alpha1.ClusterRuntimeList{}, log, client.MatchingLabels(managedLabels)))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cleanup: %w", err)
	}
	for _, namespace := range namespaces {
		if err := awaitPods(ctx, c, namespace, log); err != nil {
			return fmt.Errorf("cleanup: %w", err)
		}
	}
	if home == "" {
		return nil
	}
	if err := deleteLease(ctx, c, home, log); err != nil {
		return fmt.Errorf("cleanup: %w", err)
	}
	return nil
}

// deleteLease deletes the Lease of the controllers. A controller that has not ended yet would
// create it again.
func deleteLease(ctx context.Context, c client.Client, home string, log *slog.Logger) error {
	controllers := client.MatchingLabels{"app.kubernetes.io/part-of": "windlass", wellknown.LabelComponent: "controller"}
	if err := awaitGone(ctx, c, log, client.InNamespace(home), controllers); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: LeaseName}}
	if err := c.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete the Lease %s: %w", LeaseName, err)
	}
	return nil
}

// releaseFunctions takes the finalizer off every Function.
func releaseFunctions(ctx context.Context, c client.Client, namespace string, log *slog.Logger) error {
	var functions v1alpha1.FunctionList
	if err := c.List(ctx, &functions, client.InNamespace(namespace)); err != nil {
		return ignoreMissingKind(err)
	}
	var errs []error
	for i := range functions.Items {
		f := &functions.Items[i]
		before := f.DeepCopy()
		if !controllerutil.RemoveFinalizer(f, wellknown.FinalizerDrain) {
			continue
		}
		err := c.Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("cannot remove the finalizer of function %s: %w", f.Key(), err))
			continue
		}
		log.Info("released a Function", "namespace", f.Namespace, "function", f.Name)
	}
	return errors.Join(errs...)
}

// deleteListed deletes everything that the options select.
func deleteListed(ctx context.Context, c client.Client, list client.ObjectList, log *slog.Logger, options ...client.ListOption) error {
	if err := c.List(ctx, list, options...); err != nil {
		return ignoreMissingKind(err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		if !o.GetDeletionTimestamp().IsZero() {
			return nil
		}
		if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete %T %s: %w", o, o.GetName(), err)
		}
		log.Info("deleted an object", "kind", fmt.Sprintf("%T", o), "namespace", o.GetNamespace(), "name", o.GetName())
		return nil
	})
}

// awaitPods returns when no pod of a function is left.
func awaitPods(ctx context.Context, c client.Client, namespace string, log *slog.Logger) error {
	err := awaitGone(ctx, c, log, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: instancePods()})
	if err != nil {
		return fmt.Errorf("%w; look at them with \"kubectl get pods -A -l %q\" and run the cleanup again", err, instancePods())
	}
	return nil
}

// awaitGone returns when no pod is left that the options select.
func awaitGone(ctx context.Context, c client.Client, log *slog.Logger, options ...client.ListOption) error {
	for {
		var pods corev1.PodList
		err := c.List(ctx, &pods, options...)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot list pods: %w", err)
		}
		if err == nil && len(pods.Items) == 0 {
			return nil
		}
		log.Info("waiting for pods to end", "pods", len(pods.Items))
		sleep.For(ctx, cleanupPoll)
		if ctx.Err() != nil {
			return fmt.Errorf("%d pods are still there: %w", len(pods.Items), ctx.Err())
		}
	}
}

// ignoreMissingKind ignores that a CRD has gone before.
func ignoreMissingKind(err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
