package scheduler

import (
	"testing"
	"testing/synctest"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

func TestH3AForwardedStreamThatEndsLeavesTheRegistration(t *testing.T) {
	config := defaults()
	config.node = 50 // no room for any instance
	inHarness(t, config, func(w *harness) {
		fn := w.put("f")
		g := w.gateway("g:1")
		passing := w.forwarding("g:1")
		passing.hangUp()
		synctest.Wait()
		g.offer(fn, 1)
		w.after(w.scheduler.shell.config.NoRoomPatience + w.scheduler.shell.config.Tick)
		g.expectRefused(controlwire.Refusal_REASON_NO_CAPACITY, 1)
	})
}

func TestH3RefusalsGoToTheGatewayItselfAndElseToWhoPassesItsTicketsOn(t *testing.T) {
	var r gatewayStreams
	direct, first, second := &offerStream{gateway: "g"}, &offerStream{gateway: "g", forwarded: true}, &offerStream{gateway: "g", forwarded: true}
	expect := func(want *offerStream) {
		t.Helper()
		if got := r.streamTo("g"); got != want {
			t.Errorf("reached by %p, want %p", got, want)
		}
	}
	expect(nil)
	r.register(direct)
	r.register(first)
	r.register(second)
	expect(direct)
	next := &offerStream{gateway: "g"}
	r.register(next)
	expect(next)
	r.unregister(direct)
	expect(next)
	r.unregister(next)
	expect(second)
	r.unregister(second)
	expect(first)
	r.unregister(first)
	expect(nil)
	if len(r.byGateway) != 0 {
		t.Errorf("%d gateways are kept that are gone", len(r.byGateway))
	}
}

func TestH3ARefusalThatReachesNobodyIsCounted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2)
		g.hangUp()
		synctest.Wait()
		w.catalog.Remove(fn.Key())
		synctest.Wait()
		if got := w.scrape("reason")["refusals_undelivered_total{NoStream}"]; got != 2 {
			t.Errorf("%v refusals were counted that reached nobody, want 2", got)
		}
	})
}
