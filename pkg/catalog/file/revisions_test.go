package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// of is a function whose template says concurrency.
func of(concurrency int32, edits ...func(*v1alpha1.Function)) *v1alpha1.Function {
	f := function("f")
	f.Spec.Template.Concurrency = concurrency
	for _, edit := range edits {
		edit(f)
	}
	return f
}

var started = rollout.Observation{Observed: true, Started: true, Ready: 1}

func failing(why string) rollout.Observation {
	return rollout.Observation{Observed: true, Failure: &rollout.Failure{Reason: v1alpha1.ReasonStartFailed, Message: why}}
}

func seen(t *testing.T, s *Store, number int64, known rollout.Observation) {
	t.Helper()
	all := make(map[string]rollout.Observation)
	for _, r := range revisions(s) {
		all[r.Name] = rollout.Observation{Observed: true}
	}
	all[numbered(t, s, number).Name] = known
	if err := s.Observe(key("f"), all); err != nil {
		t.Fatal(err)
	}
}

func revisions(s *Store) []*v1alpha1.FunctionRevision {
	history, _ := s.History(key("f"))
	return history.Revisions
}

func numbered(t *testing.T, s *Store, number int64) *v1alpha1.FunctionRevision {
	t.Helper()
	for _, r := range revisions(s) {
		if r.Spec.Number == number {
			return r
		}
	}
	t.Fatalf("there is no revision %d", number)
	return nil
}

// calls is where the calls of f go, as number:weight.
func calls(t *testing.T, s *Store) string {
	t.Helper()
	entry, ok := s.Catalog().Get(key("f"))
	if !ok {
		t.Fatal("f is gone")
	}
	var parts []string
	for _, route := range entry.Routes {
		parts = append(parts, fmt.Sprintf("%s:%d", route.Unit.Revision(), route.Weight))
	}
	return strings.Join(parts, " ")
}

func goes(t *testing.T, s *Store, want string) {
	t.Helper()
	if got := calls(t, s); got != want {
		t.Errorf("calls go to %s, want %s", got, want)
	}
}

func advance(t *testing.T, s *Store) time.Time {
	t.Helper()
	next, err := s.Advance()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestCallsFollowTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		const all = 100
		apply(t, s, of(1), Created)
		expect := func(latest, ready string, to int64) {
			t.Helper()
			f, _ := s.Get(key("f"))
			if f.Status.LatestCreatedRevisionName != latest || f.Status.LatestReadyRevisionName != ready {
				t.Errorf("latest %s, ready %s; want %s, %s", f.Status.LatestCreatedRevisionName, f.Status.LatestReadyRevisionName, latest, ready)
			}
			entry, _ := s.Catalog().Get(key("f"))
			if len(entry.Routes) != 1 || entry.Routes[0].Weight != all || entry.Routes[0].Unit.UID != numbered(t, s, to).UID {
				t.Errorf("routes %+v, want all to %d", entry.Routes, to)
			}
		}
		expect("f-00001", "", 1)
		first := numbered(t, s, 1)
		if first.UID == "" || !first.CreationTimestamp.Time.Equal(time.Now()) {
			t.Errorf("the revision has UID %q, creation %v", first.UID, first.CreationTimestamp)
		}
		seen(t, s, 1, started)
		expect("f-00001", "f-00001", 1)

		time.Sleep(time.Minute)
		apply(t, s, of(2), Configured)
		expect("f-00002", "f-00001", 1)
		seen(t, s, 2, failing("SyntaxError"))
		expect("f-00002", "f-00001", 1)
		if c := meta.FindStatusCondition(numbered(t, s, 2).Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStartFailed || c.Message != "SyntaxError" {
			t.Errorf("the revision that does not start says %+v", c)
		}

		time.Sleep(time.Minute)
		apply(t, s, of(3), Configured)
		expect("f-00003", "f-00001", 1)
		time.Sleep(time.Minute)
		seen(t, s, 3, started)
		expect("f-00003", "f-00003", 3)
		if since := numbered(t, s, 1).InactiveSince(); since == nil || !since.Time.Equal(time.Now()) {
			t.Errorf("the first revision has no calls since %v", since)
		}
		// What failed once may fail for another reason later, and that says nothing of it.
		seen(t, s, 3, failing(""))
		expect("f-00003", "f-00003", 3)

		// The template of a revision that is proven is in force at once.
		apply(t, s, of(1), Configured)
		expect("f-00001", "f-00001", 1)
		if n := len(revisions(s)); n != 3 {
			t.Errorf("%d revisions", n)
		}

		again := open(t, dir)
		if !equality.Semantic.DeepEqual(revisions(s), revisions(again)) || !equality.Semantic.DeepEqual(s.Catalog().List(), again.Catalog().List()) {
			t.Error("the file holds something else")
		}
	})
}

