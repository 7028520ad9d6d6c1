package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// leaveGrace is how much longer than a call an instance may take to go.
const leaveGrace = time.Second

// finishTime is how long an instance may take to finish its calls and go.
func (f *function) finishTime() time.Duration { return f.timeout + leaveGrace }

// eachHears lets all servers that are up hear of a change of a function. Each hears of all
// changes of a name in their order, as catalog.Reader promises, but not when others do. One
// that starts meanwhile sees the function as it is.
func (w functionFaults) eachHears(servers []*node, fn *function, hear func(p program)) {
	for _, n := range servers {
		life := n.life
		n.news[fn.index] = max(n.news[fn.index], w.now+w.between(time.Millisecond, 100*time.Millisecond))
		w.at(n.news[fn.index]-w.now, func() {
			n.do(life, false, func() { hear(n.program) })
		})
	}
}

// changed tells all schedulers of a function's spec.
func (w functionFaults) changed(fn *function) {
	spec := fn.spec()
	w.eachHears(w.schedulers, fn, func(p program) {
		if f := p.(*scheduler).lookup(fn); f != nil {
			f.replace(spec)
		}
	})
}

// replace lets instances of other revisions finish and go. Those that are not there yet
// need not come.
func (f *served) replace(spec core.Spec) {
	if spec.Revision != f.core.Revision() {
		f.scheduler.note("hears of revision "+spec.Revision, uint64(f.fn.index), 0)
	}
	f.step(core.Changed{Spec: spec})
	for _, e := range slices.Clone(f.inventory.entries) {
		if e.in.revision != spec.Revision {
			f.end(e)
		}
	}
}

// end lets an instance that was retired finish what it runs and go. One that is being
// created is stopped.
func (f *served) end(e *entry) {
	created := e.pulled
	e.leaving = true
	f.doubted = true
	switch {
	case created:
		f.endWithin(e, f.fn.finishTime())
	case !e.ending:
		e.ending = true
		f.scheduler.world.platform.stop(e.in)
	}
}

const (
	// startGrace is how much longer than that an instance gets that was ordered, and
	// adoptPatience how long one has that was taken over.
	startGrace    = time.Second
	adoptPatience = 5 * time.Second
	// silencePatience is how long one that works may be without a stream.
	silencePatience = 10 * time.Second
)

// stopOverdue ends instances that should have been heard of.
func (s *scheduler) stopOverdue() {
	now := s.now()
	for _, f := range s.all() {
		for _, e := range slices.Clone(f.inventory.entries) {
			late := !e.pulled && now.After(e.startBy) || e.pulled && !e.connected && now.Sub(e.silentSince) > silencePatience
			if late && !e.leaving && !e.ending {
				e.ending = true
				s.world.mayBeLate(e.in)
				s.note("stops an instance that is overdue", uint64(f.fn.index), 0)
				s.world.platform.stop(e.in)
			}
		}
	}
}

// returnTime is how long an instance may take to come back once nothing is wrong.
const returnTime = 8 * time.Second

// mayBeLate looks whether an instance that is there should have been heard of.
func (w *World) mayBeLate(in *instance) {
	if in.ready && in.node.up() && !in.node.paused && w.calm && w.now > w.config.Duration+returnTime {
		w.violate(RuleComesBack, 0)
	}
}

// survey takes over the instances that two successive looks find and nobody knows here: the
// owner before may have ordered them when it had lost the function.
func (f *served) survey() {
	missed := f.missed
	f.missed = f.serving() && slices.ContainsFunc(f.scheduler.world.platform.instances, func(in *instance) bool {
		return in.fn == f.fn && f.inventory.find(in.cid) == nil
	})
	if missed && f.missed {
		f.adopt()
	}
}

// changeMax changes how many instances a function may have. Schedulers hear of it one
// after the other.
func (w functionFaults) changeMax() (func(), bool) {
	fn := pick(w.World, w.functions)
	if fn.max < w.config.MaxInstances {
		return nil, false
	}
	fn.max = 1 + w.rng.IntN(w.config.MaxInstances)
	w.changed(fn)
	return func() {
		now := w.functions[fn.index] // it may have been made again
		now.max = w.config.MaxInstances
		w.changed(now)
	}, true
}

