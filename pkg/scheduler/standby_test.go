package scheduler

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

func TestTheStandbyServesForASilentOwner(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.lose("other:1")
		fn, g := w.put("f"), w.gateway("g:1")
		w.runtime.existing = []provisioner.Existing{{CID: "00000008-000001", Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: true}}
		w.ownership.silence()
		// The instance of the silent owner finds its way here and serves.
		g.offer(fn, 1)
		a := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "00000008-000001"})
		a.pull(1)
		a.expect("ticket 0001 at g:1")
		a.pull(1, doneWith(1, time.Minute))
		// Others that are needed have names that the owner cannot give.
		g.offer(fn, 2, 3, 4)
		w.ticks(1)
		for _, spec := range w.started(fn, 2) {
			if !strings.HasPrefix(string(spec.CID), "00000008-h"+standbyName("self")+"-") {
				t.Errorf("the CID %s could be the owner's", spec.CID)
			}
		}
		// The owner is there again, and takes all back.
		a.expect("ticket 0002 at g:1")
		w.ownership.lose("other:1")
		w.after(time.Millisecond)
		a.expect("moved to other:1")
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 2, 3, 4)
	})
}

// A scheduler that is starting, or is to stop, is of no help.
func TestAStandbyThatDoesNotServeIsNoActingOwner(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.scheduler.Serving(false)
		w.ownership.lose("")
		fn, g := w.put("f"), w.gateway("g:1")
		w.ownership.silence()
		g.offer(fn, 1)
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 1)
	})
}

// A fail-over is no reason to create instances: those that are there only have
// to find the new owner.
func TestNothingIsOrderedUntilInstancesHadTimeToSayHello(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.lose("other:1")
		fn, g := w.put("f"), w.gateway("g:1")
		w.runtime.existing = []provisioner.Existing{{CID: "00000008-000001", Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: true}}
		w.ownership.silence()
		g.offer(fn, 1, 2, 3)
		w.ticks(8)
		w.started(fn, 0)
		// It did not say hello in time, and nobody can wait for it.
		w.after(core.HelloTime)
		w.started(fn, 3)
	})
}

// An instance that does not say hello may run all the same: the scheduler that takes over counts it
// against the maximum until it is given up. One is created in any case.
func TestT1InstancesThatNeverConnectedCountAgainstTheMaximum(t *testing.T) {
	for _, tc := range []struct{ most, unheard, want int }{{4, 1, 3}, {4, 4, 1}, {0, 2, 6}} {
		inSharedHarness(t, func(w *harness) {
			w.ownership.lose("other:1")
			var changes []func(*v1alpha1.Function)
			if tc.most > 0 {
				changes = append(changes, maxInstances(int32(tc.most)))
			}
			fn, g := w.put("f", changes...), w.gateway("g:1")
			for i := range tc.unheard {
				cid := invocation.CID(fmt.Sprintf("00000008-%06d", i))
				w.runtime.existing = append(w.runtime.existing,
					provisioner.Existing{CID: cid, Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: true})
			}
			w.ownership.silence()
			g.offer(fn, 1, 2, 3, 4, 5, 6)
			w.ticks(8)
			w.started(fn, 0)
			w.after(core.HelloTime)
			w.started(fn, tc.want)
		})
	}
}

func TestAFunctionWithoutInstancesNeedNotWait(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.lose("other:1")
		fn, g := w.put("f"), w.gateway("g:1")
		w.ownership.silence()
		g.offer(fn, 1)
		w.started(fn, 1)
	})
}

func TestASchedulerThatIsUnsureOfItsSlotsCreatesLittle(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2, 3, 4, 5)
		w.ticks(1)
		for i, spec := range w.started(fn, 5) {
			w.ready(spec).pull(1, doneWith(i+1, time.Minute))
		}
		w.ownership.setUnconfirmed(true)
		w.ticks(1)
		g.offer(fn, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
		w.ticks(3)
		w.started(fn, 1) // a fifth of five
		other := w.put("other")
		g.offer(other, 21, 22)
		w.ticks(3)
		w.started(other, 1)
		w.ownership.setUnconfirmed(false)
		w.ticks(1)
		if fresh := w.runtime.take(); len(fresh) < 4 {
			t.Errorf("%d instances were started once all was well, want those that are missing", len(fresh))
		}
	})
}

