package controller

import (
	"context"
	"log/slog"
	"maps"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

var policies = schema.GroupResource{Group: networkingv1.GroupName, Resource: "networkpolicies"}

// policyClient is the API server of one namespace, which has a function and may have the policy.
type policyClient struct {
	client.Client
	stored *networkingv1.NetworkPolicy
	// cached says that Get reads from the controller's cache.
	cached bool
}

func (c *policyClient) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.FunctionList).Items = make([]v1alpha1.Function, 1)
	return nil
}

func (c *policyClient) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.stored == nil || c.cached && c.stored.Labels[wellknown.LabelManagedBy] != wellknown.ManagedBy {
		return apierrors.NewNotFound(policies, key.Name)
	}
	c.stored.DeepCopyInto(into.(*networkingv1.NetworkPolicy))
	return nil
}

func (c *policyClient) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if c.stored != nil {
		return apierrors.NewAlreadyExists(policies, o.GetName())
	}
	c.stored = o.(*networkingv1.NetworkPolicy).DeepCopy()
	return nil
}

func (c *policyClient) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	c.stored = o.(*networkingv1.NetworkPolicy).DeepCopy()
	return nil
}

func TestAPolicyThatLostItsLabelIsRepaired(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"no labels":    nil,
		"other labels": {"team": "a"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := policySpec("home", Egress{})
			broken := &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}}
			broken.Name, broken.Namespace, broken.ResourceVersion, broken.Labels = PolicyName, "team", "7", maps.Clone(labels)
			live := &policyClient{stored: broken}
			cache := &policyClient{stored: broken, cached: true}
			r := &policyReconciler{client: cache, live: live, spec: spec, log: slog.New(slog.DiscardHandler)}
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: PolicyName}})
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(managedLabels)
			maps.Copy(want, labels)
			got := cache.stored
			if !maps.Equal(got.Labels, want) || !equality.Semantic.DeepEqual(got.Spec, spec) || got.ResourceVersion != "7" {
				t.Errorf("it is %+v", got)
			}
		})
	}
}
