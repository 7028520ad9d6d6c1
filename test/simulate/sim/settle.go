package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

func slotKey(fn *function) coordinator.Key { return coordinator.Key{Slot: fn.slot} }

// settling is what follows when no fault is left.
type settling struct{ *World }

// settle lets time pass until everything has come to rest, and says what has not
// if that takes too long.
func (w settling) settle() {
	end := w.now + w.config.Settling
	for w.violation == nil {
		w.until(w.now + time.Second)
		if w.etcd.loses != nil {
			continue
		}
		open := w.unsettled()
		if open == "" {
			if open = w.probe(); open == "" {
				return
			}
		}
		if w.now >= max(end, w.etcd.noticed) {
			w.describe()
			w.violate(open, 0)
		}
	}
}

// unsettled says what has not come to rest; empty if all has.
func (w settling) unsettled() Rule {
	for _, n := range w.gateways {
		if !n.up() || len(n.program.(*gateway).calls) > 0 {
			return RuleAllAnswered
		}
	}
	for _, in := range w.truth.calls {
		if in.answer == unanswered {
			return RuleAllAnswered
		}
	}
	if w.config.Adversarial {
		return ""
	}
	for _, fn := range w.functions {
		if open := w.unsettledFunction(fn); open != "" {
			return open
		}
	}
	if open := w.unsettledLoans(); open != "" {
		return open
	}
	return w.unsettledPool()
}

// unsettledPool looks at the spare instances of all schedulers.
func (w settling) unsettledPool() Rule {
	there, ready := 0, 0
	for _, in := range w.platform.instances {
		if in.fn.pool {
			there++
		}
	}
	for _, n := range w.schedulers {
		for _, e := range n.program.(*scheduler).spares.present() {
			if e.connected {
				ready++
			}
		}
	}
	if there > w.config.Spares || w.ample() && ready < w.config.Spares {
		return RulePoolKept
	}
	return ""
}

// ample tells whether there is room for all instances that there may be.
func (w settling) ample() bool {
	most, room := int64(w.config.Spares)*pooled.MilliCPU, int64(0)
	for _, fn := range w.functions {
		most += int64(fn.most()) * fn.requests.MilliCPU
	}
	for _, at := range w.workers {
		room += at.cores.MilliCPU
	}
	return most <= room
}

// probes is how many calls at a time show that a function is served again: more than it
// may have instances.
const probes = 5

// roomComes is in how much time there is room for a function's first instance, and its calls
// are answered, where not all functions may have all their instances at a time:
//
//   - 2.5 s until calls of another function are answered, whose instance is evicted for it,
//   - 3 s until the reservation of that room lapses, if another scheduler was quicker and has
//     taken it for one more instance of a function that has some,
//   - 1.5 s for each of three other schedulers, which are asked for room one after the other,
//   - 1 s until the room that is made there is told and seen, and an order follows,
//   - 1.5 s for the start of an instance, and 2.5 s for the calls.
const roomComes = 15 * time.Second

// patience is how long the calls wait that show whether functions are served again, and by
// when they must be answered: clocks may go half as fast as they should, or twice. Where room
// is short, they wait for as long as by default.
func (w settling) patience() (waits, within time.Duration) {
	if w.ample() {
		return maxQueueTime, 2 * maxQueueTime
	}
	return time.Minute, 2 * roomComes
}

// probe calls every function when all is at rest, and says what is wrong if not all
// calls are answered well in the time that they may take. Where room is short, a scheduler whose
// clock is fast may refuse calls before others have made room for them: then the next calls find
// it, if the functions to which the room belonged are not called as well.
func (w settling) probe() Rule {
	if w.config.Adversarial {
		return ""
	}
	calls, ok := w.answersAll(w.functions)
	refused := !slices.ContainsFunc(calls, func(in *callRecord) bool { return in.answer != answeredOK && in.answer != answeredNo })
	if !ok && refused && !w.ample() && w.fastScheduler() {
		again := slices.DeleteFunc(slices.Clone(w.functions), func(fn *function) bool {
			return !slices.ContainsFunc(calls, func(in *callRecord) bool { return in.fn.function == fn && in.answer == answeredNo })
		})
		_, ok = w.answersAll(again)
	}
	if ok {
		return ""
	}
	return RuleServesAgain
}

// fastScheduler tells whether the clock of a scheduler is fast.
func (w settling) fastScheduler() bool {
	return slices.ContainsFunc(w.schedulers, func(n *node) bool { return n.clock.rate > 1 })
}

// answersAll calls these functions, and tells whether all calls are answered well in time.
func (w settling) answersAll(functions []*function) (calls []*callRecord, ok bool) {
	first := len(w.truth.calls)
	waits, within := w.patience()
	for _, fn := range functions {
		for range probes {
			n := pick(w.World, w.gateways)
			n.do(n.life, false, func() { n.program.(*gateway).call(fn, waits, 0) })
		}
	}
	for end := w.now + within; w.now < end && w.violation == nil; {
		w.until(w.now + 100*time.Millisecond)
		if !slices.ContainsFunc(w.truth.calls[first:], func(in *callRecord) bool { return in.answer != answeredOK }) {
			return w.truth.calls[first:], true
		}
	}
	return w.truth.calls[first:], false
}

