//go:build apiserver

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// runtimeSays waits until a ClusterRuntime has all these conditions, as "Type=Status/Reason".
func (w *harness) runtimeSays(rt *v1alpha1.ClusterRuntime, want ...string) {
	w.t.Helper()
	eventually(w.t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(rt), rt); err != nil {
			return err
		}
		if got := said(rt.Status.Conditions); !slices.Equal(got, want) {
			return fmt.Errorf("it says %s", strings.Join(got, ", "))
		}
		return nil
	})
}

// judgedRuntime is what tools make of a ClusterRuntime: whether kubectl waits no longer for
// Ready and WarmPoolsReady, and what kstatus and Argo CD say.
func (w *harness) judgedRuntime(rt *v1alpha1.ClusterRuntime) (ready, full bool, overall status.Status, argo string) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindClusterRuntime))
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(rt), u); err != nil {
		w.t.Fatal(err)
	}
	result, err := status.Compute(u)
	if err != nil {
		w.t.Fatal(err)
	}
	object := "clusterruntimes.windlass.dev/" + rt.Name
	return waits(w.t, w.namespace, object, v1alpha1.ConditionReady), waits(w.t, w.namespace, object, v1alpha1.ConditionWarmPoolsReady), result.Status, argoHealth(w.t, u)
}

// A ClusterRuntime says what becomes of its pools, and kubectl wait and kstatus
// believe it.
func TestRuntimesSayWhatBecomesOfTheirPools(t *testing.T) {
	c := newClient(t)
	rt := runtimeOf("small", "large")
	rt.Name, rt.Generation = "says-its-status", 0
	before := &harness{Client: c, t: t, namespace: newNamespace(t, c)}
	makeRuntime(t, c, rt)
	if ready, full, overall, argo := before.judgedRuntime(rt); ready || full || overall != status.InProgressStatus || argo != "Progressing" {
		t.Errorf("before anybody has looked at it: %v, %v, %v, %s", ready, full, overall, argo)
	}
	w := newHarness(t, nil)
	w.runtimeSays(rt, "Accepted=True/Accepted", "Ready=True/Accepted", "WarmPoolsReady=Unknown/Unobserved")

	tell := func(generation int64, pools ...*controlwire.PoolFacts) {
		t.Helper()
		w.scheduler.says(t, &controlwire.WatchReply{WarmPools: &controlwire.WarmPools{Runtimes: []*controlwire.RuntimeFacts{
			{Name: rt.Name, Generation: generation, Pools: pools}}}})
	}
	tell(rt.Generation, &controlwire.PoolFacts{Name: "small", Desired: 3, Ready: 1})
	w.runtimeSays(rt, "Accepted=True/Accepted", "Ready=True/Started", "WarmPoolsReady=False/Creating")
	if ready, full, overall, argo := w.judgedRuntime(rt); !ready || full || overall != status.CurrentStatus || argo != "Healthy" {
		t.Errorf("while a pool is being filled: %v, %v, %v, %s", ready, full, overall, argo)
	}
	tell(rt.Generation, &controlwire.PoolFacts{Name: "small", Desired: 3, Ready: 3}, &controlwire.PoolFacts{Name: "large", Desired: 1, Ready: 1})
	w.runtimeSays(rt, "Accepted=True/Accepted", "Ready=True/Started", "WarmPoolsReady=True/Full")
	want := []v1alpha1.WarmPoolStatus{{Name: "small", SpareCounts: v1alpha1.SpareCounts{Ready: 3, Desired: 3}}, {Name: "large", SpareCounts: v1alpha1.SpareCounts{Ready: 1, Desired: 1}}}
	if diff := cmp.Diff(want, rt.Status.WarmPools); diff != "" || rt.Status.SpareInstances != (v1alpha1.SpareCounts{Ready: 4, Desired: 4}) {
		t.Errorf("it counts %+v; pools (-want +got):\n%s", rt.Status.SpareInstances, diff)
	}
	if ready, full, overall, argo := w.judgedRuntime(rt); !ready || !full || overall != status.CurrentStatus || argo != "Healthy" {
		t.Errorf("with all spare instances: %v, %v, %v, %s", ready, full, overall, argo)
	}

	// What is true of the former generation says nothing of this one.
	rt.Spec.WarmPools[0].Size = 5
	if err := w.Update(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	if ready, full, overall, argo := w.judgedRuntime(rt); ready || full || overall != status.InProgressStatus || argo != "Progressing" {
		t.Errorf("after a change that no scheduler has taken up: %v, %v, %v, %s", ready, full, overall, argo)
	}
	w.runtimeSays(rt, "Accepted=True/Accepted", "Ready=True/Started", "WarmPoolsReady=Unknown/SchedulerBehind")
	tell(rt.Generation, &controlwire.PoolFacts{Name: "small", Desired: 5, Problem: v1alpha1.ReasonImagePullFailed, Detail: "in namespace shop: no such image"})
	w.runtimeSays(rt, "Accepted=True/Accepted", "Ready=False/ImagePullFailed", "WarmPoolsReady=False/ImagePullFailed")
	if rt.Status.ObservedGeneration != rt.Generation {
		t.Errorf("it is about generation %d, want %d", rt.Status.ObservedGeneration, rt.Generation)
	}
}

// What the API server cannot see is said in the status.
func TestARuntimeThatCannotBeUsedIsStalled(t *testing.T) {
	w := newHarness(t, nil)
	rt := runtimeOf("small")
	rt.Name = "cannot-be-used"
	rt.Spec.WarmPools[0].NamespaceSelector = &v1alpha1.NamespaceSelector{MatchLabels: map[string]string{"a b": "c"}}
	makeRuntime(t, w.Client, rt)
	w.runtimeSays(rt, "Accepted=False/Invalid", "Ready=False/Invalid", "Stalled=True/Invalid", "WarmPoolsReady=False/Invalid")
	if ready, _, overall, argo := w.judgedRuntime(rt); ready || overall != status.FailedStatus || argo != "Degraded" {
		t.Errorf("%v, %v, %s", ready, overall, argo)
	}
	rt.Spec.WarmPools = nil
	if err := w.Update(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	w.runtimeSays(rt, "Accepted=True/Accepted", "Ready=True/Accepted", "WarmPoolsReady=True/NoPools")
}

// Functions are not looked at again because the status of their ClusterRuntime was written,
// and nothing is written that says the same.
func TestAStatusOfARuntimeIsWrittenOnlyWhenItChanges(t *testing.T) {
	w := newHarness(t, nil)
	rt := runtimeOf("small")
	rt.Name = "is-written-once"
	makeRuntime(t, w.Client, rt)
	tell := func(ready uint32) {
		w.scheduler.says(t, &controlwire.WatchReply{WarmPools: &controlwire.WarmPools{Runtimes: []*controlwire.RuntimeFacts{
			{Name: rt.Name, Generation: rt.Generation, Pools: []*controlwire.PoolFacts{{Name: "small", Desired: 3, Ready: ready}}}}}})
	}
	tell(3)
	w.runtimeSays(rt, "Accepted=True/Accepted", "Ready=True/Started", "WarmPoolsReady=True/Full")
	before := rt.ResourceVersion
	for range 20 {
		tell(3)
	}
	other := runtimeOf()
	other.Name = "is-written-after"
	makeRuntime(t, w.Client, other)
	w.runtimeSays(other, "Accepted=True/Accepted", "Ready=True/Accepted", "WarmPoolsReady=True/NoPools")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(rt), rt); err != nil {
		t.Fatal(err)
	}
	if rt.ResourceVersion != before {
		t.Errorf("written, and it is now %+v", rt.Status)
	}
}
