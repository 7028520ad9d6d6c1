package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// stuck is a stream to an owner that takes nothing.
type stuck struct {
	grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply]
	hungUp chan struct{}
}

func (s stuck) Send(*controlwire.OfferRequest) error {
	<-s.hungUp
	return errors.New("hung up")
}

func TestL5AnOwnerThatCannotBeReachedCostsOneWaitAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, defaults())
		o := &offerStream{gateway: "g:1", refusals: make(chan *controlwire.Refusal, refusalBuffer)}
		ctx, hangUp := context.WithCancel(t.Context())
		f := newForwards(w.scheduler.shell, o)
		defer func() {
			hangUp()
			f.waitEnded()
		}()
		stream := stuck{hungUp: make(chan struct{})}
		owner := &ownerStream{
			shell: w.scheduler.shell, from: o, addr: "other:1", requests: make(chan *controlwire.OfferRequest, forwardBuffer),
			stream: stream, hangUp: sync.OnceFunc(func() { close(stream.hungUp) }),
		}
		f.owners["other:1"] = owner
		f.running.Go(func() { owner.run(ctx) })

		begun := time.Now()
		for n := range forwardBuffer {
			id := idOf(n)
			request := f.to("other:1")
			request.Offers = append(request.Offers, &agentwire.Ticket{InvocationId: id[:]})
			f.flush(ctx)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the gateway's other tickets waited for %v", waited)
		}
		time.Sleep(forwardWithin)
		synctest.Wait()
		if n := len(o.refusals); n != forwardBuffer {
			t.Errorf("%d of %d tickets were refused after one wait", n, forwardBuffer)
		}
	})
}

func TestL5MoreThanCanWaitForAnOwnerIsRefusedAtOnce(t *testing.T) {
	w := newHarness(t, defaults())
	o := &offerStream{gateway: "g:1", refusals: make(chan *controlwire.Refusal, refusalBuffer)}
	f := newForwards(w.scheduler.shell, o)
	f.owners["other:1"] = &ownerStream{from: o, requests: make(chan *controlwire.OfferRequest)}
	id := idOf(1)
	f.to("other:1").Offers = []*agentwire.Ticket{{InvocationId: id[:]}}
	f.flush(t.Context())
	if n := len(o.refusals); n != 1 {
		t.Errorf("%d tickets were refused, want 1", n)
	}
}

// slow is a stream to an owner that takes its first message after a while.
type slow struct {
	grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply]
	goOn chan struct{}
	last map[string]uint64 // report of each function
	took *int              // tickets
}

func (s slow) Send(request *controlwire.OfferRequest) error {
	<-s.goOn
	*s.took += len(request.GetOffers())
	for _, r := range request.GetReports() {
		s.last[r.GetFunctionUid()] = r.GetServed()
	}
	return nil
}

// A gateway reports what has changed only: the owner would count calls that are gone. It is slow because it
// is busy, so it gets no further connection for that.
func TestASlowOwnerMissesNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, defaults())
		o := &offerStream{gateway: "g:1", refusals: make(chan *controlwire.Refusal, refusalBuffer)}
		ctx, end := context.WithCancel(t.Context())
		stream := slow{goOn: make(chan struct{}), last: make(map[string]uint64), took: new(int)}
		owner := &ownerStream{
			shell: w.scheduler.shell, from: o, addr: "other:1", requests: make(chan *controlwire.OfferRequest, forwardBuffer), stream: stream,
			hangUp: func() {}, end: func() { t.Error("its stream ends") },
		}
		f := newForwards(w.scheduler.shell, o)
		f.owners["other:1"] = owner
		f.running.Go(func() { owner.run(ctx) })
		const messages = 3 * (1 + forwardBuffer) // the first one is on its way
		for n := range messages {
			id := idOf(n)
			request := f.to("other:1")
			request.Offers = []*agentwire.Ticket{{InvocationId: id[:]}}
			for _, uid := range []string{"every", fmt.Sprint(n)} {
				request.Reports = append(request.Reports, &controlwire.LoanReport{FunctionUid: uid, Served: uint64(n)})
			}
			f.flush(t.Context())
			synctest.Wait()
		}
		if len(f.owners) != 1 || f.owners["other:1"] != owner {
			t.Error("another stream has begun")
		}
		close(stream.goOn)
		synctest.Wait()
		if refused := len(o.refusals); *stream.took != 1+forwardBuffer || refused != messages-*stream.took {
			t.Errorf("%d tickets went to the owner, and %d were refused", *stream.took, refused)
		}
		if len(stream.last) != 1+messages || stream.last["every"] != messages-1 {
			t.Errorf("the owner's last reports are %v", stream.last)
		}
		end()
		f.waitEnded()
	})
}

func TestManyReportsTakeSeveralMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, defaults())
		stream := slow{goOn: make(chan struct{}), last: make(map[string]uint64), took: new(int)}
		close(stream.goOn)
		owner := &ownerStream{shell: w.scheduler.shell, from: &offerStream{gateway: "g:1"}, addr: "other:1", stream: stream, hangUp: func() {}}
		for n := range 2*maxReports + 1 {
			owner.reports.keep([]*controlwire.LoanReport{{FunctionUid: fmt.Sprint(n)}})
		}
		owner.forward(t.Context(), &controlwire.OfferRequest{})
		if len(stream.last) != 2*maxReports+1 {
			t.Errorf("%d functions were reported on", len(stream.last))
		}
	})
}

func TestAGatewayThatLeavesIsNoFaultOfTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, defaults())
		ctx, leave := context.WithCancel(t.Context())
		stream := stuck{hungUp: make(chan struct{})}
		owner := &ownerStream{
			shell: w.scheduler.shell, from: &offerStream{gateway: "g:1"}, addr: "other:1", stream: stream,
			hangUp: sync.OnceFunc(func() { close(stream.hungUp) }),
		}
		time.AfterFunc(forwardWithin/2, func() {
			leave()
			owner.hangUp()
		})
		if err := owner.forwardRequest(ctx, &controlwire.OfferRequest{}); err == nil || w.log.String() != "" {
			t.Errorf("error %v, and the log says %s", err, w.log)
		}
	})
}

func TestAnUnusedStreamToAnOwnerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, defaults())
		o := &offerStream{gateway: "g:1", refusals: make(chan *controlwire.Refusal, refusalBuffer)}
		f := newForwards(w.scheduler.shell, o)
		ctx, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		begun := make(map[string]*ownerStream)
		for _, addr := range []string{"first:1", "second:1"} {
			begun[addr] = f.ownerAt(ctx, addr)
			time.Sleep(unusedForward / 2)
			f.flush(ctx)
		}
		if f.owners["first:1"] != nil || f.owners["second:1"] != begun["second:1"] {
			t.Errorf("there are streams to %v, want that to the second owner only", f.owners)
		}
		time.Sleep(unusedForward / 2)
		f.flush(ctx)
		f.waitEnded()
		if again := f.ownerAt(ctx, "first:1"); again == begun["first:1"] {
			t.Error("a stream that has ended is used again")
		}
		hangUp()
		f.waitEnded()
	})
}

func TestL2OffersAndCancellationsAreProcessedInTheirOrder(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", concurrency(3), maxInstances(1)), w.gateway("g:1")
		ticket := func(n int) *agentwire.Ticket {
			id := idOf(n)
			return &agentwire.Ticket{InvocationId: id[:], FunctionUid: string(fn.UID), Token: id[:], RemainingNs: int64(time.Minute)}
		}
		cancellation := func(n int, after uint32) *controlwire.Cancellation {
			id := idOf(n)
			return &controlwire.Cancellation{InvocationId: id[:], FunctionUid: string(fn.UID), AfterOffers: after}
		}
		g.offer(fn, 1)
		// Call 1 was claimed, given back, and waits again; nobody wants call 2.
		g.send(&controlwire.OfferRequest{
			Offers:        []*agentwire.Ticket{ticket(1), ticket(2), ticket(3)},
			Cancellations: []*controlwire.Cancellation{cancellation(1, 0), cancellation(2, 2)},
		})
		w.ready(w.started(fn, 1)[0]).expect("ticket 0001 at g:1", "ticket 0003 at g:1")
	})
}
