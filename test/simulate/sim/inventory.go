package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// inventory is what a scheduler believes of a function's instances, in the order in which
// it learnt of them.
type inventory struct{ entries []*entry }

// entry is one instance.
type entry struct {
	in       *instance
	launched time.Time
	// adopted says that another scheduler has started it, and ran that it ran then.
	adopted, ran bool
	// pulled says that it has asked for work, connected that its stream is there, heard
	// that it ever was, and leaving that it goes.
	pulled, connected, heard, leaving bool
	// evicted says that others need its room.
	evicted bool
	// startBy is when it must have asked for work, and silentSince when its stream ended.
	startBy, silentSince time.Time
	// ending says that it is stopped, if it does not end by itself.
	ending bool
	// wasSpare says that a function has taken it. spare is its stream if it is one now, and
	// can be taken.
	wasSpare bool
	spare    *spareEnd
}

func (v *inventory) find(cid invocation.CID) *entry {
	for _, e := range v.entries {
		if e.in.cid == cid {
			return e
		}
	}
	return nil
}

func (v *inventory) remove(cid invocation.CID) {
	v.entries = slices.DeleteFunc(v.entries, func(e *entry) bool { return e.in.cid == cid })
}

// count is what a tick sees.
func (v *inventory) count() (o core.Observed) {
	for _, e := range v.entries {
		switch {
		case e.leaving:
		case !e.pulled:
			o.Creating++
			if e.ran && !e.connected {
				o.Awaited++
			}
		case e.connected:
			o.Created++
		}
	}
	return o
}

// adopt takes over the instances that there are. To do it twice does no harm.
func (f *served) adopt() {
	f.doubted = true
	for _, in := range f.scheduler.world.platform.instances {
		if in.fn == f.fn && f.inventory.find(in.cid) == nil {
			f.inventory.entries = append(f.inventory.entries, &entry{
				in: in, adopted: true, ran: in.node != nil, startBy: f.scheduler.now().Add(adoptPatience),
			})
		}
	}
}

func (f *served) hasInstance() bool {
	o := f.inventory.count()
	return o.Created+o.Creating > 0
}

// pulledBy notes that an instance asks for work, and tells the core how long it took to
// start if it was launched here.
func (f *served) pulledBy(cid invocation.CID) {
	e := f.inventory.find(cid)
	if e == nil || e.pulled || e.leaving {
		return
	}
	e.pulled, e.in.ready, f.doubted, f.failing = true, true, true, false
	f.fn.hasStarted()
	took := time.Duration(0)
	if !e.adopted && !e.wasSpare {
		took = f.scheduler.now().Sub(e.launched)
	}
	f.step(core.Started{Took: took})
}

// ended hears that an instance is gone.
func (f *served) ended(in *instance) {
	e := f.inventory.find(in.cid)
	if e == nil {
		return
	}
	f.inventory.remove(in.cid)
	if e.pulled || e.adopted || e.leaving {
		f.step(core.InstanceEnded{})
		return
	}
	f.failing = f.failing || !in.unplaced
	f.step(core.StartFailed{
		Blameless: in.unplaced, OthersExist: f.hasInstance(),
		Refusal: invocation.Refusal{Reason: invocation.RefusedCannotStart},
	})
}

// considered is a function that was decided on.
type considered struct {
	*core.Decided
	served    *served
	term      invocation.Term
	launched  int
	cancelled int
	// noRoom says that the last order found no room.
	noRoom bool
}

// missing is how many instances could not be launched.
func (c *considered) missing() int { return c.Missing(c.launched) }

// starved tells whether the function has no instance that works or comes.
func (c *considered) starved() bool { return c.Observed.Created+c.Observed.Creating+c.launched == 0 }

// waited is for how long calls have waited for the function's first instance; 0 if none do.
func (c *considered) waited() time.Duration {
	return capacity.Waited(c.starved(), c.Snapshot.Waiting(), c.Snapshot.OldestWait)
}

// consider decides, or returns nil if there is nothing to decide.
func (f *served) consider() *considered {
	f.reconsider()
	o, p := f.inventory.count(), f.scheduler.placer
	o.Failing, o.Room = f.failing, p.planner.Room(p.shape(f.fn.function))
	_, o.Unconfirmed = f.scheduler.keeper.core.Unconfirmed(f.scheduler.now())
	d, is := core.AnswerOf[*core.Decided](f.step(&core.Ticked{Observed: o}))
	if !is {
		return nil
	}
	return &considered{Decided: d, served: f, term: f.core.Term()}
}

