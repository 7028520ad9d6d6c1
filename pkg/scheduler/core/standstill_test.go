package core

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
		"who turns all the time never holds": {{100 * ms, 0, false}, {250 * ms, 0, false}, {StandstillAfter - 1, 0, false}},
		"one hold, and then none":            {{StandstillAfter, StandstillAfter, true}, {StandstillHold - 1, 0, true}, {1, 0, false}, {100 * ms, 0, false}},
		"a long one":                         {{time.Hour, time.Hour, true}, {100 * ms, 0, true}},
		"it stands still again in a hold":    {{15 * time.Second, 15 * time.Second, true}, {15 * time.Second, 15 * time.Second, true}},
		"it stands still soon after a hold":  {{15 * time.Second, 15 * time.Second, true}, {StandstillHold, 0, false}, {2 * time.Second, 0, false}, {2 * time.Second, 2 * time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			var p Standstill
			if p.Turn(now) != 0 || p.Holds(now) {
				t.Error("the first turn is held")
			}
			for i, turn := range turns {
				now = now.Add(turn.after)
				if stood, holds := p.Turn(now), p.Holds(now); stood != turn.stood || holds != turn.holds {
					t.Errorf("turn %d: stood %v, holds %v; want %+v", i, stood, holds, turn)
				}
			}
		})
	}
}

// However slowly it turns, at least every other time of StandstillHold is for orders.
func TestAStarvingSchedulerIsNotHeldForGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		var p Standstill
		var held, free time.Duration
		for range 200 {
			after := time.Duration(rapid.Int64Range(1, int64(2*StandstillHold)).Draw(t, "after"))
			if p.Holds(now) {
				held += min(after, p.heldUntil.Sub(now))
				free += max(0, after-p.heldUntil.Sub(now))
			} else {
				free += after
			}
			now = now.Add(after)
			p.Turn(now)
		}
		if held > free+StandstillHold {
			t.Fatalf("held for %v, free for %v", held, free)
		}
	})
}
