package scheduler

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestACallBringsADecisionBeforeTheTickIfTheDeciderAskedForIt(t *testing.T) {
	for decider, asks := range map[string]bool{"Horizon": true, "FPCSch": false} {
		t.Run(decider, func(t *testing.T) {
			inHarness(t, defaults(), func(w *harness) {
				fn, g := w.put("f", decidedBy(decider)), w.gateway("g:1")
				decided := func() time.Time {
					synctest.Wait()
					return w.scheduler.reporter.decisions.last(string(fn.UID), 1)[0].At
				}
				w.after(20 * time.Millisecond)
				g.offer(fn, 1)
				w.started(fn, 1)
				first := decided()
				w.after(5 * time.Millisecond)
				g.offer(fn, 2)
				if decided() != first {
					t.Error("a call that came too soon brought a decision")
				}
				w.after(10 * time.Millisecond)
				g.offer(fn, 3)
				if early := decided() != first; early != asks {
					t.Errorf("the call after it brought a decision: %t, want %t", early, asks)
				}
				w.ticks(1)
				if decided() == first {
					t.Error("the tick brought none")
				}
			})
		})
	}
}
