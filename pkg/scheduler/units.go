package scheduler

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// Most functions are idle, so what a scheduler keeps of an idle one is small. A function rests while
// ticks pass over it and no agent has a stream: it has no unitSpec then, only the catalog's packed entry,
// which is opened when it is needed. A function that had a stream rests from the next audit on, when
// no handler of its streams runs any more.

// unitSpec is a revision's function with values that ticks use again and again. It is replaced,
// never changed.
type unitSpec struct {
	// entry is kept so that all who use the spec share it; nil for a warm pool.
	entry *rollout.Entry
	fn    *v1alpha1.Function
	// shape says which nodes fit an instance, and shareKey names the function among those of its
	// namespace that take turns for room.
	shape    capacity.Shape
	shareKey string
}

// opener makes the specs of units when they are needed.
type opener struct {
	requests Requests
	// runtimes is nil if there are none.
	runtimes Runtimes
}

func (o *opener) unitSpecOf(entry *rollout.Entry, fn *v1alpha1.Function) *unitSpec {
	return &unitSpec{entry: entry, fn: fn, shape: shapeOf(fn, o.requests), shareKey: cmp.Or(fn.FunctionRevisionName(), fn.Name)}
}

// mayUseSpares reports whether functions of a ClusterRuntime may use spare instances. Shares of warm
// pools are computed again and again from all such functions, so these do not rest.
func (o *opener) mayUseSpares(kind string) bool {
	if o.runtimes == nil || kind == "" {
		return false
	}
	rt, known := o.runtimes.Get(kind)
	return known && len(rt.Spec.WarmPools) > 0
}

// outline is what reports, metrics and audits need of every unit again and again, so that they open
// none for it.
type outline struct {
	key        invocation.FunctionKey
	revision   string
	generation int64
	// kind is that of kindOf.
	kind string
}

func outlineOf(fn *v1alpha1.Function) outline {
	return outline{key: fn.Key(), revision: fn.Revision(), generation: fn.Generation, kind: kindOf(fn)}
}

// news is a unit of an entry that the catalog has sent.
type news struct {
	entry  *rollout.Entry
	packed *catalog.Packed[rollout.Entry] // nil if the catalog does not pack
	fn     *v1alpha1.Function
}

// accept replaces the spec. The caller holds the lock.
func (u *unit) accept(n news) {
	u.unitSpec, u.packed, u.outline = u.opener.unitSpecOf(n.entry, n.fn), n.packed, outlineOf(n.fn)
}

// acceptIfSame reports whether a unit says what the present one does, and if so goes on with its entry: the
// one before takes memory as long as somebody keeps it.
func (u *unit) acceptIfSame(n news) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before := u.specLocked().fn; before != n.fn && !equality.Semantic.DeepEqual(before, n.fn) {
		return false
	}
	if u.packed = n.packed; u.unitSpec != nil {
		u.unitSpec = u.opener.unitSpecOf(n.entry, n.fn)
	}
	return true
}

// specLocked is the present spec, which is not kept while the unit rests. The caller holds the lock.
func (u *unit) specLocked() *unitSpec {
	if u.unitSpec != nil {
		return u.unitSpec
	}
	entry := u.packed.Open()
	at := slices.IndexFunc(entry.Units, func(fn *v1alpha1.Function) bool { return uidOf(fn) == u.uid })
	return u.opener.unitSpecOf(entry, entry.Units[at]) // accept has got it from there
}

// settle lets the unit rest if nothing is to be done for it, and keeps its spec if something is.
// The caller holds the lock.
func (u *unit) settle() {
	u.met = u.met || len(u.streams) > 0
	switch {
	case u.met || !u.core.IsParked() || u.packed == nil:
		u.unitSpec = u.specLocked()
	case u.unitSpec != nil && !u.opener.mayUseSpares(u.kind):
		u.unitSpec = nil
	}
}

// keepOpen is the latest version of a function, which stays open while it may use spare instances.
func (u *unit) keepOpen() *v1alpha1.Function {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unitSpec = u.specLocked()
	return u.unitSpec.fn
}

// forgetStreams lets a function rest again that had streams.
func (u *unit) forgetStreams() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.met {
		u.met = false
		u.settle()
	}
}

// readOutline is what is known of the unit without opening it.
func (u *unit) readOutline() outline {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.outline
}

// functionChanged applies a change of the catalog: each unit of a function is served
// separately.
func (s *Scheduler) functionChanged(e catalog.Event) {
	var units []*v1alpha1.Function
	if e.Entry != nil {
		units = e.Entry.Units
	}
	why := reasonDeleted
	if e.Entry != nil {
		why = reasonUnused
	}
	// Removed units go first: another one may have the same number.
	for _, uid := range s.shell.units.setUnits(e.UID, units) {
		s.removeUnit(uid, why)
	}
	for _, unit := range units {
		n := news{e.Entry, e.Packed, unit}
		switch u := s.shell.lookup(uidOf(unit)); {
		case u == nil:
			s.addUnit(n)
		case !u.acceptIfSame(n): // otherwise another unit of the function has changed
			s.updateUnit(u, n)
		}
	}
}

func (s *Scheduler) addUnit(n news) {
	u := s.shell.newUnit(n)
	s.shell.units.add(u)
	u.mu.Lock()
	defer u.mu.Unlock()
	s.shell.markDirty(u)
	s.shell.stepLocked(u, core.Woken{})
}

// updateUnit applies a unit's new share of the calls or new bounds. What an instance runs does
// not change: another revision is another unit. The start back-off is reset if the author has
// changed the function, but not by a rollout.
func (s *Scheduler) updateUnit(u *unit, n news) {
	spec := s.shell.specOf(n.fn)
	u.mu.Lock()
	changed := u.generation != n.fn.Generation
	u.accept(n)
	s.shell.stepLocked(u, core.SpecChanged{Spec: spec})
	u.mu.Unlock()
	if changed {
		s.shell.deps.Instances.ResetBackoff(u.uid)
	}
}

// removeUnit removes a unit: its instances are drained, and its waiting calls are refused.
func (s *Scheduler) removeUnit(uid, why string) {
	u := s.shell.units.remove(uid, s.shell.deps.Now())
	if u == nil {
		return
	}
	s.shell.timers.set(u, time.Time{})
	s.shell.step(u, core.Closed{Reason: why, Refusal: invocation.Refusal{Reason: invocation.RefusedUnknownFunction, Detail: why}})
	if s.shell.slots.term(u.slot) != notServed {
		s.shell.deps.Instances.Adopt(u.fn())
	}
	for _, in := range s.shell.deps.Instances.Instances(u.uid) {
		s.shell.terminate(in, drainTime(u.fn()))
	}
	s.shell.deps.Instances.Forget(u.uid)
	s.reporter.decisions.removeFunction(uid)
}

const (
	reasonDeleted = "the function was deleted"
	reasonUnused  = "the revision is not in use any more"
)
