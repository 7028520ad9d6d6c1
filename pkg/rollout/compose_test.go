package rollout

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// unit is that of a revision.
func (w *harness) unit(number string) *v1alpha1.Function {
	w.t.Helper()
	for _, u := range Compose(w.f, w.revisions).Units {
		if u.Revision() == number {
			return u
		}
	}
	w.t.Fatalf("no unit of %s", number)
	return nil
}

func TestAUnitIsOneRevisionOfTheFunction(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.deploy("b")
	old, now := w.unit("00001"), w.unit("00002")
	switch {
	case old.UID != "thumbnail-00001" || now.UID != "thumbnail-00002":
		t.Errorf("UIDs %s, %s", old.UID, now.UID)
	case old.Spec.Template.Image != "a" || now.Spec.Template.Image != "b":
		t.Errorf("images %s, %s", old.Spec.Template.Image, now.Spec.Template.Image)
	case now.FunctionUID() != "f" || now.FunctionRevisionName() != "thumbnail-00002":
		t.Errorf("of %s, %s", now.FunctionUID(), now.FunctionRevisionName())
	case old.Key() != w.f.Key() || old.Generation != w.f.Generation:
		t.Errorf("%s of generation %d", old.Key(), old.Generation)
	}
	if w.f.Annotations != nil || w.f.Spec.Template.Image != "b" {
		t.Error("the function itself was changed")
	}
}

func TestWhoIsBeingProvenHasOneInstance(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	if u := w.unit("00001"); u.Spec.Scaling.MinInstances != 1 || !u.Proving() {
		t.Errorf("%d instances are wanted for the proof (%v)", u.Spec.Scaling.MinInstances, u.Proving())
	}
	w.prove("thumbnail-00001")
	if u := w.unit("00001"); u.Spec.Scaling.MinInstances != 0 || u.Proving() {
		t.Errorf("%d instances are wanted after it (%v)", u.Spec.Scaling.MinInstances, u.Proving())
	}
	w.f.Spec.Rollout.Verify = v1alpha1.VerifyNone
	w.deploy("b")
	if n := w.unit("00002").Spec.Scaling.MinInstances; n != 0 {
		t.Errorf("%d instances are wanted though nothing is to be proven", n)
	}
	w.f.Spec.Rollout.Verify, w.f.Spec.Scaling.MinInstances = v1alpha1.VerifyOneInstance, 2
	w.deploy("c")
	w.prove("thumbnail-00003")
	if u := w.unit("00003"); u.Spec.Scaling.MinInstances != 2 || u.Proving() {
		t.Errorf("%d instances are wanted of who has calls (%v)", u.Spec.Scaling.MinInstances, u.Proving())
	}
}

func TestEachRevisionHasItsPart(t *testing.T) {
	w := newHarness(t)
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Calls.MaxInFlight, s.Calls.Rate = 200, v1alpha1.Rate{Requests: 50, Burst: 5}
		s.Scaling.MinInstances, s.Scaling.MaxInstances = 4, new(int32(30))
		s.Scaling.Windows = []v1alpha1.ScalingWindow{{Name: "day", MinInstances: 9}}
	})
	w.deploy("a")
	w.prove(w.f.Status.LatestCreatedRevisionName)
	w.change(twoSteps)
	w.deploy("b")
	w.prove(w.f.Status.LatestCreatedRevisionName)
	for _, part := range []struct {
		number                                       string
		inFlight, requests, burst, least, most, noon int32
	}{
		{"00002", 190, 48, 5, 4, 29, 9},
		{"00004", 10, 3, 1, 1, 2, 1},
	} {
		s := w.unit(part.number).Spec
		got := []int32{s.Calls.MaxInFlight, s.Calls.Rate.Requests, s.Calls.Rate.Burst, s.Scaling.MinInstances, *s.Scaling.MaxInstances, s.Scaling.Windows[0].MinInstances}
		want := []int32{part.inFlight, part.requests, part.burst, part.least, part.most, part.noon}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s has %v, want %v", part.number, got, want)
				break
			}
		}
	}
	w.deploy("c")
	if s := w.unit("00005").Spec; s.Scaling.MinInstances != 1 || s.Scaling.Windows != nil || *s.Scaling.MaxInstances != 30 {
		t.Errorf("the revision that is being proven has %+v", s.Scaling)
	}
}

