package scheduler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// unitNo is a revision of the function f.
func unitNo(n int64, changes ...func(*v1alpha1.Function)) *v1alpha1.Function {
	return newTestFunction("f", append(changes, revision(n))...)
}

// seriesOf are the series of a revision.
func (w *harness) seriesOf(revision string) (names []string) {
	for name := range w.scrape("function") {
		if strings.Contains(name, revision) {
			names = append(names, name)
		}
	}
	return names
}

func TestEachRevisionHasItsOwnInstancesAndCalls(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		old, g := unitNo(1, minInstances(1)), w.gateway("g:1")
		w.putUnits(old)
		w.ticks(1)
		a := w.ready(w.started(old, 1)[0])

		fresh := unitNo(2, minInstances(1))
		w.putUnits(unitNo(1, minInstances(1), maxInstances(5)), fresh)
		w.ticks(1)
		b := w.ready(w.started(fresh, 1)[0])
		a.expect()
		g.offer(old, 1)
		g.offer(fresh, 2)
		a.expect("ticket 0001 at g:1")
		b.expect("ticket 0002 at g:1")
		for _, fn := range []*v1alpha1.Function{old, fresh} {
			if got := w.scrape("function")["instances{f,ns,"+fn.Revision()+",busy}"]; got != 1 {
				t.Errorf("%v instances of %s are busy, want 1", got, fn.Revision())
			}
		}

		g.offer(old, 3)
		w.putUnits(fresh)
		a.expect("retire: " + reasonUnused)
		g.expectRefused(controlwire.Refusal_REASON_UNKNOWN_FUNCTION, 3)
		b.expect()
		if left := w.seriesOf(old.Revision()); len(left) > 0 {
			t.Errorf("series are left of a revision that is gone: %v", left)
		}
		if len(w.seriesOf(fresh.Revision())) == 0 {
			t.Error("there are no series of the other one")
		}

		w.catalog.Remove(fresh.Key())
		w.ticks(1)
		b.expect("retire: " + reasonDeleted)
		if left := w.scrape("function"); len(left)+len(w.scheduler.shell.all())+len(w.scheduler.shell.units.ofFunction) > 0 {
			t.Errorf("something is left of a function that is gone: %v", left)
		}
	})
}

func TestAChangeOfOneRevisionWakesNoOther(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		old, fresh := unitNo(1), unitNo(2)
		w.putUnits(old, fresh)
		w.ticks(2)
		changed := fresh.DeepCopy()
		changed.Spec.Calls.MaxInFlight = 7
		w.putUnits(old, changed)
		for unit, wakes := range map[*v1alpha1.Function]bool{old: false, changed: true} {
			if f := w.scheduler.shell.lookup(string(unit.UID)); w.scheduler.shell.units.isActive(f) != wakes {
				t.Errorf("%s is awake: %t", unit.Revision(), !wakes)
			}
		}
	})
}

// A FunctionRevision that somebody deletes and creates again has the same number.
func TestNoSeriesIsThereTwice(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		first, again := unitNo(1), unitNo(1)
		again.UID = "another"
		w.putUnits(first)
		w.putUnits(again)
		if len(w.seriesOf("00001")) == 0 {
			t.Error("there are no series")
		}
		w.putUnits(first, again) // which only somebody who makes revisions by hand can bring about
		if len(w.seriesOf("00001")) == 0 {
			t.Error("there are no series")
		}
	})
}

func TestAFunctionIsToldOfWithAllItsRevisions(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.scheduler.shell.deps.Estimates = fixedEstimates{Execution: time.Second}
		old, fresh, g := unitNo(1, minInstances(2)), unitNo(2, minInstances(1)), w.gateway("g:1")
		w.putUnits(old, fresh)
		w.ticks(1)
		specs := w.runtime.take()
		for _, spec := range specs {
			w.ready(spec)
		}
		g.offer(old, 1)
		synctest.Wait()

		function, _ := w.catalog.Get(old.Key())
		of := func(fn *v1alpha1.Function) v1alpha1.InstanceCounts { return w.scheduler.reporter.Status(fn).Instances }
		if diff := cmp.Diff([]v1alpha1.InstanceCounts{
			{Ready: 3, Desired: 3}, {Ready: 2, Desired: 2}, {Ready: 1, Desired: 1},
		}, []v1alpha1.InstanceCounts{of(function.Function), of(old), of(fresh)}); diff != "" {
			t.Errorf("the function's, and each revision's instances (-want +got):\n%s", diff)
		}
		if got := w.scheduler.reporter.Totals("uid-f"); got != (Totals{Launched: 3, Peak: 3}) {
			t.Errorf("totals %+v", got)
		}
		got := w.account()
		if got.Revision != old.Revision() || got.Revisions != 2 {
			t.Errorf("the account is of %q of %d, want the one of two that has the call", got.Revision, got.Revisions)
		}
		if diff := cmp.Diff(&decisionlog.Load{Busy: 1, Idle: 2, MeanExecution: 1}, got.Load); diff != "" {
			t.Errorf("load of both (-want +got):\n%s", diff)
		}
		told := make(map[string]bool)
		for _, a := range w.scheduler.reporter.Latest().Functions {
			told[a.Revision] = true
		}
		if !told[old.Revision()] || !told[fresh.Revision()] {
			t.Errorf("decisions are told of %v, want of both", told)
		}
		estimates := w.scheduler.reporter.Estimates()
		slices.SortFunc(estimates, func(a, b estimate.Unit) int { return strings.Compare(a.Revision, b.Revision) })
		if len(estimates) != 2 || estimates[0].UID != string(old.UID) || estimates[1].Revision != fresh.Revision() ||
			estimates[0].Function != "uid-f" || estimates[0].Execution != time.Second {
			t.Errorf("learnt %+v", estimates)
		}
	})
}

