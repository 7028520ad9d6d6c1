package scheduler

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// refusalBuffer bounds the refusals that wait for one gateway's stream. Further ones are
// dropped: the gateway offers those tickets again and is refused again.
const refusalBuffer = 4096

// offerStream is the stream that brings one gateway's tickets.
type offerStream struct {
	gateway string
	// number names no other stream.
	number uint64
	// forwarded says that another scheduler forwards them.
	forwarded bool
	refusals  chan *controlwire.Refusal
	metrics   *metrics
	// forwards are the streams by which this scheduler forwards tickets itself.
	forwards *forwards
	// offered, cancelled and reported are reused for the events of its messages.
	offered   core.Offered
	cancelled core.CallCancelled
	reported  core.Reported
	reports   reportedOn
}

// reportedOn are the UIDs of the functions that a stream has reported on. A stream may live for months,
// and functions have a UID for each revision, so those that are gone are dropped: whenever there are
// twice as many as were left last time.
type reportedOn struct {
	uids map[string]bool
	most int
}

// add adds a UID, and reports whether it is there already. known says which functions there are.
func (r *reportedOn) add(uid string, known func(uid string) bool) (before bool) {
	if r.uids[uid] {
		return true
	}
	if len(r.uids) >= r.most {
		maps.DeleteFunc(r.uids, func(uid string, _ bool) bool { return !known(uid) })
		r.most = max(minReportedOn, 2*len(r.uids))
	}
	if r.uids == nil {
		r.uids = make(map[string]bool)
	}
	r.uids[uid] = true
	return false
}

// minReportedOn is up to how many UIDs nobody looks which functions are gone.
const minReportedOn = 64

// offers serves the streams of gateways.
type offers struct{ shell *shell }

// Offer serves one gateway's tickets.
func (o *offers) Offer(stream offerServer) error {
	request, from, err := o.greet(stream)
	if err != nil {
		return err
	}
	o.shell.gateways.register(from)
	defer o.endReports(from)
	defer o.shell.gateways.unregister(from)
	ctx, hangUp := context.WithCancel(stream.Context())
	from.forwards = newForwards(o.shell, from)
	defer from.forwards.waitEnded()
	defer hangUp()
	from.forwards.running.Go(func() { from.sendRefusals(ctx, stream) })
	for {
		o.process(from, request)
		from.forwards.flush(ctx)
		if request, err = stream.Recv(); err != nil {
			return nil
		}
	}
}

type offerServer = grpc.BidiStreamingServer[controlwire.OfferRequest, controlwire.OfferReply]

// greet receives the first message, which is a gateway's or a scheduler's hello, and answers it.
func (o *offers) greet(stream offerServer) (*controlwire.OfferRequest, *offerStream, error) {
	first, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	if first.GetGateway() == "" {
		return nil, nil, status.Error(codes.InvalidArgument, "the first message must say the gateway's address")
	}
	welcome, err := o.shell.answerHello(first.GetHello())
	if err != nil {
		return nil, nil, err
	}
	if err := stream.Send(&controlwire.OfferReply{Welcome: welcome}); err != nil {
		return nil, nil, err
	}
	return first, &offerStream{
		gateway: first.GetGateway(), forwarded: first.GetForwarded(),
		refusals: make(chan *controlwire.Refusal, refusalBuffer), metrics: o.shell.metrics,
	}, nil
}

// sendRefusals sends the refusals that wait, until ctx ends.
func (o *offerStream) sendRefusals(ctx context.Context, stream offerServer) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-o.refusals:
			// An error ends the stream, which Recv sees.
			_ = stream.Send(&controlwire.OfferReply{Refusals: []*controlwire.Refusal{r}})
		}
	}
}

