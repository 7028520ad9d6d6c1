package provisioner

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Connect notes that the stream of an agent that was checked is there.
func (v *Inventory) Connect(key Key) {
	v.change(key, func(_ *functionEntry, in *Instance) { in.Connected = true })
}

// Disconnect notes that an agent's stream ended.
func (v *Inventory) Disconnect(key Key) {
	now := v.now()
	v.change(key, func(_ *functionEntry, in *Instance) { in.Connected, in.DisconnectedAt = false, now })
}

// Pulled notes that an instance asked for work. It tells whether it did so for the
// first time, and how long it took from its order; 0 if that is not known, since it
// was adopted, so that another scheduler's clock knows when, or was a spare instance.
func (v *Inventory) Pulled(key Key) (took time.Duration, first bool) {
	now := v.now()
	v.change(key, func(a *functionEntry, in *Instance) {
		if in.State != Creating {
			return
		}
		in.State, first, a.backoff = Created, true, StartBackoff{}
		if !in.Adopted && !in.Spare {
			took = max(0, now.Sub(in.Launched))
		}
	})
	return took, first
}

// launch enters up to n instances of a function, as next makes them: fewer if it makes
// no more, or if the function's last instances did not start. The seq-th is named(seq).
func (v *Inventory) launch(uid string, named func(seq uint64) invocation.CID, n int, next func() (Instance, bool)) (launched []Instance) {
	a := v.lockOrAdd(uid)
	defer a.mu.Unlock()
	for range a.backoff.Allowed(v.now(), n, a.counts.Creating) {
		in, ok := next()
		if !ok {
			break
		}
		launched = append(launched, a.launch(named, in))
	}
	return launched
}

// adopt adds the instances of a function that somebody else started and found returns.
// Until they pull they count as being created, so that nothing is ordered in their place.
// One that is known already stays as it is.
//
// The lock is held from before found is called: an instance that ends meanwhile is looked
// for only when it is there to be found.
func (v *Inventory) adopt(uid string, found func() []Instance) {
	a := v.lockOrAdd(uid)
	defer a.mu.Unlock()
	for _, in := range found() {
		if a.instances[in.CID] == nil {
			in.FunctionUID, in.Adopted = uid, true
			a.add(in)
		}
	}
}

// release drops a function's instances, which somebody else looks after. The lock is
// held while handOver is called, as in adopt.
func (v *Inventory) release(uid string, handOver func()) {
	a := v.lockOrAdd(uid)
	defer a.mu.Unlock()
	handOver()
	a.backoff = StartBackoff{}
	for _, in := range a.instances {
		a.removeInstance(in)
	}
	v.closeIfGone(a)
}

// cancelLaunches has up to n instances of a function that nobody has heard of leave.
func (v *Inventory) cancelLaunches(uid string, n int) []Key {
	a := v.find(uid)
	if a == nil {
		return nil
	}
	defer a.mu.Unlock()
	return a.cancelLaunches(n)
}

// markEnding notes how an instance ends.
func (v *Inventory) markEnding(key Key, how Ending) {
	now := v.now()
	v.change(key, func(_ *functionEntry, in *Instance) { in.markEnding(how, now) })
}

// removeWithoutExit takes an instance off the inventory that has no Exit.
func (v *Inventory) removeWithoutExit(key Key) {
	if a := v.find(key.FunctionUID); a != nil {
		defer a.mu.Unlock()
		if in := a.instances[key.CID]; in != nil {
			a.removeInstance(in)
			v.closeIfGone(a)
		}
	}
}

// recordExit takes an instance off the inventory that has ended, and returns it as it was.
// A start that failed is held against its function.
func (v *Inventory) recordExit(exit Exit) (in Instance, why StartFailure, known bool) {
	a := v.find(exit.FunctionUID)
	if a == nil {
		return in, why, false
	}
	defer a.mu.Unlock()
	ended := a.instances[exit.CID]
	if ended == nil {
		return in, why, false
	}
	why = failureOf(*ended, exit)
	a.removeInstance(ended)
	if ended.startFailed() {
		a.backoff.Failed(v.now(), why)
	}
	v.closeIfGone(a)
	return *ended, why, true
}

// takeOverdue blames all instances that are overdue for it, and returns what each was.
func (v *Inventory) takeOverdue() (overdue []Instance) {
	for _, a := range v.entries() {
		a.mu.Lock()
		overdue = append(overdue, a.takeOverdue(v.now())...)
		a.mu.Unlock()
	}
	return overdue
}

// ResetBackoff drops what is known of a function's failures.
func (v *Inventory) ResetBackoff(uid string) {
	if a := v.find(uid); a != nil {
		defer a.mu.Unlock()
		a.backoff = StartBackoff{}
	}
}

// Forget drops what is known of a function that is gone, as far as its instances
// have ended, and of the others when they end.
func (v *Inventory) Forget(uid string) {
	if a := v.find(uid); a != nil {
		defer a.mu.Unlock()
		a.backoff, a.forgotten = StartBackoff{}, true
		v.closeIfGone(a)
	}
}
