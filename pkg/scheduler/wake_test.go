package scheduler

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// A tick looks at a function and finds nothing to do. What happens before it lets it
// rest is for the next tick, whatever it is: here, an instance of its minimum is gone.
func TestL1WhatHappensWhileATickLooksWakesTheFunction(t *testing.T) {
	w := newHarness(t, defaults())
	s := w.scheduler
	fn := newTestFunction("f")
	s.functionChanged(catalog.Event{Key: fn.Key(), UID: string(fn.UID), Entry: entryOf(fn)})
	f := s.shell.lookup(string(fn.UID))
	c := s.ticker.evaluate(f)
	s.shell.step(f, core.InstanceEnded{})
	s.ticker.apply(c, false)
	if !s.shell.units.isActive(f) {
		t.Error("it rests, and what happened is never looked at")
	}
	s.ticker.apply(s.ticker.evaluate(f), false)
	if s.shell.units.isActive(f) {
		t.Error("it does not rest though nothing happened")
	}
}

// Streams, ticks and the catalog meet in the same maps: this is for the race
// detector, and for deadlocks.
func TestFunctionsComeAndGoUnderLoad(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		stop := make(chan struct{})
		var working sync.WaitGroup
		for i := range 4 {
			g := w.gateway(fmt.Sprint("g:", i))
			working.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
						id := idOf(n*4 + i)
						_ = g.stream.Send(&controlwire.OfferRequest{Offers: []*agentwire.Ticket{{
							InvocationId: id[:], FunctionUid: fmt.Sprint("uid-f", n%3), RemainingNs: int64(time.Second),
						}}})
					}
				}
			})
		}
		for n := range 300 {
			fn := newTestFunction(fmt.Sprint("f", n%3), minInstances(1), revision(int64(n)))
			w.catalog.Put(entryOf(fn))
			time.Sleep(7 * time.Millisecond)
			for _, spec := range w.runtime.take() {
				w.connect(&agentwire.Hello{FunctionUid: string(spec.Function.UID), Cid: string(spec.CID), Token: spec.Token})
			}
			if n%5 == 0 {
				w.catalog.Remove(fn.Key())
			}
			_, _ = w.registry.Gather()
			w.scheduler.reporter.Status(fn)
		}
		close(stop)
		working.Wait()
		for n := range 3 {
			w.catalog.Remove(newTestFunction(fmt.Sprint("f", n)).Key())
		}
		synctest.Wait()
		w.expectSeries(map[string]float64{})
	})
}
