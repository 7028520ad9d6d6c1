package provisioner

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Connect records the stream of an authenticated agent.
func (v *Inventory) Connect(key Key) {
	v.change(key, func(_ *functionEntry, in *Instance) { in.Connected = true })
}

// Disconnect records the end of an agent's stream.
func (v *Inventory) Disconnect(key Key) {
	now := v.now()
	v.change(key, func(_ *functionEntry, in *Instance) { in.Connected, in.DisconnectedAt = false, now })
}

// Pulled records that an instance asked for work. first says that it never did before, and
// took is the time since its launch. took is 0 for an adopted instance, whose launch another
// scheduler's clock measured, and for a former spare instance.
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

// launch enters up to n instances of a function, as next makes them: fewer if next makes no
// more, or while the function's start back-off lasts. The seq-th is named(seq).
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

// adopt adds the instances of a function that another scheduler started and found returns.
// Until they pull they count as creating, so that no replacement is launched. A known instance
// stays as it is.
//
// The lock is held while found runs, so that an exit in the meantime is handled after its
// instance was added.
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

// release drops a function's instances, which another scheduler takes over. The lock is held
// while handOver runs, as in adopt.
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

// cancelLaunches marks up to n of a function's instances whose agents have not connected as
// leaving.
func (v *Inventory) cancelLaunches(uid string, n int) []Key {
	a := v.find(uid)
	if a == nil {
		return nil
	}
	defer a.mu.Unlock()
	return a.cancelLaunches(n)
}

// markEnding records how an instance ends.
func (v *Inventory) markEnding(key Key, how Ending) {
	now := v.now()
	v.change(key, func(_ *functionEntry, in *Instance) { in.markEnding(how, now) })
}

// removeWithoutExit removes an instance that has no Exit.
func (v *Inventory) removeWithoutExit(key Key) {
	if a := v.find(key.FunctionUID); a != nil {
		defer a.mu.Unlock()
		if in := a.instances[key.CID]; in != nil {
			a.removeInstance(in)
			v.closeIfGone(a)
		}
	}
}

// recordExit removes an instance that has ended, and returns its last state. A failed start
// counts for the function's back-off.
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
		a.backoff.Failed(v.now(), ended.Launched, why)
	}
	v.closeIfGone(a)
	return *ended, why, true
}

// takeOverdue blames all overdue instances for it, and returns them with their causes; their states
// stay until they exit.
func (v *Inventory) takeOverdue(owns func(uid string) bool, createdAt func(*Instance) time.Time) (overdue []Instance) {
	for _, a := range v.entries() {
		owned := owns(a.uid)
		a.mu.Lock()
		overdue = append(overdue, a.takeOverdue(v.now(), owned, createdAt)...)
		a.mu.Unlock()
	}
	return overdue
}

// ResetBackoff drops a function's start failures.
func (v *Inventory) ResetBackoff(uid string) {
	if a := v.find(uid); a != nil {
		defer a.mu.Unlock()
		a.backoff = StartBackoff{}
	}
}

// Forget removes a deleted function: the record of its instances stays until they have ended.
func (v *Inventory) Forget(uid string) {
	if a := v.find(uid); a != nil {
		defer a.mu.Unlock()
		a.backoff, a.forgotten = StartBackoff{}, true
		v.closeIfGone(a)
	}
}
