package scheduler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

func TestFirstTicketOrdersAnInstanceWithoutWaitingForATick(t *testing.T) {
	// No time passes in the bubble but where the test says so.
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2, 3)
		w.started(fn, 1)
		g.offer(fn, 4)
		w.started(fn, 0)
		w.ticks(1)
		w.started(fn, 3)
	})
}

func TestAStreamForgetsFunctionsThatAreGone(t *testing.T) {
	var r reportedOn
	now := 0
	known := func(uid string) bool { return uid == "stays" || uid == fmt.Sprint(now) }
	for ; now < 100*minReportedOn; now++ {
		if r.add("stays", known) != (now > 0) || r.add(fmt.Sprint(now), known) || !r.add(fmt.Sprint(now), known) {
			t.Fatalf("after %d functions it does not know which it has reported on", now)
		}
		if n := len(r.uids); n > 2*minReportedOn {
			t.Fatalf("%d UIDs of two functions", n)
		}
	}
}

func TestTicketOfAnUnknownFunctionIsRefused(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		g := w.gateway("g:1")
		g.offer(newTestFunction("nowhere"), 1)
		g.expectRefused(controlwire.Refusal_REASON_UNKNOWN_FUNCTION, 1)
	})
}

func TestTicketWithoutAProperIDIsIgnored(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.send(&controlwire.OfferRequest{
			Offers:        []*agentwire.Ticket{{InvocationId: []byte("short"), FunctionUid: string(fn.UID)}, nil},
			Cancellations: []*controlwire.Cancellation{{FunctionUid: string(fn.UID)}, {FunctionUid: "unknown"}},
		})
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		w.started(fn, 0)
	})
}

func TestGatewayMustSayItsAddress(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		stream, err := w.client.Offer(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&controlwire.OfferRequest{})
		if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestFullQueueRefusesAndSaysWhenToTryAgain(t *testing.T) {
	config := defaults()
	config.MaxQueued = 2
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		g.offer(fn, 1, 2, 3)
		if r := g.expectRefused(controlwire.Refusal_REASON_QUEUE_FULL, 3); r.GetRetryAfterNs() < int64(800*time.Millisecond) || r.GetRetryAfterNs() > int64(1200*time.Millisecond) {
			t.Errorf("retry after %v, want the least", time.Duration(r.GetRetryAfterNs()))
		}
		// Two wait for one instance that takes four seconds for each, so that
		// they are gone after eight, and callers should come about then.
		a := w.ready(w.started(fn, 1)[0])
		a.pull(1, doneWith(1, 4*time.Second))
		a.expect("ticket 0001 at g:1", "ticket 0002 at g:1")
		g.offer(fn, 4, 5, 6)
		if r := g.expectRefused(controlwire.Refusal_REASON_QUEUE_FULL, 6); r.GetRetryAfterNs() < int64(6400*time.Millisecond) || r.GetRetryAfterNs() > int64(9600*time.Millisecond) {
			t.Errorf("retry after %v, want about 8s", time.Duration(r.GetRetryAfterNs()))
		}
	})
}

func TestTicketOfASlotThatIsNotOwnedIsRefused(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		w.ownership.own(false)
		g.offer(fn, 1)
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 1)
		w.ticks(2)
		w.started(fn, 0)
	})
}

func TestWhatWaitsIsRefusedWhenItsSlotIsLost(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2)
		w.ownership.own(false)
		w.ticks(1)
		if r := g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 1, 2); !r.GetAdmitted() {
			t.Error("the next owner would count a call again that was admitted")
		}
		g.offer(fn, 4)
		if r := g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 4); r.GetAdmitted() {
			t.Error("no owner would count a call that was not admitted")
		}
		w.ownership.own(true)
		g.offer(fn, 3)
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER)
	})
}

func TestInstanceLostWithItsSlotIsNotReplaced(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		w.after(w.scheduler.shell.config.ClaimGrace)
		w.ownership.own(false)
		a.die()
		w.ticks(1)
		w.ownership.own(true)
		w.ticks(2)
		w.started(fn, 0)
	})
}

func TestSlotThatIsGainedGetsItsLeastInstances(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.ownership.own(false)
		fn := w.put("f", minInstances(2))
		w.ticks(3)
		w.started(fn, 0)
		w.ownership.own(true)
		w.ticks(4)
		w.started(fn, 2)
	})
}

func TestCancelledTicketIsNotHandedOut(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2)
		g.cancel(fn, 1)
		w.ready(w.started(fn, 1)[0]).expect("ticket 0002 at g:1")
	})
}

func TestExpiredTicketsOfADeadGatewayBuyNoInstances(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offerFor(fn, 50*time.Millisecond, 1, 2, 3)
		g.hangUp()
		spec := w.started(fn, 1)[0]
		w.ticks(1)
		w.started(fn, 0)
		if waiting := w.waiting(fn); waiting != 0 {
			t.Errorf("%d wait past their deadline", waiting)
		}
		w.ready(spec).expect()
	})
}

func TestRefusalsFollowAGatewayToItsNextStream(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f")
		old := w.gateway("g:1")
		old.offer(fn, 1)
		next, other := w.gateway("g:1"), w.gateway("g:2")
		old.hangUp()
		synctest.Wait()
		w.catalog.Remove(fn.Key())
		next.expectRefused(controlwire.Refusal_REASON_UNKNOWN_FUNCTION, 1)
		old.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		other.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		next.hangUp()
		other.hangUp()
		synctest.Wait()
		if len(w.scheduler.shell.gateways.byGateway) != 0 {
			t.Errorf("%d gateways are kept that are gone", len(w.scheduler.shell.gateways.byGateway))
		}
	})
}

func TestOfferedAgainIsOfferedOnce(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", concurrency(5)), w.gateway("g:1")
		g.offer(fn, 1)
		g.offer(fn, 1, 1)
		a := w.ready(w.started(fn, 1)[0])
		a.expect("ticket 0001 at g:1")
		g.offer(fn, 1)
		a.expect()
		// Nobody has claimed it: another instance may be luckier.
		w.after(w.scheduler.shell.config.ClaimGrace)
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
	})
}

func TestInstanceThatEndedMakesRoomForTheNextOrder(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		a.pull(1, doneWith(1, time.Millisecond))
		a.die()
		w.ticks(2)
		w.started(fn, 0)
		w.expectCounts(fn, provisioner.Counts{})
		g.offer(fn, 2)
		w.started(fn, 1)
	})
}
