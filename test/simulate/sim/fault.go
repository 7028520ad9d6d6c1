package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// fault is something that goes wrong. It returns how to end it, or nil if that
// comes by itself, and false if there was nothing that it could happen to.
type fault struct {
	kind   string
	weight int
	strike func(c *chaos) (end func(), struck bool)
}

// faults are all that can go wrong.
var faults = []fault{
	{"kill-gateway", 3, func(c *chaos) (func(), bool) { return nil, c.crash(pick(c.World, c.gateways), false) }},
	{"kill-scheduler", 5, func(c *chaos) (func(), bool) { return nil, c.crash(pick(c.World, c.schedulers), false) }},
	{"kill-instance", 5, (*chaos).killInstance},
	{"power-off", 3, func(c *chaos) (func(), bool) { return nil, c.crash(c.anyServer(), true) }},
	{"power-off-worker", 2, (*chaos).powerOffWorker},
	{"stop-scheduler", 5, (*chaos).stopScheduler},
	{"stop-gateway", 2, (*chaos).stopGateway},
	{"stop-instance", 3, (*chaos).stopInstance},
	{"pause-gateway", 2, func(c *chaos) (func(), bool) { return c.standStill(pick(c.World, c.gateways)) }},
	{"pause-scheduler", 8, func(c *chaos) (func(), bool) { return c.standStill(pick(c.World, c.schedulers)) }},
	{"pause-instance", 4, (*chaos).pauseInstance},
	{"partition-one-way", 5, func(c *chaos) (func(), bool) { return c.partition(false) }},
	{"partition", 5, func(c *chaos) (func(), bool) { return c.partition(true) }},
	{"isolate", 4, (*chaos).isolate},
	{"reset", 6, func(c *chaos) (func(), bool) { return nil, c.breakStream(false) }},
	{"half-open", 4, func(c *chaos) (func(), bool) { return nil, c.breakStream(true) }},
	{"slow-link", 3, (*chaos).slowLink},
	{"loss", 4, (*chaos).loseMessages},
	{"clock-jump", 2, onFunction(functionFaults.jumpClock)},
	{"etcd-down", 9, onStore((*storeFaults).etcdDown)},
	{"etcd-slow", 3, onStore((*storeFaults).etcdSlow)},
	{"etcd-new-leader", 3, onStore((*storeFaults).etcdNewLeader)},
	{"etcd-tardy-leases", 3, onStore((*storeFaults).etcdTardy)},
	{"lease-revoked", 4, onStore((*storeFaults).revokeLease)},
	{"compaction", 3, onStore((*storeFaults).compact)},
	{"etcd-wiped", 2, onStore((*storeFaults).wipe)},
	{"etcd-restored", 2, onStore((*storeFaults).restore)},
	{"key-deleted", 2, onStore((*storeFaults).deleteKey)},
	{"key-rewritten", 2, onStore((*storeFaults).rewriteKey)},
	{"forged-claim", 3, onStore((*storeFaults).forgeClaim)},
	{"poison", 8, (*chaos).poison},
	{"no-room", 4, (*chaos).fillUp},
	{"burst", 1, (*chaos).burst},
	{"max-changed", 5, onFunction(functionFaults.changeMax)},
	{"evict", 6, (*chaos).evict},
	{"stale-word", 3, (*chaos).staleWord},
	{"new-revision", 6, onFunction(functionFaults.revise)},
	{"controller-away", 2, onFunction(functionFaults.leaveAlone)},
	{"function-deleted", 4, onFunction(functionFaults.deleteFunction)},
	{"schedulers-gone", 4, (*chaos).schedulersGone},
	{"contention", 6, (*chaos).contend},
	{"calls-cut", 8, (*chaos).cutCalls},
}

var totalWeight = func() int {
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	return sum
}()

// chaos lets things go wrong, and puts them right.
type chaos struct {
	*World
	// ends are how to end the faults.
	ends []func()
}

