package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
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

// change brings what is asked of the unit now. The rest of a spec never changes.
func (f *served) change(spec core.Spec) {
	was := f.core.Spec()
	if spec.Calls == was.Calls && spec.Min == was.Min && spec.Max == was.Max && spec.IdleTimeout == was.IdleTimeout && spec.KeepLast == was.KeepLast {
		return
	}
	f.scheduler.note("hears of a change", uint64(f.fn.index), uint64(spec.Max))
	f.step(core.SpecChanged{Spec: spec})
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
	// startGrace is how much longer than that an instance gets that was launched, and
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

// mayBeLate looks whether an instance that is there should have been heard of. One that waits
// at another scheduler need not: an owner and who stood in for it may not know of each other
// yet, for beats of a slow clock are seconds apart.
func (w *World) mayBeLate(in *instance) {
	late := in.ready && in.node.up() && !in.node.paused && w.calm && w.now > w.config.Duration+returnTime
	waits := slices.ContainsFunc(w.schedulers, func(n *node) bool { return n.up() && n.program.(*scheduler).has(in) })
	if late && !waits {
		w.violate(RuleComesBack, 0)
	}
}

// survey takes over the instances that two successive looks find and nobody knows here: the
// owner before may have launched them when it had lost the function.
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
	f := pick(w.World, w.functions)
	if f.api == nil || f.most() < w.config.MaxInstances {
		return nil, false
	}
	set := func(most int) {
		f.write(func(s *v1alpha1.FunctionSpec) { s.Scaling.MaxInstances = new(int32(most)) })
	}
	set(1 + w.rng.IntN(w.config.MaxInstances))
	return func() { set(w.config.MaxInstances) }, true
}

// most is how many instances it may have.
func (f *function) most() int { return int(*f.api.Spec.Scaling.MaxInstances) }

// revise lets an author deploy something. Often it is not right, and something else follows.
func (w functionFaults) revise() (func(), bool) {
	f := pick(w.World, w.functions)
	if f.api == nil {
		return nil, false
	}
	for w.chance(0.5) {
		w.at(w.between(100*time.Millisecond, 3*time.Second), func() {
			if !w.calm && f.api != nil {
				f.deployNew()
			}
		})
	}
	return w.change(f)
}

// change lets the author write a new revision, a former one, one that is broken, one in
// steps; or part the calls.
func (w functionFaults) change(f *function) (func(), bool) {
	switch x := w.rng.Float64(); {
	case x < 0.35:
		f.deployNew()
	case x < 0.5:
		f.deploy(decimal(max(1, f.image-1)))
	case x < 0.65:
		f.image++
		f.deploy(brokenImage + decimal(f.image))
		return f.deployNew, true
	case x < 0.9:
		f.write(func(s *v1alpha1.FunctionSpec) {
			s.Traffic = nil
			s.Rollout.Strategy, s.Rollout.Steps = v1alpha1.RolloutSteps, steps
		})
		f.deployNew()
	default:
		return w.part(f)
	}
	return nil, true
}

// steps are those that a function takes from some time on.
var steps = []v1alpha1.RolloutStep{
	{Weight: 30, Hold: v1alpha1.Duration{Duration: time.Second}}, {Weight: 60, Hold: v1alpha1.Duration{Duration: 2 * time.Second}},
}

// part lets the author part the calls between the latest revision and one that had all.
func (w functionFaults) part(f *function) (func(), bool) {
	served := pick(w.World, slices.DeleteFunc(slices.Clone(f.revisions), func(r *v1alpha1.FunctionRevision) bool {
		return r.Status.FullTrafficTime.IsZero() || !r.Proven()
	}))
	if served == nil {
		return nil, false
	}
	f.write(func(s *v1alpha1.FunctionSpec) {
		s.Rollout.Strategy, s.Rollout.Steps = v1alpha1.RolloutImmediate, nil
		s.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", RevisionName: served.Name, Weight: 70}, {Tag: "next", Weight: 30}}
	})
	return func() { f.write(func(s *v1alpha1.FunctionSpec) { s.Traffic = nil }) }, true
}

// leaveAlone takes the controller away.
func (w functionFaults) leaveAlone() (func(), bool) {
	if w.uncontrolled {
		return nil, false
	}
	w.uncontrolled = true
	return func() { w.uncontrolled = false }, true
}

// deleteFunction deletes a function, which is made again under the same name.
func (w functionFaults) deleteFunction() (func(), bool) {
	f := pick(w.World, w.functions)
	if f.api == nil {
		return nil, false
	}
	w.note("world", "deletes a function", uint64(f.index), 0)
	f.api, f.revisions = nil, nil
	f.publish()
	return func() {
		w.note("world", "makes a function again", uint64(f.index), 0)
		f.served, f.server = w.now, nil
		f.make()
	}, true
}

// collectEvery is how often instances are collected of which no scheduler may know any more.
const collectEvery = 10 * time.Second

// collect ends what is left of revisions that are gone, and what the controller finds left
// of others, again and again.
func (p *platform) collect() {
	for _, in := range slices.Clone(p.instances) {
		if !in.fn.exists() || in.leftOver(p.world.controllerNow()) {
			p.stop(in)
		}
	}
	p.world.at(collectEvery, p.collect)
}

// leftOver tells whether the instance must be gone by now, as the controller sees it.
func (in *instance) leftOver(now time.Time) bool {
	switch {
	case in.fn.world.uncontrolled:
		return false
	case in.fn.pool:
		return in.node == nil && !now.Before(warmpool.LeaveBy(start.Add(in.launched), startupTimeout))
	case in.fn.entry == nil:
		return false
	}
	for _, r := range in.fn.revisions {
		if string(r.UID) == in.fn.uid {
			deadline, left := in.fn.entry.LeaveBy(r, start.Add(in.launched))
			return left && !now.Before(deadline)
		}
	}
	return false
}

// exists tells whether there is a record of the unit's revision.
func (u *unit) exists() bool {
	return slices.ContainsFunc(u.revisions, func(r *v1alpha1.FunctionRevision) bool { return string(r.UID) == u.uid })
}

// lookup is what the scheduler keeps of a unit; nil if it does not know it.
func (s *scheduler) lookup(fn *unit) *served {
	for _, f := range s.served {
		if f.fn == fn {
			return f
		}
	}
	return nil
}

// add begins to know a unit. Of one that comes back, the next survey finds the instances
// that are still there.
func (s *scheduler) add(fn *unit, spec core.Spec) {
	s.closed = slices.DeleteFunc(s.closed, func(f *served) bool { return f.fn == fn })
	f := newServed(s, fn, spec)
	s.served = append(s.served, f)
	f.step(core.Woken{})
}

// remove forgets a function: its instances finish and go, and what waits is refused.
func (s *scheduler) remove(f *served) {
	s.served = slices.DeleteFunc(s.served, func(other *served) bool { return other == f })
	s.closed = append(s.closed, f)
	f.awake = false
	f.alarms++
	f.step(core.Closed{Reason: "deleted", Refusal: invocation.Refusal{Reason: invocation.RefusedUnknownFunction}})
	for _, p := range f.pulls {
		if !f.core.Draining(p.cid) {
			s.world.violate(RuleDeletedTakesNothing, 0)
		}
	}
	if s.term(f.fn.function) != core.Unserved {
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
