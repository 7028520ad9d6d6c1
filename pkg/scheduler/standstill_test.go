package scheduler

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWhoStoodStillOrdersNothingForAWhile(t *testing.T) {
	const ms = time.Millisecond
	type turn struct {
		after, stood time.Duration
		holds        bool
	}
	for name, turns := range map[string][]turn{
		"who turns all the time never holds": {{100 * ms, 0, false}, {250 * ms, 0, false}, {standstillAfter - 1, 0, false}},
		"one hold, and then none":            {{standstillAfter, standstillAfter, true}, {standstillHold - 1, 0, true}, {1, 0, false}, {100 * ms, 0, false}},
		"a long one":                         {{time.Hour, time.Hour, true}, {100 * ms, 0, true}},
		"it stands still again in a hold":    {{15 * time.Second, 15 * time.Second, true}, {15 * time.Second, 15 * time.Second, true}},
		"it stands still soon after a hold":  {{15 * time.Second, 15 * time.Second, true}, {standstillHold, 0, false}, {2 * time.Second, 0, false}, {2 * time.Second, 2 * time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			var p standstill
			if p.turn(now) != 0 || p.holds(now) {
				t.Error("the first turn is held")
			}
			for i, turn := range turns {
				now = now.Add(turn.after)
				if stood, holds := p.turn(now), p.holds(now); stood != turn.stood || holds != turn.holds {
					t.Errorf("turn %d: stood %v, holds %v; want %+v", i, stood, holds, turn)
				}
			}
		})
	}
}

// However slowly it turns, at least every other time of standstillHold is for orders.
func TestAStarvingSchedulerIsNotHeldForGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		var p standstill
		var held, free time.Duration
		for range 200 {
			after := time.Duration(rapid.Int64Range(1, int64(2*standstillHold)).Draw(t, "after"))
			if p.holds(now) {
				held += min(after, p.heldUntil.Sub(now))
				free += max(0, after-p.heldUntil.Sub(now))
			} else {
				free += after
			}
			now = now.Add(after)
			p.turn(now)
		}
		if held > free+standstillHold {
			t.Fatalf("held for %v, free for %v", held, free)
		}
	})
}

// standStill makes the scheduler stand still for 15 s, while the agents lose their
// connections.
func (w *world) standStill(agents ...*agent) {
	resume := w.keeper.stall()
	w.after(15 * time.Second)
	for _, a := range agents {
		a.cut()
	}
	resume()
}

func TestAnOwnerThatStoodStillReplacesOnlyWhoDoesNotComeBack(t *testing.T) {
	inSharedWorld(t, func(w *world) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		g.offer(fn, 1, 2) // both are needed
		w.ticks(1)
		w.standStill(a, b)
		w.after(standstillHold / 2)
		w.started(fn, 0)
		w.ready(specs[0])
		w.after(standstillHold / 3)
		w.started(fn, 0)
		w.after(standstillHold)
		w.started(fn, 1)
		w.expectLog("stood still", "15s")
	})
}

func TestAnOwnerThatWasReplacedWhileItStoodStillOrdersNothing(t *testing.T) {
	inSharedWorld(t, func(w *world) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		w.standStill(a, b)
		w.after(standstillHold / 2) // so late it hears of it
		w.keeper.lose("other:1")
		w.after(2 * standstillHold)
		w.started(fn, 0)
	})
}

func TestCallsThatCameWhileOrdersAreHeldAreServedAfterwards(t *testing.T) {
	inSharedWorld(t, func(w *world) {
		fn, g := w.put("f"), w.gateway("g:1")
		w.ticks(1)
		w.standStill()
		w.ticks(1)
		g.offer(fn, 1)
		w.ticks(1)
		w.started(fn, 0)
		w.after(standstillHold)
		w.ready(w.started(fn, 1)[0]).expect("ticket 0001 at g:1")
	})
}
