package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// How many instances a scheduler may order a second, and at once.
const (
	orderRate  = 2
	orderBurst = 4
)

// patience is for how long nothing may move on the workers until calls are refused for want
// of room: less long than they wait, and time enough to ask a peer twice.
const patience = 4500 * time.Millisecond

// placer is who gets room on the workers: the product's, and around it what its shell does.
type placer struct {
	scheduler *scheduler
	planner   *capacity.Planner
	budget    *capacity.Budget
	borrower  capacity.Borrower
	lender    capacity.Lender
	rules     roomRules
}

func newPlacer(s *scheduler) *placer {
	return &placer{
		scheduler: s, budget: capacity.NewBudget(orderRate, orderBurst), borrower: capacity.NewBorrower(s.name),
		planner: capacity.New(capacity.Config{
			Tick: s.config.Tick, EvictAfter: capacity.DefaultEvictAfter, Patience: patience, Spares: true,
		}),
	}
}

// shape is what the room for an instance of a function depends on: all may run on all
// workers, which the planner knows from then on.
func (p *placer) shape(fn *function) capacity.Shape {
	if !p.planner.Observed("") {
		p.planner.Observe("", p.scheduler.candidates())
		p.rules.looked = p.scheduler.world.now
	}
	return capacity.Shape{Requests: fn.requests}
}

// begin begins a tick of the planner, which learns what has gone since the last one.
func (p *placer) begin(now time.Time) {
	s := p.scheduler
	for _, key := range p.planner.Leaving() {
		there := func(f *served) bool { return f.fn.uid == key.FunctionUID && f.inventory.find(key.CID) != nil }
		spare := s.spares.unit.uid == key.FunctionUID && s.spares.inventory.find(key.CID) != nil
		if !spare && !slices.ContainsFunc(s.all(), there) {
			p.planner.Left(key)
		}
	}
	for _, uid := range p.planner.Reserving() {
		if f := s.of(uid); f == nil || !f.serving() {
			p.planner.Trim(uid, 0)
		}
	}
	p.planner.BeginTick(now)
}

// place picks a worker for an instance that is launched now; nil if none has room.
func (p *placer) place(f *served) *worker {
	name, ok := p.planner.Place(f.fn.uid, p.shape(f.fn.function), p.scheduler.world.rng.IntN)
	if !ok {
		return nil
	}
	at := p.scheduler.world.workerOf(name)
	p.rules.placed(p, f, at)
	return at
}

// lackRoom makes room for orders that could not all be placed, and refuses what waits if
// that does not work.
func (p *placer) lackRoom(c *considered) {
	f, now := c.served, p.scheduler.now()
	if p.planner.CouldHold(p.shape(f.fn.function)) {
		p.blockRefill(now)
	}
	if reserved := p.planner.Reserved(f.fn.uid); reserved > 0 && reserved >= c.missing() {
		return
	}
	p.gather(now)
	w := capacity.Want{
		UID: f.fn.uid, Namespace: f.fn.namespace, Shape: p.shape(f.fn.function),
		Missing: c.missing(), Starved: c.starved(), Waiting: c.Snapshot.Waiting(), OldestWait: c.Snapshot.OldestWait,
	}
	before := p.planner.Reserved(f.fn.uid)
	inVain := p.planner.MakeRoom(w, now, func(e capacity.Evict) bool {
		p.rules.evicts(p, w, e)
		return p.evict(e)
	})
	p.rules.made(p, w, before)
	if inVain && !p.borrower.MayGrant(w.Shape, now) {
		p.rules.givesUp(p, f)
		p.scheduler.note("gives calls up for want of room", uint64(f.fn.index), uint64(w.OldestWait))
		f.step(core.NoRoomFound{Refusal: invocation.Refusal{Reason: invocation.RefusedNoCapacity}})
	}
}

// lack asks other schedulers for room that could not be made.
func (p *placer) lack() {
	lacks := p.planner.Shortages()
	if len(lacks)+len(p.rules.lacks) == 0 {
		return
	}
	p.rules.lacks = make(map[capacity.Shape]int, len(lacks))
	for _, l := range lacks {
		p.rules.lacks[l.Shape] = l.Instances
	}
	p.borrower.SetShortages(lacks)
}

// blockRefill keeps the pool from growing while others lack room that a worker could have.
func (p *placer) blockRefill(now time.Time) { p.scheduler.spares.blockedUntil = now.Add(blockedFor) }

