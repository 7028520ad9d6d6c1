package rollout

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// What the package promises, in any order of changes, proofs, losses and waits. That what
// was carried out decides nothing more is what settle looks at.
func TestPromises(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newHarness(t)
		w.f.Spec.RevisionHistoryLimit = new(int32(rng.IntN(4)))
		w.deploy("0")
		for i := range 60 {
			act(w, rng)
			if problem := broken(w); problem != "" {
				t.Fatalf("seed %d, act %d: %s: %+v", seed, i, problem, w.f.Status)
			}
		}
	}
}

func act(w *harness, rng *rand.Rand) {
	switch rng.IntN(8) {
	case 0, 1:
		w.deploy(fmt.Sprint(rng.IntN(5)))
	case 2, 3:
		w.prove(w.revisions[rng.IntN(len(w.revisions))].Name)
	case 4:
		w.advance(time.Duration(rng.IntN(15)) * time.Minute)
	case 5:
		w.change(func(s *v1alpha1.FunctionSpec) {
			s.Traffic = nil
			s.Rollout.Strategy, s.Rollout.Steps = v1alpha1.RolloutImmediate, nil
			if rng.IntN(2) == 0 {
				twoSteps(s)
			}
		})
	case 6:
		w.change(func(s *v1alpha1.FunctionSpec) {
			s.Rollout.Strategy, s.Rollout.Steps = v1alpha1.RolloutImmediate, nil
			name := fmt.Sprintf("thumbnail-%05d", 1+rng.IntN(int(w.f.Generation)))
			s.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 70}, {Tag: "pinned", RevisionName: name, Weight: 30}}
		})
	case 7:
		// Somebody deletes one by hand.
		w.lose(w.revisions[rng.IntN(len(w.revisions))].Name)
		w.converge()
	}
}

func broken(w *harness) string {
	sum := int32(0)
	someProven := false
	for _, r := range w.revisions {
		someProven = someProven || r.Proven()
	}
	pinned := make(map[string]bool)
	for _, target := range w.f.Spec.Traffic {
		pinned[target.Tag] = target.RevisionName != ""
	}
	for _, part := range w.f.Status.Traffic {
		sum += part.Weight
		r := w.named(part.RevisionName)
		switch {
		case r == nil:
			return "calls go to " + part.RevisionName + ", which does not exist"
		case !r.Proven() && someProven && !pinned[part.Tag]:
			return "calls go to " + r.Name + ", which is not proven"
		}
	}
	switch latest := w.named(w.f.Status.LatestCreatedRevisionName); {
	case sum != 100:
		return fmt.Sprintf("the weights are %d together", sum)
	case latest == nil || !latest.Is(w.f):
		return "the latest revision is not that of the template"
	case w.plan.Phase == Done && w.f.Spec.Traffic == nil && w.weight(latest.Name) != 100:
		return "the rollout is done, and not all calls go to the latest revision"
	}
	return unitsFit(w)
}

// unitsFit looks at what Compose makes of the world.
func unitsFit(w *harness) string {
	e := Compose(w.f, w.revisions)
	sum, proving := int32(0), 0
	for _, route := range e.Routes {
		sum += route.Weight
	}
	for _, u := range e.Units {
		if u.Spec.Scaling.MinInstances > 0 {
			proving++
		}
	}
	switch {
	case sum != 100:
		return fmt.Sprintf("the routes weigh %d together", sum)
	case len(e.Units) > len(w.f.Status.Traffic)+2:
		return fmt.Sprintf("%d units of %d parts", len(e.Units), len(w.f.Status.Traffic))
	case proving > 1:
		return "more than one revision is being proven"
	}
	return ""
}
