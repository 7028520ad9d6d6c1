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
func (s *functionTable) find(uid string) *functionEntry {
	s.mu.RLock()
	a := s.functions[uid]
	s.mu.RUnlock()
	if a != nil {
		a.mu.Lock()
	}
	return a
}

// lockOrAdd returns a function's entry with its lock held.
func (s *functionTable) lockOrAdd(uid string) *functionEntry {
	for {
		a := s.find(uid)
		if a == nil {
			a = s.insert(uid)
			a.mu.Lock()
		}
		if !a.closed {
			return a
		}
		a.mu.Unlock()
	}
}

// insert adds an entry for a function, unless it has one by now.
func (s *functionTable) insert(uid string) *functionEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.functions[uid]
	if a == nil {
		a = &functionEntry{uid: uid, usage: s.usage, changes: s.changes, instances: make(map[invocation.CID]*Instance), sequence: s.sequenceFloor}
		s.functions[uid] = a
	}
	return a
}

// closeIfGone closes an entry if its function was deleted and its last instance has ended. The
// caller holds its lock.
func (s *functionTable) closeIfGone(a *functionEntry) {
	if !a.forgotten || len(a.instances) > 0 || a.closed {
		return
	}
	a.closed = true
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.functions, a.uid)
	s.sequenceFloor = max(s.sequenceFloor, a.sequence)
}

// entries returns the open entries, without their locks.
func (s *functionTable) entries() []*functionEntry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*functionEntry, 0, len(s.functions))
	for _, a := range s.functions {
		all = append(all, a)
	}
	return all
}

// each calls do with all instances, under the lock of each one's function.
func (s *functionTable) each(do func(in *Instance)) {
	for _, a := range s.entries() {
		a.mu.Lock()
		for _, in := range a.instances {
			do(in)
		}
		a.mu.Unlock()
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
	// closed says that this entry has been replaced, for a goroutine that found it before.
	closed bool
}

// launch adds an instance that is launched now and names it.
func (a *functionEntry) launch(named func(seq uint64) invocation.CID, in Instance) Instance {
	a.forgotten = false
	in.Key = Key{FunctionUID: a.uid, CID: a.name(named)}
	in.State = Creating
	a.add(in)
	return in
}

// name is the next unused name. An adopted instance may have any name: where etcd has lost its
// history, epochs repeat, and with them earlier names.
func (a *functionEntry) name(named func(seq uint64) invocation.CID) invocation.CID {
	for {
		a.sequence++
		if cid := named(a.sequence); a.instances[cid] == nil {
			return cid
		}
	}
}

func (a *functionEntry) add(in Instance) {
	a.instances[in.CID] = &in
	a.counts = a.counts.plus(countsFor(&in))
	a.usage.add(in.Node, in.Requests)
	a.changes.mark(a.uid)
}

func (a *functionEntry) removeInstance(in *Instance) {
	delete(a.instances, in.CID)
	a.counts = a.counts.minus(countsFor(in))
	a.usage.subtract(in.Node, in.Requests)
	a.changes.mark(a.uid)
}

// change changes an instance and updates the sums.
func (a *functionEntry) change(in *Instance, how func(in *Instance)) {
	before, was := countsFor(in), in.State
	how(in)
	if in.State != was {
		a.changes.mark(a.uid)
	}
	if after := countsFor(in); after != before {
		a.counts = a.counts.minus(before).plus(after)
	}
}

// cancelLaunches marks up to n instances whose agents have not connected as leaving, the
// youngest first.
func (a *functionEntry) cancelLaunches(n int) []Key {
	var unconnected []*Instance
	for _, in := range a.instances {
		if in.neverConnected() {
			unconnected = append(unconnected, in)
		}
	}
	slices.SortFunc(unconnected, func(a, b *Instance) int { return YoungestFirst(*a, *b) })
	var cancelled []Key
	for _, in := range unconnected[:min(max(0, n), len(unconnected))] {
		a.change(in, func(in *Instance) { in.markLeaving(time.Time{}) })
		cancelled = append(cancelled, in.Key)
	}
	return cancelled
}

// takeOverdue blames the instances that are overdue for it, and returns them. Silence
// counts only while the function is owned, and for adoptTimeout has been: until then agents may
// work for another scheduler. One that is cut off from all others would delete every pod. What
// it launched itself and never heard of is overdue in any case.
func (a *functionEntry) takeOverdue(now time.Time, owned bool, createdAt func(*Instance) time.Time) (overdue []Instance) {
	if !owned {
		a.doubted = now
	}
	silenceCounts := a.doubted.IsZero() || now.Sub(a.doubted) > adoptTimeout
	for _, in := range a.instances {
		if in.State == Creating && in.StartBy.IsZero() {
			in.setStartBy(createdAt(in))
		}
		if in.overdue(now) && (silenceCounts || in.State == Leaving || !in.Adopted && in.neverConnected()) {
			in.setCause(in.overdueCode(), in.overdueReason())
			overdue = append(overdue, *in)
		}
	}
	return overdue
}
