package provisioner

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// account is what is kept of one function, under the function's own lock. It outlives
// the function's instances, so that no name is given twice, until the function is
// forgotten. Its methods are called with the lock held.
type account struct {
	uid string
	// The account passes every change on to nodes and moves, which have locks of their own.
	nodes *occupancy
	moves *Moves

	mu        sync.Mutex
	instances map[invocation.CID]*Instance
	counts    Counts
	sequence  uint64
	guard     StartGuard
	forgotten bool
	// closed says that this account is not the function's any more, to somebody who
	// found it before.
	closed bool
}

// order adds an instance that is now ordered and names it.
func (a *account) order(named func(seq uint64) invocation.CID, in Instance) Instance {
	a.forgotten = false
	in.Key = Key{FunctionUID: a.uid, CID: a.name(named)}
	in.State = Creating
	a.add(in)
	return in
}

// name is the next name that no instance has. One that was adopted may have any: where
// etcd has lost its history, epochs come again, and with them the names of the time before.
func (a *account) name(named func(seq uint64) invocation.CID) invocation.CID {
	for {
		a.sequence++
		if cid := named(a.sequence); a.instances[cid] == nil {
			return cid
		}
	}
}

func (a *account) add(in Instance) {
	a.instances[in.CID] = &in
	a.counts = a.counts.plus(countsFor(&in))
	a.nodes.occupy(in.Node, in.Requests)
	a.moves.note(a.uid)
}

func (a *account) remove(in *Instance) {
	delete(a.instances, in.CID)
	a.counts = a.counts.minus(countsFor(in))
	a.nodes.vacate(in.Node, in.Requests)
	a.moves.note(a.uid)
}

// change changes what is counted of an instance.
func (a *account) change(in *Instance, how func(in *Instance)) {
	before, was := countsFor(in), in.State
	how(in)
	if in.State != was {
		a.moves.note(a.uid)
	}
	if after := countsFor(in); after != before {
		a.counts = a.counts.minus(before).plus(after)
	}
}

// withdraw has up to n instances that nobody has heard of leave, the youngest first.
func (a *account) withdraw(n int) []Key {
	var unheard []*Instance
	for _, in := range a.instances {
		if in.unheard() {
			unheard = append(unheard, in)
		}
	}
	slices.SortFunc(unheard, func(a, b *Instance) int {
		return cmp.Or(b.Ordered.Compare(a.Ordered), cmp.Compare(b.CID, a.CID))
	})
	var withdrawn []Key
	for _, in := range unheard[:min(max(0, n), len(unheard))] {
		a.change(in, func(in *Instance) { in.leave(time.Time{}) })
		withdrawn = append(withdrawn, in.Key)
	}
	return withdrawn
}

// blameOverdue blames the instances that are overdue for it, and returns what each was.
func (a *account) blameOverdue(now time.Time) (overdue []Instance) {
	for _, in := range a.instances {
		if in.overdue(now) {
			in.blame(in.overdueCode(), in.overdueReason())
			overdue = append(overdue, *in)
		}
	}
	return overdue
}
