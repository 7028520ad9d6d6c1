package gateway

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// dispatcher offers the tickets of waiting calls to the schedulers that serve their functions'
// slots.
type dispatcher struct {
	config  Config
	deps    Deps
	calls   *calls
	metrics *metrics
	picker  *picker
	pools   *pools
	agents  *agentConns
	// returning says that lent pulls are given back.
	returning atomic.Bool
	// retrySignal holds an element if a ticket has to be offered again soon, newLinks if a link has to
	// be started, and forgotten if routes were forgotten.
	retrySignal, newLinks, forgotten chan struct{}

	mu sync.Mutex // guards everything below
	// running says that links are run.
	running bool
	links   map[string]*link
	// unstarted are the links that are not run yet.
	unstarted []*link
	// routes are the addresses of the slots' schedulers at the last look; empty where their tickets
	// may have been lost since.
	routes [ownership.Slots]string
}

func newDispatcher(config Config, deps Deps, calls *calls, metrics *metrics, picker *picker) *dispatcher {
	return &dispatcher{
		config: config, deps: deps, calls: calls, metrics: metrics, picker: picker, pools: newPools(), agents: newAgentConns(),
		retrySignal: make(chan struct{}, 1), newLinks: make(chan struct{}, 1), forgotten: make(chan struct{}, 1), links: make(map[string]*link),
	}
}

// run keeps the streams to schedulers and offers tickets again that wait too long, until ctx
// ends.
func (d *dispatcher) run(ctx context.Context) {
	var links sync.WaitGroup
	defer links.Wait()
	d.setRunning(true)
	defer d.setRunning(false)
	tick, reports, drops := time.NewTicker(core.ReofferEvery), time.NewTicker(reportEvery), time.NewTicker(dropEvery)
	defer tick.Stop()
	defer reports.Stop()
	defer drops.Stop()
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.newLinks:
			for _, l := range d.drainUnstarted() {
				links.Go(func() { l.run(ctx) })
			}
		case <-d.retrySignal:
			if soon == nil {
				soon = time.After(core.ReofferSoon)
			}
		case now := <-soon:
			soon = nil
			d.audit(now, noSlot)
		case now := <-tick.C:
			d.audit(now, noSlot)
		case now := <-reports.C:
			d.sweep(now)
		case <-drops.C:
			d.dropGone()
		case <-d.deps.Router.Changed():
			d.onRouteChange(time.Now())
		case <-d.forgotten:
			d.onRouteChange(time.Now())
		}
	}
}

// setRunning says whether links are run from now on.
func (d *dispatcher) setRunning(running bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = running
}

// drainUnstarted takes the links that have not been started yet.
func (d *dispatcher) drainUnstarted() []*link {
	d.mu.Lock()
	defer d.mu.Unlock()
	unstarted := d.unstarted
	d.unstarted = nil
	return unstarted
}

// step applies an event to a call, and carries out the decision. If the call fails, p says
// why, unless the core knows.
func (d *dispatcher) step(c *call, e event, p problem) { d.carryOut(c, c.decide(e, p)) }

// carryOut executes a decision about a call.
func (d *dispatcher) carryOut(c *call, decided core.Decision) {
	if decided.End {
		d.calls.delete(c)
		d.dequeue(c)
	}
	if decided.CancelTicket {
		d.cancelTicket(c)
	}
	if decided.Wait {
		d.enqueue(c).flushLater(nil)
	}
	if decided.Offer {
		d.offer(c)
	}
	if decided.Cancel {
		c.cancel()
	}
	if decided.GiveUp {
		c.giveUpIfItStalls()
	}
}

// offer sends a call's ticket to the scheduler that serves the function's slot. If none does
// now, or its stream is down, the ticket is sent later.
func (d *dispatcher) offer(c *call) {
	c.sendTicket(func(slot ownership.Slot, t *agentwire.Ticket) bool {
		l := d.linkTo(slot)
		if l == nil || !l.enqueueOffer(t) {
			return false
		}
		d.metrics.ticketOffered(t.GetAgain())
		return true
	})
}

// cancelTicket cancels a call's ticket at the slot's scheduler.
func (d *dispatcher) cancelTicket(c *call) { d.cancelTicketAt(c.destination(), c.id) }

