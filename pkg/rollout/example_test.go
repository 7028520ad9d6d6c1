package rollout_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// New code gets calls once an instance of it has started. Until then they go to the old.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	f := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "uid-of-cart", Generation: 1}}
	f.Spec.Template.Image = "example.com/cart:1"
	v1alpha1.Default(f)
	var revisions []*v1alpha1.FunctionRevision
	decide := func(what string, units map[string]rollout.Observation) {
		for {
			plan, all := rollout.Advance(now, f, revisions, units)
			revisions = all
			if plan.Create == nil {
				plan.State.Write(&f.Status)
				fmt.Printf("%-20s %s\n", what+":", rollout.Split(f.Status.Traffic))
				return
			}
			plan.Create.UID = "uid-of-" + plan.Create.UID
			revisions = append(revisions, plan.Create)
		}
	}
	runs := rollout.Observation{Observed: true, Generation: 1, Started: true}
	decide("the first image runs", map[string]rollout.Observation{"cart-00001": runs})
	f.Spec.Template.Image, f.Generation = "example.com/cart:2", 2
	runs.Generation = 2
	decide("another is deployed", map[string]rollout.Observation{"cart-00001": runs})
	decide("and has started", map[string]rollout.Observation{"cart-00001": runs, "cart-00002": runs})
	// Output:
	// the first image runs: calls go to cart-00001
	// another is deployed: calls go to cart-00001
	// and has started:     calls go to cart-00002
}
