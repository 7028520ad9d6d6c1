package sim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

const (
	// planSparesEvery is how often the shares of the warm pool are computed.
	planSparesEvery = time.Second
	// blockedFor is how long no spare instance is launched after a function found no room:
	// less long than the product waits.
	blockedFor = 3 * time.Second
)

// pooled is what a spare instance requests, and where there are any, each function: what
// several schedulers could free of one worker together, none of them does.
var pooled = cores(1)

// newPoolUnit is what the spare instances of a scheduler are of until a function takes them.
func (w *World) newPoolUnit(scheduler string) *unit {
	uid := warmpool.Pool{Scheduler: scheduler, Namespace: namespaces[0]}.UID()
	r := &v1alpha1.FunctionRevision{}
	r.UID = types.UID(uid)
	fn := &function{
		world: w, index: len(w.functions), namespace: namespaces[0], requests: pooled, concurrency: 1,
		revisions: []*v1alpha1.FunctionRevision{r},
	}
	return &unit{function: fn, uid: uid, pool: true}
}

// fits tells whether a function can take spare instances.
func (f *function) fits() bool {
	return f.world.config.Spares > 0 && f.namespace == namespaces[0]
}

// spares is a scheduler's share of the warm pool.
type spares struct {
	scheduler *scheduler
	unit      *unit
	inventory inventory
	sequence  uint64
	target    int
	// planned is when the share was computed, and blockedUntil until when functions need
	// the room.
	planned, blockedUntil time.Time
	// known says that there is a share, or was and has left instances; failing that the
	// last instance did not start; and closed that the scheduler ends, and keeps none.
	known, failing, closed bool
}

func newSpares(s *scheduler) *spares {
	return &spares{scheduler: s, unit: s.world.pools[s.name]}
}

// keep brings the pool to the scheduler's share.
func (p *spares) keep(now time.Time) {
	if p.closed {
		return
	}
	if now.Sub(p.planned) >= planSparesEvery {
		p.planned = now
		p.plan(now)
	}
	p.endOverdue(now)
	snapshot := warmpool.Snapshot{
		Target: p.target, Failing: p.failing, NodesFull: now.Before(p.blockedUntil), LaunchBudget: p.scheduler.placer.budget.LeftNow(now),
	}
	for _, e := range p.present() {
		if e.pulled {
			snapshot.Ready++
		} else {
			snapshot.Starting++
		}
	}
	d := warmpool.Decide(snapshot)
	p.order(d.Create)
	p.remove(d.Remove)
	if p.target == 0 && len(p.inventory.entries) == 0 {
		p.known = false
	}
}

// plan computes the share: of functions that could take a spare instance, each is the
// business of its owner.
func (p *spares) plan(now time.Time) {
	owned := make(map[string]int)
	for _, f := range p.scheduler.served {
		if owner, known := p.scheduler.view.owners.Owner(f.fn.slot); known && f.fn.fits() {
			owned[owner.ID]++
		}
	}
	p.target = warmpool.Share(p.scheduler.world.config.Spares, owned, p.scheduler.name)
	if p.target == 0 || p.known {
		return
	}
	p.known = true
	for _, in := range p.scheduler.world.platform.instances {
		if in.fn == p.unit {
			// A scheduler of this name that was here before has left it.
			p.inventory.entries = append(p.inventory.entries, &entry{in: in, launched: now, startBy: now.Add(adoptPatience)})
		}
	}
}

// present are the instances that do not leave.
func (p *spares) present() (list []*entry) {
	for _, e := range p.inventory.entries {
		if !e.leaving {
			list = append(list, e)
		}
	}
	return list
}

// order orders up to n spare instances.
func (p *spares) order(n int) {
	s, w := p.scheduler, p.scheduler.world
	for range n {
		name, ok := s.placer.planner.Place("", s.placer.shape(p.unit.function), w.rng.IntN)
		if !ok {
			return
		}
		p.mayOrder()
		s.placer.rules.orders(s.placer)
		s.placer.budget.Spend(s.now(), 1)
		p.sequence++
		s.note("orders a spare instance", p.sequence, uint64(p.target))
		in := &instance{cid: invocation.Term{Epoch: uint64(s.life)}.CID(p.sequence), fn: p.unit, owner: s.name, worker: w.workerOf(name), by: s}
		p.inventory.entries = append(p.inventory.entries, &entry{in: in, launched: s.now(), startBy: s.now().Add(startupTimeout + startGrace)})
		w.platform.create(in)
	}
}

// mayOrder looks whether one more spare instance may be launched now.
func (p *spares) mayOrder() {
	s := p.scheduler
	if len(p.present()) >= p.target {
		s.world.violate(RuleSparesWithinShare, 0)
	}
	if s.now().Before(p.blockedUntil) {
		s.world.violate(RuleSparesYield, 0)
	}
}

