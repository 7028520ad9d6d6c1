package scheduler

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// fixedEstimates is what a fake Memory recalls of every function.
type fixedEstimates estimate.Means

func (m fixedEstimates) Restore(*v1alpha1.Function) estimate.Means { return estimate.Means(m) }

func ofRuntime(name v1alpha1.RuntimeName) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Spec.Template.RuntimeRef.Name = name }
}

func (w *harness) meanStart(fn *v1alpha1.Function) time.Duration {
	return w.scheduler.meanStart(w.scheduler.shell.lookup(string(fn.UID)))
}

func TestANewFunctionStartsAsItsKindDoes(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, image := w.put("f", ofRuntime("python3.13"), minInstances(1)), w.put("image")
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		if got := w.meanStart(fn); got != 0 {
			t.Errorf("before any start: %v", got)
		}
		w.after(2 * time.Second)
		w.ready(spec)
		sibling := w.put("sibling", ofRuntime("python3.13"))
		patient := w.put("impatient", ofRuntime("python3.13"), func(fn *v1alpha1.Function) { fn.Spec.Template.StartupTimeout.Duration = time.Second })
		for fn, want := range map[*v1alpha1.Function]time.Duration{
			fn: 2 * time.Second, sibling: 2 * time.Second, patient: time.Second, image: 0,
		} {
			if got := w.meanStart(fn); got != want {
				t.Errorf("%s: %v, want %v", fn.Name, got, want)
			}
		}
		w.scheduler.learnStart(w.scheduler.shell.lookup(string(sibling.UID)), time.Hour)
		if got := w.meanStart(sibling); got != 10*time.Second {
			t.Errorf("a start beyond the timeout counts for %v", got)
		}
	})
}

func TestWhatWasLearntBeforeIsASeed(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.scheduler.shell.deps.Estimates = fixedEstimates{Execution: time.Hour, Start: 4 * time.Second}
		fn := w.put("f", ofRuntime("python3.13"), minInstances(1))
		w.ticks(1)
		f := w.scheduler.shell.lookup(string(fn.UID))
		if got, want := f.means(), (estimate.Means{Execution: time.Minute, Start: 4 * time.Second}); got != want {
			t.Errorf("recalled %v, want %v: a status may say anything", got, want)
		}
		w.scheduler.shell.deps.Estimates = nil
		if got := w.meanStart(w.put("sibling", ofRuntime("python3.13"))); got != 4*time.Second {
			t.Errorf("a sibling starts in %v", got)
		}
		w.scheduler.observed(f, time.Second)
		for range 10 {
			w.scheduler.observed(f, 2*time.Second)
		}
		if got := f.means().Execution; got != 2*time.Second {
			t.Errorf("after ten calls the mean is %v", got)
		}
	})
}

func TestWhatAnotherSchedulerLearnsIsRecalled(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.scheduler.shell.deps.Estimates = fixedEstimates{Execution: time.Second}
		fn := w.put("f")
		w.ticks(1)
		f := w.scheduler.shell.lookup(string(fn.UID))
		w.scheduler.observed(f, 3*time.Second)
		w.scheduler.shell.deps.Estimates = fixedEstimates{Execution: 5 * time.Second}
		w.ownership.lose("other:1")
		w.after(core.AuditEvery)
		if got := f.means(); got != (estimate.Means{}) {
			t.Errorf("it remembers %v while another one serves it", got)
		}
		if estimates := w.scheduler.reporter.Estimates(); len(estimates) != 0 {
			t.Errorf("it tells what it learnt of what another one serves: %+v", estimates)
		}
		w.ownership.own(true)
		w.after(core.AuditEvery)
		if got := f.means().Execution; got != 5*time.Second {
			t.Errorf("it recalls %v", got)
		}
		if estimates := w.scheduler.reporter.Estimates(); len(estimates) != 1 || estimates[0].UID != "uid-f" || estimates[0].Function != "uid-f" || estimates[0].Execution != 5*time.Second {
			t.Errorf("learnt %+v", estimates)
		}
	})
}
