package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner/share"
	"github.com/windlass-dev/windlass/pkg/scheduler/upkeep"
)

// maxOrders bounds the instances that are ordered in one tick, as in the scheduler.
const maxOrders = 1024

// scheduler does what the scheduler of Windlass does, for all functions.
type scheduler struct {
	*world
	shares share.Shares

	// active are the functions that the next tick looks at, and ticking says that
	// there will be one; spare and considered are memory that ticks use again.
	active, spare []*function
	considered    []considered
	ticking       bool
}

// activate lets the next tick look at a function.
func (s *scheduler) activate(f *function) {
	if f.active {
		return
	}
	f.active = true
	s.active = append(s.active, f)
	if !s.ticking {
		s.ticking = true
		tick := s.config.Scheduler.Tick
		s.agenda.plan(s.now.Truncate(tick)+tick, tickDue{})
	}
}

// tickDue is when the scheduler looks at every function that is not idle. There are
// ticks only while there is one.
type tickDue struct{}

func (tickDue) happen(w *world) { w.scheduler.tick() }

func (s *scheduler) tick() {
	s.ticking = false
	active := s.active
	s.active = s.spare[:0]
	all := s.considered[:0]
	for _, f := range active {
		f.active = false
		all = append(all, s.consider(f))
	}
	s.divide(all)
	var known idleness
	for i := range all {
		s.conclude(&all[i], &known)
	}
	clear(active)
	s.spare = active[:0]
	s.considered = all
}

// considered is a function that was decided on.
type considered struct {
	function *function
	snapshot fpcs.Snapshot
	decision fpcs.Decision
	// limits are what the decision was bound by.
	limits  fpcs.Limits
	upkeep  upkeep.Upkeep
	ordered int
	noRoom  bool
}

func (s *scheduler) consider(f *function) considered {
	view := f.view(s.now)
	seen := fpcs.Snapshot{
		Arrived: view.Arrived, Departed: view.Departed, OldestWait: view.OldestWait, Stale: s.stale(f),
		Created: f.created, Busy: view.Busy, Creating: len(f.starting),
		Room: s.room(f), Concurrency: f.class.Concurrency,
		MeanExecution: f.executions.Mean(), MeanStart: s.meanStart(f),
		Memory: f.memory,
	}
	if f.hasDecision {
		seen.Elapsed = s.now - f.decided
	}
	c := considered{function: f, snapshot: seen, upkeep: s.upkeep(f)}
	c.limits = f.limits(c.upkeep)
	c.decision = fpcs.Bound(f.decider(s.world)(seen, s.params()), seen, c.limits)
	f.memory, f.decided, f.hasDecision = c.decision.Next, s.now, true
	f.again = c.decision.Again
	s.result.Decisions++
	if s.config.Observe != nil {
		s.config.Observe(s.now, f.index, seen, c.decision)
	}
	return c
}

func (s *scheduler) params() fpcs.Params {
	return fpcs.Params{Tick: s.config.Scheduler.Tick, StaleAfter: s.config.Scheduler.StaleAfter}
}

// room is how many more instances the nodes have room for; negative if without end.
func (s *scheduler) room(f *function) int {
	if len(s.config.Nodes) == 0 {
		return -1
	}
	return s.nodes.Room(f.class.Requests)
}

// wanted is how many instances to order. Where the decider asks for none only for want
// of room, one is, to find out whether room can be made.
func (c *considered) wanted() int {
	s, d := c.snapshot, c.decision
	short := d.Create == 0 && d.Why == fpcs.ReasonNoRoom && s.Waiting() > 0
	if short && (c.limits.Max == 0 || s.Created+s.Creating < c.limits.Max) {
		return 1
	}
	return d.Create
}

// divide orders what all functions want, in turns of their namespaces.
func (s *scheduler) divide(all []considered) {
	var wants []share.Want
	var wanting []*considered
	for i := range all {
		if c, n := &all[i], all[i].wanted(); n > 0 {
			f := c.function
			wants = append(wants, share.Want{
				Namespace: f.class.Namespace, Function: f.name, N: n, Cost: f.class.Requests.MilliCPU,
			})
			wanting = append(wanting, c)
		}
	}
	if len(wants) == 0 {
		return
	}
	round := s.shares.Begin(wants, maxOrders)
	for i, n, ok := round.Next(); ok; i, n, ok = round.Next() {
		round.Took(s.order(wanting[i], n), n)
	}
}

// order orders up to n instances and returns how many could be had.
func (s *scheduler) order(c *considered, n int) int {
	for i := range n {
		node := s.nodes.Pick(c.function.class.Requests, s.picks.IntN)
		if node < 0 {
			c.noRoom = true
			return i
		}
		s.revive(c.function)
		s.machines[node].start(s.world, s.create(c.function, node))
		c.ordered++
	}
	return n
}

// conclude follows up on a decision. Room is made only by ticks.
func (s *scheduler) conclude(c *considered, known *idleness) {
	f, d := c.function, c.decision
	if d.Withdraw > 0 {
		s.withdraw(f, d.Withdraw)
	}
	f.blocked = c.wanted() > 0 && c.ordered == 0
	if c.noRoom && c.ordered == 0 && known != nil {
		s.lackRoom(c, known)
	}
	s.releaseIdle(c)
	if d.Create > 0 || c.snapshot.Waiting() > 0 || c.snapshot.Creating > 0 {
		s.activate(f)
	} else {
		s.sleep(c)
	}
}

// lackRoom follows up on orders of which none could be placed, as the scheduler does.
func (s *scheduler) lackRoom(c *considered, known *idleness) {
	f := c.function
	if c.snapshot.Created+c.snapshot.Creating > 0 {
		if c.snapshot.Waiting() > 0 {
			s.makeRoom(f, known, true)
		}
		return
	}
	if !s.makeRoom(f, known, false) && c.snapshot.OldestWait >= s.config.Scheduler.NoRoomPatience {
		for _, t := range f.queue.Clear() {
			s.refuse(t.Request.(*call))
		}
		s.noteQuiet(f)
		s.rest(f)
	}
}

// kick lets a function be looked at now that has calls and no instance, or whose
// decider asked to see the next call that comes.
func (s *scheduler) kick(f *function) {
	if f.blocked || f.created+len(f.starting) > 0 && !f.eager(s.now) {
		return
	}
	c := s.consider(f)
	s.order(&c, min(maxOrders, c.wanted()))
	s.conclude(&c, nil)
}

// eager tells whether a call that comes now is reason not to wait for the next tick.
func (f *function) eager(now time.Duration) bool { return f.again > 0 && now-f.decided >= f.again }

// stale is how many of those that wait have waited for long.
func (s *scheduler) stale(f *function) int {
	if f.queue == nil {
		return 0
	}
	return f.queue.Stale(instant(s.now), s.config.Scheduler.StaleAfter)
}