// storeFaults go wrong with etcd.
type storeFaults struct{ *World }

// functionFaults change functions and what they ask for.
type functionFaults struct{ *World }

func onFunction(strike func(functionFaults) (func(), bool)) func(*chaos) (func(), bool) {
	return func(c *chaos) (func(), bool) { return strike(functionFaults{c.World}) }
}

func onStore(strike func(*storeFaults) (func(), bool)) func(*chaos) (func(), bool) {
	return func(c *chaos) (func(), bool) { return strike(&storeFaults{c.World}) }
}

// planFaults plans when something goes wrong, but not yet what.
func (c *chaos) planFaults() {
	c.counts.Faults = make(map[string]int)
	for range c.config.Faults {
		c.at(c.between(0, c.config.Duration), c.strike)
	}
	// A backup that is restored is of some time in between.
	c.at(c.between(time.Second, c.config.Duration), func() { c.etcd.backup = c.etcd.store.Clone() })
	c.planAside()
}

// strike lets something go wrong.
func (c *chaos) strike() {
	i, moody := c.which()
	kind := faults[i].kind
	c.happen(kind, faults[i].strike, func() time.Duration { return c.lasts(kind, moody) })
}

// happen lets a fault strike, and ends it after some time if it does not end by itself.
func (c *chaos) happen(kind string, strike func(*chaos) (func(), bool), lasts func() time.Duration) {
	c.note("fault", kind, 0, 0)
	c.struck++
	end, struck := strike(c)
	if !struck {
		return
	}
	c.disturb()
	c.counts.Faults[kind]++
	if end != nil {
		over := false
		once := func() {
			if !over {
				over = true
				c.lasting--
				c.disturb()
				c.note("fault", "end of "+kind, 0, 0)
				end()
			}
		}
		c.lasting++
		c.ends = append(c.ends, once)
		c.at(lasts(), once)
	}
}

// lasts is how long a fault lasts.
func (c *chaos) lasts(kind string, moody bool) time.Duration {
	lasts := c.howLong()
	if moody {
		lasts = c.between(2*time.Second, 8*time.Second)
	}
	if moody && c.config.Mood == orphans && kind == "etcd-down" {
		// It makes orphans once leases have ended, and then more calls come.
		lasts += leaseTTL
		c.at(leaseTTL+c.between(0, 2*time.Second), func() { c.burst() })
	}
	return lasts
}

// moods are kinds of faults that go together. In a seed that has one, half of all faults are
// of its kinds: what takes several of them in a row would else be rare.
var moods = [][]string{
	{"etcd-down", "kill-instance", "burst", "max-changed"},                     // orphans
	{"pause-scheduler", "pause-instance", "kill-instance", "power-off-worker"}, // standstills
	{"stale-word", "stop-scheduler", "lease-revoked", "kill-scheduler"},        // hearsay
	{"etcd-restored", "etcd-wiped", "stale-word", "key-deleted"},               // of another history
	{"burst", "no-room", "reset", "poison"},                                    // overload
	{"new-revision", "function-deleted", "stop-scheduler", "half-open"},
	{"contention", "calls-cut", "schedulers-gone", "evict"}, // of loans
	{"contention", "contention", "new-revision", "kill-gateway"},
}

// Moods of which more is said: outages last longer among orphans, and clients are impatient
// under overload.
const (
	orphans  = 0
	overload = 4
)

// moodless is how many seeds have no mood for one that has the first.
const moodless = 2

// which is the index of the fault that strikes next. One of the seed's mood lasts for long.
func (c *chaos) which() (i int, moody bool) {
	if mood := c.config.Mood; mood < len(moods) && c.chance(0.5) {
		kind := pick(c.World, moods[mood])
		return slices.IndexFunc(faults, func(f fault) bool { return f.kind == kind }), true
	}
	x := c.rng.IntN(totalWeight)
	for x >= faults[i].weight {
		x -= faults[i].weight
		i++
	}
	return i, false
}

