package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	agentcore "github.com/windlass-dev/windlass/pkg/podagent/core"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// served is what a scheduler keeps of one function: its core, the streams of its
// instances, and what is believed of them.
type served struct {
	scheduler *scheduler
	fn        *unit
	core      *core.Function
	pulls     []*pullEnd
	inventory inventory
	// awake says that ticks look at it, and alarms counts the times at which it was
	// to be woken.
	awake  bool
	alarms int
	// doubted says that what its instances amount to may have changed, and inVain for how
	// many ticks it has wanted for room that could be made.
	doubted bool
	inVain  int
	// failing says that an instance did not start, for another reason than a lack of room, and none has
	// since.
	failing bool
	// missed says that the last look found an instance that is not known here.
	missed bool
	// waited is how many tickets waited after the last event.
	waited int
	// servesSince is when its last term here began, in the world's time.
	servesSince time.Duration
	// passedOn says that the present report comes from another scheduler.
	passedOn bool
	// sequence is how many instances were launched here.
	sequence uint64

	// What it must do is found out from what happens to it.
	tickets *tickets
	limits  *limits
	scaling *scaling
}

func newServed(s *scheduler, fn *unit, spec core.Spec) *served {
	f := &served{scheduler: s, fn: fn, core: core.New(&s.config, spec)}
	f.tickets = newTickets(s.world, f.core, fn.concurrency)
	f.limits = &limits{served: f}
	f.scaling = &scaling{served: f, settled: -1}
	return f
}

func (f *served) serving() bool { return f.core.Term() != core.Unserved }

// step brings an event to the core and carries out what follows. The rules hear of both.
func (f *served) step(e core.Event) []core.Effect {
	now := f.scheduler.now()
	f.tickets.audit(now)
	f.scaling.before(e)
	effects := f.core.Step(now, e)
	f.doubt(e, effects)
	f.limits.happened(e, effects)
	f.tickets.happened(e, effects, now)
	for _, effect := range effects {
		f.carryOut(effect)
	}
	f.scaling.after(e, effects)
	return effects
}

// carryOut does what the core asks for.
func (f *served) carryOut(e core.Effect) {
	switch e := e.(type) {
	case *core.HandOut:
		f.mayTake()
		f.stream(e.CID).deliver(e.Ticket, e.Lent)
	case core.Recall:
		f.scheduler.note("takes loans back", uint64(f.fn.index), uint64(e.Calls))
		if p := f.stream(e.CID); p != nil {
			p.say(agentcore.Recall{Gateway: e.Gateway, Calls: e.Calls, Term: e.Term})
		}
	case *core.RanByLoan:
		f.counts(e.Calls)
	case core.Refuse:
		for _, t := range e.Tickets {
			f.scheduler.refuse(t, e.Why)
		}
	case core.Drain:
		f.stream(e.CID).retire(e.Reason)
	case core.Redirect:
		f.stream(e.CID).moved()
	case core.Adopt:
		f.adopt()
	case core.Release:
		f.inventory = inventory{}
	case core.Connect:
		f.inventory.find(e.CID).connected = true
	case core.Terminate:
		f.scheduler.note("lets an instance go", uint64(f.fn.index), uint64(len(e.Why)))
		// Of one whose worker is off the stream may be there for longer than itself.
		if gone := f.inventory.find(e.CID); gone != nil {
			f.letGo(gone, e.Why)
		}
	case core.Wake:
		f.awake = true
	case core.Park:
		f.rest(e)
	case core.RunNow:
		f.hurry(e)
	}
}

// counts looks at how many executions by loans a report tells of. One that another scheduler
// passes on may count some that this one has counted itself meanwhile.
func (f *served) counts(calls uint64) {
	if f.passedOn || f.scheduler.world.config.Adversarial {
		return
	}
	if f.fn.counted += calls; f.fn.counted > f.fn.byLoans {
		f.scheduler.world.violate(RuleReportsOnce, 0)
	}
}

// mayTake looks whether an instance may be handed a ticket.
func (f *served) mayTake() {
	if f.scheduler.lookup(f.fn) == nil {
		f.scheduler.world.violate(RuleDeletedTakesNothing, 0)
	}
}

