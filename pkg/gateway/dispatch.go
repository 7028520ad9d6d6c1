package gateway

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// dispatcher offers the tickets of waiting calls to the schedulers that serve their functions'
// slots.
type dispatcher struct {
	config   Config
	deps     Deps
	calls    *calls
	metrics  *metrics
	picker   *picker
	pools    *pools
	agents   *agentConns
	stopping stopping
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

// stopping is what a gateway does not do any more.
type stopping struct {
	// loans says that it keeps no lent pulls.
	loans atomic.Bool
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
		c.giveUpIfItWaits()
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
