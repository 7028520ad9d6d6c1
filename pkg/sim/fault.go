package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership/keeping"
)

// fault is something that goes wrong. It returns how to end it, or nil if that
// comes by itself, and false if there was nothing that it could happen to.
type fault struct {
	kind   string
	weight int
	strike func(w *World) (end func(), struck bool)
}

// faults are all that can go wrong.
var faults = []fault{
	{"kill-gateway", 3, func(w *World) (func(), bool) { return nil, w.crash(pick(w, w.gateways), false) }},
	{"kill-scheduler", 5, func(w *World) (func(), bool) { return nil, w.crash(pick(w, w.schedulers), false) }},
	{"kill-instance", 5, (*World).killInstance},
	{"power-off", 3, func(w *World) (func(), bool) { return nil, w.crash(w.anyServer(), true) }},
	{"power-off-worker", 2, (*World).powerOffWorker},
	{"stop-scheduler", 5, (*World).stopScheduler},
	{"stop-gateway", 2, (*World).stopGateway},
	{"stop-instance", 3, (*World).stopInstance},
	{"pause-server", 6, func(w *World) (func(), bool) { return w.standStill(w.anyServer()) }},
	{"pause-instance", 4, (*World).pauseInstance},
	{"partition-one-way", 5, func(w *World) (func(), bool) { return w.partition(false) }},
	{"partition", 5, func(w *World) (func(), bool) { return w.partition(true) }},
	{"isolate", 4, (*World).isolate},
	{"reset", 6, func(w *World) (func(), bool) { return nil, w.breakStream(false) }},
	{"half-open", 4, func(w *World) (func(), bool) { return nil, w.breakStream(true) }},
	{"slow-link", 3, (*World).slowLink},
	{"loss", 4, (*World).loseMessages},
	{"clock-jump", 2, (*World).jumpClock},
	{"etcd-down", 5, (*World).etcdDown},
	{"etcd-slow", 3, (*World).etcdSlow},
	{"etcd-new-leader", 3, (*World).etcdNewLeader},
	{"etcd-tardy-leases", 3, (*World).etcdTardy},
	{"lease-revoked", 4, (*World).revokeLease},
	{"compaction", 3, (*World).compact},
	{"etcd-wiped", 2, (*World).wipe},
	{"etcd-restored", 2, (*World).restore},
	{"key-deleted", 2, (*World).deleteKey},
	{"key-rewritten", 2, (*World).rewriteKey},
	{"forged-claim", 3, (*World).forgeClaim},
	{"poison", 8, (*World).poison},
	{"no-room", 4, (*World).fillUp},
	{"burst", 1, (*World).burst},
}

var totalWeight = func() int {
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	return sum
}()

// planFaults plans when something goes wrong, but not yet what.
func (w *World) planFaults() {
	w.tally.Faults = make(map[string]int)
	for range w.config.Faults {
		w.at(w.between(0, w.config.Duration), w.strike)
	}
	// A backup that is restored is of some time in between.
	w.at(w.between(time.Second, w.config.Duration), func() { w.etcd.backup = w.etcd.store.Clone() })
}

// strike lets something go wrong.
func (w *World) strike() {
	x := w.rng.IntN(totalWeight)
	i := 0
	for x >= faults[i].weight {
		x -= faults[i].weight
		i++
	}
	w.note("fault", faults[i].kind, 0, 0)
	w.struck++
	end, struck := faults[i].strike(w)
	if !struck {
		return
	}
	w.tally.Faults[faults[i].kind]++
	if end != nil {
		over := false
		once := func() {
			if !over {
				over = true
				w.note("fault", "end of "+faults[i].kind, 0, 0)
				end()
			}
		}
		w.ends = append(w.ends, once)
		w.at(w.howLong(), once)
	}
}

// howLong is how long a fault lasts: mostly short, sometimes long.
func (w *World) howLong() time.Duration {
	if w.chance(0.5) {
		return w.between(50*time.Millisecond, time.Second)
	}
	return w.between(time.Second, 8*time.Second)
}

// endFaults makes everything well again.
func (w *World) endFaults() {
	w.calm = true
	for _, end := range w.ends {
		end()
	}
	for _, n := range w.servers() {
		if !n.up() {
			w.restart(n)
		}
	}
}

func (w *World) servers() []*node {
	return append(append([]*node(nil), w.schedulers...), w.gateways...)
}

func (w *World) anyServer() *node { return pick(w, w.servers()) }