// A client chooses the tag. So a revision that only its tag calls has one percent of the limits,
// and not all of them once more.
func TestARevisionThatOnlyItsTagCallsHasOnePercent(t *testing.T) {
	w := newHarness(t)
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Calls.MaxInFlight, s.Calls.Rate = 250, v1alpha1.Rate{Requests: 50, Burst: 5}
		s.Scaling.MinInstances, s.Scaling.MaxInstances = 4, new(int32(30))
		s.Scaling.Windows = []v1alpha1.ScalingWindow{{Name: "day", MinInstances: 9}}
	})
	w.deploy("a")
	w.prove(w.f.Status.LatestCreatedRevisionName)
	live := w.f.Status.LatestCreatedRevisionName
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100, RevisionName: live}, {Tag: "next"}}
	})
	w.deploy("b")
	w.prove(w.f.Status.LatestCreatedRevisionName)
	s := w.unit(w.f.Status.LatestCreatedRevisionName[len("thumbnail-"):]).Spec
	got := []int32{s.Calls.MaxInFlight, s.Calls.Rate.Requests, s.Calls.Rate.Burst, *s.Scaling.MaxInstances, s.Scaling.MinInstances, int32(len(s.Scaling.Windows))}
	if want := []int32{3, 1, 1, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("it has %v, want %v", got, want)
	}
	if s := w.unit(live[len("thumbnail-"):]).Spec; s.Calls.MaxInFlight != 250 || *s.Scaling.MaxInstances != 30 {
		t.Errorf("the revision with all other calls has %+v and %+v", s.Calls, s.Scaling)
	}
	// Without limits there is nothing to divide.
	w.change(func(s *v1alpha1.FunctionSpec) { s.Calls, s.Scaling = v1alpha1.Calls{}, v1alpha1.Scaling{} })
	if s := w.unit(w.f.Status.LatestCreatedRevisionName[len("thumbnail-"):]).Spec; s.Calls != (v1alpha1.Calls{}) || s.Scaling.MaxInstances != nil {
		t.Errorf("without limits it has %+v and %+v", s.Calls, s.Scaling)
	}
}

func TestOnlyTheLastRevisionToLoseItsCallsStaysWarm(t *testing.T) {
	w := newHarness(t)
	for _, image := range []string{"a", "b", "c"} {
		w.deploy(image)
		w.prove(w.f.Status.LatestCreatedRevisionName)
		w.advance(time.Minute)
	}
	w.expectUnits("00002", "00003")
	if down := w.unit("00002").Spec.Scaling.ScaleDown; down.LastInstanceIdleTimeout.Duration != 10*time.Minute {
		t.Errorf("the last instance of the revision without calls stays for %s", down.LastInstanceIdleTimeout)
	}
	w.deploy("b")
	w.expectUnits("00002", "00003")
	if down := w.unit("00002").Spec.Scaling.ScaleDown; down.LastInstanceIdleTimeout.Duration != time.Hour {
		t.Errorf("the last instance of the revision with calls stays for %s", down.LastInstanceIdleTimeout)
	}
}

func TestARevisionStaysWarmWhicheverOfTheStatusesIsSeenFirst(t *testing.T) {
	w := newHarness(t)
	for _, image := range []string{"a", "b"} {
		w.deploy(image)
		w.prove(w.f.Status.LatestCreatedRevisionName)
		w.advance(time.Minute)
	}
	before := make([]*v1alpha1.FunctionRevision, len(w.revisions))
	for i, r := range w.revisions {
		before[i] = r.DeepCopy()
	}
	w.deploy("a")
	w.expectUnits("00001", "00002")
	w.revisions = before
	w.expectUnits("00001", "00002")
}

