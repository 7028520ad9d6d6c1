package core

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAfterAPauseNothingIsLaunchedForAWhile(t *testing.T) {
	const ms = time.Millisecond
	type turn struct {
		after, stood time.Duration
		holds        bool
	}
	for name, turns := range map[string][]turn{
		"who turns all the time never holds": {{100 * ms, 0, false}, {250 * ms, 0, false}, {PauseThreshold - 1, 0, false}},
		"one hold, and then none":            {{PauseThreshold, PauseThreshold, true}, {PauseHold - 1, 0, true}, {1, 0, false}, {100 * ms, 0, false}},
		"a long one":                         {{time.Hour, time.Hour, true}, {100 * ms, 0, true}},
		"it stands still again in a hold":    {{15 * time.Second, 15 * time.Second, true}, {15 * time.Second, 15 * time.Second, true}},
		"it stands still soon after a hold":  {{15 * time.Second, 15 * time.Second, true}, {PauseHold, 0, false}, {2 * time.Second, 0, false}, {2 * time.Second, 2 * time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			var p PauseDetector
			if p.Ran(now) != 0 || p.Holding(now) {
				t.Error("the first turn is held")
			}
			for i, turn := range turns {
				now = now.Add(turn.after)
				if stood, holds := p.Ran(now), p.Holding(now); stood != turn.stood || holds != turn.holds {
					t.Errorf("turn %d: stood %v, holds %v; want %+v", i, stood, holds, turn)
				}
			}
		})
	}
}

// However slowly it turns, at least every other time of PauseHold is for orders.
func TestAStarvingSchedulerLaunchesBetweenHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		var p PauseDetector
		var held, free time.Duration
		for range 200 {
			after := time.Duration(rapid.Int64Range(1, int64(2*PauseHold)).Draw(t, "after"))
			if p.Holding(now) {
				held += min(after, p.heldUntil.Sub(now))
				free += max(0, after-p.heldUntil.Sub(now))
			} else {
				free += after
			}
			now = now.Add(after)
			p.Ran(now)
		}
		if held > free+PauseHold {
			t.Fatalf("held for %v, free for %v", held, free)
		}
	})
}