func (w *World) anyMachine() int { return w.rng.IntN(len(w.net.blocked)) }

// crash kills a server, which comes back after some time.
func (w *World) crash(n *node, dark bool) bool {
	if !n.up() {
		return false
	}
	n.kill(dark)
	w.restartLater(n, w.howLong())
	return true
}

func (w *World) restartLater(n *node, in time.Duration) {
	life := n.life
	w.at(in, func() {
		if n.life == life {
			w.restart(n)
		}
	})
}

// restart starts a server anew, with a clock that was set anew.
func (w *World) restart(n *node) {
	n.clock = w.newClock()
	if n.name[0] == 's' {
		n.start(newScheduler(n))
	} else {
		n.start(newGateway(n))
	}
}

func (w *World) killInstance() (func(), bool) {
	in := pick(w, w.platform.running())
	if in == nil {
		return nil, false
	}
	w.killPod(in, false)
	return nil, true
}

func (w *World) killPod(in *instance, dark bool) {
	in.node.kill(dark)
	w.at(w.between(10*time.Millisecond, time.Second), func() { w.platform.ended(in) })
}

func (w *World) powerOffWorker() (func(), bool) {
	worker, struck := pick(w, w.workers), false
	for _, in := range w.platform.running() {
		if in.node.machine == worker {
			w.killPod(in, true)
			struck = true
		}
	}
	return nil, struck
}

// stopScheduler tells a scheduler to stop, which starts again later.
func (w *World) stopScheduler() (func(), bool) {
	n := pick(w, w.schedulers)
	if !n.up() || n.draining {
		return nil, false
	}
	n.draining = true
	s := n.program.(*scheduler)
	n.do(n.life, true, s.stop)
	return nil, true
}

// stopGateway tells a gateway to stop: it takes no more calls, and ends when it
// has none.
func (w *World) stopGateway() (func(), bool) {
	n := pick(w, w.gateways)
	if !n.up() || n.draining {
		return nil, false
	}
	n.draining = true
	g := n.program.(*gateway)
	n.do(n.life, true, g.stop)
	return nil, true
}

func (w *World) stopInstance() (func(), bool) {
	in := pick(w, w.platform.running())
	if in == nil {
		return nil, false
	}
	in.node.do(in.node.life, true, in.node.program.(*agent).stop)
	return nil, true
}

func (w *World) pauseInstance() (func(), bool) {
	in := pick(w, w.platform.running())
	if in == nil {
		return nil, false
	}
	return w.standStill(in.node)
}

func (w *World) standStill(n *node) (func(), bool) {
	if !n.up() || n.paused {
		return nil, false
	}
	life := n.life
	n.pause()
	return func() {
		if n.life == life {
			n.resume()
		}
	}, true
}

// partition cuts a link between two machines.
func (w *World) partition(bothWays bool) (func(), bool) {
	a, b := w.anyMachine(), w.anyMachine()
	if a == b || w.net.blocked[a][b] {
		return nil, false
	}
	w.net.block(a, b)
	if bothWays {
		w.net.block(b, a)
	}
	return func() {
		w.net.unblock(a, b)
		if bothWays {
			w.net.unblock(b, a)
		}
	}, true
}

// isolate cuts one machine off from all others.
func (w *World) isolate() (func(), bool) {
	a := w.anyMachine()
	for b := range w.net.blocked {
		w.net.block(a, b)
		w.net.block(b, a)
	}
	return func() {
		for b := range w.net.blocked {
			w.net.unblock(a, b)
			w.net.unblock(b, a)
		}
	}, true
}

func (w *World) breakStream(halfOpen bool) bool {
	n := w.anyServer()
	s := pick(w, n.streams)
	if s == nil {
		return false
	}
	s.breakOff(halfOpen)
	return true
}

func (w *World) slowLink() (func(), bool) {
	a, b := w.anyMachine(), w.anyMachine()
	w.net.slow[a][b] = w.between(time.Millisecond, 800*time.Millisecond)
	return func() { w.net.slow[a][b] = 0 }, true
}

func (w *World) loseMessages() (func(), bool) {
	a, b := w.anyMachine(), w.anyMachine()
	w.net.lossy[a][b] = 0.5 * w.rng.Float64()
	return func() { w.net.lossy[a][b] = 0 }, true
}

// jumpClock sets the wall clock of a server. Only the ids of calls are made of it.
func (w *World) jumpClock() (func(), bool) {
	w.anyServer().clock.wall += w.between(-2*time.Hour, 2*time.Hour)
	return nil, true
}

