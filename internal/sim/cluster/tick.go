package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// tickDue is when the scheduler looks at every function that is not idle.
type tickDue struct{}

func (tickDue) happen(w *world) { w.scheduler.tick() }

// tick does what a tick of the scheduler does; see docs/architecture.md, "A tick".
func (s *scheduler) tick() {
	s.ticking = false
	s.planRoom()
	active := s.active
	s.active = s.spare[:0]
	all := s.considered[:0]
	for _, f := range active {
		f.listed = false
		if f.awake {
			all = s.consider(all, f)
		}
	}
	s.divide(all)
	for _, i := range inTurns(all) {
		s.conclude(&all[i], true)
	}
	s.settle()
	for _, f := range active {
		if f.awake {
			s.activate(f)
		}
	}
	clear(active)
	s.spare = active[:0]
	s.considered = all
}

// considered is a function that was decided on.
type considered struct {
	*core.Decided
	function *function
	// ordered is how many instances were ordered, and noRoom says that the last order
	// lacked room.
	ordered int
	noRoom  bool
}

// missing is how many instances could not be ordered.
func (c *considered) missing() int { return c.Wanted() - c.ordered }

// starved tells whether the function has no instance that works or comes.
func (c *considered) starved() bool { return c.Observed.Created+c.Observed.Creating+c.ordered == 0 }

// waited is for how long calls have waited for the function's first instance; 0 if none do.
func (c *considered) waited() time.Duration {
	return capacity.Waited(c.starved(), c.Snapshot.Waiting(), c.Snapshot.OldestWait)
}

// consider adds a function to those that were decided on, if there is something to decide.
func (s *scheduler) consider(all []considered, f *function) []considered {
	s.ticked.Observed = s.observe(f)
	d, is := core.AnswerOf[*core.Decided](s.step(f, &s.ticked))
	if is {
		all = append(all, considered{Decided: d, function: f})
	}
	return all
}

// observe is what a tick sees of a function. Nodes that are none at all have room of which
// nothing is known.
func (s *scheduler) observe(f *function) core.Observed {
	room := -1
	if len(s.world.config.Nodes) > 0 {
		room = s.planner.Room(shapeOf(f))
	}
	return core.Observed{Created: f.created, Creating: len(f.starting), Room: room, KindStart: s.kindStart(f)}
}

// divide orders what all functions want, in turns of their namespaces.
func (s *scheduler) divide(all []considered) {
	var wants []fairshare.Want
	var wanting []*considered
	for i := range all {
		if c := &all[i]; c.Wanted() > 0 {
			f := c.function
			wants = append(wants, fairshare.Want{
				Namespace: f.class.Namespace, Function: f.name, N: c.Wanted(),
				Cost: f.class.Requests.MilliCPU, Waited: c.waited(),
			})
			wanting = append(wanting, c)
		}
	}
	if len(wants) == 0 {
		return
	}
	round := s.budget.Allocate(wants, instant(s.now))
	for i, n, ok := round.Next(); ok; i, n, ok = round.Next() {
		round.Launched(s.order(wanting[i], n), n)
	}
}

// order orders up to n instances and returns how many could be had.
func (s *scheduler) order(c *considered, n int) int {
	c.noRoom = false
	f := c.function
	for i := range n {
		node, ok := s.planner.Place(f.name, shapeOf(f), s.picks.IntN)
		if !ok {
			c.noRoom = true
			return i
		}
		at := s.machineOf(node)
		s.machines[at].start(s.world, s.create(f, at))
		c.ordered++
	}
	return n
}

// inTurns are the indexes of functions in the order in which room is made for them.
func inTurns(all []considered) []int {
	turns := make([]capacity.Contender, len(all))
	for i := range all {
		turns[i] = capacity.Contender{Index: i, Namespace: all[i].function.class.Namespace, Waited: all[i].waited()}
	}
	if len(turns) > 1 {
		capacity.RoundRobin(turns)
	}
	order := make([]int, len(all))
	for i := range turns {
		order[i] = turns[i].Index
	}
	return order
}

// conclude follows up on a decision. Room is made only by ticks.
func (s *scheduler) conclude(c *considered, ticking bool) {
	f := c.function
	withdrawn := s.withdraw(f, c.Decision.Cancel)
	s.planner.Trim(f.name, c.missing())
	if c.noRoom && ticking {
		s.lackRoom(c)
	}
	s.concluded = core.Applied{Decided: c.Decided, Launched: c.ordered, Cancelled: withdrawn, NoRoom: c.noRoom}
	s.step(f, &s.concluded)
}

// withdraw takes back the youngest n instances that are under way.
func (s *scheduler) withdraw(f *function, n int) (withdrawn int) {
	for range min(n, len(f.starting)) {
		last := len(f.starting) - 1
		in := f.starting[last]
		f.starting = f.starting[:last]
		f.result.Withdrawn++
		s.dispose(in)
		withdrawn++
	}
	return withdrawn
}

// lackRoom follows up on orders that could not all be placed, as the scheduler does that
// has no peers.
func (s *scheduler) lackRoom(c *considered) {
	f, now := c.function, instant(s.now)
	if reserved := s.planner.Reserved(f.name); reserved > 0 && reserved >= c.missing() {
		return
	}
	s.gather(now)
	inVain := s.planner.MakeRoom(capacity.Want{
		UID: f.name, Namespace: f.class.Namespace, Shape: shapeOf(f),
		Missing: c.missing(), Starved: c.starved(), Waiting: c.Snapshot.Waiting(), OldestWait: c.Snapshot.OldestWait,
	}, now, s.evict)
	if inVain {
		s.step(f, core.NoRoomFound{Refusal: invocation.Refusal{Reason: invocation.RefusedNoCapacity}})
	}
}

// kicked decides on a function that need not wait for the next tick.
func (s *scheduler) kicked(f *function) {
	if !f.core.NeedsRun(instant(s.now), len(f.instances) > 0) {
		return
	}
	s.planRoom()
	for _, c := range s.consider(nil, f) {
		s.order(&c, min(s.budget.LeftNow(instant(s.now)), c.Wanted()))
		s.conclude(&c, false)
	}
}
