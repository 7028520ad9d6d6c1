package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestTheFirstRevisionHasCallsBeforeItsProof(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.expect(Verifying, to("00001", 100))
	if w.f.Status.LatestReadyRevisionName != "" {
		t.Fatalf("%s is ready before it has started", w.f.Status.LatestReadyRevisionName)
	}
	w.prove("thumbnail-00001")
	w.expect(Done, to("00001", 100))
}

func TestABrokenUpdateGetsNoCalls(t *testing.T) {
	w := newHarness(t)
	w.deploy("good")
	w.prove("thumbnail-00001")
	w.deploy("broken")
	w.expect(Verifying, to("00001", 100))
	if w.plan.Again != 2*time.Minute {
		t.Fatalf("looks again in %s, want at the deadline", w.plan.Again)
	}
	w.advance(2 * time.Minute)
	w.expect(Overdue, to("00001", 100))
	w.deploy("fixed")
	w.expect(Verifying, to("00001", 100))
	w.prove("thumbnail-00003")
	w.expect(Done, to("00003", 100))
}

func TestARevisionThatIsProvenLateGetsItsCalls(t *testing.T) {
	w := newHarness(t)
	w.deploy("good")
	w.prove("thumbnail-00001")
	w.deploy("slow")
	w.advance(time.Hour)
	w.prove("thumbnail-00002")
	w.expect(Done, to("00002", 100))
}

func TestAnEqualTemplateIsTheOldRevision(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.deploy("b")
	w.prove("thumbnail-00002")
	w.deploy("a")
	w.expect(Done, to("00001", 100))
	if len(w.revisions) != 2 || w.f.Status.LatestCreatedRevisionName != "thumbnail-00001" {
		t.Fatalf("%d revisions, the latest is %s", len(w.revisions), w.f.Status.LatestCreatedRevisionName)
	}
}

func TestNothingButTheTemplateMakesARevision(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.change(func(s *v1alpha1.FunctionSpec) { s.Calls.MaxInFlight, s.Scaling.MinInstances = 7, 3 })
	if len(w.revisions) != 1 {
		t.Fatalf("%d revisions", len(w.revisions))
	}
}

func TestWithoutProofCallsGoToTheLatestAtOnce(t *testing.T) {
	w := newHarness(t)
	w.f.Spec.Rollout.Verify = v1alpha1.VerifyNone
	w.deploy("a")
	w.deploy("b")
	w.expect(Done, to("00002", 100))
}

func TestProofAskedForLaterTakesNoCallsAway(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.f.Spec.Rollout.Verify = v1alpha1.VerifyNone
	w.deploy("b")
	w.change(func(s *v1alpha1.FunctionSpec) { s.Rollout.Verify = v1alpha1.VerifyOneInstance })
	w.expect(Done, to("00002", 100))
	if u := w.unit("00002"); !u.Proving() {
		t.Error("nothing is started to prove it")
	}
	w.prove("thumbnail-00002")
	if u := w.unit("00002"); u.Proving() {
		t.Error("an instance is kept for the proof after it")
	}
	w.deploy("c")
	w.expect(Verifying, to("00002", 100))

	w = newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.change(twoSteps)
	w.f.Spec.Rollout.Verify = v1alpha1.VerifyNone
	w.deploy("b")
	w.change(func(s *v1alpha1.FunctionSpec) { s.Rollout.Verify = v1alpha1.VerifyOneInstance })
	w.expect(Stepping, to("00001", 95), to("00003", 5))
}

func twoSteps(s *v1alpha1.FunctionSpec) {
	s.Rollout.Strategy = v1alpha1.RolloutSteps
	s.Rollout.Steps = []v1alpha1.RolloutStep{
		{Weight: 5, Hold: v1alpha1.Duration{Duration: 10 * time.Minute}}, {Weight: 50, Hold: v1alpha1.Duration{Duration: time.Minute}},
	}
}

func TestSteps(t *testing.T) {
	w := newHarness(t)
	w.change(twoSteps)
	w.deploy("a")
	w.prove(w.f.Status.LatestCreatedRevisionName)
	first := w.f.Status.LatestReadyRevisionName
	w.deploy("b")
	second := w.f.Status.LatestCreatedRevisionName
	w.prove(second)
	part := func(name string, weight int32) v1alpha1.TrafficStatus {
		return v1alpha1.TrafficStatus{RevisionName: name, Weight: weight}
	}
	w.expect(Stepping, part(first, 95), part(second, 5))
	w.advance(10*time.Minute - time.Second)
	w.expect(Stepping, part(first, 95), part(second, 5))
	w.advance(time.Second)
	w.expect(Stepping, part(first, 50), part(second, 50))
	if w.plan.Again != time.Minute {
		t.Fatalf("looks again in %s", w.plan.Again)
	}
	w.advance(time.Minute)
	w.expect(Done, part(second, 100))

	// A return takes no steps: the revision had all calls before.
	w.deploy("a")
	w.expect(Done, part(first, 100))
}

