package provisioner

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Connect records the stream of an authenticated agent.
func (i *Inventory) Connect(key Key) {
	i.change(key, func(_ *functionEntry, in *Instance) { in.Connected = true })
}

// Disconnect records the end of an agent's stream.
func (i *Inventory) Disconnect(key Key) {
	now := i.now()
	i.change(key, func(_ *functionEntry, in *Instance) { in.Connected, in.DisconnectedAt = false, now })
}

// Pulled records that an instance asked for work. first says that it never did before; of one
// that was stopped before, it is false. took is the time since its launch. took is 0 for an
// adopted instance, whose launch another scheduler's clock measured, and for a former spare
// instance.
func (i *Inventory) Pulled(key Key) (took time.Duration, first bool) {
	now := i.now()
	i.change(key, func(e *functionEntry, in *Instance) {
		if in.State != Creating || in.Cause != "" {
			return
		}
		in.State, first, e.backoff = Created, true, StartBackoff{}
		if !in.Adopted && !in.Spare {
			took = max(0, now.Sub(in.Launched))
		}
	})
	return took, first
}

// launch enters up to n instances of a function, as next makes them: fewer if next makes no
// more, or while the function's start back-off lasts. The seq-th is named(seq).
func (i *Inventory) launch(uid string, named func(seq uint64) invocation.CID, n int, next func() (Instance, bool)) (launched []Instance) {
	e := i.lockOrAdd(uid)
	defer e.mu.Unlock()
	now := i.now()
	if e.lookedAt.IsZero() {
		e.lookedAt = now
	}
	for range e.backoff.Allowed(now, n, e.counts.Creating) {
		in, ok := next()
		if !ok {
			break
		}
		launched = append(launched, e.launch(named, in))
	}
	return launched
}

// adopt adds the instances of a function that another scheduler started and found returns.
// Until they pull they count as creating, so that no replacement is launched. A known instance
// stays as it is.
//
// The lock is held while found runs, so that an exit in the meantime is handled after its
// instance was added.
func (i *Inventory) adopt(uid string, found func() []Instance) {
	e := i.lockOrAdd(uid)
	defer e.mu.Unlock()
	for _, in := range found() {
		if e.instances[in.CID] == nil {
			in.FunctionUID, in.Adopted = uid, true
			e.add(in)
		}
	}
}

// release drops a function's instances, which another scheduler takes over. The lock is held
// while handOver runs, as in adopt.
func (i *Inventory) release(uid string, handOver func()) {
	e := i.lockOrAdd(uid)
	defer e.mu.Unlock()
	handOver()
	e.backoff = StartBackoff{}
	for _, in := range e.instances {
		e.removeInstance(in)
	}
	i.closeIfGone(e)
}

// cancelLaunches marks up to n of a function's instances whose agents have not connected as
// leaving.
func (i *Inventory) cancelLaunches(uid string, n int) []Key {
	e := i.find(uid)
	if e == nil {
		return nil
	}
	defer e.mu.Unlock()
	return e.cancelLaunches(n)
}

// markEnding records how an instance ends. It reports whether the instance has no calls to finish.
func (i *Inventory) markEnding(key Key, how Ending) (finished bool) {
	now := i.now()
	finished = how.Finished
	i.change(key, func(e *functionEntry, in *Instance) {
		finished = finished || e.neverHadCalls(in, now)
		in.markEnding(how, now)
	})
	return finished
}

// removeWithoutExit removes an instance that has no Exit.
func (i *Inventory) removeWithoutExit(key Key) {
	if e := i.find(key.FunctionUID); e != nil {
		defer e.mu.Unlock()
		if in := e.instances[key.CID]; in != nil {
			e.removeInstance(in)
			i.closeIfGone(e)
		}
	}
}

// recordExit removes an instance that has ended, and returns its last state. A failed start
// counts for the function's back-off.
func (i *Inventory) recordExit(exit Exit) (in Instance, why StartFailure, known bool) {
	e := i.find(exit.FunctionUID)
	if e == nil {
		return in, why, false
	}
	defer e.mu.Unlock()
	ended := e.instances[exit.CID]
	if ended == nil {
		return in, why, false
	}
	why = failureOf(*ended, exit)
	e.removeInstance(ended)
	if ended.startFailed() {
		e.backoff.Failed(i.now(), ended.Launched, why)
	}
	i.closeIfGone(e)
	return *ended, why, true
}

// takeOverdue blames all overdue instances for it, and returns them with their causes; their states
// stay until they exit.
func (i *Inventory) takeOverdue(owns func(uid string) bool, createdAt func(*Instance) time.Time) (overdue []Instance) {
	now := i.now()
	for _, e := range i.entries() {
		owned := owns(e.uid)
		e.mu.Lock()
		overdue = append(overdue, e.takeOverdue(now, owned, createdAt)...)
		e.mu.Unlock()
	}
	return overdue
}

// ResetBackoff drops a function's start failures.
func (i *Inventory) ResetBackoff(uid string) {
	if e := i.find(uid); e != nil {
		defer e.mu.Unlock()
		e.backoff = StartBackoff{}
	}
}

// Forget removes a deleted function: the record of its instances stays until they have ended.
func (i *Inventory) Forget(uid string) {
	if e := i.find(uid); e != nil {
		defer e.mu.Unlock()
		e.backoff, e.forgotten = StartBackoff{}, true
		i.closeIfGone(e)
	}
}
