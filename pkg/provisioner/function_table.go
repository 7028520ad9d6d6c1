package provisioner

import (
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// functionTable has the entries of all functions. Each has its own lock, so that work on one
// function does not wait for others.
type functionTable struct {
	// usage and changes are what all entries come to.
	usage   *nodeUsage
	changes *ChangeTracker

	// mu guards the map but not the entries. It is never held while an entry's lock is waited
	// for.
	mu        sync.RWMutex
	functions map[string]*functionEntry
	// sequenceFloor is the highest sequence of closed entries, with which new entries
	// continue: a revision can come back while a pod of its earlier use still exists.
	sequenceFloor uint64
}

func newFunctionTable() *functionTable {
	s := &functionTable{usage: newNodeUsage(), functions: make(map[string]*functionEntry)}
	s.changes = &ChangeTracker{table: s}
	return s
}

// find returns a function's entry with its lock held, or nil.
func (t *functionTable) find(uid string) *functionEntry {
	t.mu.RLock()
	e := t.functions[uid]
	t.mu.RUnlock()
	if e != nil {
		e.mu.Lock()
	}
	return e
}

// lockOrAdd returns a function's entry with its lock held.
func (t *functionTable) lockOrAdd(uid string) *functionEntry {
	for {
		e := t.find(uid)
		if e == nil {
			e = t.insert(uid)
			e.mu.Lock()
		}
		if !e.closed {
			return e
		}
		e.mu.Unlock()
	}
}

// insert adds an entry for a function, unless it has one by now.
func (t *functionTable) insert(uid string) *functionEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.functions[uid]
	if e == nil {
		e = &functionEntry{uid: uid, usage: t.usage, changes: t.changes, instances: make(map[invocation.CID]*Instance), sequence: t.sequenceFloor}
		t.functions[uid] = e
	}
	return e
}

// closeIfGone closes an entry if its function was deleted and its last instance has ended. The
// caller holds its lock.
func (t *functionTable) closeIfGone(e *functionEntry) {
	if !e.forgotten || len(e.instances) > 0 || e.closed {
		return
	}
	e.closed = true
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.functions, e.uid)
	t.sequenceFloor = max(t.sequenceFloor, e.sequence)
}

// entries returns the open entries, without their locks.
func (t *functionTable) entries() []*functionEntry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]*functionEntry, 0, len(t.functions))
	for _, e := range t.functions {
		all = append(all, e)
	}
	return all
}

// each calls do with all instances, under the lock of each one's function.
func (t *functionTable) each(do func(in *Instance)) {
	for _, e := range t.entries() {
		e.mu.Lock()
		for _, in := range e.instances {
			do(in)
		}
		e.mu.Unlock()
	}
}

// functionEntry is the record of one function, under its own lock. It outlives the function's
// instances, so that no name is given twice, until the function is removed. Callers of its
// methods hold the lock.
type functionEntry struct {
	uid string
	// The entry passes every change on to usage and changes, which have locks of their own.
	usage   *nodeUsage
	changes *ChangeTracker

	mu        sync.Mutex
	instances map[invocation.CID]*Instance
	counts    Counts
	sequence  uint64
	backoff   StartBackoff
	forgotten bool
	// doubted is when the scheduler was last not known to own the function.
	doubted time.Time
	// lookedAt is when it was last looked at for overdue instances, or first had one, and pausedAt
	// when that had been pauseThreshold ago.
	lookedAt, pausedAt time.Time
	// closed says that this entry has been replaced, for a goroutine that found it before.
	closed bool
}

// launch adds an instance that is launched now and names it.
func (e *functionEntry) launch(named func(seq uint64) invocation.CID, in Instance) Instance {
	e.forgotten = false
	in.Key = Key{FunctionUID: e.uid, CID: e.name(named)}
	in.State = Creating
	e.add(in)
	return in
}

