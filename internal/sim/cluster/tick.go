package cluster

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// tickDue is when the scheduler looks at every function that is not idle.
type tickDue struct{}

func (tickDue) run(w *world) { w.scheduler.tick() }

// tick does what a tick of the scheduler does; see docs/architecture.md, "A tick".
func (s *scheduler) tick() {
	s.ticking = false
	s.planRoom()
	active := s.active
	s.active = s.spare[:0]
	all := s.evaluations[:0]
	for _, f := range active {
		f.listed = false
		if f.awake {
			all = s.evaluate(all, f)
		}
	}
	s.allocate(all)
	for _, i := range inTurns(all) {
		s.applyDecision(&all[i], true)
	}
	s.settle()
	for _, f := range active {
		if f.awake {
			s.activate(f)
		}
	}
	clear(active)
	s.spare = active[:0]
	s.evaluations = all
}

// evaluation is a function that was decided on.
type evaluation struct {
	*core.Decided
	function *function
	// launched is how many instances were launched, and noRoom says that the last launch
	// lacked room.
	launched int
	noRoom   bool
}

// missing is how many instances could not be launched.
func (c *evaluation) missing() int { return c.Missing(c.launched) }

// starved tells whether the function has no instance that works or comes.
func (c *evaluation) starved() bool { return c.Observed.Created+c.Observed.Creating+c.launched == 0 }

// waited is for how long calls have waited for the function's first instance; 0 if none do.
func (c *evaluation) waited() time.Duration {
	return capacity.Waited(c.starved(), c.Snapshot.Waiting(), c.Snapshot.OldestWait)
}

// evaluate adds a function to those that were decided on, if there is something to decide.
func (s *scheduler) evaluate(all []evaluation, f *function) []evaluation {
	s.ticked.Observed = s.observation(f)
	d, is := core.AnswerOf[*core.Decided](s.step(f, &s.ticked))
	if is {
		all = append(all, evaluation{Decided: d, function: f})
	}
	return all
}

// observation is what a tick observes of a function. The room of a simulation without nodes is
// unknown.
func (s *scheduler) observation(f *function) core.Observed {
	room := -1
	if len(s.world.config.Nodes) > 0 {
		room = s.planner.Room(shapeOf(f))
	}
	return core.Observed{Created: f.created, Creating: len(f.starting), Room: room, NodesBusy: s.allOrdered(), KindStart: s.kindStart(f)}
}

// allOrdered reports whether calls ask for cores on all nodes: such nodes are taken for busy.
func (s *scheduler) allOrdered() bool {
	return len(s.world.config.Nodes) > 0 && !slices.ContainsFunc(s.world.config.Nodes, func(n Nodes) bool { return n.Order == nil })
}

// allocate orders what all functions want, in turns of their namespaces.
func (s *scheduler) allocate(all []evaluation) {
	var wants []fairshare.Want
	var wanting []*evaluation
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
	for i, ok := round.Next(); ok; i, ok = round.Next() {
		round.Launched(s.launch(wanting[i], 1) == 1)
	}
}

// launch orders up to n instances and returns how many could be had.
func (s *scheduler) launch(c *evaluation, n int) int {
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
		c.launched++
	}
	return n
}

// inTurns are the indexes of functions in the order in which room is made for them.
func inTurns(all []evaluation) []int {
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

// applyDecision follows up on a decision. Room is made only by ticks.
func (s *scheduler) applyDecision(c *evaluation, ticking bool) {
	f := c.function
	cancelled := s.cancelLaunches(f, c.Decision.Cancel)
	s.planner.Trim(f.name, c.missing())
	if c.noRoom && ticking {
		s.lackRoom(c)
	}
	s.concluded = core.Applied{Decided: c.Decided, Launched: c.launched, Cancelled: cancelled, NoRoom: c.noRoom}
	s.step(f, &s.concluded)
}

// cancelLaunches takes back the youngest n instances that are under way.
func (s *scheduler) cancelLaunches(f *function, n int) (cancelled int) {
	for range min(n, len(f.starting)) {
		last := len(f.starting) - 1
		in := f.starting[last]
		f.starting = f.starting[:last]
		f.result.Cancelled++
		s.dispose(in)
		cancelled++
	}
	return cancelled
}

// lackRoom follows up on orders that could not all be placed, as the scheduler does that
// has no peers.
func (s *scheduler) lackRoom(c *evaluation) {
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

// runNow decides on a function that need not wait for the next tick.
func (s *scheduler) runNow(f *function) {
	if !f.core.NeedsRun(instant(s.now), len(f.instances) > 0) {
		return
	}
	s.planRoom()
	for _, c := range s.evaluate(nil, f) {
		s.launch(&c, min(s.budget.LeftNow(instant(s.now)), c.Wanted()))
		s.applyDecision(&c, false)
	}
}