func (d *dispatcher) cancelTicketAt(at destination, id invocation.ID) {
	if l := d.linkTo(at.slot); l != nil {
		l.enqueueCancel(id, string(at.unit.UID))
	}
}

// noSlot is for audits without lost tickets.
func noSlot(ownership.Slot) bool { return false }

// onRouteChange offers the tickets again whose slots another scheduler serves now.
func (d *dispatcher) onRouteChange(now time.Time) {
	var moved [ownership.Slots]bool
	d.mu.Lock()
	for slot := range d.routes {
		to, _, _ := d.deps.Router.Route(ownership.Slot(slot))
		moved[slot] = d.routes[slot] != to.Addr
		d.routes[slot] = to.Addr
	}
	d.mu.Unlock()
	if slices.Contains(moved[:], true) {
		d.audit(now, func(slot ownership.Slot) bool { return moved[slot] })
	}
}

// forgetRoutes lets the next look at routes find that all slots of a scheduler moved, since tickets
// that were offered to it may have been lost. The dispatcher's own goroutine looks, because an
// audit moves calls.
func (d *dispatcher) forgetRoutes(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for slot, to := range d.routes {
		if to == addr {
			d.routes[slot] = ""
		}
	}
	signal(d.forgotten)
}

// audit compares the recorded state of all calls with the observed one; moved are the slots
// whose tickets may be lost.
func (d *dispatcher) audit(now time.Time, moved func(ownership.Slot) bool) {
	for _, c := range d.calls.snapshot() {
		if seen, due := c.observation(now, moved(c.destination().slot)); due {
			entry, exists := d.deps.Catalog.Get(c.function.Key())
			seen.Deleted = !exists || entry.UID() != string(c.function.UID)
			if !seen.Deleted && d.reassign(c, entry, now) {
				continue
			}
			d.carryOut(c, c.audit(now, seen))
		}
	}
}

// reassign looks for another unit for a call that waits for one which was removed. While
// the function has none, the call waits on.
func (d *dispatcher) reassign(c *call, e *rollout.Entry, now time.Time) bool {
	if hasUnit(e, c.destination().unit) {
		return false
	}
	unit, p := d.picker.pick(e, c.tag)
	switch {
	case unit != nil:
		from, decided := c.move(destinationOf(e, unit), now)
		if decided.Wait {
			d.dequeue(c)
			d.cancelTicketAt(from, c.id)
		}
		d.carryOut(c, decided)
		return decided != core.Decision{}
	case p.Reason == problems.UnknownTag:
		decided := c.decide((*core.Invocation).Refuse, *p)
		d.carryOut(c, decided)
		return decided.End
	}
	return false
}

// onRefusal handles a scheduler's refusal of a ticket.
func (d *dispatcher) onRefusal(id invocation.ID, r invocation.Refusal) {
	switch r.Reason {
	case invocation.RefusedUnknownFunction, invocation.RefusedNotOwner:
		// The scheduler may not know yet, or another one does: the ticket is
		// offered again until the unit, or the function, is gone here too.
		d.scheduleRetry(id)
		return
	}
	if c := d.calls.find(id); c != nil {
		d.step(c, (*core.Invocation).Refuse, fromRefusal(r))
	}
}

// scheduleRetry marks a ticket that no queue has, and offers it again soon.
func (d *dispatcher) scheduleRetry(id invocation.ID) {
	if c := d.calls.find(id); c != nil {
		c.decide(func(v *core.Invocation) core.Decision { v.NotQueued(); return core.Decision{} }, problem{})
	}
	signal(d.retrySignal)
}

