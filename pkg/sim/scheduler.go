package sim

import (
	"cmp"
	"time"

	"github.com/windlass-dev/windlass/pkg/estimate"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// Times of a scheduler, as pkg/scheduler has them.
const (
	auditEvery = 250 * time.Millisecond
	tickEvery  = 100 * time.Millisecond
	staleAfter = 100 * time.Millisecond
	claimGrace = 2 * time.Second
	avoidFor   = 5 * time.Second
	// holdAfter is how long a new owner creates nothing, so that the instances
	// that there are can say hello.
	holdAfter = time.Second
	// lingers is how long one that has given its slots away stays, to say who
	// has them.
	lingers   = 3 * time.Second
	maxQueued = 64
)

// scheduler is the part of a scheduler that decides: queues, estimates, the
// decider and the keeper of the product, and around them what its shell does.
type scheduler struct {
	*node
	view    *directory
	keeper  *keeper
	served  []*served
	offerer []*offerEnd
}

// served is what a scheduler keeps of one function.
type served struct {
	scheduler  *scheduler
	fn         *function
	queue      *queue.Queue
	tickets    *tickets
	executions *estimate.LastN
	starts     *estimate.LastN
	memory     fpcs.Memory
	// decided is when that was last done; zero if it was not.
	decided time.Time
	lost    int
	// term is that in which the function is served; its Epoch is 0 while it is
	// not.
	term    invoke.Term
	serving bool
	// held is the last epoch in which the slot was held, and history that of
	// etcd which it is from.
	held    uint64
	history int
	since   time.Time
	ordered uint64
	pulls   []*pullEnd
}

func newScheduler(n *node) *scheduler {
	s := &scheduler{node: n}
	s.view = newDirectory(n, s.reconsider)
	for _, fn := range n.world.functions {
		q := queue.New(queue.Limits{MaxWaiting: maxQueued, ClaimGrace: claimGrace, AvoidFor: avoidFor})
		s.served = append(s.served, &served{
			scheduler: s, fn: fn, executions: estimate.NewLastN(10), starts: estimate.NewLastN(10),
			queue: q, tickets: newTickets(n.world, q, fn.concurrency),
		})
	}
	s.keeper = newKeeper(s)
	return s
}

func (s *scheduler) boot() {
	s.view.boot()
	s.keeper.boot()
	s.every(auditEvery, s.reconsider)
	s.every(tickEvery, s.tick)
}

// reconsider compares what is served with what should be.
func (s *scheduler) reconsider() {
	for _, f := range s.served {
		f.reconsider()
	}
}

// should tells whether the function is to be served here, and in which term: as
// its owner, or for one that is silent.
func (f *served) should() (invoke.Term, bool) {
	s := f.scheduler
	epoch, held := s.keeper.epoch(f.fn.slot)
	if held && epoch != f.held {
		f.held, f.history = epoch, s.keeper.history
	}
	to, provisional, known := s.view.route(f.fn)
	switch {
	case held && (to.ID == s.name || to.Epoch <= epoch):
		return invoke.Term{Epoch: epoch}, true
	case !held && known && provisional && to.ID == s.name && s.keeper.ready() && !s.draining:
		return invoke.Term{Epoch: to.Epoch, Heir: "000" + s.name[1:]}, true
	}
	return invoke.Term{}, false
}

func (f *served) reconsider() {
	term, should := f.should()
	if should == f.serving && term == f.term {
		return
	}
	s := f.scheduler
	if !should {
		s.note("serves no more", uint64(f.fn.index), f.term.Epoch)
		f.serving, f.term = false, term
		f.dismiss()
		return
	}
	s.note("serves", uint64(f.fn.index), term.Epoch)
	if !f.serving {
		f.since = s.now()
	}
	f.serving, f.term, f.ordered = true, term, 0
}

// dismiss sends the instances to the new owner and refuses what waits.
func (f *served) dismiss() {
	for _, p := range f.pulls {
		f.leave(p.cid)
		p.moved()
	}
	f.pulls = nil
	f.tickets.cleared()
	for _, t := range f.queue.Clear() {
		f.scheduler.refuse(t, invoke.RefusedNotOwner)
	}
	f.lost = 0
}

// elsewhere is who serves the function, as far as is known here; its epoch is 0 if
// that is nobody else.
func (f *served) elsewhere() ownership.Owner {
	if to, _, known := f.scheduler.view.route(f.fn); known && to.ID != f.scheduler.name {
		return to
	}
	return ownership.Owner{}
}

// accept answers whoever opens a stream.
func (s *scheduler) accept(c *stream, what any) sink {
	switch what := what.(type) {
	case openOffers:
		o := &offerEnd{scheduler: s, gateway: what.gateway, forwarded: what.forwarded, stream: c}
		s.offerer = append(s.offerer, o)
		return o
	case openPull:
		return &pullEnd{scheduler: s, served: s.served[what.fn], cid: what.cid, stream: c}
	case openSlots:
		return &slotsEnd{scheduler: s, stream: c}
	case openBeats:
		return &beatEnd{scheduler: s, stream: c}
	}
	return nil
}

// beatEnd answers beats.
type beatEnd struct {
	scheduler *scheduler
	stream    *stream
}

func (b *beatEnd) opened() {}

func (b *beatEnd) take(m any) {
	s := b.scheduler
	if _, asks := m.(askSlots); asks {
		b.stream.send(s.node, slots{known: s.view.owners.Clone()})
		return
	}
	b.stream.send(s.node, beatReply{serving: s.keeper.ready() && !s.draining, epoch: s.view.lastEpoch()})
}

func (b *beatEnd) closed(closing) {}

// offer puts a ticket into its queue, or says why not.
func (f *served) offer(m offer, gateway string) invoke.RefusalReason {
	f.reconsider()
	if !f.serving {
		return invoke.RefusedNotOwner
	}
	f.scheduler.world.ledger.offered(m)
	now := f.scheduler.now()
	t := invoke.Ticket{
		ID: m.id, Token: m.token, Gateway: gateway,
		Arrived: now.Add(-m.waited), Deadline: now.Add(m.remain),
	}
	if m.request {
		t.Request = true
	}
	f.tickets.audit(now)
	if err := f.queue.Offer(t, now); err != nil {
		return invoke.RefusedQueueFull
	}
	f.tickets.offered(t, now)
	f.match()
	return ""
}

// match is where tickets meet pulls.
func (f *served) match() {
	now := f.scheduler.now()
	f.queue.Match(now, func(cid invoke.CID, t invoke.Ticket) {
		f.tickets.handed(cid, t, now)
		for _, p := range f.pulls {
			if p.cid == cid {
				p.deliver(t)
			}
		}
	})
}

// tick decides for all functions how many instances to create.
func (s *scheduler) tick() {
	for _, f := range s.served {
		if f.serving {
			f.tick()
		}
	}
}

func (f *served) tick() {
	s := f.scheduler
	f.match()
	now := s.now()
	v := f.queue.View(now)
	created, creating := s.world.platform.count(f.fn)
	if now.Sub(f.since) < holdAfter || v.Waiting == 0 && f.lost == 0 && creating == 0 {
		return
	}
	snapshot := fpcs.Snapshot{
		Arrived: v.Arrived, Departed: v.Departed, Stale: f.queue.Stale(now, staleAfter), OldestWait: v.OldestWait,
		Created: created, Busy: min(v.Busy, created), Creating: creating, Lost: f.lost,
		Room: -1, Concurrency: f.fn.concurrency,
		MeanExecution: f.executions.Mean(), MeanStart: f.starts.Mean(), Memory: f.memory,
	}
	if !f.decided.IsZero() {
		snapshot.Elapsed = now.Sub(f.decided)
	}
	f.lost = 0
	params := fpcs.Params{Tick: tickEvery, StaleAfter: staleAfter}
	d := fpcs.Bound(f.fn.decide(snapshot, params), snapshot, fpcs.Limits{Max: s.world.config.MaxInstances})
	f.memory, f.decided = d.Next, now
	s.world.platform.withdraw(f.fn, d.Withdraw, s)
	for range d.Create {
		f.ordered++
		s.world.platform.create(f.fn, f.term.CID(f.ordered), s)
	}
}

// audit looks at all queues.
func (s *scheduler) audit() Rule {
	for _, f := range s.served {
		v := f.queue.View(s.now())
		f.tickets.audit(s.now())
		switch {
		case v.Arrived-v.Departed != uint64(v.Waiting):
			return RuleQueueCounts
		case f.executions.Mean() > f.fn.timeout:
			return RuleMeanIsPossible
		case v.Waiting > 0 && !f.serving:
			return RuleServerHasTickets
		}
		if f.serving && f.term.Heir == "" {
			s.world.ledger.hold(s.node, f.fn, f.history, f.term.Epoch)
		}
	}
	return cmp.Or(s.view.audit(), s.keeper.audit())
}

// openPull is what an instance opens to a scheduler: it says who it is.
type openPull struct {
	fn  int
	cid invoke.CID
}
