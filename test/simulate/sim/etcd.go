package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

const (
	leaseTTL = 4 * time.Second
	// expireEvery is how often etcd looks for leases that have ended.
	expireEvery = 500 * time.Millisecond
	// requestTimeout is how long an answer of etcd is waited for.
	requestTimeout = time.Second
	etcdMachine    = 0
)

// etcd is the keeper of the truth about owners: the store of package coordinator,
// and what can happen to one that runs on machines of its own.
type etcd struct {
	world *World
	store *coordinator.Store
	// history counts how often it lost what it knew.
	history int
	// noticed is when everybody has noticed that it last did so, and what followed is over.
	noticed time.Duration
	// rewritten is when somebody last wrote an owner by hand, who may take as long to
	// hear of it as a lease lasts.
	rewritten time.Duration
	backup    *coordinator.Store
	// silent says that a restore ends no watch.
	silent bool
	// loses hears of the first write that takes a function from an owner which goes on, and of the content
	// before it. It is nil unless that is to be lost. arms counts how often it was set.
	loses  func(before *coordinator.Store)
	before *coordinator.Store
	arms   int
	down   bool
	slow   time.Duration
	// tardy is how much later than it should a lease ends.
	tardy   time.Duration
	watches []*watch
	// elsewhere are the slots without functions. Their owner is no part
	// of the simulation.
	elsewhere []coordinator.Entry
}

// watch tells one node what changes.
type watch struct {
	node   *node
	life   int
	read   int64
	saw    func([]coordinator.Entry)
	broken func()
	busy   bool
	over   bool
}

func newEtcd(w *World) *etcd { return &etcd{world: w, store: coordinator.NewStore()} }

func (e *etcd) boot() {
	ours := make(map[ownership.Slot]bool)
	for _, fn := range e.world.functions {
		ours[fn.slot] = true
	}
	for slot := range ownership.Slot(ownership.Slots) {
		if !ours[slot] {
			e.elsewhere = append(e.elsewhere, coordinator.Entry{
				Key: coordinator.Key{Slot: slot}, Value: coordinator.Value{ID: "elsewhere", Addr: "elsewhere"},
				Lease: 1 << 40, Revision: 1,
			})
		}
	}
	e.expire()
}

// now is what etcd's clock shows.
func (e *etcd) now() time.Time { return start.Add(e.world.now) }

func (e *etcd) expire() {
	if !e.down && len(e.store.Expire(e.now().Add(-e.tardy))) > 0 {
		e.world.note("etcd", "ends leases", uint64(e.store.Revision()), 0)
		e.notify()
	}
	e.world.at(expireEvery, e.expire)
}

func (e *etcd) listing() coordinator.Listing {
	l := e.store.List()
	l.Entries = append(l.Entries, e.elsewhere...)
	return l
}

// glance is what a comparison asks for: the revision, the number of keys and the last write. The keys of slots
// elsewhere never change, and count neither here nor among the last writes of a listing.
type glance struct {
	revision int64
	keys     int
	last     []coordinator.LastWrite
}

func (e *etcd) glance() glance {
	l := e.store.List()
	g := glance{revision: l.Revision, keys: len(l.Entries)}
	if len(l.Entries) > 0 {
		last := slices.MaxFunc(l.Entries, func(a, b coordinator.Entry) int { return cmp.Compare(a.Revision, b.Revision) })
		g.last = []coordinator.LastWrite{lastWriteOf(last)}
	}
	return g
}

func (e *etcd) lastWrites(l coordinator.Listing) []coordinator.LastWrite {
	ours := l.Entries[:len(l.Entries)-len(e.elsewhere)]
	writes := make([]coordinator.LastWrite, len(ours))
	for i, entry := range ours {
		writes[i] = lastWriteOf(entry)
	}
	return writes
}

func lastWriteOf(e coordinator.Entry) coordinator.LastWrite {
	return coordinator.LastWrite{Key: keyName(e.Key), Revision: e.Revision, Lease: e.Lease, Value: e.Value.ID}
}

func keyName(k coordinator.Key) string { return k.Member + "/" + decimal(int(k.Slot)) }