// staleWord lets what a scheduler knows of all slots reach another server only after a while.
func (c *chaos) staleWord() (func(), bool) {
	from, to := pick(c.World, c.schedulers), c.anyServer()
	if !from.up() || !to.up() || from == to {
		return nil, false
	}
	known, life := from.program.(*scheduler).view.owners.Clone(), to.life
	return func() {
		to.do(life, false, func() {
			d := directoryOf(to.program)
			for _, fn := range c.functions {
				if owner, named := known.Owner(fn.slot); named {
					d.learn(fn, owner)
				}
			}
		})
	}, true
}

func directoryOf(p program) *directory {
	if s, is := p.(*scheduler); is {
		return s.view
	}
	return p.(*gateway).view
}

// howLong is how long a fault lasts: mostly short, sometimes long.
func (c *chaos) howLong() time.Duration {
	if c.chance(0.5) {
		return c.between(50*time.Millisecond, time.Second)
	}
	return c.between(time.Second, 8*time.Second)
}

// endFaults makes everything well again.
func (c *chaos) endFaults() {
	c.calm = true
	for _, end := range c.ends {
		end()
	}
	for _, n := range c.servers() {
		if !n.up() {
			c.restart(n)
		}
	}
}

func (c *chaos) servers() []*node {
	return append(append([]*node(nil), c.schedulers...), c.gateways...)
}

func (c *chaos) anyServer() *node { return pick(c.World, c.servers()) }

func (c *chaos) anyMachine() int { return c.rng.IntN(len(c.net.blocked)) }

// crash kills a server, which comes back after some time.
func (c *chaos) crash(n *node, dark bool) bool {
	if !n.up() {
		return false
	}
	n.kill(dark)
	c.restartLater(n, c.howLong())
	return true
}

func (c *chaos) restartLater(n *node, in time.Duration) {
	life := n.life
	c.at(in, func() {
		if n.life == life {
			c.restart(n)
		}
	})
}

// restart starts a server again, with a clock that was set again.
func (c *chaos) restart(n *node) {
	n.clock = c.newClock()
	if n.name[0] == 's' {
		n.start(newScheduler(n))
	} else {
		n.start(newGateway(n))
	}
}

func (c *chaos) killInstance() (func(), bool) {
	in := pick(c.World, c.platform.running())
	if in == nil {
		return nil, false
	}
	c.killPod(in, false)
	return nil, true
}

func (c *chaos) killPod(in *instance, dark bool) {
	in.node.kill(dark)
	c.at(c.between(10*time.Millisecond, time.Second), func() { c.platform.ended(in) })
}

func (c *chaos) powerOffWorker() (func(), bool) {
	worker, struck := pick(c.World, c.workers), false
	for _, in := range c.platform.running() {
		if in.worker == worker {
			c.killPod(in, true)
			struck = true
		}
	}
	return nil, struck
}

// stopScheduler tells a scheduler to stop, which starts again later.
func (c *chaos) stopScheduler() (func(), bool) {
	n := pick(c.World, c.schedulers)
	if !n.up() || n.draining {
		return nil, false
	}
	c.tellToStop(n)
	return nil, true
}

func (c *chaos) tellToStop(n *node) {
	n.draining = true
	n.do(n.life, true, n.program.(*scheduler).stop)
}

// stopGateway tells a gateway to stop: it takes no more calls, and ends when it
// has none.
func (c *chaos) stopGateway() (func(), bool) {
	n := pick(c.World, c.gateways)
	if !n.up() || n.draining {
		return nil, false
	}
	n.draining = true
	g := n.program.(*gateway)
	n.do(n.life, true, g.stop)
	return nil, true
}

func (c *chaos) stopInstance() (func(), bool) {
	in := pick(c.World, c.platform.running())
	if in == nil {
		return nil, false
	}
	in.node.do(in.node.life, true, in.node.program.(*agent).stop)
	return nil, true
}

