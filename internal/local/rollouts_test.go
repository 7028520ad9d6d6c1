package local

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// instances are what the test says of the revisions of a function.
type instances struct {
	mu    sync.Mutex
	of    map[string]rollout.Observation
	looks int
}

func (i *instances) Known(unit *v1alpha1.Function) rollout.Observation {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.looks++
	known := i.of[unit.FunctionRevisionName()]
	known.Observed, known.Generation = true, unit.Generation
	return known
}

func (i *instances) are(revision string, known rollout.Observation) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.of[revision] = known
}

// looked is how often somebody has looked since this was asked last.
func (i *instances) looked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.looks
	i.looks = 0
	return n
}

// withRollouts runs rollouts over a store, in virtual time.
func withRollouts(t *testing.T, play func(t *testing.T, dir string, r *rollouts, i *instances)) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		store, err := file.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		i := &instances{of: map[string]rollout.Observation{}}
		r := newRollouts(store, i, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		play(t, dir, r, i)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func applied(t *testing.T, r *rollouts, concurrency int32, edits ...func(*v1alpha1.Function)) *v1alpha1.Function {
	t.Helper()
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name = "default", "f"
	fn.Spec.Template.Command, fn.Spec.Template.Concurrency = []string{"./server"}, concurrency
	for _, edit := range edits {
		edit(fn)
	}
	if _, err := r.store.Apply(fn); err != nil {
		t.Fatal(err)
	}
	fn, _ = r.store.Get(fn.Key())
	return fn
}

// told is the status of a function, with a condition as Status/Reason.
func told(r *rollouts, fn *v1alpha1.Function, kind string) (v1alpha1.FunctionStatus, string) {
	var status v1alpha1.FunctionStatus
	r.fillStatus(fn, &status)
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return status, string(c.Status) + "/" + c.Reason
	}
	return status, ""
}

func TestLocalFunctionsMayHaveEveryClass(t *testing.T) {
	withRollouts(t, func(t *testing.T, _ string, r *rollouts, i *instances) {
		for class, want := range map[v1alpha1.SchedulingClass]string{
			v1alpha1.ClassLatencyCritical: "True/Permitted", v1alpha1.ClassBatch: "", v1alpha1.ClassStandard: "",
		} {
			fn := applied(t, r, 1, func(fn *v1alpha1.Function) { fn.Spec.Template.Scheduling.Class = class })
			synctest.Wait()
			if _, got := told(r, fn, v1alpha1.ConditionSchedulingClass); got != want {
				t.Errorf("%s: the condition is %q, want %q", class, got, want)
			}
		}
	})
}

func TestLocalClassesHaveNoEffectWithoutNodeScheduling(t *testing.T) {
	withRollouts(t, func(t *testing.T, _ string, r *rollouts, i *instances) {
		r.unordered = true
		for class, want := range map[v1alpha1.SchedulingClass]string{
			v1alpha1.ClassLatencyCritical: "False/NodeSchedulingOff", v1alpha1.ClassBatch: "False/NodeSchedulingOff", v1alpha1.ClassStandard: "",
		} {
			fn := applied(t, r, 1, func(fn *v1alpha1.Function) { fn.Spec.Template.Scheduling.Class = class })
			synctest.Wait()
			status, got := told(r, fn, v1alpha1.ConditionSchedulingClass)
			if got != want {
				t.Errorf("%s: the condition is %q, want %q", class, got, want)
			}
			if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSchedulingClass); c != nil && !strings.Contains(c.Message, "--node-scheduling=auto") {
				t.Errorf("%q does not say how to switch it on", c.Message)
			}
		}
	})
}

func TestClassesWithoutNodeSchedulingAreSaidOnce(t *testing.T) {
	for _, unordered := range []bool{true, false} {
		withRollouts(t, func(t *testing.T, _ string, r *rollouts, i *instances) {
			var log bytes.Buffer
			r.log, r.unordered = slog.New(slog.NewTextHandler(&log, nil)), unordered
			for concurrency := range int32(3) {
				applied(t, r, concurrency+1, func(fn *v1alpha1.Function) { fn.Spec.Template.Scheduling.Class = v1alpha1.ClassBatch })
				synctest.Wait()
			}
			want := 0
			if unordered {
				want = 1
			}
			if got := strings.Count(log.String(), "--node-scheduling"); got != want {
				t.Errorf("unordered %v: said %d times, want %d: %s", unordered, got, want, &log)
			}
		})
	}
}

func TestCallsFollowTheProofSoon(t *testing.T) {
	withRollouts(t, func(t *testing.T, _ string, r *rollouts, i *instances) {
		fn := applied(t, r, 1)
		i.are("f-00001", rollout.Observation{Started: true, Ready: 1})
		time.Sleep(lookSoon)
		synctest.Wait()
		to := func(want string) {
			t.Helper()
			fn, _ = r.store.Get(fn.Key())
			if traffic := fn.Status.Traffic; len(traffic) != 1 || traffic[0].RevisionName != want {
				t.Errorf("calls go to %+v, want %s", traffic, want)
			}
		}
		to("f-00001")
		if fn.Status.LatestReadyRevisionName != "f-00001" {
			t.Error("the first revision is not proven")
		}
		applied(t, r, 2)
		time.Sleep(time.Second)
		to("f-00001")
		i.are("f-00002", rollout.Observation{Started: true, Ready: 1})
		time.Sleep(2 * lookSoon)
		synctest.Wait()
		to("f-00002")

		i.looked()
		time.Sleep(time.Hour)
		if n := i.looked(); n != 0 {
			t.Errorf("it was looked %d times at what is proven", n)
		}
	})
}

