package scheduler

import (
	"testing"
	"time"
	"unsafe"

	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// stepped is a time as it is read after the wall clock was set, by whole seconds: the
// monotonic clock goes on as if nothing had happened. Nothing but the clock itself
// makes such times, so this one changes the seconds of the wall clock where time.Time
// has them.
func stepped(t *testing.T, at time.Time, by time.Duration) time.Time {
	before := at
	*(*uint64)(unsafe.Pointer(&at)) += uint64(by/time.Second) << 30
	if at.Sub(before) != 0 || at.Round(0).Sub(before.Round(0)) != by {
		t.Fatalf("the clock was not set: %v and %v", before, at)
	}
	return at
}

func TestL9AStepOfTheClockDistortsNoDecision(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		w := newWorld(t, defaults())
		s, now := w.scheduler, time.Now()
		s.deps.Now = func() time.Time { return now }
		fn := newTestFunction("f")
		s.functionChanged(catalog.Event{Key: fn.Key(), UID: string(fn.UID), Function: fn})
		f := s.lookup(string(fn.UID))
		by := now.Add(helloTime)
		f.helloBy.Store(&by)
		f.remember(fpcs.Decision{Required: 3, Again: 2 * time.Second}, fpcs.Snapshot{}, now)

		now = stepped(t, now.Add(time.Second), step)
		awaits := func() bool {
			yes, _ := s.awaitsHello(f, &provisioner.Counts{Awaited: 1})
			return yes
		}
		if elapsed := s.snapshot(f, fn, provisioner.Counts{}, queue.View{}, 0).Elapsed; elapsed != time.Second {
			t.Errorf("step %v: %v since the last decision, want 1s", step, elapsed)
		}
		if f.eager(now) {
			t.Errorf("step %v: the decider is asked early", step)
		}
		if !f.terms.stand(now) {
			t.Errorf("step %v: what is needed does not stand any more", step)
		}
		if !awaits() {
			t.Errorf("step %v: instances have no time to say hello any more", step)
		}
		now = now.Add(termsStand)
		if !f.eager(now) || f.terms.stand(now) || awaits() {
			t.Errorf("step %v: time has stopped", step)
		}
	}
}
