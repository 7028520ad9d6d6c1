//go:build apiserver

package controller

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

func TestCleanupLeavesNothingBehind(t *testing.T) {
	c := newClient(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	w := &harness{Client: c, t: t, namespace: newNamespace(t, c)}
	f := &v1alpha1.Function{
		ObjectMeta: metav1.ObjectMeta{Name: "f", Finalizers: []string{wellknown.FinalizerDrain, "example.com/other"}},
		Spec:       v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}},
	}
	w.make(f)
	p := w.makePod(f, "1")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: PolicyName, Labels: managedLabels}, Spec: policySpec("home", Egress{})}
	foreign := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: policySpec("home", Egress{})}
	w.make(policy)
	w.make(foreign)
	rt := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "cleaned", Labels: managedLabels}, Spec: v1alpha1.ClusterRuntimeSpec{Image: "r"}}
	makeRuntime(t, c, rt)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaseName}}
	w.make(lease)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for range 2 {
		if err := Cleanup(ctx, c, w.namespace, []string{w.namespace}, log); err != nil {
			t.Fatal(err)
		}
	}
	w.gone(p)
	w.gone(policy)
	w.gone(rt)
	w.gone(lease)
	if err := c.Get(ctx, client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("somebody else's policy: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(f), f); err != nil || !slices.Equal(f.Finalizers, []string{"example.com/other"}) {
		t.Errorf("finalizers are %v, error %v", f.Finalizers, err)
	}

	stuck := w.makePod(f, "2")
	stuck.Finalizers = []string{"example.com/other"}
	if err := c.Update(ctx, stuck); err != nil {
		t.Fatal(err)
	}
	ended, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	err := Cleanup(ended, c, "", []string{w.namespace}, log)
	if err == nil || !strings.Contains(err.Error(), "1 pods are still there") {
		t.Errorf("got %v", err)
	}
}
