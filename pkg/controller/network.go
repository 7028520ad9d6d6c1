package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// PolicyName is the name of the NetworkPolicy in every namespace with Functions.
const PolicyName = "windlass-functions"

// policyReconciler keeps a NetworkPolicy in each namespace that has Functions. Instances pull
// their calls, so nothing needs to reach them.
type policyReconciler struct {
	client client.Client
	// live reads without the cache, which has only policies with the label.
	live client.Reader
	spec networkingv1.NetworkPolicySpec
	log  *slog.Logger
}

// Reconcile updates the policy in the namespace of the request, whatever its name.
func (r *policyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var functions v1alpha1.FunctionList
	if err := r.client.List(ctx, &functions, client.InNamespace(request.Namespace), client.Limit(1)); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list the functions of namespace %s: %w", request.Namespace, err)
	}
	found := &networkingv1.NetworkPolicy{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: PolicyName}, found)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot read the NetworkPolicy of namespace %s: %w", request.Namespace, err)
	}
	exists, wanted := err == nil, len(functions.Items) > 0
	switch {
	case wanted && !exists:
		err = r.create(ctx, request.Namespace)
	case wanted && !equality.Semantic.DeepEqual(found.Spec, r.spec):
		found.Spec = r.spec
		err = r.client.Update(ctx, found)
	case !wanted && exists:
		err = client.IgnoreNotFound(r.client.Delete(ctx, found))
	default:
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot update the NetworkPolicy of namespace %s: %w", request.Namespace, err)
	}
	r.log.Info("changed a NetworkPolicy", "namespace", request.Namespace, "policy", PolicyName, "wanted", wanted)
	return reconcile.Result{}, nil
}

func (r *policyReconciler) create(ctx context.Context, namespace string) error {
	wanted := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: PolicyName, Namespace: namespace, Labels: maps.Clone(managedLabels)},
		Spec:       r.spec,
	}
	err := r.client.Create(ctx, wanted)
	switch {
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.repair(ctx, client.ObjectKeyFromObject(wanted))
	default:
		return err
	}
}

// repair gives a policy back the label without which the cache does not have it.
func (r *policyReconciler) repair(ctx context.Context, key client.ObjectKey) error {
	found := &networkingv1.NetworkPolicy{}
	if err := r.live.Get(ctx, key, found); err != nil {
		return err
	}
	if found.Labels == nil {
		found.Labels = make(map[string]string)
	}
	maps.Copy(found.Labels, managedLabels)
	found.Spec = r.spec
	return r.client.Update(ctx, found)
}