func TestWhatTakesLongIsLookedAtMoreRarely(t *testing.T) {
	withRollouts(t, func(t *testing.T, _ string, r *rollouts, i *instances) {
		applied(t, r, 1)
		time.Sleep(time.Second)
		if n := i.looked(); n < 15 || n > 25 {
			t.Errorf("%d looks in the first second", n)
		}
		time.Sleep(time.Hour)
		i.looked()
		time.Sleep(10 * time.Second)
		if n := i.looked(); n < 15 || n > 25 {
			t.Errorf("%d looks in ten seconds, an hour later", n)
		}
	})
}

func TestStepsGoOnWithoutAnybodyAsking(t *testing.T) {
	withRollouts(t, func(t *testing.T, _ string, r *rollouts, i *instances) {
		steps := func(fn *v1alpha1.Function) {
			fn.Spec.Rollout.Strategy = v1alpha1.RolloutSteps
			fn.Spec.Rollout.Steps = []v1alpha1.RolloutStep{{Weight: 10, Hold: v1alpha1.Duration{Duration: time.Hour}}}
		}
		i.are("f-00001", rollout.Observation{Started: true, Ready: 1})
		i.are("f-00002", rollout.Observation{Started: true, Ready: 1})
		applied(t, r, 1, steps)
		time.Sleep(time.Second)
		fn := applied(t, r, 2, steps)
		time.Sleep(59 * time.Minute)
		status, reconciling := told(r, fn, v1alpha1.ConditionReconciling)
		if len(status.Traffic) != 2 || status.Traffic[1].Weight != 10 || reconciling != "True/Stepping" {
			t.Errorf("traffic %+v, Reconciling %s", status.Traffic, reconciling)
		}
		time.Sleep(2 * time.Minute)
		fn, _ = r.store.Get(fn.Key())
		if len(fn.Status.Traffic) != 1 || fn.Status.Traffic[0].RevisionName != "f-00002" {
			t.Errorf("traffic %+v", fn.Status.Traffic)
		}
	})
}

func TestAStatusSaysWhatIsSeenAtTheMoment(t *testing.T) {
	withRollouts(t, func(t *testing.T, _ string, r *rollouts, i *instances) {
		i.are("f-00001", rollout.Observation{Started: true, Ready: 1})
		fn := applied(t, r, 1)
		if status, ready := told(r, fn, v1alpha1.ConditionRevisionReady); ready != "True/Started" || status.ObservedGeneration != 1 || status.LatestReadyRevisionName != "f-00001" {
			t.Errorf("RevisionReady %s, status %+v", ready, status)
		}
		fn = applied(t, r, 2)
		if _, ready := told(r, fn, v1alpha1.ConditionRevisionReady); ready != "Unknown/Verifying" {
			t.Errorf("RevisionReady %s", ready)
		}
		time.Sleep(3 * time.Second)
		i.are("f-00002", rollout.Observation{Failure: &rollout.Failure{Reason: v1alpha1.ReasonStartFailed, Message: "SyntaxError"}})
		status, ready := told(r, fn, v1alpha1.ConditionRevisionReady)
		if since := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRevisionReady).LastTransitionTime; ready != "False/StartFailed" || !since.Time.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("RevisionReady %s since %v", ready, since)
		}
		time.Sleep(time.Minute)
		status, callable := told(r, fn, v1alpha1.ConditionReady)
		if since := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRevisionReady).LastTransitionTime; time.Since(since.Time) < time.Minute {
			t.Errorf("it has failed since %v", since)
		}
		if callable != "True/Started" {
			t.Errorf("Ready %s, and another revision serves", callable)
		}
		time.Sleep(v1alpha1.DefaultProgressDeadline)
		if _, stalled := told(r, fn, v1alpha1.ConditionStalled); stalled != "True/StartFailed" {
			t.Errorf("Stalled %s", stalled)
		}

		another := fn.DeepCopy()
		another.UID = "another"
		if status, _ := told(r, another, v1alpha1.ConditionReady); len(status.Conditions) > 0 {
			t.Errorf("of a function that is not kept: %+v", status)
		}
		revisions := r.Revisions(fn.Key())
		if len(revisions) != 2 || revisions[0].Status.Instances.Ready != 1 || meta.IsStatusConditionPresentAndEqual(revisions[1].Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue) {
			t.Errorf("revisions %+v", revisions)
		}
		if err := r.store.Delete(fn.Key()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(r.said) > 0 || r.Revisions(fn.Key()) != nil {
			t.Error("a deleted function is remembered")
		}
	})
}

func TestADiskThatIsFullIsTriedAgain(t *testing.T) {
	withRollouts(t, func(t *testing.T, dir string, r *rollouts, i *instances) {
		fn := applied(t, r, 1)
		synctest.Wait()
		path := filepath.Join(dir, "default", "f.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// A folder that is not empty cannot give its name to a file.
		for _, step := range []error{os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)} {
			if step != nil {
				t.Fatal(step)
			}
		}
		i.are("f-00001", rollout.Observation{Started: true, Ready: 1})
		time.Sleep(time.Minute)
		if got, _ := r.store.Get(fn.Key()); got.Status.LatestReadyRevisionName != "" {
			t.Error("the store holds what the folder does not")
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tryAgain)
		synctest.Wait()
		if got, _ := r.store.Get(fn.Key()); got.Status.LatestReadyRevisionName != "f-00001" {
			t.Error("it was not tried again")
		}
		if now, err := os.ReadFile(path); err != nil || string(now) == string(text) || !strings.Contains(string(now), "latestReadyRevisionName: f-00001") {
			t.Errorf("%v; the file is\n%s", err, now)
		}
	})
}