// fakeOwner is a scheduler that notes what it is offered and refuses it all.
type fakeOwner struct {
	controlwire.UnimplementedSchedulerServer
	heard chan *controlwire.OfferRequest
}

func (o *fakeOwner) Offer(stream grpc.BidiStreamingServer[controlwire.OfferRequest, controlwire.OfferReply]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		o.heard <- request
		if request.GetHello() != nil {
			_ = stream.Send(&controlwire.OfferReply{Welcome: &controlwire.Welcome{Protocol: 1}})
		}
		for _, ticket := range request.GetOffers() {
			_ = stream.Send(&controlwire.OfferReply{Refusals: []*controlwire.Refusal{{InvocationId: ticket.GetInvocationId(), Detail: "by the owner"}}})
		}
	}
}

func serveOnLoopback(t *testing.T, server controlwire.SchedulerServer) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.WaitForHandlers(true))
	controlwire.RegisterSchedulerServer(s, server)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(listener)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	return listener.Addr().String()
}

// A gateway that cannot reach the owner turns to another scheduler.
func TestTicketsArePassedOnToTheOwnerOnce(t *testing.T) {
	owner := &fakeOwner{heard: make(chan *controlwire.OfferRequest, 16)}
	addr := serveOnLoopback(t, owner)
	w := newHarness(t, harnessConfig{Config: DefaultConfig(), node: 1000, shared: true})
	w.ownership.lose(addr)
	conn, err := grpc.NewClient(serveOnLoopback(t, w.scheduler), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	offer := func(first *controlwire.OfferRequest) grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply] {
		stream, err := controlwire.NewSchedulerClient(conn).Offer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(first); err != nil {
			t.Fatal(err)
		}
		if reply, err := stream.Recv(); err != nil || reply.GetWelcome() == nil {
			t.Fatalf("instead of a welcome came %v, %v", reply, err)
		}
		return stream
	}
	id := idOf(1)
	ticket := &agentwire.Ticket{InvocationId: id[:], FunctionUid: "uid-f", RemainingNs: int64(time.Minute)}

	// What comes from a gateway is passed on under its name, and what the
	// owner says of it is passed back.
	stream := offer(&controlwire.OfferRequest{Gateway: "g:1", Offers: []*agentwire.Ticket{ticket}})
	if first := <-owner.heard; first.GetGateway() != "g:1" || !first.GetForwarded() {
		t.Errorf("the owner was joined with %v", first)
	}
	if second := <-owner.heard; len(second.GetOffers()) != 1 {
		t.Errorf("the owner was offered %v", second)
	}
	reply, err := stream.Recv()
	if err != nil || len(reply.GetRefusals()) != 1 || reply.GetRefusals()[0].GetDetail() != "by the owner" {
		t.Errorf("the gateway heard %v, %v", reply, err)
	}
	if err := stream.Send(&controlwire.OfferRequest{Cancellations: []*controlwire.Cancellation{{InvocationId: id[:], FunctionUid: "uid-f"}}}); err != nil {
		t.Fatal(err)
	}
	if third := <-owner.heard; len(third.GetCancellations()) != 1 {
		t.Errorf("the owner was told %v", third)
	}

	// What was passed on here stays here.
	again := offer(&controlwire.OfferRequest{Gateway: "g:2", Forwarded: true, Offers: []*agentwire.Ticket{ticket}})
	reply, err = again.Recv()
	if err != nil || len(reply.GetRefusals()) != 1 || reply.GetRefusals()[0].GetReason() == controlwire.Refusal_REASON_UNSPECIFIED {
		t.Errorf("what was passed on already was answered with %v, %v", reply, err)
	}
	select {
	case request := <-owner.heard:
		t.Errorf("it was passed on again: %v", request)
	default:
	}
}

// refusingOwner is a scheduler that does not speak this one's protocol.
type refusingOwner struct {
	controlwire.UnimplementedSchedulerServer
}

func (refusingOwner) Offer(grpc.BidiStreamingServer[controlwire.OfferRequest, controlwire.OfferReply]) error {
	return status.Error(codes.FailedPrecondition, "no common protocol")
}

