package coordinator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Whatever happens, no slot is ever held twice in one epoch, and nobody lets go
// of a slot that nobody else has; when it is over, every slot has one owner, the
// same for all.
func TestCoordinatorsSettleWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newHarness(t)
		names := []string{"a", "b", "c", "d"}
		for _, id := range names[:rapid.IntRange(1, 3).Draw(rt, "schedulers")] {
			w.start(id)
		}
		for range rapid.IntRange(1, 8).Draw(rt, "faults") {
			w.harm(rt, names)
			w.run(time.Duration(rapid.IntRange(1, 60).Draw(rt, "pause")) * 200 * time.Millisecond)
		}
		w.heal()
		if len(w.living()) == 0 {
			w.start("e")
		}
		w.run(70 * time.Second)
		w.wantRest()
	})
}

func (w *harness) living() []*node {
	var nodes []*node
	for _, n := range w.all {
		if !n.ended {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// harm does something to the world.
func (w *harness) harm(t *rapid.T, names []string) {
	slot := Key{Slot: ownership.Slot(rapid.IntRange(0, ownership.Slots-1).Draw(t, "slot"))}
	what := rapid.IntRange(0, 10).Draw(t, "what")
	switch what {
	case 0:
		w.away = !w.away
		return
	case 1:
		w.store.RenewAll(w.now)
		return
	case 2:
		w.store.Compact(w.store.Revision())
		return
	case 3:
		w.store.Delete(slot)
		return
	case 4:
		w.put(slot, rapid.SampledFrom(append(names, "x", "")).Draw(t, "name"), 0)
		return
	case 5:
		w.startAnew(rapid.SampledFrom(names).Draw(t, "name"))
		return
	}
	living := w.living()
	if len(living) == 0 {
		return
	}
	n := rapid.SampledFrom(living).Draw(t, "node")
	switch what {
	case 6:
		n.cut = !n.cut
	case 7:
		n.lag = time.Duration(rapid.IntRange(0, 30).Draw(t, "lag")) * 100 * time.Millisecond
	case 8:
		w.store.End(n.Lease())
	case 9:
		n.ReleaseAll()
		n.ended = true
	case 10:
		if !w.away && !n.cut {
			w.stop(n)
		}
	}
}

// startAnew starts a node unless one of its name lives.
func (w *harness) startAnew(id string) {
	for _, n := range w.living() {
		if n.id == id {
			return
		}
	}
	w.start(id)
}

func (w *harness) heal() {
	w.away = false
	for _, n := range w.all {
		n.cut, n.lag = false, 0
	}
}