// name is the next unused name. An adopted instance may have any name: where etcd has lost its
// history, epochs repeat, and with them earlier names.
func (e *functionEntry) name(named func(seq uint64) invocation.CID) invocation.CID {
	for {
		e.sequence++
		if cid := named(e.sequence); e.instances[cid] == nil {
			return cid
		}
	}
}

func (e *functionEntry) add(in Instance) {
	e.instances[in.CID] = &in
	e.counts = e.counts.plus(countsFor(&in))
	e.usage.add(in.Node, in.Requests)
	e.changes.mark(e.uid)
}

func (e *functionEntry) removeInstance(in *Instance) {
	delete(e.instances, in.CID)
	e.counts = e.counts.minus(countsFor(in))
	e.usage.subtract(in.Node, in.Requests)
	e.changes.mark(e.uid)
}

// change changes an instance and updates the sums.
func (e *functionEntry) change(in *Instance, how func(in *Instance)) {
	before, was := countsFor(in), in.State
	how(in)
	if in.State != was {
		e.changes.mark(e.uid)
	}
	if after := countsFor(in); after != before {
		e.counts = e.counts.minus(before).plus(after)
	}
}

// cancelLaunches marks up to n instances whose agents have not connected as leaving, the
// youngest first.
func (e *functionEntry) cancelLaunches(n int) []Key {
	var unconnected []*Instance
	for _, in := range e.instances {
		if in.neverConnected() {
			unconnected = append(unconnected, in)
		}
	}
	slices.SortFunc(unconnected, func(a, b *Instance) int { return YoungestFirst(*a, *b) })
	var cancelled []Key
	for _, in := range unconnected[:min(max(0, n), len(unconnected))] {
		e.change(in, func(in *Instance) { in.markLeaving(time.Time{}) })
		cancelled = append(cancelled, in.Key)
	}
	return cancelled
}

// neverHadCalls reports whether an instance that was launched here has had no calls, not even of
// another scheduler. That is certain only of one whose agent has been here since it connected: if
// the way to this scheduler is cut, another one stands in, and agents go there.
func (e *functionEntry) neverHadCalls(in *Instance, now time.Time) bool {
	return in.State == Creating && !in.Adopted && in.Connected && in.DisconnectedAt.IsZero() && e.ownedForLong(now) && !e.paused(now)
}

// ownedForLong reports whether the function is owned, and for adoptTimeout has been: until then
// agents may work for another scheduler.
func (e *functionEntry) ownedForLong(now time.Time) bool {
	return e.doubted.IsZero() || now.Sub(e.doubted) > adoptTimeout
}

// paused reports whether the process may have stood still lately, so that an agent may have left
// unnoticed.
func (e *functionEntry) paused(now time.Time) bool {
	return now.Sub(e.lookedAt) >= pauseThreshold || now.Sub(e.pausedAt) <= adoptTimeout
}

// noteLook records that the function is looked at for overdue instances.
func (e *functionEntry) noteLook(now time.Time, owned bool) {
	if !owned {
		e.doubted = now
	}
	if now.Sub(e.lookedAt) >= pauseThreshold {
		e.pausedAt = now
	}
	e.lookedAt = now
}

// takeOverdue blames the instances that are overdue for it, and returns them. Silence
// counts only while the function is ownedForLong: a scheduler that is cut off from all others
// would delete every pod. What it launched itself and never heard of is overdue in any case.
func (e *functionEntry) takeOverdue(now time.Time, owned bool, createdAt func(*Instance) time.Time) (overdue []Instance) {
	e.noteLook(now, owned)
	silenceCounts := e.ownedForLong(now)
	for _, in := range e.instances {
		if in.State == Creating && in.StartBy.IsZero() {
			in.setStartBy(createdAt(in))
		}
		if in.overdue(now) && (silenceCounts || in.State == Leaving || !in.Adopted && in.neverConnected()) {
			in.Finished = e.neverHadCalls(in, now)
			e.change(in, func(in *Instance) { in.setCause(in.overdueCode(), in.overdueReason()) })
			overdue = append(overdue, *in)
		}
	}
	return overdue
}