// signal puts an element into a channel that has room for one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// linkTo returns the link to the scheduler that serves a slot, or nil.
func (d *dispatcher) linkTo(slot ownership.Slot) *link {
	owner, _, known := d.deps.Router.Route(slot)
	if !known {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running {
		return nil
	}
	l, known := d.links[owner.Addr]
	if !known {
		l = newLink(d, owner.Addr)
		d.links[owner.Addr] = l
		d.unstarted = append(d.unstarted, l)
		signal(d.newLinks)
	}
	return l
}

// unlink drops a link that was not used since the given time; false if it was.
func (d *dispatcher) unlink(l *link, since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.usedAfter(since) {
		return false
	}
	delete(d.links, l.addr)
	return true
}

const (
	// openTimeout is how long a scheduler may take to be reached, and stallTimeout how
	// long it may leave messages unread: then the gateway drops the connection.
	openTimeout  = 5 * time.Second
	stallTimeout = 2 * time.Second
	// unusedLinkTimeout is how long a link to an unreachable scheduler is kept without
	// being used.
	unusedLinkTimeout = time.Minute
)

// link is the stream of tickets to one scheduler. Tickets that are offered while it is down
// are dropped: the gateway offers unclaimed calls again.
type link struct {
	dispatch *dispatcher
	addr     string

	// wakeSender holds an element if something is pending that the sender may not have
	// seen.
	wakeSender chan struct{}

	mu sync.Mutex
	// open is the stream; nil while it is not open.
	open *linkStream
	// pending is what the sender has yet to send. So offering never waits for a scheduler, and
	// under load many tickets share one message and one wake-up. It holds at most as many
	// tickets, and as many cancellations, as the gateway has calls; further ones are dropped.
	// A dropped ticket is offered again, and a dropped cancellation costs an instance a
	// refused claim.
	pending outbox
	used    time.Time // when something was last to be sent
}

func newLink(d *dispatcher, addr string) *link {
	return &link{dispatch: d, addr: addr, wakeSender: make(chan struct{}, 1), used: time.Now()}
}

// enqueueOffer reports whether the ticket is to be sent; otherwise it is dropped.
func (l *link) enqueueOffer(t *agentwire.Ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open == nil || len(l.pending.offers) >= l.dispatch.config.MaxInvocations {
		return false
	}
	l.pending.addOffer(t)
	signal(l.wakeSender)
	return true
}

func (l *link) enqueueCancel(id invocation.ID, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open != nil && len(l.pending.cancels) < l.dispatch.config.MaxInvocations {
		l.pending.addCancel(&controlwire.Cancellation{InvocationId: id[:], FunctionUid: uid})
		signal(l.wakeSender)
	}
}

// linkStream stands for one stream of a link.
type linkStream struct{ _ byte }

// stream is the present stream; nil if none is open.
func (l *link) stream() *linkStream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// enqueueReport lets a report be sent once the sender is woken. It replaces one on the same
// function that was not sent yet.
func (l *link) enqueueReport(r *controlwire.LoanReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open != nil {
		l.pending.addReport(r)
	}
}

func (l *link) usedAfter(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used.After(t)
}

// nextBatch takes the next message; nil if nothing is pending.
func (l *link) nextBatch() *controlwire.OfferRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending.empty() {
		return nil
	}
	return l.pending.batch()
}

// sendPending sends pending messages until the stream ends. hangUp ends it.
func (l *link) sendPending(stream grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply], hangUp func()) {
	for {
		select {
		case <-stream.Context().Done():
			return
		case <-l.wakeSender:
		}
		for batch := l.nextBatch(); batch != nil; batch = l.nextBatch() {
			stalled := time.AfterFunc(stallTimeout, hangUp)
			err := stream.Send(batch)
			stalled.Stop()
			if err != nil {
				return // the stream has ended, which runStream sees
			}
		}
	}
}

