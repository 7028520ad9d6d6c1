package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// expectReconciled wants nothing to have been mended but what the test has broken.
// Every test in a world ends with it: in health the counts are 0.
func (w *harness) expectReconciled() {
	w.t.Helper()
	if diff := w.usageDiff(); diff != "" {
		w.t.Errorf("the roster (-made again +kept):\n%s", diff)
	}
	if w.scheduler.shell.metrics == nil {
		return
	}
	want := make(map[string]float64)
	for _, l := range w.scheduler.auditor.levels {
		want["reconciled_total{"+l.kind+"}"] = w.broken[l.kind]
	}
	if diff := cmp.Diff(want, w.scrape("kind")); diff != "" {
		w.t.Errorf("mended (-want +got):\n%s", diff)
	}
}

// expectBroken says that the test has brought about n more differences of a kind.
func (w *harness) expectBroken(kind string, n float64) {
	if w.broken == nil {
		w.broken = make(map[string]float64)
	}
	w.broken[kind] += n
}

func TestM3AnInstanceWhoseEndWasMissedIsReplaced(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		w.ready(specs[0])
		lost := w.ready(specs[1])
		w.after(time.Minute)
		w.expectReconciled()

		w.runtime.vanish(lost.key)
		w.after(core.ReconcileEvery)
		w.expectReconciled()
		w.expectCounts(fn, provisioner.Counts{Created: 2})
		w.after(core.ReconcileEvery)
		w.expectBroken("instance", 1)
		w.expectReconciled()
		w.expectLog("an instance is gone", "does not know the instance any more")
		w.ticks(1)
		w.started(fn, 1)
		w.expectCounts(fn, provisioner.Counts{Creating: 1, Created: 1})
	})
}

func TestM4PodsThatNobodyLooksAfterAreCounted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f")
		w.runtime.stray(keyOf(string(fn.UID), "0000-1"))
		w.after(core.ReconcileEvery)
		w.expectReconciled()
		w.after(core.ReconcileEvery)
		w.expectBroken("pod", 1)
		w.expectReconciled()
		w.expectLog("repaired state that missed an event", "kind=pod", "differences=1")
		w.runtime.stray()
	})
}