func TestOneWithoutCallsSpeaksForItsFunctionIfItIsTheLast(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.putUnits(unitNo(1), unitNo(2))
		if got := w.account().Revision; got != "00002" {
			t.Errorf("the account is of %q", got)
		}
	})
}

// estimatesByFunction recalls of a function, and not of its revisions.
type estimatesByFunction struct{ of map[string]estimate.Means }

func (r estimatesByFunction) Restore(unit *v1alpha1.Function) estimate.Means {
	return r.of[unit.FunctionUID()]
}

func TestANewRevisionBeginsWithWhatIsKnownOfItsFunction(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.scheduler.shell.deps.Estimates = estimatesByFunction{map[string]estimate.Means{"uid-f": {Execution: 3 * time.Second, Start: time.Second}}}
		fresh := unitNo(7)
		w.putUnits(fresh)
		w.ticks(1)
		if got := w.scheduler.shell.lookup(string(fresh.UID)).means(); got != (estimate.Means{Execution: 3 * time.Second, Start: time.Second}) {
			t.Errorf("it begins with %+v", got)
		}
	})
}

// Whether it can start does not depend on its share of the calls.
func TestARolloutForgivesNoFailure(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		broken := unitNo(1, minInstances(1))
		w.putUnits(broken)
		w.ticks(1)
		w.runtime.end(keyOf(string(broken.UID), w.started(broken, 1)[0].CID), "exited with status 3")
		w.after(0)
		w.putUnits(unitNo(1, minInstances(1), maxInstances(2)), unitNo(2))
		w.ticks(3)
		w.started(broken, 0)
		changed := unitNo(1, minInstances(1))
		changed.Generation = 3
		w.putUnits(changed, unitNo(2))
		w.ticks(1)
		w.started(broken, 1)
	})
}

func TestFactsAreOfARevisionAndSayThatItHasStarted(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := unitNo(2, minInstances(1))
		w.putUnits(unitNo(1), fn)
		f := w.scheduler.shell.lookup(string(fn.UID))
		facts := func() *controlwire.FunctionFacts { return w.scheduler.reporter.facts(f).wire(f, nil, time.Now()) }
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		if got := facts(); got.GetStarted() || got.GetFunctionUid() != "uid-f-2" || got.GetRevision() != "00002" || got.GetName() != "f" {
			t.Errorf("while it starts: %v", got)
		}
		w.runtime.end(keyOf(f.uid, spec.CID), "exited with status 3")
		w.after(0)
		if got := facts(); got.GetStarted() || !strings.Contains(got.GetProblem().GetDetail(), "last words") {
			t.Errorf("after it has failed: %v", got)
		}
	})
}

// Who takes a revision over knows that it has started once an instance of it asks for work.
func TestARevisionThatIsTakenOverHasStarted(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := unitNo(2)
		w.runtime.existing = []provisioner.Existing{{CID: "00000007-000009", Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: true}}
		w.ownership.lose("other:1")
		w.putUnits(fn)
		w.after(core.AuditEvery)
		w.ownership.own(true)
		w.after(core.AuditEvery)
		f := w.scheduler.shell.lookup(string(fn.UID))
		if w.scheduler.reporter.facts(f).started {
			t.Error("it is said to have started, though a pod may run whose function does not")
		}
		w.ready(provisioner.InstanceSpec{Function: fn, CID: "00000007-000009"})
		if !w.scheduler.reporter.facts(f).started {
			t.Error("it is not said to have started, though an instance asks for work")
		}
	})
}

// Its instances may have been told to go meanwhile.
func TestARevisionThatComesBackStartsAnew(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.runtime.deaf = true
		fn, g := unitNo(1, minInstances(1)), w.gateway("g:1")
		w.putUnits(fn)
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		w.putUnits(unitNo(2))
		a.expect("retire: " + reasonUnused)
		w.putUnits(fn, unitNo(2))
		w.ticks(1)
		w.expectCounts(fn, provisioner.Counts{Creating: 1, Leaving: 1})
		g.offer(fn, 1)
		w.ready(w.started(fn, 1)[0]).expect("ticket 0001 at g:1")
		a.expect()
	})
}

// Nobody waits for a proof, so it delays no other start of its namespace.
func TestAProofComesAfterAllOtherStartsOfItsNamespace(t *testing.T) {
	config := defaults()
	config.CreateRate, config.CreateBurst = 1, 2
	inHarness(t, config, func(w *harness) {
		proof := newTestFunction("a", minInstances(1), func(fn *v1alpha1.Function) {
			metav1.SetMetaDataAnnotation(&fn.ObjectMeta, v1alpha1.AnnotationProving, "true")
		})
		grows := newTestFunction("b", minInstances(4))
		w.catalog.Put(entryOf(proof))
		w.catalog.Put(entryOf(grows))
		w.ticks(1)
		w.started(grows, 2)
		w.after(2 * time.Second)
		w.started(grows, 2)
		w.after(time.Second)
		w.started(proof, 1)
	})
}
