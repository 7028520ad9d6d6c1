package decisionlog_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
)

// Decisions that come to the same are one entry, which says how often.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	book := decisionlog.NewLog(decisionlog.DefaultBounds())
	note := func(s autoscaler.Snapshot, d autoscaler.Decision, o decisionlog.Outcome) {
		book.Add("uid-of-cart", decisionlog.Entry{At: now, Snapshot: s, Decision: d, Outcome: o})
		now = now.Add(100 * time.Millisecond)
	}
	note(autoscaler.Snapshot{Arrived: 1, Room: 4}, autoscaler.Decision{Create: 1, Required: 1, Why: autoscaler.ReasonFirst},
		decisionlog.Outcome{Wanted: 1, Placed: decisionlog.Place([]string{"node-1"})})
	for range 30 {
		note(autoscaler.Snapshot{Arrived: 1, Creating: 1, Room: 3}, autoscaler.Decision{Required: 1, Why: autoscaler.ReasonEnough}, decisionlog.Outcome{})
	}
	for _, e := range book.Last("uid-of-cart", 10) {
		fmt.Printf("%d x %s: %s\n", e.Times, e.Summary(), e.Explain())
	}
	// Output:
	// 1 x +1 instance (FirstInstance): first call; 0 instances, 1 waiting; calls of unknown duration need 1 instance → node node-1
	// 30 x no change (Enough): 0 instances, 1 starting, 1 waiting; calls of unknown duration need 1 instance
}