func TestTheInstanceOfTheProofStaysUntilCallsComeToIt(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.deploy("b")
	before := w.f.Status.DeepCopy()
	w.prove("thumbnail-00002")
	now := w.f.Status
	w.f.Status = *before
	w.expectUnits("00001", "00002")
	if n := w.unit("00002").Spec.Scaling.MinInstances; n != 1 {
		t.Errorf("%d instances are wanted before the calls come", n)
	}
	w.f.Status = now
	if n := w.unit("00002").Spec.Scaling.MinInstances; n != 0 {
		t.Errorf("%d instances are wanted when calls come", n)
	}
}

func (w *harness) expectUnits(numbers ...string) {
	w.t.Helper()
	var got []string
	for _, u := range Compose(w.f, w.revisions).Units {
		got = append(got, u.Revision())
	}
	if !slices.Equal(got, numbers) {
		w.t.Fatalf("units %v, want %v", got, numbers)
	}
}

func TestTagsHaveRoutes(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100}, {Tag: "old", RevisionName: "thumbnail-00001"}}
	})
	w.deploy("b")
	w.prove("thumbnail-00003")
	e := Compose(w.f, w.revisions)
	for i, want := range []Route{{Tag: "live", Weight: 100}, {Tag: "old"}} {
		if got := e.Routes[i]; got.Tag != want.Tag || got.Weight != want.Weight {
			t.Errorf("route %d is %+v", i, got)
		}
	}
	if e.Routes[0].Unit.Revision() != "00003" || e.Routes[1].Unit.Revision() != "00001" || len(e.Routes) != 2 {
		t.Errorf("routes go to %s and %s", e.Routes[0].Unit.Revision(), e.Routes[1].Unit.Revision())
	}
}

func TestAFunctionThatNobodyHasLookedAtHasNoRoutes(t *testing.T) {
	w := newHarness(t)
	if e := Compose(w.f, nil); len(e.Units)+len(e.Routes) != 0 {
		t.Errorf("%d units, %d routes", len(e.Units), len(e.Routes))
	}
	if e := Alone(w.f); e.Units[0] != w.f || e.Routes[0].Unit != w.f || e.Routes[0].Weight != 100 {
		t.Error("a function alone is not its own unit")
	}
}

// sharesOf draws a number of times, and counts what falls on routes of those weights.
func sharesOf(weights []int32, draw uint32, draws int) []int {
	e, count := &Entry{}, make(map[*v1alpha1.Function]int)
	for _, weight := range weights {
		e.Routes = append(e.Routes, Route{Weight: weight, Unit: &v1alpha1.Function{}})
	}
	for range draws {
		draw += DrawStep
		count[e.Pick(draw)]++
	}
	shares := make([]int, 0, len(e.Routes))
	for _, r := range e.Routes {
		shares = append(shares, count[r.Unit])
	}
	return shares
}

// However many draws and wherever they begin: a share is its weight, and some few more or
// less that do not become more with the draws.
func TestAnyDrawsInARowFallAsTheWeightsSay(t *testing.T) {
	for _, tc := range []struct {
		most int
		off  float64
	}{{100, 3}, {10_000, 4}, {100_000, 5}} {
		rapid.Check(t, func(t *rapid.T) {
			weights := rapid.SliceOfN(rapid.Int32Range(0, 100), 1, 6).Draw(t, "weights")
			all := int32(0)
			for _, weight := range weights {
				all += weight
			}
			if all == 0 {
				t.Skip("nobody is called")
			}
			draws := rapid.IntRange(1, tc.most).Draw(t, "draws")
			for i, n := range sharesOf(weights, rapid.Uint32().Draw(t, "begin"), draws) {
				if want := float64(draws) * float64(weights[i]) / float64(all); math.Abs(float64(n)-want) > tc.off {
					t.Errorf("of %d draws, %d fell on %d of %v, want %.1f", draws, n, weights[i], weights, want)
				}
			}
		})
	}
}
