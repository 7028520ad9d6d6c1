package sim

import (
	"math/rand/v2"
	"time"
)

// asideFault is a fault that a random stream of its own plans: a seed in which it does not strike goes as it would
// if there were no such fault. So most seeds outlive a new kind.
type asideFault struct {
	kind   string
	strike func(c *chaos, r *rand.Rand) (end func(), struck bool)
}

var asideFaults = []asideFault{
	{"starts-fail", (*chaos).failStarts},
}

// asideIn is in how many seeds each of them strikes: in one of so many.
const asideIn = 4

// planAside plans the faults that have streams of their own.
func (c *chaos) planAside() {
	if c.config.Faults == 0 {
		return
	}
	for number, f := range asideFaults {
		r := rand.New(rand.NewPCG(c.config.Seed, uint64(number)))
		if r.IntN(asideIn) > 0 {
			continue
		}
		for range 1 + r.IntN(3) {
			at, lasts := time.Duration(r.Int64N(int64(c.config.Duration))), time.Second+time.Duration(r.Int64N(int64(7*time.Second)))
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