func (w *World) etcdDown() (func(), bool) {
	if w.etcd.down {
		return nil, false
	}
	w.etcd.down = true
	if w.chance(0.5) {
		w.etcd.breakWatches()
	}
	return w.etcdUp, true
}

// etcdUp ends an outage: the new leader renews all leases.
func (w *World) etcdUp() {
	w.etcd.down = false
	w.etcd.store.RenewAll(w.etcd.now())
	w.etcd.notify()
}

func (w *World) etcdNewLeader() (func(), bool) {
	if w.etcd.down {
		return nil, false
	}
	w.etcd.down = true
	w.at(w.between(200*time.Millisecond, 1200*time.Millisecond), w.etcdUp)
	return nil, true
}

func (w *World) etcdSlow() (func(), bool) {
	w.etcd.slow = w.between(10*time.Millisecond, 1500*time.Millisecond)
	return func() { w.etcd.slow = 0 }, true
}

func (w *World) etcdTardy() (func(), bool) {
	w.etcd.tardy = w.between(0, 2*leaseTTL)
	return func() { w.etcd.tardy = 0 }, true
}

func (w *World) revokeLease() (func(), bool) {
	s, ok := pick(w, w.schedulers).program.(*scheduler)
	if !ok || w.etcd.down || s.keeper.core.Lease() == 0 {
		return nil, false
	}
	w.etcd.store.End(s.keeper.core.Lease())
	w.etcd.notify()
	return nil, true
}

func (w *World) compact() (func(), bool) {
	w.etcd.store.Compact(w.etcd.store.Revision())
	return nil, true
}

func (w *World) wipe() (func(), bool) {
	w.etcd.rewind(keeping.NewStore())
	return nil, true
}

func (w *World) restore() (func(), bool) {
	if w.etcd.backup == nil {
		return nil, false
	}
	w.etcd.rewind(w.etcd.backup)
	w.etcd.store.RenewAll(w.etcd.now())
	return nil, true
}

func (w *World) deleteKey() (func(), bool) {
	w.etcd.store.Delete(keeping.Key{Slot: pick(w, w.functions).slot})
	w.etcd.notify()
	return nil, true
}

// rewriteKey lets somebody write another scheduler's name into a slot's key.
func (w *World) rewriteKey() (func(), bool) {
	name := pick(w, w.schedulers).name
	key := keeping.Key{Slot: pick(w, w.functions).slot}
	w.etcd.store.Commit(keeping.Txn{Ops: []keeping.Op{{
		Key: key, If: keeping.Always, Value: keeping.Value{ID: name, Addr: name},
	}}})
	w.etcd.notify()
	return nil, true
}

// forgeClaim lets an instance claim a call whose ticket it does not have.
func (w *World) forgeClaim() (func(), bool) {
	in, g := pick(w, w.platform.running()), pick(w, w.gateways)
	if in == nil || !g.up() {
		return nil, false
	}
	c := pick(w, g.program.(*gateway).calls)
	if c == nil {
		return nil, false
	}
	in.node.program.(*agent).forge(g, c.id)
	return nil, true
}

// poison lets every call of a function end its instance, as one that takes too much
// memory does. The next ones may be kept from starting for a while.
func (w *World) poison() (func(), bool) {
	if w.poisoned != nil {
		return nil, false
	}
	w.poisoned = pick(w, w.functions)
	w.looping = w.chance(0.3)
	for _, fn := range w.functions {
		// Only there it is tried again, which makes it worse.
		if fn.idempotent && w.chance(0.5) {
			w.poisoned = fn
		}
	}
	return func() { w.poisoned = nil }, true
}

// fillUp lets no instance start.
func (w *World) fillUp() (func(), bool) {
	if w.full {
		return nil, false
	}
	w.full = true
	return func() { w.full = false }, true
}

// burst lets many clients call a function at once: more than its queue takes.
func (w *World) burst() (func(), bool) {
	fn, n := pick(w, w.functions), pick(w, w.gateways)
	if !n.up() || n.draining {
		return nil, false
	}
	// Some of them have little patience.
	patience := w.between(100*time.Millisecond, 5*time.Second)
	for range 2 * maxQueued {
		leaves := time.Duration(0)
		if w.chance(0.5) {
			leaves = patience
		}
		w.at(w.between(0, 10*time.Millisecond), func() {
			n.do(n.life, false, func() { n.program.(*gateway).call(fn, leaves) })
		})
	}
	return nil, true
}