func TestTheLogSaysWhyAnOwnerRefusesTickets(t *testing.T) {
	w := newHarness(t, harnessConfig{Config: DefaultConfig(), node: 1000, shared: true})
	o := &offerStream{gateway: "g:1", refusals: make(chan *controlwire.Refusal, refusalBuffer)}
	f := newForwards(w.scheduler.shell, o)
	ctx, hangUp := context.WithCancel(t.Context())
	id := idOf(1)
	f.to(serveOnLoopback(t, refusingOwner{})).Offers = []*agentwire.Ticket{{InvocationId: id[:]}}
	f.flush(ctx)
	<-o.refusals
	hangUp()
	f.waitEnded()
	w.expectLog("cannot forward tickets to the owner", "no common protocol")
}

func TestSlotsAreToldToThoseWhoCannotReadThem(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		reply, err := w.client.Slots(context.Background(), &controlwire.SlotsRequest{})
		if err != nil || len(reply.GetSlots()) != 0 {
			t.Errorf("Slots = %v, %v", reply, err)
		}
	})
}

func TestHeartbeats(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stream, err := w.client.Heartbeat(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, serving := range []bool{true, false} {
			w.scheduler.Serving(serving)
			if err := stream.Send(&controlwire.HeartbeatRequest{Number: uint64(i)}); err != nil {
				t.Fatal(err)
			}
			reply, err := stream.Recv()
			if err != nil || reply.GetNumber() != uint64(i) || reply.GetServing() != serving {
				t.Errorf("heartbeat %d was answered with %v, %v", i, reply, err)
			}
		}
		_ = stream.CloseSend()
		if _, err := stream.Recv(); err == nil {
			t.Error("the stream goes on")
		}
	})
}

func TestL8NoTwoStandbysHaveTheSameName(t *testing.T) {
	by := make(map[string]string)
	for i := range 5000 {
		id := fmt.Sprintf("windlass-scheduler-%d", i)
		name := standbyName(id)
		if other, taken := by[name]; taken {
			t.Fatalf("%s and %s are both called %s", other, id, name)
		}
		by[name] = id
	}
}

// If it is cut off, all others seem silent to it, and no agent comes to it.
func TestAStandbyStopsNobodyForItsSilence(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.lose("other:1")
		fn := w.put("f", minInstances(1))
		w.runtime.existing = []provisioner.Existing{{CID: "0000-1", Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: true}}
		w.runtime.alive[keyOf(string(fn.UID), "0000-1")] = make(chan struct{})
		w.ownership.silence()
		w.after(20 * time.Second)
		w.ownership.lose("other:1")
		w.after(time.Second)
		if len(w.runtime.stopped) > 0 {
			t.Errorf("stopped %v, which worked for another scheduler", w.runtime.stopped)
		}
	})
}

func TestAFunctionHasItsMinimumOnceEtcdConfirmsItsOwnerAgain(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.setUnconfirmed(true)
		fn := w.put("f", minInstances(3))
		w.ticks(1)
		w.ready(w.started(fn, 1)[0])
		w.ticks(20)
		w.started(fn, 0)
		w.ownership.setUnconfirmed(false)
		w.ticks(2)
		w.started(fn, 2)
	})
}

// A tick decides for all functions before it launches for any.
func TestAnInstanceThatIsLaunchedForALostFunctionIsItsNewOwners(t *testing.T) {
	config := defaults()
	config.shared = true
	w := newHarness(t, config)
	fn := newTestFunction("f", minInstances(1))
	w.scheduler.functionChanged(catalog.Event{Key: fn.Key(), UID: string(fn.UID), Entry: entryOf(fn)})
	f := w.scheduler.shell.lookup(string(fn.UID))
	c := w.scheduler.ticker.evaluate(f)
	w.ownership.lose("other:1")
	w.scheduler.shell.syncOwnership(f)
	w.scheduler.ticker.launch(c, c.Wanted())
	if counts := w.instances.Observe(string(fn.UID)).Counts; counts != (provisioner.Counts{}) {
		t.Errorf("it keeps %+v", counts)
	}
}
