package gateway

import (
	"context"
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

// shell surrounds the cores of all calls and pools: it feeds them events and carries out their
// decisions.
type shell struct {
	config  Config
	deps    Deps
	calls   *calls
	metrics *metrics
	picker  *picker
	own     *ownHosts
	links   *links
	agents  *agentConns
	pools   *pools
	// keepsNoLoans says that lent pulls that no call needs are given back.
	keepsNoLoans atomic.Bool
	// retrySignal holds an element if a ticket has to be offered again soon.
	retrySignal chan struct{}
}

func newShell(config Config, deps Deps, calls *calls, metrics *metrics, picker *picker, own *ownHosts) *shell {
	s := &shell{
		config: config, deps: deps, calls: calls, metrics: metrics, picker: picker, own: own, pools: newPools(), agents: newAgentConns(),
		retrySignal: make(chan struct{}, 1),
	}
	s.links = newLinks(config, deps, s.onRefusal)
	return s
}

// run keeps the streams to schedulers and offers tickets again that wait too long, until ctx
// ends.
func (s *shell) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	s.links.setRunning(true)
	defer s.links.setRunning(false)
	tick, reports, drops := time.NewTicker(core.ReofferEvery), time.NewTicker(reportEvery), time.NewTicker(dropEvery)
	defer tick.Stop()
	defer reports.Stop()
	defer drops.Stop()
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.links.added:
			for _, l := range s.links.takeUnstarted() {
				running.Go(func() { l.run(ctx) })
			}
		case <-s.retrySignal:
			if soon == nil {
				soon = time.After(core.ReofferSoon)
			}
		case now := <-soon:
			soon = nil
			s.audit(now, noneMoved)
		case now := <-tick.C:
			s.audit(now, noneMoved)
		case now := <-reports.C:
			s.sweep(now)
		case <-drops.C:
			s.dropGone()
			s.own.dropGone(s.deps.Catalog)
		case <-s.deps.Router.Changed():
			s.onRouteChange(time.Now())
		case <-s.links.forgotten:
			s.onRouteChange(time.Now())
		}
	}
}

// step applies an event to a call, and carries out the decision. If the call fails, p says
// why, unless the core knows.
func (s *shell) step(c *call, e event, p problem) { s.carryOut(c, c.decide(e, p)) }

// carryOut executes a decision about a call.
func (s *shell) carryOut(c *call, decided core.Decision) {
	if decided.End {
		s.calls.delete(c)
		s.dequeue(c)
	}
	if decided.CancelTicket {
		s.cancelTicket(c)
	}
	if decided.Wait {
		s.enqueue(c).flushLater(nil)
	}
	if decided.Offer {
		s.offer(c)
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
func (s *shell) offer(c *call) {
	c.sendTicket(func(slot ownership.Slot, t *agentwire.Ticket) bool {
		l := s.links.to(slot)
		if l == nil || !l.enqueueOffer(t) {
			return false
		}
		s.metrics.ticketOffered(t.GetAgain())
		return true
	})
}

// cancelTicket cancels a call's ticket at the slot's scheduler.
func (s *shell) cancelTicket(c *call) { s.cancelTicketAt(c.destination(), c.id) }

func (s *shell) cancelTicketAt(at destination, id invocation.ID) {
	if l := s.links.to(at.slot()); l != nil {
		l.enqueueCancel(id, string(at.unit.UID))
	}
}

// noneMoved is for audits without lost tickets.
func noneMoved(destination) bool { return false }

// onRouteChange offers the tickets again whose slots another scheduler serves now.
func (s *shell) onRouteChange(now time.Time) {
	if moved, some := s.links.moved(); some {
		s.audit(now, func(at destination) bool { return moved[at.slot()] })
	}
}

// audit compares the recorded state of all calls with the observed one; moved are the destinations
// whose tickets may be lost.
func (s *shell) audit(now time.Time, moved func(destination) bool) {
	for _, c := range s.calls.snapshot() {
		if seen, due := c.observation(now, moved(c.destination())); due {
			entry, exists := s.deps.Catalog.Get(c.function.Key())
			seen.Deleted = !exists || entry.UID() != string(c.function.UID)
			if !seen.Deleted && s.reassign(c, entry, now) {
				continue
			}
			s.carryOut(c, c.audit(now, seen))
		}
	}
}

// reassign looks for another unit for a call that waits for one which was removed. While
// the function has none, the call waits on.
func (s *shell) reassign(c *call, e *rollout.Entry, now time.Time) bool {
	if hasUnit(e, c.destination().unit) {
		return false
	}
	unit, p := s.picker.pick(e, c.tag)
	switch {
	case unit != nil:
		from, decided := c.move(destination{unit, e}, now)
		if decided.Wait {
			s.dequeue(c)
			s.cancelTicketAt(from, c.id)
		}
		s.carryOut(c, decided)
		return decided != core.Decision{}
	case p.Reason == problems.UnknownTag:
		decided := c.decide((*core.Invocation).Refuse, *p)
		s.carryOut(c, decided)
		return decided.End
	}
	return false
}

// onRefusal handles a scheduler's refusal of a ticket for a unit; of any unit if it names none.
func (s *shell) onRefusal(id invocation.ID, unit string, r invocation.Refusal) {
	c := s.calls.find(id)
	if c == nil {
		return
	}
	switch r.Reason {
	case invocation.RefusedUnknownFunction, invocation.RefusedNotOwner:
		// The scheduler may not know yet, or another one does: the ticket is
		// offered again until the unit, or the function, is gone here too.
		s.step(c, ofUnit(c, unit, func(v *core.Invocation) core.Decision { v.NotQueued(r.Admitted); return core.Decision{} }), problem{})
		signal(s.retrySignal)
	default:
		s.step(c, ofUnit(c, unit, (*core.Invocation).Refuse), fromRefusal(r))
	}
}

// ofUnit is an event that counts only while the call goes to a unit: a ticket for the unit before it says
// nothing about the present one. Without a UID it always counts.
func ofUnit(c *call, uid string, e event) event {
	return func(v *core.Invocation) core.Decision {
		if uid != "" && uid != string(c.to.unit.UID) {
			return core.Decision{}
		}
		return e(v)
	}
}

// signal puts an element into a channel that has room for one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