func (c *chaos) pauseInstance() (func(), bool) {
	in := pick(c.World, c.platform.running())
	if in == nil {
		return nil, false
	}
	return c.standStill(in.node)
}

func (c *chaos) standStill(n *node) (func(), bool) {
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
func (c *chaos) partition(bothWays bool) (func(), bool) {
	a, b := c.anyMachine(), c.anyMachine()
	if a == b || c.net.blocked[a][b] {
		return nil, false
	}
	c.net.block(a, b)
	if bothWays {
		c.net.block(b, a)
	}
	return func() {
		c.net.unblock(a, b)
		if bothWays {
			c.net.unblock(b, a)
		}
	}, true
}

// isolate cuts one machine off from all others.
func (c *chaos) isolate() (func(), bool) {
	a := c.anyMachine()
	for b := range c.net.blocked {
		c.net.block(a, b)
		c.net.block(b, a)
	}
	return func() {
		for b := range c.net.blocked {
			c.net.unblock(a, b)
			c.net.unblock(b, a)
		}
	}, true
}

func (c *chaos) breakStream(halfOpen bool) bool {
	n := c.anyServer()
	s := pick(c.World, n.streams)
	if s == nil {
		return false
	}
	s.breakOff(halfOpen)
	return true
}

func (c *chaos) slowLink() (func(), bool) {
	a, b := c.anyMachine(), c.anyMachine()
	if a == b {
		return nil, false
	}
	c.net.slow[a][b] = c.between(time.Millisecond, 800*time.Millisecond)
	return func() {
		c.net.slow[a][b] = 0
		c.disturbFor(time.Second)
	}, true
}

func (c *chaos) loseMessages() (func(), bool) {
	a, b := c.anyMachine(), c.anyMachine()
	if a == b {
		return nil, false
	}
	c.net.lossy[a][b] = 0.5 * c.rng.Float64()
	return func() {
		c.net.lossy[a][b] = 0
		c.disturbFor(mostLate) // what was lost comes as late as that, and all else behind it
	}, true
}

// jumpClock sets the clock of the controller wrong, until somebody sets it right again.
func (w functionFaults) jumpClock() (func(), bool) {
	if w.clockWrong != 0 {
		return nil, false
	}
	w.clockWrong = w.between(-2*time.Hour, 2*time.Hour)
	return func() { w.clockWrong = 0 }, true
}

func (f *storeFaults) etcdDown() (func(), bool) {
	if f.etcd.down {
		return nil, false
	}
	f.etcd.down = true
	if f.chance(0.5) {
		f.etcd.breakWatches()
	}
	return f.etcdUp, true
}

// etcdUp ends an outage: the new leader renews all leases.
func (f *storeFaults) etcdUp() {
	f.etcd.down = false
	f.etcd.store.RenewAll(f.etcd.now())
	f.etcd.notify()
}

func (f *storeFaults) etcdNewLeader() (func(), bool) {
	if f.etcd.down {
		return nil, false
	}
	f.etcd.down = true
	f.at(f.between(200*time.Millisecond, 1200*time.Millisecond), f.etcdUp)
	return nil, true
}

func (f *storeFaults) etcdSlow() (func(), bool) {
	f.etcd.slow = f.between(10*time.Millisecond, 1500*time.Millisecond)
	return func() { f.etcd.slow = 0 }, true
}

func (f *storeFaults) etcdTardy() (func(), bool) {
	f.etcd.tardy = f.between(0, 2*leaseTTL)
	return func() { f.etcd.tardy = 0 }, true
}

func (f *storeFaults) revokeLease() (func(), bool) {
	s, ok := pick(f.World, f.schedulers).program.(*scheduler)
	if !ok || f.etcd.down || s.keeper.core.Lease() == 0 {
		return nil, false
	}
	f.etcd.store.End(s.keeper.core.Lease())
	f.etcd.notify()
	return nil, true
}

func (f *storeFaults) compact() (func(), bool) {
	f.etcd.store.Compact(f.etcd.store.Revision())
	return nil, true
}

func (f *storeFaults) wipe() (func(), bool) {
	f.etcd.rewind(coordinator.NewStore())
	return nil, true
}

func (f *storeFaults) restore() (func(), bool) {
	if f.etcd.backup == nil {
		return nil, false
	}
	f.etcd.rewind(f.etcd.backup)
	f.etcd.store.RenewAll(f.etcd.now())
	return nil, true
}

func (f *storeFaults) deleteKey() (func(), bool) {
	f.etcd.store.Delete(coordinator.Key{Slot: pick(f.World, f.functions).slot})
	f.etcd.notify()
	return nil, true
}

// rewriteKey lets somebody write another scheduler's name into a slot's key.
func (f *storeFaults) rewriteKey() (func(), bool) {
	name := pick(f.World, f.schedulers).name
	key := coordinator.Key{Slot: pick(f.World, f.functions).slot}
	f.etcd.rewritten = f.now
	f.etcd.store.Commit(coordinator.Txn{Ops: []coordinator.Op{{
		Key: key, If: coordinator.Always, Value: coordinator.Value{ID: name, Addr: name},
	}}})
	f.etcd.notify()
	return nil, true
}

// forgeClaim lets an instance claim a call whose ticket it does not have.
func (f *storeFaults) forgeClaim() (func(), bool) {
	in, g := pick(f.World, f.platform.running()), pick(f.World, f.gateways)
	if in == nil || !g.up() {
		return nil, false
	}
	c := pick(f.World, g.program.(*gateway).calls)
	if c == nil {
		return nil, false
	}
	in.node.program.(*agent).forge(g, c.id)
	return nil, true
}

// poison lets every call of a function end its instance, as one that takes too much
// memory does. The next ones may be kept from starting for a while.
func (c *chaos) poison() (func(), bool) {
	if c.poisoned != nil {
		return nil, false
	}
	c.poisoned = pick(c.World, c.functions)
	c.looping = c.chance(0.3)
	for _, fn := range c.functions {
		// Only there it is tried again, which makes it worse.
		if fn.idempotent && c.chance(0.5) {
			c.poisoned = fn
		}
	}
	return func() { c.poisoned = nil }, true
}

// fillUp lets others take all room on the workers as soon as it is free.
func (c *chaos) fillUp() (func(), bool) {
	if c.full {
		return nil, false
	}
	c.full, c.filled = true, c.now
	return func() { c.full = false }, true
}

// burst lets many clients call a function at once: more than its queue takes.
func (c *chaos) burst() (func(), bool) {
	fn, n := pick(c.World, c.functions), pick(c.World, c.gateways)
	if !n.up() || n.draining {
		return nil, false
	}
	// Some of them have little patience.
	patience, life := c.between(100*time.Millisecond, 5*time.Second), n.life
	for range 2 * maxQueued {
		leaves := time.Duration(0)
		if c.chance(0.5) {
			leaves = patience
		}
		c.at(c.between(0, 10*time.Millisecond), func() {
			n.do(life, false, func() { n.program.(*gateway).call(fn, maxQueueTime, leaves) })
		})
	}
	return nil, true
}

// evict lets an instance go that was idle a moment ago, as if another function needed its
// room.
func (c *chaos) evict() (func(), bool) {
	n, fn := pick(c.World, c.schedulers), pick(c.World, c.functions)
	if !n.up() || n.paused {
		return nil, false
	}
	f, now := n.program.(*scheduler).lookup(fn.main()), n.now()
	if f == nil {
		return nil, false
	}
	idle, _ := f.core.Evictable(now, 0)
	if len(idle) == 0 || idle[0].Idle < 100*time.Millisecond {
		return nil, false
	}
	n.after(c.between(time.Millisecond, 200*time.Millisecond), func() {
		f.step(core.EvictRequested{CID: idle[0].CID, IdleFor: idle[0].Idle, Reason: string(core.BecauseEvicted)})
	})
	return nil, true
}