// process handles a message in the order in which the gateway wrote it. A call in a report does
// not wait for a ticket that the message has, so reports come last.
func (o *offers) process(from *offerStream, request *controlwire.OfferRequest) {
	cancellations := request.GetCancellations()
	for n, t := range request.GetOffers() {
		for len(cancellations) > 0 && cancellations[0].GetAfterOffers() <= uint32(n) {
			o.cancel(from, cancellations[0])
			cancellations = cancellations[1:]
		}
		o.offer(from, t)
	}
	for _, w := range cancellations {
		o.cancel(from, w)
	}
	for _, r := range request.GetReports() {
		o.acceptReport(from, r)
	}
}

// offer puts one ticket into its function's queue, or refuses it.
func (o *offers) offer(from *offerStream, wire *agentwire.Ticket) {
	id, err := invocation.IDFromBytes(wire.GetInvocationId())
	if err != nil {
		return
	}
	if addr := o.forwardTo(from, wire.GetFunctionUid()); addr != "" {
		request := from.forwards.to(addr)
		request.Offers = append(request.Offers, wire)
		return
	}
	if refusal := o.accept(from, id, wire); refusal != nil {
		from.refuse(id, wire.GetFunctionUid(), *refusal)
	}
}

// accept passes a ticket to its function, or returns the refusal.
func (o *offers) accept(from *offerStream, id invocation.ID, wire *agentwire.Ticket) *invocation.Refusal {
	u := o.shell.lookup(wire.GetFunctionUid())
	if u == nil {
		return &invocation.Refusal{Reason: invocation.RefusedUnknownFunction, Detail: "no such function here"}
	}
	blocked, term := o.blocked(u), o.shell.slots.term(u.slot)
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, served := o.shell.syncOwnershipLocked(u, term); !served {
		return &core.NotOwner
	}
	now := o.shell.deps.Now()
	e := &from.offered
	*e = core.Offered{Ticket: ticketOf(from, id, wire, now), Again: wire.GetAgain(), StartBlocked: blocked, Jitter: rand.Float64()}
	if refused, is := core.AnswerOf[core.OfferRefused](o.shell.stepAt(u, now, e)); is {
		u.stats.byReason.refusals.add(string(refused.Why.Reason), 1)
		return refused.Why
	}
	if u.core.Waiting() > 0 {
		u.rememberCall(id, wire)
	}
	return nil
}

// blocked returns why no instance of a function can start, or nil if one can or already exists.
func (o *offers) blocked(u *unit) *invocation.Refusal {
	seen := o.shell.deps.Instances.Observe(u.uid)
	if !seen.Failing || seen.RetryAfter <= 0 || seen.Why.Transient() || hasInstances(seen) {
		return nil
	}
	refusal := cannotStart(seen.Why, seen.RetryAfter)
	return &refusal
}

// maxWait bounds the reported times that a call has waited and may still wait, so that
// computing with them cannot overflow.
const maxWait = 48 * time.Hour

// ticketOf reads a ticket from the wire.
func ticketOf(o *offerStream, id invocation.ID, wire *agentwire.Ticket, now time.Time) invocation.Ticket {
	return invocation.Ticket{
		ID:       id,
		Token:    invocation.TokenFromBytes(wire.GetToken()),
		Gateway:  o.gateway,
		Arrived:  now.Add(-clampAge(wire.GetWaitedNs())),
		Deadline: now.Add(clampAge(wire.GetRemainingNs())),
	}
}

func clampAge(ns int64) time.Duration { return min(max(0, time.Duration(ns)), maxWait) }

// forwardTo is the address to forward a function's messages to; empty if this scheduler
// handles them.
func (o *offers) forwardTo(from *offerStream, uid string) string {
	slot := ownership.SlotOf(uid, 0)
	if from.forwarded || o.shell.slots.term(slot) != notServed {
		return ""
	}
	return o.shell.slots.owner(slot).Addr
}