// revise gives a function a new revision: its instances are replaced.
func (w functionFaults) revise() (func(), bool) {
	fn := pick(w.World, w.functions)
	if fn.deleted {
		return nil, false
	}
	fn.revision++
	w.note("world", "revises a function", uint64(fn.index), uint64(fn.revision))
	w.changed(fn)
	return nil, true
}

// deleteFunction deletes a function, which is made again under the same name.
func (w functionFaults) deleteFunction() (func(), bool) {
	fn := pick(w.World, w.functions)
	if fn.deleted {
		return nil, false
	}
	w.deleted(fn)
	return func() { w.remade(fn) }, true
}

// remade makes a function anew that was deleted, under the same name.
func (w functionFaults) remade(old *function) {
	fn := *old
	fn.uid, fn.deleted, fn.served = old.uid+"'", false, w.now
	w.functions[fn.index] = &fn
	w.note("world", "makes a function again", uint64(fn.index), 0)
	w.eachHears(w.schedulers, &fn, func(p program) {
		if s := p.(*scheduler); s.lookup(&fn) == nil {
			s.add(&fn)
		}
	})
	w.eachHears(w.gateways, &fn, func(p program) { p.(*gateway).knows(&fn, true) })
}

// deleted deletes a function.
func (w functionFaults) deleted(fn *function) {
	fn.deleted = true
	w.note("world", "deletes a function", uint64(fn.index), 0)
	w.eachHears(w.schedulers, fn, func(p program) {
		if s := p.(*scheduler); s.lookup(fn) != nil {
			s.remove(s.lookup(fn))
		}
	})
	w.eachHears(w.gateways, fn, func(p program) { p.(*gateway).knows(fn, false) })
	w.at(collectEvery, func() { w.platform.collect(fn) })
}

// collectEvery is how often the instances of functions that are gone are collected, of which
// no scheduler may know any more.
const collectEvery = 10 * time.Second

// collect ends what is left of a function that is gone.
func (p *platform) collect(fn *function) {
	for _, in := range slices.Clone(p.instances) {
		if in.fn == fn {
			p.stop(in)
		}
	}
	p.world.at(collectEvery, func() { p.collect(fn) })
}

// lookup is what the scheduler keeps of a function; nil if it does not know it.
func (s *scheduler) lookup(fn *function) *served {
	for _, f := range s.served {
		if f.fn == fn {
			return f
		}
	}
	return nil
}

// add begins to know a function.
func (s *scheduler) add(fn *function) {
	f := newServed(s, fn)
	s.served = append(s.served, f)
	f.step(core.Woken{})
}

// remove forgets a function: its instances finish and go, and what waits is refused.
func (s *scheduler) remove(f *served) {
	s.served = slices.DeleteFunc(s.served, func(other *served) bool { return other == f })
	s.closed = append(s.closed, f)
	f.awake = false
	f.alarms++
	f.step(core.Closed{Reason: "deleted", Refusal: invoke.Refusal{Reason: invoke.RefusedUnknownFunction}})
	for _, p := range f.pulls {
		if !f.core.Retired(p.cid) {
			s.world.violate(RuleDeletedTakesNothing, 0)
		}
	}
	if s.term(f.fn) != core.Unserved {
		f.adopt()
	}
	for _, e := range slices.Clone(f.inventory.entries) {
		f.end(e)
	}
}

// all are the functions that are known, and those that are not any more and have left
// instances.
func (s *scheduler) all() []*served {
	if len(s.closed) == 0 {
		return s.served
	}
	return slices.Concat(s.served, s.closed)
}

// forgetClosed drops functions that are gone with their instances, of which the planner
// hears once more.
func (s *scheduler) forgetClosed(usages map[string]capacity.Usage) {
	s.closed = slices.DeleteFunc(s.closed, func(f *served) bool {
		if len(f.inventory.entries) > 0 || len(f.pulls) > 0 {
			return false
		}
		usages[f.fn.uid] = capacity.Usage{}
		return true
	})
}

// knows notes that a function is there, or was deleted.
func (g *gateway) knows(fn *function, there bool) {
	known := g.functions[fn.index]
	switch {
	case there == (known == fn):
		return
	case there:
		g.functions[fn.index] = fn
	default:
		g.functions[fn.index] = nil
	}
	if known != nil {
		g.gone[fn.index] = g.now()
	}
}

// deleted tells whether a call's function is gone.
func (g *gateway) deleted(c *call) bool { return g.functions[c.fn.index] != c.fn }