// run keeps the stream open until ctx ends, or until the scheduler is no longer a member.
func (l *link) run(ctx context.Context) {
	const shortest, longest = 20 * time.Millisecond, time.Second
	conn, err := health.Dial(l.addr, l.dispatch.deps.Schedulers)
	if err != nil {
		l.dispatch.deps.Log.Error("scheduler address is not usable", "addr", l.addr, "err", err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := controlwire.NewSchedulerClient(conn)
	retry := backoff.Backoff{First: shortest, Last: longest}
	for ctx.Err() == nil {
		begun := time.Now()
		opened := l.runStream(ctx, client)
		now := time.Now()
		if opened && now.Sub(begun) > longest {
			retry.Reset()
		}
		if !opened && l.dispatch.unlink(l, now.Add(-unusedLinkTimeout)) {
			return
		}
		sleep.For(ctx, retry.Next())
	}
}

// runStream opens the stream and reads refusals until it ends. It reports whether the stream
// ever opened.
func (l *link) runStream(ctx context.Context, client controlwire.SchedulerClient) bool {
	var sending sync.WaitGroup
	defer sending.Wait()
	streamCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	limit := time.AfterFunc(openTimeout, hangUp)
	stream, err := client.Offer(streamCtx, grpc.WaitForReady(true))
	limit.Stop()
	if err == nil {
		err = stream.Send(&controlwire.OfferRequest{Gateway: l.dispatch.config.ClaimAddr, Hello: health.Hello()})
	}
	if err != nil {
		return false
	}
	l.dispatch.deps.Log.Debug("connected to scheduler", "addr", l.addr)
	l.setOpen(new(linkStream))
	defer l.setOpen(nil)
	sending.Go(func() { l.sendPending(stream, hangUp) })
	l.dispatch.forgetRoutes(l.addr)
	for {
		reply, err := stream.Recv()
		if err != nil {
			if ctx.Err() == nil {
				l.dispatch.deps.Log.Warn("lost the scheduler", "addr", l.addr, "err", err)
			}
			return true
		}
		if w := reply.GetWelcome(); w != nil && !health.Accepts(w) {
			l.dispatch.deps.Log.Error("the scheduler does not speak this gateway's protocol", "addr", l.addr, "release", w.GetRelease())
			return true
		}
		for _, r := range reply.GetRefusals() {
			if id, err := invocation.IDFromBytes(r.GetInvocationId()); err == nil {
				l.dispatch.onRefusal(id, health.RefusalFromWire(r))
			}
		}
	}
}

// setOpen records that a stream opened or ended. It drops what was pending.
func (l *link) setOpen(open *linkStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.pending = open, outbox{}
}

// maxBatch bounds the tickets of one message, and its reports.
const maxBatch = 1024

// outbox has the messages for a scheduler in order: a call that is cancelled and then offered
// again waits, one that is offered and then cancelled does not. The zero value is empty.
type outbox struct {
	offers  []*agentwire.Ticket
	cancels []*controlwire.Cancellation
	// reports are those on functions, by UID.
	reports map[string]*controlwire.LoanReport
	// sent is how many offers were sent. Until it is sent, a cancellation has how
	// many had been made in all before it.
	sent uint32
}

func (s *outbox) addOffer(t *agentwire.Ticket) { s.offers = append(s.offers, t) }

func (s *outbox) addCancel(w *controlwire.Cancellation) {
	w.AfterOffers = s.sent + uint32(len(s.offers))
	s.cancels = append(s.cancels, w)
}

// addReport replaces a report on the same function that was not sent yet.
func (s *outbox) addReport(r *controlwire.LoanReport) {
	if s.reports == nil {
		s.reports = make(map[string]*controlwire.LoanReport)
	}
	s.reports[r.GetFunctionUid()] = r
}

// takeReports takes some of the reports.
func (s *outbox) takeReports() (some []*controlwire.LoanReport) {
	for uid, r := range s.reports {
		if len(some) == maxBatch {
			break
		}
		some = append(some, r)
		delete(s.reports, uid)
	}
	return some
}

func (s *outbox) empty() bool { return len(s.offers)+len(s.cancels)+len(s.reports) == 0 }

// batch takes the next message.
func (s *outbox) batch() *controlwire.OfferRequest {
	n, m := min(maxBatch, len(s.offers)), 0
	for ; m < min(maxBatch, len(s.cancels)); m++ {
		w := s.cancels[m]
		if w.AfterOffers-s.sent > uint32(n) {
			break
		}
		w.AfterOffers -= s.sent
	}
	if m < len(s.cancels) {
		// No offer overtakes a cancellation that is left.
		n = min(n, int(s.cancels[m].AfterOffers-s.sent))
	}
	batch := &controlwire.OfferRequest{Offers: s.offers[:n:n], Cancellations: s.cancels[:m:m], Reports: s.takeReports()}
	s.offers, s.cancels, s.sent = s.offers[n:], s.cancels[m:], s.sent+uint32(n)
	return batch
}