func TestAStepThatBeganByAClockThatWasAheadEnds(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.change(twoSteps)
	w.deploy("b")
	w.prove("thumbnail-00003")
	w.expect(Stepping, to("00001", 95), to("00003", 5))
	w.advance(-2 * time.Hour) // the clock is set right
	w.expect(Stepping, to("00001", 95), to("00003", 5))
	if w.plan.Again != 10*time.Minute {
		t.Fatalf("looks again in %s, want after the step", w.plan.Again)
	}
	w.advance(10 * time.Minute)
	w.expect(Stepping, to("00001", 50), to("00003", 50))
}

func TestAnUpdateInTheMiddleOfStepsLeavesTheStableOne(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.change(twoSteps)
	w.deploy("b")
	w.prove("thumbnail-00003")
	w.expect(Stepping, to("00001", 95), to("00003", 5))
	w.deploy("c")
	w.expect(Verifying, to("00001", 100))
	w.prove("thumbnail-00004")
	w.expect(Stepping, to("00001", 95), to("00004", 5))

	// One that was given up in its steps takes them again.
	w.deploy("b")
	w.expect(Stepping, to("00001", 95), to("00003", 5))
	w.deploy("a")
	w.expect(Done, to("00001", 100))
}

func TestStepsThatAreTakenAwayEnd(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.change(twoSteps)
	w.deploy("b")
	w.prove("thumbnail-00003")
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Rollout.Strategy, s.Rollout.Steps = v1alpha1.RolloutImmediate, nil
	})
	w.expect(Done, to("00003", 100))
}

// Who shortens the steps of a rollout wants fewer calls at the new revision.
func TestOfFewerStepsTheLastIsTakenAgain(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.change(twoSteps)
	w.deploy("b")
	w.prove("thumbnail-00003")
	w.advance(10 * time.Minute)
	w.expect(Stepping, to("00001", 50), to("00003", 50))
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Rollout.Steps = []v1alpha1.RolloutStep{{Weight: 5, Hold: v1alpha1.Duration{Duration: time.Hour}}}
	})
	w.expect(Stepping, to("00001", 95), to("00003", 5))
	w.advance(time.Hour)
	w.expect(Done, to("00003", 100))
}

func TestTrafficIsWhatTheAuthorSays(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.prove("thumbnail-00001")
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", RevisionName: "thumbnail-00001", Weight: 90}, {Tag: "next", Weight: 10}}
	})
	w.deploy("b")
	tagged := func(tag, number string, weight int32) v1alpha1.TrafficStatus {
		part := to(number, weight)
		part.Tag = tag
		return part
	}
	w.expect(Verifying, tagged("live", "00001", 90), tagged("next", "00001", 10))
	w.prove("thumbnail-00003")
	w.expect(Done, tagged("live", "00001", 90), tagged("next", "00003", 10))

	w.change(func(s *v1alpha1.FunctionSpec) { s.Traffic[0].RevisionName = "thumbnail-00777" })
	w.expect(Done, tagged("live", "00001", 90), tagged("next", "00003", 10))
	if !slices.Equal(w.plan.Missing, []string{"thumbnail-00777"}) {
		t.Fatalf("missing %v", w.plan.Missing)
	}
}

func TestTheHistoryKeepsWhatIsNeeded(t *testing.T) {
	w := newHarness(t)
	w.f.Spec.RevisionHistoryLimit = new(int32(2))
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Template.Image = "0"
	})
	w.prove("thumbnail-00001")
	w.change(func(s *v1alpha1.FunctionSpec) {
		s.Traffic = []v1alpha1.TrafficTarget{{Tag: "old", RevisionName: "thumbnail-00001"}, {Tag: "live", Weight: 100}}
	})
	for _, image := range []string{"1", "2", "3", "4", "5"} {
		w.deploy(image)
		w.prove(w.f.Status.LatestCreatedRevisionName)
	}
	var names []string
	for _, r := range w.revisions {
		names = append(names, r.Name)
	}
	want := []string{"thumbnail-00001", "thumbnail-00005", "thumbnail-00006", "thumbnail-00007"}
	if !slices.Equal(names, want) {
		t.Fatalf("kept %v, want %v", names, want)
	}
}

func TestRevisionsOfAnotherFunctionAreNotItsOwn(t *testing.T) {
	w := newHarness(t)
	w.deploy("a")
	w.f.UID = "made again"
	w.f.Status = v1alpha1.FunctionStatus{}
	plan := Decide(w.now, w.f, w.revisions)
	if plan.Create == nil {
		t.Fatal("the new function has no revision of its own")
	}
}