func (w settling) unsettledFunction(fn *function) Rule {
	key := w.etcd.store.Get(slotKey(fn))
	if key.Absent {
		return RuleOwned
	}
	owner := key.Value.ID
	if !w.rolledOut(fn, w.nodeOf(owner)) {
		return RuleRolledOut
	}
	for _, n := range w.schedulers {
		if !n.up() {
			return RuleOwnerServes
		}
		if open := w.unsettledServer(n.program.(*scheduler), fn, owner); open != "" {
			return open
		}
	}
	for _, n := range w.gateways {
		g := n.program.(*gateway)
		if to, _, _ := g.view.route(fn); to.ID != owner || g.entries[fn.index] != fn.entry {
			return RuleGatewayAgree
		}
	}
	return w.unsettledInstances(fn, w.nodeOf(owner).program.(*scheduler))
}

// rolledOut tells whether all calls go to the latest revision, which is proven. Its proof
// may wait for room: nothing is evicted for it.
func (w settling) rolledOut(fn *function, owner *node) bool {
	latest := fn.latest()
	if latest == nil || !owner.up() {
		return false
	}
	f := owner.program.(*scheduler).lookup(latest)
	if !latest.proven {
		return f != nil && f.core.Blocked()
	}
	return len(fn.entry.Routes) == 1 && fn.main() == latest
}

// unsettledServer looks at what a scheduler has of a function that somebody owns.
func (w settling) unsettledServer(s *scheduler, fn *function, owner string) Rule {
	units := 0
	for _, f := range s.served {
		if f.fn.function != fn {
			continue
		}
		if units++; !fn.runs(f.fn) {
			return RuleOwnerServes
		}
		if v := f.core.View(s.now()); v.Waiting+v.Out > 0 {
			return RuleNoTicketLeft
		}
		if f.serving() != (owner == s.name) || f.core.Term().Standby != "" {
			return RuleOwnerServes
		}
	}
	if known, _ := s.view.owners.Owner(fn.slot); known.ID != owner {
		return RuleSchedulerAgree
	}
	if units != len(fn.entry.Units) {
		return RuleOwnerServes
	}
	return ""
}

// unsettledInstances looks at the instances of a function.
func (w settling) unsettledInstances(fn *function, owner *scheduler) Rule {
	for _, in := range w.platform.instances {
		switch {
		case in.fn.function != fn:
		case !fn.runs(in.fn):
			return RuleOldGone
		case !in.ready && w.now-in.launched > startupTimeout+startGrace:
			return RuleStartsOrEnds
		case in.node != nil && in.node.up() && !owner.has(in):
			return RuleInstancesThere
		}
	}
	return ""
}

// has tells whether an instance waits here for calls.
func (s *scheduler) has(in *instance) bool {
	f := s.lookup(in.fn)
	if f == nil {
		return false
	}
	for _, p := range f.pulls {
		if p.cid == in.cid && p.joined {
			return true
		}
	}
	return false
}

// describe says in the trace who has what, for a reader who looks for the reason why
// something does not come to rest.
func (w *World) describe() {
	for _, fn := range w.functions {
		w.explain("etcd", fmt.Sprintf("names %+v for function %d", w.etcd.store.Get(slotKey(fn)), fn.index))
	}
	for _, n := range w.schedulers {
		if !n.up() {
			continue
		}
		k := n.program.(*scheduler).keeper
		w.explain(n.name, fmt.Sprintf("keeps slots under lease %d: follows %v, lists %v, writes %v, holds %d, wakes at %v, members %v",
			k.core.Lease(), k.core.Following(), k.reader.listing, k.trying, k.core.Holds(), k.core.Wake().Sub(k.now()), k.core.View().Members()))
		pool := n.program.(*scheduler).spares
		w.explain(n.name, fmt.Sprintf("has %d spare instances, and a share of %d; failing %v, blocked until %v, may order %d",
			len(pool.inventory.entries), pool.target, pool.failing, pool.blockedUntil.Sub(n.now()), pool.scheduler.placer.budget.LeftNow(n.now())))
		for _, f := range n.program.(*scheduler).served {
			owner, _ := f.scheduler.view.owners.Owner(f.fn.slot)
			w.explain(n.name, fmt.Sprintf("function %d: serves %v in term %+v, knows owner %+v, %d tickets wait, %d are out",
				f.fn.index, f.serving(), f.core.Term(), owner, f.core.Waiting(), f.core.View(f.scheduler.now()).Out))
			for _, p := range f.pulls {
				w.explain(n.name, fmt.Sprintf("function %d: has instance %s, which holds %d tickets", f.fn.index, p.cid, len(p.out)))
			}
		}
	}
	for _, in := range w.platform.instances {
		if in.node == nil || !in.node.up() {
			w.explain("platform", fmt.Sprintf("has instance %s of unit %s, which does not run", in.cid, in.fn.uid))
		}
	}
	for _, in := range w.platform.running() {
		a := in.node.program.(*agent)
		to := "nobody"
		if a.session != nil {
			to = a.session.to.name
		}
		w.explain(in.node.name, fmt.Sprintf("is instance %s of unit %s, ready %v, going %v, talks to %s and has %d attempts",
			in.cid, in.fn.uid, in.ready, in.going, to, len(a.attempts)))
	}
}
