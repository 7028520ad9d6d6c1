package autoscaler

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDecidersAreSaidInALine(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range All() {
		if a.Name == "" || a.About == "" || a.Decide == nil || seen[a.Name] {
			t.Errorf("%+v has no name of its own, no line or no function", a)
		}
		seen[a.Name] = true
	}
	if got := Choice(); !strings.HasPrefix(got, Default()+", ") || strings.Count(got, " or ") != 1 {
		t.Errorf("the choice is %q", got)
	}
}

// A function's decider can be changed while it runs: what another one remembered is no
// reason for anything.
func TestADeciderThatTakesOverCreatesNothingForNothing(t *testing.T) {
	for _, from := range All() {
		for _, to := range All() {
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					h := drawHistory(t)
					for range rapid.IntRange(1, 10).Draw(t, "ticks") {
						h.tick(t)
						h.do(from.Decide(h.s, stale))
					}
					s := h.s
					s.Departed, s.Busy, s.Lost, s.Stale, s.OldestWait, s.Failing = s.Arrived, 0, 0, 0, 0, false
					s.Created, s.Elapsed = max(1, s.Created), 100*time.Millisecond
					if d := to.Decide(s, stale); d.Create > 0 {
						t.Fatalf("creates %d because %s, though nothing waits", d.Create, d.Why)
					}
				})
			})
		}
	}
}