func TestARevisionThatFailedIsTriedAgainWhenItsTemplateComesBack(t *testing.T) {
	s := open(t, t.TempDir())
	ready := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		if c := meta.FindStatusCondition(numbered(t, s, 2).Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != status || c.Reason != reason {
			t.Errorf("revision 2 says %+v, want %s, %s", c, status, reason)
		}
	}
	apply(t, s, of(1), Created)
	seen(t, s, 1, started)
	apply(t, s, of(2), Configured)
	seen(t, s, 2, failing("broken"))
	apply(t, s, of(1), Configured)
	seen(t, s, 1, started)
	ready(metav1.ConditionFalse, v1alpha1.ReasonStartFailed)
	apply(t, s, of(2), Configured)
	ready(metav1.ConditionUnknown, v1alpha1.ReasonVerifying)
	// The same without a change of the template says nothing new of it.
	seen(t, s, 2, failing("broken"))
	apply(t, s, of(2, func(f *v1alpha1.Function) { f.Spec.Scaling.MinInstances = 3 }), Configured)
	ready(metav1.ConditionFalse, v1alpha1.ReasonStartFailed)
}

func TestMoreOfTheSameIsNoRevision(t *testing.T) {
	s := open(t, t.TempDir())
	apply(t, s, of(1), Created)
	apply(t, s, of(1, func(f *v1alpha1.Function) { f.Spec.Scaling.MinInstances = 3 }), Configured)
	if n := len(revisions(s)); n != 1 {
		t.Errorf("%d revisions", n)
	}
	entry, _ := s.Catalog().Get(key("f"))
	if unit := entry.Units[0]; unit.Spec.Scaling.MinInstances != 3 || unit.Generation != 2 {
		t.Errorf("the unit has %d instances at least, generation %d", unit.Spec.Scaling.MinInstances, unit.Generation)
	}
}

func TestStepsAreTakenAsTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		steps := func(f *v1alpha1.Function) {
			f.Spec.Rollout.Strategy = v1alpha1.RolloutSteps
			f.Spec.Rollout.Steps = []v1alpha1.RolloutStep{{Weight: 10, Hold: v1alpha1.Duration{Duration: time.Minute}}, {Weight: 50, Hold: v1alpha1.Duration{Duration: time.Hour}}}
		}
		apply(t, s, of(1, steps), Created)
		seen(t, s, 1, started)
		if next := advance(t, s); !next.IsZero() {
			t.Errorf("something is due at %v", next)
		}
		apply(t, s, of(2, steps), Configured)
		if next := advance(t, s); !next.Equal(time.Now().Add(v1alpha1.DefaultProgressDeadline)) {
			t.Errorf("due at %v, want at the deadline", next)
		}
		seen(t, s, 2, started)
		goes(t, s, "00001:90 00002:10")
		if next := advance(t, s); !next.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("due at %v, want in a minute", next)
		}
		time.Sleep(59 * time.Second)
		advance(t, s)
		goes(t, s, "00001:90 00002:10")
		time.Sleep(time.Second)
		advance(t, s)
		goes(t, s, "00001:50 00002:50")
		time.Sleep(time.Hour)
		if next := advance(t, s); !next.IsZero() {
			t.Errorf("something is due at %v", next)
		}
		f, _ := s.Get(key("f"))
		if len(f.Status.Traffic) != 1 || f.Status.Traffic[0] != (v1alpha1.TrafficStatus{RevisionName: "f-00002", Weight: 100}) {
			t.Errorf("traffic %+v", f.Status.Traffic)
		}
	})
}

func TestAnOpenedStoreTakesTheStepsThatAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		steps := func(f *v1alpha1.Function) {
			f.Spec.Rollout.Strategy = v1alpha1.RolloutSteps
			f.Spec.Rollout.Steps = []v1alpha1.RolloutStep{{Weight: 10, Hold: v1alpha1.Duration{Duration: time.Minute}}, {Weight: 50, Hold: v1alpha1.Duration{Duration: time.Hour}}}
		}
		apply(t, s, of(1, steps), Created)
		seen(t, s, 1, started)
		apply(t, s, of(2, steps), Configured)
		seen(t, s, 2, started)
		time.Sleep(2 * time.Minute)
		again := open(t, dir)
		goes(t, again, "00001:90 00002:10")
		advance(t, again)
		goes(t, again, "00001:50 00002:50")
	})
}

// codeAt is a function whose code is in a folder of that name, which is made.
func codeAt(t *testing.T, parts ...string) *v1alpha1.Function {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return of(1, func(f *v1alpha1.Function) { f.Spec.Template.Code = &v1alpha1.Code{Path: dir} })
}

