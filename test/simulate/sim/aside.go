package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// asideFault is a fault that a random stream of its own plans: a seed in which it does not strike goes as it would
// if there were no such fault. So most seeds outlive a new kind.
type asideFault struct {
	kind string
	// from is which part of the duration is over before it strikes.
	from   float64
	strike func(c *chaos, r *rand.Rand) (end func(), struck bool)
}

var asideFaults = []asideFault{
	{"starts-fail", 0, (*chaos).failStarts},
	{"etcd-rolled-back", 0.7, (*chaos).rollBack},
}

// asideIn says how rare each of them is: it strikes in one seed of asideIn.
const asideIn = 4

// asideStream is the random stream of a fault, or nil if it does not strike in this simulation.
func (c Config) asideStream(kind string) *rand.Rand {
	number := slices.IndexFunc(asideFaults, func(f asideFault) bool { return f.kind == kind })
	r := rand.New(rand.NewPCG(c.Seed, uint64(number)))
	if strikes := r.IntN(asideIn) == 0; !strikes || c.Faults == 0 {
		return nil
	}
	return r
}

// planAside plans the faults that have streams of their own.
func (c *chaos) planAside() {
	for _, f := range asideFaults {
		r := c.config.asideStream(f.kind)
		if r == nil {
			continue
		}
		for range 1 + r.IntN(3) {
			at := time.Duration((f.from + (1-f.from)*r.Float64()) * float64(c.config.Duration))
			lasts := time.Second + time.Duration(r.Int64N(int64(7*time.Second)))
			c.at(at, func() {
				c.happen(f.kind, func(c *chaos) (func(), bool) { return f.strike(c, r) }, func() time.Duration { return lasts })
			})
		}
	}
}

// mostFailed is how many starts fail at most before others succeed.
const mostFailed = 4

// failStarts lets the next starts of a function fail, as while a quota is full. Spare instances that it takes
// have started already.
func (c *chaos) failStarts(r *rand.Rand) (func(), bool) {
	if c.failing != nil {
		return nil, false
	}
	c.failing, c.failures = c.functions[r.IntN(len(c.functions))], 1+r.IntN(mostFailed)
	return func() { c.failing = nil }, true
}

// failsToStart tells whether a start of a unit's instance fails now.
func (w *World) failsToStart(fn *unit) bool {
	if w.failing != fn.function || w.failures == 0 {
		return false
	}
	w.failures--
	return true
}

// noticedWithin is within what time a restore is noticed: at the latest by the listing instead of a comparison, of a
// node whose clock is slow.
const noticedWithin = 2 * coordinator.RelistAfter * recheckEvery

// rollBack lets a scheduler stop and start again, and etcd lose the write that gives it a function back, with what
// follows for a moment, as one that is restored from a backup does. No watch ends: each waits for a revision that it
// has not seen.
func (c *chaos) rollBack(r *rand.Rand) (func(), bool) {
	e, n := c.etcd, c.schedulers[r.IntN(len(c.schedulers))]
	if len(c.schedulers) == 1 || e.loses != nil || !n.up() || n.draining {
		return nil, false
	}
	c.tellToStop(n)
	e.arm(comesBack, func(before *coordinator.Store) {
		c.at(time.Duration(r.Int64N(int64(time.Second))), func() {
			c.note("etcd", "loses its last writes", uint64(before.Revision()), uint64(e.store.Revision()))
			e.loses = nil
			e.replace(before, noticedWithin)
			e.store.RenewAll(e.now())
			c.disturbFor(e.noticed - c.now)
		})
	})
	return nil, true
}

// comesBack is how long a scheduler that stops may take until it has started again and has functions.
const comesBack = 15 * time.Second