// ask carries out f at etcd and hands its answer to then on the node. If there is
// no answer in time, then is told so; f may have been carried out or not.
func (e *etcd) ask(n *node, f func() any, then func(answer any, ok bool)) {
	w, answered, life := e.world, false, n.life
	n.after(requestTimeout, func() {
		if !answered {
			answered = true
			then(nil, false)
		}
	})
	w.at(w.net.delay(n.machine, etcdMachine)+e.lag(), func() {
		if e.down || w.net.blocked[n.machine][etcdMachine] || n.life != life {
			return
		}
		answer := f()
		w.at(w.net.delay(etcdMachine, n.machine), func() {
			if e.down || w.net.blocked[etcdMachine][n.machine] {
				return
			}
			n.do(life, false, func() {
				if !answered {
					answered = true
					then(answer, true)
				}
			})
		})
	})
}

func (e *etcd) lag() time.Duration {
	if e.slow == 0 {
		return time.Duration(e.world.rng.Int64N(int64(time.Millisecond)))
	}
	return time.Duration(e.world.rng.Int64N(int64(e.slow)))
}

// watch begins to tell a node of changes after a revision.
func (e *etcd) watch(n *node, after int64, saw func([]coordinator.Entry), broken func()) *watch {
	x := &watch{node: n, life: n.life, read: after, saw: saw, broken: broken}
	e.watches = append(e.watches, x)
	e.pumpLater(x, 0)
	return x
}

// notify lets all watches know that there is something new.
func (e *etcd) notify() {
	e.noteOwners()
	for _, x := range e.watches {
		e.pumpLater(x, 0)
	}
}

func (e *etcd) pumpLater(x *watch, in time.Duration) {
	if x.busy || x.over {
		return
	}
	x.busy = true
	in += e.lag() + e.world.net.delay(etcdMachine, x.node.machine)
	e.world.at(in, func() {
		x.busy = false
		e.pump(x)
	})
}

// pump tells a node what has changed since it was told last.
func (e *etcd) pump(x *watch) {
	if x.over || x.node.life != x.life {
		e.watches = without(e.watches, x)
		return
	}
	if e.down || e.world.net.blocked[etcdMachine][x.node.machine] || x.node.paused {
		e.pumpLater(x, 200*time.Millisecond)
		return
	}
	changes, err := e.store.Since(x.read)
	switch {
	case err != nil || e.store.Revision() < x.read && !e.silent:
		e.watches = without(e.watches, x)
		x.over = true
		x.node.do(x.life, false, x.broken)
	case len(changes) > 0:
		x.read = e.store.Revision()
		told := append([]coordinator.Entry(nil), changes...)
		x.node.do(x.life, false, func() { x.saw(told) })
	}
}

// breakWatches ends all watches, as a restart of etcd does.
func (e *etcd) breakWatches() {
	watches := e.watches
	e.watches = nil
	for _, x := range watches {
		x.over = true
		x.node.do(x.life, false, x.broken)
	}
}

// rewind replaces what etcd knows.
func (e *etcd) rewind(store *coordinator.Store) {
	e.replace(store, 0)
	e.breakWatches()
}

// aftermath is for how long scheduler's slots may be in disorder after others have noticed something.
const aftermath = 4 * leaseTTL

// replace replaces what etcd knows, which everybody notices within some time.
func (e *etcd) replace(store *coordinator.Store, noticed time.Duration) {
	e.store.Restore(store)
	e.history++
	e.noticed = e.world.now + noticed + aftermath
}

// arm sets loses for some time.
func (e *etcd) arm(within time.Duration, loses func(before *coordinator.Store)) {
	e.loses, e.before = loses, e.store.Clone()
	e.arms++
	mine := e.arms
	e.world.at(within, func() {
		if e.arms == mine {
			e.loses = nil
		}
	})
}

// noteOwners looks whether the last write has done so.
func (e *etcd) noteOwners() {
	if e.loses == nil || e.before == nil {
		return
	}
	before := e.before
	e.before = e.store.Clone()
	for _, fn := range e.world.functions {
		was, is := before.Get(slotKey(fn)), e.store.Get(slotKey(fn))
		if !was.Absent && !is.Absent && was.Value != is.Value && e.world.nodeOf(was.Value.ID).able() {
			e.before = nil
			e.loses(before)
			return
		}
	}
}
