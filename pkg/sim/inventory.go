package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// inventory is what a scheduler believes of a function's instances, in the order in which
// it learnt of them.
type inventory struct{ entries []*entry }

// entry is one instance.
type entry struct {
	in      *instance
	ordered time.Time
	// adopted says that another scheduler has started it, and ran that it ran then.
	adopted, ran bool
	// pulled says that it has asked for work, connected that its stream is there, heard
	// that it ever was, and leaving that it goes.
	pulled, connected, heard, leaving bool
}

func (v *inventory) find(cid invoke.CID) *entry {
	for _, e := range v.entries {
		if e.in.cid == cid {
			return e
		}
	}
	return nil
}

func (v *inventory) remove(cid invoke.CID) {
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
	for _, in := range f.scheduler.world.platform.instances {
		if in.fn == f.fn && f.inventory.find(in.cid) == nil {
			f.inventory.entries = append(f.inventory.entries, &entry{in: in, adopted: true, ran: in.node != nil})
		}
	}
}

func (f *served) hasInstance() bool {
	o := f.inventory.count()
	return o.Created+o.Creating > 0
}

// pulledBy notes that an instance asks for work, and tells the core how long it took to
// start if it was ordered here.
func (f *served) pulledBy(cid invoke.CID) {
	e := f.inventory.find(cid)
	if e == nil || e.pulled || e.leaving {
		return
	}
	e.pulled, e.in.ready = true, true
	took := time.Duration(0)
	if !e.adopted {
		took = f.scheduler.now().Sub(e.ordered)
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
		f.step(core.Ended{})
		return
	}
	f.step(core.StartFailed{
		Revision: f.core.Revision(), Others: f.hasInstance(),
		Refusal: invoke.Refusal{Reason: invoke.RefusedCannotStart},
	})
}

// considered is a function that was decided on.
type considered struct {
	*core.Decided
	served    *served
	term      invoke.Term
	ordered   int
	withdrawn int
	noRoom    bool
}

// consider decides, or returns nil if there is nothing to decide.
func (f *served) consider() *considered {
	f.reconsider()
	o := f.inventory.count()
	o.Room = -1
	if f.scheduler.world.full {
		o.Room = 0
	}
	_, o.Orphan = f.scheduler.keeper.core.Orphan(f.scheduler.now())
	d, is := core.AnswerOf[*core.Decided](f.step(&core.Ticked{Observed: o}))
	if !is {
		return nil
	}
	return &considered{Decided: d, served: f, term: f.core.Term()}
}

// order orders as many instances as are wanted and have room.
func (c *considered) order() {
	f, w := c.served, c.served.scheduler.world
	for range c.Wanted() {
		if w.full {
			c.noRoom = true
			return
		}
		c.ordered++
		f.scaling.orders()
		f.sequence++
		f.order(c.term.CID(f.sequence))
	}
}

// order orders one instance. Now and then that is one of a warm pool which is not to be
// had after all.
func (f *served) order(cid invoke.CID) {
	s := f.scheduler
	w := s.world
	s.note("orders an instance", uint64(f.fn.index), f.sequence)
	in := &instance{cid: cid, fn: f.fn, owner: s.name}
	f.inventory.remove(cid)
	f.inventory.entries = append(f.inventory.entries, &entry{in: in, ordered: s.now()})
	if w.faulty() && w.chance(0.03) {
		s.after(w.between(time.Millisecond, 50*time.Millisecond), func() {
			if e := f.inventory.find(cid); e != nil && e.in == in {
				s.note("takes no spare instance", uint64(f.fn.index), 0)
				f.inventory.remove(cid)
				f.step(core.Untaken{})
			}
		})
		return
	}
	if known := w.platform.create(in); known != in {
		f.inventory.find(cid).in = known
	}
}

// conclude follows up on a decision.
func (c *considered) conclude() {
	c.withdraw()
	c.served.step(&core.Concluded{Decided: c.Decided, Ordered: c.ordered, Withdrawn: c.withdrawn, NoRoom: c.noRoom})
}

// withdraw ends instances that are being created and not wanted any more, the youngest
// first: those of which nothing was heard yet, and then those that wait for their
// function.
func (c *considered) withdraw() {
	f := c.served
	for _, heard := range []bool{false, true} {
		for i := len(f.inventory.entries) - 1; i >= 0 && c.withdrawn < c.Decision.Withdraw; i-- {
			e := f.inventory.entries[i]
			if e.pulled || e.leaving || e.ran || e.heard != heard || heard && !e.connected {
				continue
			}
			c.withdrawn++
			f.scheduler.note("withdraws an instance", uint64(f.fn.index), 0)
			e.leaving = true
			if heard {
				f.step(core.Discharged{CID: e.in.cid, Reason: "it is not wanted any more"})
			} else {
				f.scheduler.world.platform.withdraw(e.in)
			}
		}
	}
}