// rest lets ticks pass over the function until it is woken, or a time comes.
func (f *served) rest(e core.Park) {
	f.awake = false
	f.alarms++
	if e.Until.IsZero() {
		return
	}
	mine := f.alarms
	f.scheduler.after(e.Until.Sub(f.scheduler.now()), func() {
		if f.alarms == mine {
			f.step(core.Woken{})
		}
	})
}

// hurry has a decision made before the next tick.
func (f *served) hurry(e core.RunNow) {
	if !e.Always && f.hasInstance() {
		return
	}
	n, life := f.scheduler.node, f.scheduler.life
	n.world.at(0, func() { n.do(life, false, f.triggered) })
}

func (f *served) triggered() {
	s := f.scheduler
	now := s.now()
	s.stood.Ran(now)
	urgent := s.placer.budget.LeftNow(now)
	if urgent == 0 || !f.core.NeedsRun(now, f.hasInstance()) || s.stood.Holding(now) {
		return
	}
	if c := f.consider(); c != nil {
		c.order(min(urgent, c.Wanted()))
		c.conclude(false)
	}
}

// letGo lets an instance go that has some time to end by itself.
func (f *served) letGo(e *entry, why core.TerminateReason) {
	e.leaving = true
	e.evicted = e.evicted || why == core.BecauseEvicted
	f.endWithin(e, capacity.EvictGrace)
}

// endWithin stops an instance that has not ended by itself in that time.
func (f *served) endWithin(e *entry, within time.Duration) {
	s := f.scheduler
	if e.ending {
		return
	}
	e.ending = true
	s.after(within, func() {
		if f.inventory.find(e.in.cid) == e {
			s.note("stops an instance that was let go", uint64(f.fn.index), 0)
			s.world.platform.stop(e.in)
		}
	})
}

// doubt notes that what the instances amount to may have changed by an event. Some change
// what others could have of it only in these ways.
func (f *served) doubt(e core.Event, effects []core.Effect) {
	switch e.(type) {
	case *core.Ticked, *core.Applied, core.ActivityAudited, core.GatewaysAudited, core.Woken, core.Paused:
		_, let := core.AnswerOf[core.Terminate](effects)
		f.doubted = f.doubted || let || f.core.Waiting() != f.waited
	default:
		f.doubted = true
	}
	f.waited = f.core.Waiting()
}

// stream is that of an instance which has joined.
func (f *served) stream(cid invocation.CID) *pullEnd {
	for _, p := range f.pulls {
		if p.cid == cid {
			return p
		}
	}
	return nil
}

// term is that in which a function is to be served here, if it is: as its owner, or for one
// that is silent.
func (s *scheduler) term(fn *function) invocation.Term {
	epoch, held := s.keeper.epoch(fn.slot)
	to, provisional, known := s.view.route(fn)
	switch {
	case held && (to.ID == s.name || to.Epoch <= epoch):
		return invocation.Term{Epoch: epoch}
	case !held && known && provisional && to.ID == s.name && s.keeper.ready() && !s.draining:
		return invocation.Term{Epoch: to.Epoch, Standby: "000" + s.name[1:]}
	}
	return core.Unserved
}

func (f *served) reconsider() {
	term := f.scheduler.term(f.fn.function)
	if term == f.core.Term() {
		return
	}
	f.scheduler.note("serves", uint64(f.fn.index), term.Epoch)
	f.servesSince = f.scheduler.world.now
	f.step(core.OwnershipChanged{Term: term})
}

// elsewhere is who serves a function, as far as is known here; its epoch is 0 if
// that is nobody else.
func (s *scheduler) elsewhere(fn *function) ownership.Owner {
	if to, _, known := s.view.route(fn); known && to.ID != s.name {
		return to
	}
	return ownership.Owner{}
}

// offer puts a ticket into its queue, or says why not.
func (f *served) offer(m offer, by *offerEnd) invocation.RefusalReason {
	f.reconsider()
	if !f.serving() {
		return invocation.RefusedNotOwner
	}
	w, now := f.scheduler.world, f.scheduler.now()
	w.truth.offered(m)
	t := invocation.Ticket{
		ID: m.id, Token: m.token, Gateway: by.gateway,
		Arrived: now.Add(-m.waited), Deadline: now.Add(m.remain),
	}
	if refused, is := core.AnswerOf[core.OfferRefused](f.step(&core.Offered{Ticket: t, Again: m.again, Jitter: w.rng.Float64()})); is {
		return refused.Why.Reason
	}
	return ""
}
