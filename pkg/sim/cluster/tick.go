package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner/share"
	"github.com/windlass-dev/windlass/pkg/scheduler/upkeep"
)

// maxOrders bounds the instances that are ordered in one tick, as in the scheduler.
const maxOrders = 1024

// activate lets the next tick look at a function.
func (w *world) activate(f *function) {
	if f.active {
		return
	}
	f.active = true
	w.active = append(w.active, f)
	if !w.ticking {
		w.ticking = true
		tick := w.config.Scheduler.Tick
		w.agenda.plan(w.now.Truncate(tick)+tick, tickDue{})
	}
}

// tickDue is when the scheduler looks at every function that is not idle. There are
// ticks only while there is one.
type tickDue struct{}

func (tickDue) happen(w *world) {
	w.ticking = false
	active := w.active
	w.active = w.spare[:0]
	all := w.considered[:0]
	for _, f := range active {
		f.active = false
		all = append(all, w.consider(f))
	}
	w.divide(all)
	var known idleness
	for i := range all {
		w.conclude(&all[i], &known)
	}
	clear(active)
	w.spare = active[:0]
	w.considered = all
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

func (w *world) consider(f *function) considered {
	view := f.view(w.now)
	s := fpcs.Snapshot{
		Arrived: view.Arrived, Departed: view.Departed, OldestWait: view.OldestWait, Stale: w.stale(f),
		Created: f.created, Busy: view.Busy, Creating: len(f.starting),
		Room: w.room(f), Concurrency: f.class.Concurrency,
		MeanExecution: f.executions.Mean(), MeanStart: w.meanStart(f),
		Memory: f.memory,
	}
	if f.hasDecision {
		s.Elapsed = w.now - f.decided
	}
	c := considered{function: f, snapshot: s, upkeep: w.upkeep(f)}
	c.limits = f.limits(c.upkeep)
	c.decision = fpcs.Bound(f.decider(w)(s, w.params()), s, c.limits)
	f.memory, f.decided, f.hasDecision = c.decision.Next, w.now, true
	f.again = c.decision.Again
	w.result.Decisions++
	if w.config.Observe != nil {
		w.config.Observe(w.now, f.index, s, c.decision)
	}
	return c
}

func (w *world) params() fpcs.Params {
	return fpcs.Params{Tick: w.config.Scheduler.Tick, StaleAfter: w.config.Scheduler.StaleAfter}
}

// room is how many more instances the nodes have room for; negative if without end.
func (w *world) room(f *function) int {
	if len(w.config.Nodes) == 0 {
		return -1
	}
	return w.nodes.Room(f.class.Requests)
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
func (w *world) divide(all []considered) {
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
	round := w.shares.Begin(wants, maxOrders)
	for i, n, ok := round.Next(); ok; i, n, ok = round.Next() {
		round.Took(w.order(wanting[i], n), n)
	}
}

// order orders up to n instances and returns how many could be had.
func (w *world) order(c *considered, n int) int {
	for i := range n {
		node := w.nodes.Pick(c.function.class.Requests, w.picks.IntN)
		if node < 0 {
			c.noRoom = true
			return i
		}
		w.revive(c.function)
		w.machines[node].start(w, w.create(c.function, node))
		c.ordered++
	}
	return n
}

// conclude follows up on a decision. Room is made only by ticks.
func (w *world) conclude(c *considered, known *idleness) {
	f, d := c.function, c.decision
	if d.Withdraw > 0 {
		w.withdraw(f, d.Withdraw)
	}
	f.blocked = c.wanted() > 0 && c.ordered == 0
	if c.noRoom && c.ordered == 0 && known != nil {
		w.lackRoom(c, known)
	}
	w.releaseIdle(c)
	if d.Create > 0 || c.snapshot.Waiting() > 0 || c.snapshot.Creating > 0 {
		w.activate(f)
	} else {
		w.sleep(c)
	}
}

// lackRoom follows up on orders of which none could be placed, as the scheduler does.
func (w *world) lackRoom(c *considered, known *idleness) {
	f := c.function
	if c.snapshot.Created+c.snapshot.Creating > 0 {
		if c.snapshot.Waiting() > 0 {
			w.makeRoom(f, known, true)
		}
		return
	}
	if !w.makeRoom(f, known, false) && c.snapshot.OldestWait >= w.config.Scheduler.NoRoomPatience {
		for _, t := range f.queue.Clear() {
			w.refuse(t.Request.(*call))
		}
		w.noteQuiet(f)
		w.rest(f)
	}
}

// kick lets a function be looked at now that has calls and no instance, or whose
// decider asked to see the next call that comes.
func (w *world) kick(f *function) {
	if f.blocked || f.created+len(f.starting) > 0 && !f.eager(w.now) {
		return
	}
	c := w.consider(f)
	w.order(&c, min(maxOrders, c.wanted()))
	w.conclude(&c, nil)
}

// eager tells whether a call that comes now is reason not to wait for the next tick.
func (f *function) eager(now time.Duration) bool { return f.again > 0 && now-f.decided >= f.again }

// stale is how many of those that wait have waited for long.
func (w *world) stale(f *function) int {
	if f.queue == nil {
		return 0
	}
	return f.queue.Stale(instant(w.now), w.config.Scheduler.StaleAfter)
}