// remove ends n spare instances, those of which least is lost first.
func (p *spares) remove(n int) {
	list := p.present()
	ready := func(e *entry) bool { return e.pulled }
	starting := slices.DeleteFunc(slices.Clone(list), ready)
	for _, e := range append(starting, slices.DeleteFunc(list, func(e *entry) bool { return !ready(e) })...)[:n] {
		p.stop(e)
	}
}

func (p *spares) stop(e *entry) {
	e.leaving = true
	p.scheduler.note("ends a spare instance", uint64(p.target), 0)
	p.scheduler.world.platform.stop(e.in)
}

// drop ends all spare instances: nobody could take them when the scheduler is gone.
func (p *spares) drop() {
	p.closed = true
	for _, e := range p.present() {
		p.stop(e)
	}
}

// endOverdue ends spare instances that should have been heard of.
func (p *spares) endOverdue(now time.Time) {
	for _, e := range p.present() {
		if !e.pulled && now.After(e.startBy) || e.pulled && !e.connected && now.Sub(e.silentSince) > silencePatience {
			p.stop(e)
		}
	}
}

// ended hears that a spare instance is gone.
func (p *spares) ended(in *instance) {
	if e := p.inventory.find(in.cid); e != nil && in.fn == p.unit {
		p.inventory.remove(in.cid)
		p.failing = p.failing || !e.pulled && !e.leaving
	}
}

// usage is what the spare instances amount to.
func (p *spares) usage() (u capacity.Usage) {
	for _, e := range p.inventory.entries {
		if !e.pulled || e.leaving {
			u.Moving = append(u.Moving, e.in.worker.name)
		}
		if !e.leaving {
			u.Idle = append(u.Idle, capacity.Idle{
				Key: capacity.Key{FunctionUID: p.unit.uid, CID: e.in.cid}, Node: e.in.worker.name,
				Requests: pooled, Spare: true, Since: e.launched,
			})
		}
	}
	return u
}

// takeSpares lets a function take up to n spare instances. They count as its own from
// then on.
func (c *considered) takeSpares(n int) (had int) {
	f, p := c.served, c.served.scheduler.spares
	if !f.fn.fits() || f.failing {
		return 0
	}
	for had < n {
		i := slices.IndexFunc(p.inventory.entries, func(e *entry) bool { return e.connected && !e.leaving })
		if i < 0 {
			break
		}
		had++
		f.mayOrder()
		f.take(p.inventory.entries[i], f.nextName(c.term))
	}
	return had
}

// take makes one spare instance that of a function.
func (f *served) take(from *entry, cid invocation.CID) {
	s := f.scheduler
	s.note("takes a spare instance", uint64(f.fn.index), f.sequence)
	s.spares.inventory.remove(from.in.cid)
	in := &instance{cid: cid, fn: f.fn, owner: s.name, worker: from.in.worker, by: s}
	e := &entry{in: in, launched: s.now(), startBy: s.now().Add(startupTimeout + startGrace), wasSpare: true}
	f.inventory.entries = append(f.inventory.entries, e)
	f.doubted = true
	life := s.life
	s.world.platform.take(from.in, in, func(taken bool) {
		s.do(life, false, func() { f.took(e, from.spare, taken) })
	})
}

// take makes a spare instance that of a function, by one request, if it is still there.
func (p *platform) take(in, next *instance, told func(taken bool)) {
	w := p.world
	w.at(w.between(time.Millisecond, 50*time.Millisecond), func() {
		at := slices.Index(p.instances, in)
		if at < 0 {
			told(false)
			return
		}
		if !in.node.up() || w.faulty() && w.chance(0.1) {
			p.stop(in)
			told(false)
			return
		}
		next.node, next.launched, next.seen = in.node, w.now, w.now+w.between(time.Millisecond, 50*time.Millisecond)
		p.instances[at] = next
		in.node.program.(*agent).instance = next
		told(true)
	})
}

// took hears whether a spare instance is the function's now. If not, another one is started.
func (f *served) took(e *entry, by *spareEnd, taken bool) {
	s := f.scheduler
	switch known := f.inventory.find(e.in.cid) == e; {
	case !known:
	case taken && (e.leaving || e.ending):
		s.world.platform.stop(e.in)
	case taken && by != nil:
		by.assign(f)
	case taken:
	default:
		s.note("takes no spare instance", uint64(f.fn.index), 0)
		f.inventory.remove(e.in.cid)
		f.step(core.AssignFailed{CID: e.in.cid})
	}
}