// divide orders what all functions want, in turns of their namespaces.
func (s *scheduler) divide(all []*considered) {
	var wants []fairshare.Want
	var wanting []*considered
	for _, c := range all {
		if n := c.Wanted(); n > 0 {
			fn := c.served.fn
			wants = append(wants, fairshare.Want{
				Namespace: fn.namespace, Function: fn.uid, N: n, Cost: fn.requests.MilliCPU,
				Waited: c.waited(), Last: c.Proves(),
			})
			wanting = append(wanting, c)
		}
	}
	if len(wants) == 0 {
		return
	}
	round := s.placer.budget.Allocate(wants, s.now())
	for i, ok := round.Next(); ok; i, ok = round.Next() {
		round.Launched(wanting[i].order(1) == 1)
	}
}

// inTurns are functions in the order in which room is made for them.
func inTurns(all []*considered) []*considered {
	turns := make([]capacity.Contender, len(all))
	for i, c := range all {
		turns[i] = capacity.Contender{Index: i, Namespace: c.served.fn.namespace, Waited: c.waited(), Last: c.Proves()}
	}
	capacity.RoundRobin(turns)
	sorted := make([]*considered, len(all))
	for i, t := range turns {
		sorted[i] = all[t.Index]
	}
	return sorted
}

// order orders up to n instances, and returns how many could be had: spare ones, and others
// that have room.
func (c *considered) order(n int) (had int) {
	f, s := c.served, c.served.scheduler
	c.noRoom = false
	had = c.takeSpares(n)
	for had < n {
		at := s.placer.place(f)
		if at == nil {
			c.noRoom = true
			break
		}
		had++
		f.mayOrder()
		f.order(f.nextName(c.term), at)
	}
	s.placer.budget.Spend(s.now(), had)
	c.launched += had
	return had
}

// nextName is the next name that no instance has which is known here.
func (f *served) nextName(term invocation.Term) invocation.CID {
	for {
		f.sequence++
		if cid := term.CID(f.sequence); f.inventory.find(cid) == nil {
			return cid
		}
	}
}

// mayOrder looks whether one more instance may be launched now.
func (f *served) mayOrder() {
	f.scaling.orders()
	f.scheduler.placer.rules.orders(f.scheduler.placer)
}

// order orders one instance on a worker.
func (f *served) order(cid invocation.CID, at *worker) {
	s := f.scheduler
	s.note("orders an instance", uint64(f.fn.index), f.sequence)
	in := &instance{cid: cid, fn: f.fn, owner: s.name, worker: at, by: s}
	f.inventory.entries = append(f.inventory.entries, &entry{in: in, launched: s.now(), startBy: s.now().Add(startupTimeout + startGrace)})
	f.doubted = true
	if known := s.world.platform.create(in); known != in {
		f.inventory.find(cid).in = known
	}
}

// conclude follows up on a decision. Room is made only by ticks.
func (c *considered) conclude(ticking bool) {
	f, p := c.served, c.served.scheduler.placer
	c.cancelLaunches()
	p.planner.Trim(f.fn.uid, c.missing())
	if c.noRoom && ticking {
		p.lackRoom(c)
	}
	if ticking {
		p.rules.ticked(p, c)
	}
	f.step(&core.Applied{Decided: c.Decided, Launched: c.launched, Cancelled: c.cancelled, NoRoom: c.noRoom})
}

// cancelLaunches ends instances that are being created and not needed any more, the youngest
// first: those of which nothing was heard yet, and then those that wait for their
// function.
func (c *considered) cancelLaunches() {
	f := c.served
	for _, heard := range []bool{false, true} {
		for i := len(f.inventory.entries) - 1; i >= 0 && c.cancelled < c.Decision.Cancel; i-- {
			e := f.inventory.entries[i]
			if e.pulled || e.leaving || e.ran || e.wasSpare || e.heard != heard || heard && !e.connected {
				continue
			}
			c.cancelled++
			f.scheduler.note("cancels an instance", uint64(f.fn.index), 0)
			e.leaving, f.doubted = true, true
			if heard {
				f.step(core.DrainRequested{CID: e.in.cid, Reason: "it is not wanted any more"})
			} else {
				f.scheduler.world.platform.stop(e.in)
			}
		}
	}
}