// lend makes room for functions of other schedulers.
func (p *placer) lend(now time.Time) {
	s := p.scheduler
	asked := p.lender.Requests(now)
	if len(asked) == 0 && len(p.rules.lent) == 0 {
		return
	}
	made, loans := make(map[string]map[string]capacity.Grant), make(map[capacity.Loan]int)
	for i := range asked {
		a := &asked[i]
		if made[a.Peer] == nil {
			made[a.Peer] = make(map[string]capacity.Grant)
		}
		made[a.Peer][a.UID] = capacity.Grant{Exhausted: true}
		if f := s.of(a.UID); f != nil {
			a.Shape = p.shape(f.fn.function)
			loan := capacity.Loan{Peer: a.Peer, Shape: a.Shape}
			loans[loan] = max(loans[loan], a.Instances)
		}
	}
	p.rules.lent = loans
	if p.planner.TrimLoans(loans) {
		p.blockRefill(now)
		p.gather(now)
	}
	for _, a := range asked {
		f := s.of(a.UID)
		if f == nil {
			continue
		}
		made[a.Peer][a.UID] = p.planner.Lend(capacity.Loan{Peer: a.Peer, Shape: a.Shape}, a.Instances, a.Waited, now,
			func(e capacity.Evict) bool {
				s.note("makes room for a peer", uint64(f.fn.index), 0)
				p.rules.evictsFor(p, a, e)
				return p.evict(e)
			})
		p.rules.lends(p, f, a, made[a.Peer][a.UID])
	}
	p.lender.SetGrants(made)
}

// evict lets an instance go, unless it has been needed since it was looked at.
func (p *placer) evict(e capacity.Evict) bool {
	if e.Spare {
		spare := p.scheduler.spares.inventory.find(e.CID)
		spare.evicted = true
		p.scheduler.spares.stop(spare)
		return true
	}
	f := p.scheduler.of(e.FunctionUID)
	if f == nil {
		return false
	}
	_, let := core.AnswerOf[core.Terminate](f.step(core.EvictRequested{CID: e.CID, IdleFor: e.For, Reason: string(core.BecauseEvicted)}))
	if let {
		p.scheduler.note("makes room", uint64(f.fn.index), uint64(e.For))
	}
	return let
}

// gather lets the planner know of instances that may be evicted, once in a tick.
func (p *placer) gather(now time.Time) {
	if !p.planner.Gathered() {
		p.handInUsage(now)
		p.planner.Gather(now)
		p.rules.gathered(p)
	}
}

// handInUsage hands in the usage of all functions of which something may have changed.
func (p *placer) handInUsage(now time.Time) {
	s := p.scheduler
	usages := make(map[string]capacity.Usage)
	for _, uid := range p.planner.Due(now) {
		if i := slices.IndexFunc(s.all(), func(f *served) bool { return f.fn.uid == uid }); i >= 0 {
			s.all()[i].doubted = true
		} else {
			usages[uid] = capacity.Usage{}
		}
	}
	for _, f := range s.all() {
		if f.doubted {
			f.doubted = false
			usages[f.fn.uid] = f.usage(now)
		}
	}
	s.forgetClosed(usages)
	usages[s.spares.unit.uid] = s.spares.usage()
	p.planner.Update(usages)
}

// mistrust has all usage handed in again when it is next needed.
func (p *placer) mistrust() {
	p.rules.known(p)
	p.planner.Invalidate()
	for _, f := range p.scheduler.all() {
		f.doubted = true
	}
}

// usage is what the instances of a function amount to.
func (f *served) usage(now time.Time) (u capacity.Usage) {
	created := 0
	for _, e := range f.inventory.entries {
		if !e.pulled || e.leaving {
			u.Moving = append(u.Moving, e.in.worker.name)
		}
		if !e.leaving {
			created++
		}
	}
	if created == 0 {
		return u
	}
	u.Namespace, u.MilliCPU = f.fn.namespace, f.fn.requests.MilliCPU*int64(created)
	idle, until := f.core.Evictable(now, 0)
	u.Until = until
	for _, i := range idle {
		if e := f.inventory.find(i.CID); e != nil && e.pulled && !e.leaving {
			u.Idle = append(u.Idle, capacity.Idle{
				Key: capacity.Key{FunctionUID: f.fn.uid, CID: i.CID}, Node: e.in.worker.name,
				Requests: f.fn.requests, Namespace: f.fn.namespace, Since: i.Since,
			})
		}
	}
	return u
}

// Peers talk about room with the beats.

// asks is what another scheduler is asked for with the next beat. Shapes are not told.
func (p *placer) asks(peer string) []capacity.Shortage {
	now := p.scheduler.now()
	lacks := p.borrower.RequestsTo(peer, now)
	p.rules.asks(p, peer, lacks)
	for i := range lacks {
		lacks[i].Shape = capacity.Shape{}
	}
	return lacks
}

// answered hears what another scheduler has made of what it was asked for.
func (p *placer) answered(peer string, room map[string]capacity.Grant) {
	var made map[capacity.Shape]capacity.Grant
	if len(room) > 0 {
		made = make(map[capacity.Shape]capacity.Grant, len(room))
	}
	for uid, m := range room {
		if f := p.scheduler.of(uid); f != nil {
			made[capacity.Shape{Requests: f.fn.requests}] = m
		}
	}
	p.borrower.RecordGrants(peer, made, p.scheduler.now())
}