func (o *offers) cancel(from *offerStream, w *controlwire.Cancellation) {
	if addr := o.forwardTo(from, w.GetFunctionUid()); addr != "" {
		request := from.forwards.to(addr)
		request.Cancellations = append(request.Cancellations, &controlwire.Cancellation{
			InvocationId: w.GetInvocationId(), FunctionUid: w.GetFunctionUid(), AfterOffers: uint32(len(request.GetOffers())),
		})
		return
	}
	if u := o.shell.lookup(w.GetFunctionUid()); u != nil {
		if id, err := invocation.IDFromBytes(w.GetInvocationId()); err == nil {
			from.cancelled.ID = id
			o.shell.step(u, &from.cancelled)
		}
	}
}

// acceptReport passes what a gateway did with loans to the function's core, or to its owner.
func (o *offers) acceptReport(from *offerStream, wire *controlwire.LoanReport) {
	u := o.shell.lookup(wire.GetFunctionUid())
	if u == nil {
		return
	}
	before := from.reports.add(u.uid, func(uid string) bool { return o.shell.lookup(uid) != nil })
	resumed := from.forwarded || before
	if addr := o.forwardTo(from, u.uid); addr != "" {
		request := from.forwards.to(addr)
		request.Reports = append(request.Reports, wire)
		return
	}
	from.reported = core.Reported{Gateway: from.gateway, Stream: from.number, Resumed: resumed, Report: core.LoanReport{
		Served: wire.GetServed(), Waiting: int(wire.GetWaiting()), Running: int(wire.GetRunning()), Lent: int(wire.GetLent()),
		Executions: wire.GetExecutions(), ExecutionTime: time.Duration(wire.GetExecutedNs()),
		CoreWaited: time.Duration(wire.GetCoreWaitedNs()),
	}}
	term := o.shell.slots.term(u.slot)
	u.mu.Lock()
	defer u.mu.Unlock()
	o.shell.syncOwnershipLocked(u, term) // a report of the present term must not be lost
	o.shell.stepLocked(u, &from.reported)
}

// endReports tells functions that the reports of a stream have ended.
func (o *offers) endReports(from *offerStream) {
	for uid := range from.reports.uids {
		if u := o.shell.lookup(uid); u != nil {
			o.shell.step(u, core.GatewayGone{Gateway: from.gateway, Stream: from.number})
		}
	}
}

// refuse refuses a ticket of a unit.
func (o *offerStream) refuse(id invocation.ID, uid string, r invocation.Refusal) {
	o.enqueue(health.RefusalToWire(id, uid, r))
}

func (o *offerStream) enqueue(refusal *controlwire.Refusal) {
	select {
	case o.refusals <- refusal:
	default:
		o.metrics.countUnread()
	}
}

// gatewayStreams has the streams that bring tickets, by the gateway's claim address, the
// newest last. A gateway has one of its own, two while it reconnects, and one for each
// scheduler that forwards its tickets.
type gatewayStreams struct {
	mu        sync.Mutex
	byGateway map[string][]*offerStream
	// last is the number of the last stream.
	last uint64
}

func (r *gatewayStreams) register(o *offerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byGateway == nil {
		r.byGateway = make(map[string][]*offerStream)
	}
	r.last++
	o.number = r.last
	r.byGateway[o.gateway] = append(r.byGateway[o.gateway], o)
}

// unregister removes a stream that has ended. The gateway's other streams stay.
func (r *gatewayStreams) unregister(o *offerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.byGateway[o.gateway], func(other *offerStream) bool { return other == o })
	if len(left) == 0 {
		delete(r.byGateway, o.gateway)
	} else {
		r.byGateway[o.gateway] = left
	}
}

// streamTo picks the stream for refusals to a gateway: its newest own one, or else the newest
// one that forwards its tickets; nil if it has none.
func (r *gatewayStreams) streamTo(gateway string) *offerStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	streams := r.byGateway[gateway]
	for _, o := range slices.Backward(streams) {
		if !o.forwarded {
			return o
		}
	}
	if len(streams) > 0 {
		return streams[len(streams)-1]
	}
	return nil
}