func TestNoCallsGoToCodeThatHasMoved(t *testing.T) {
	s, dir := open(t, t.TempDir()), t.TempDir()
	apply(t, s, codeAt(t, dir, "a"), Created)
	seen(t, s, 1, started)
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	apply(t, s, codeAt(t, dir, "b"), Configured)
	goes(t, s, "00002:100")
	seen(t, s, 2, started)
	goes(t, s, "00002:100")
	// While its code is there, the ready one keeps the calls.
	apply(t, s, codeAt(t, dir, "c"), Configured)
	goes(t, s, "00002:100")
}

func TestNoCallsReturnToWhatWasReplacedBeforeItsSuccessorWasLost(t *testing.T) {
	s, dir := open(t, t.TempDir()), t.TempDir()
	for n, name := range []string{"a", "b"} {
		result := Configured
		if n == 0 {
			result = Created
		}
		apply(t, s, codeAt(t, dir, name), result)
		seen(t, s, int64(n+1), started)
	}
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	apply(t, s, codeAt(t, dir, "c"), Configured)
	goes(t, s, "00003:100")
	if n := len(revisions(s)); n != 1 {
		t.Errorf("%d revisions are left, want the new one", n)
	}
}

func TestARevisionThatIsWantedStaysThoughOthersAreLost(t *testing.T) {
	s, dir := open(t, t.TempDir()), t.TempDir()
	apply(t, s, codeAt(t, dir, "a"), Created)
	seen(t, s, 1, started)
	apply(t, s, codeAt(t, dir, "b"), Configured)
	seen(t, s, 2, started)
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	split := codeAt(t, dir, "c")
	split.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "new", RevisionName: "f-00002", Weight: 30}, {Tag: "old", RevisionName: "f-00001", Weight: 70}}
	apply(t, s, split, Configured)
	goes(t, s, "00002:30 00001:70")
	// Its proof holds.
	apply(t, s, codeAt(t, dir, "a"), Configured)
	goes(t, s, "00001:100")
}

func TestTheHistoryHasItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		short := func(f *v1alpha1.Function) { f.Spec.RevisionHistoryLimit = new(int32(1)) }
		for n := range int32(4) {
			result := Configured
			if n == 0 {
				result = Created
			}
			apply(t, s, of(n+1, short), result)
			seen(t, s, int64(n+1), started)
			time.Sleep(time.Minute)
		}
		var numbers []int64
		for _, r := range revisions(s) {
			numbers = append(numbers, r.Spec.Number)
		}
		if len(numbers) != 2 || numbers[0] != 3 || numbers[1] != 4 {
			t.Errorf("revisions %v, want 3 and 4", numbers)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "default", "f.yaml")); err != nil || strings.Contains(string(text), "f-00002") {
			t.Errorf("%v; the file holds what was removed:\n%s", err, text)
		}
	})
}

func TestAnObservationThatCannotBeKeptChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	apply(t, s, of(1), Created)
	before := numbered(t, s, 1)
	path := filepath.Join(dir, "default", "f.yaml")
	// A folder that is not empty cannot give its name to a file.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Observe(key("f"), map[string]rollout.Observation{before.Name: started}); err == nil || !strings.Contains(err.Error(), "f.yaml") {
		t.Errorf("got %v", err)
	}
	if !equality.Semantic.DeepEqual(numbered(t, s, 1), before) {
		t.Error("the store holds what the folder does not")
	}
}

func TestNoNewsIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	apply(t, s, of(1), Created)
	failed := failing("broken")
	seen(t, s, 1, failed)
	path := filepath.Join(dir, "default", "f.yaml")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, o := range []rollout.Observation{failed, {Observed: true}} {
		seen(t, s, 1, o)
	}
	if err := s.Observe(key("f"), map[string]rollout.Observation{"another": started}); err != nil {
		t.Error(err)
	}
	if err := s.Observe(key("nobody"), map[string]rollout.Observation{"another": started}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was written again")
	}
}

func TestARevisionOfAnotherFunctionIsRefused(t *testing.T) {
	dir := t.TempDir()
	apply(t, open(t, dir), of(1), Created)
	path := filepath.Join(dir, "default", "f.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := strings.Replace(string(text), "    kind: Function\n    name: f\n    uid: ", "    kind: Function\n    name: f\n    uid: x", 1)
	if owner == string(text) {
		t.Fatalf("the file names no owner:\n%s", text)
	}
	if err := os.WriteFile(path, []byte(owner), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "holds the revision f-00001, which is not one of function default/f") {
		t.Errorf("got %v", err)
	}
}
