package provisioner

import (
	"fmt"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/reconcile"
)

// Inventory is what was ordered or adopted and has not ended, and how the last starts
// went. Each function has a lock of its own, so that nobody waits for what is done for
// other functions.
type Inventory struct {
	now   func() time.Time
	nodes *occupancy
	moves *Moves

	// mu guards the map and not what is in it. It is never held while an account's
	// lock is waited for.
	mu        sync.RWMutex
	functions map[string]*account
}

func newInventory(now func() time.Time) *Inventory {
	v := &Inventory{now: now, nodes: newOccupancy(), functions: make(map[string]*account)}
	v.moves = &Moves{inventory: v}
	return v
}

// find returns a function's account with its lock held, or nil.
func (v *Inventory) find(uid string) *account {
	v.mu.RLock()
	a := v.functions[uid]
	v.mu.RUnlock()
	if a != nil {
		a.mu.Lock()
	}
	return a
}

// open returns a function's account with its lock held.
func (v *Inventory) open(uid string) *account {
	for {
		a := v.find(uid)
		if a == nil {
			a = v.enter(uid)
			a.mu.Lock()
		}
		if !a.closed {
			return a
		}
		a.mu.Unlock()
	}
}

// enter makes an account for a function, unless there is one by now.
func (v *Inventory) enter(uid string) *account {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.functions[uid]
	if a == nil {
		a = &account{
			uid: uid, nodes: v.nodes, moves: v.moves,
			instances: make(map[invoke.CID]*Instance), revisions: make(map[string]int),
		}
		v.functions[uid] = a
	}
	return a
}

// close closes an account, whose lock is held, if its function is gone and its last
// instance has ended.
func (v *Inventory) close(a *account) {
	if !a.forgotten || len(a.instances) > 0 || a.closed {
		return
	}
	a.closed = true
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.functions, a.uid)
}

// accounts are all that are open. Their locks are not held.
func (v *Inventory) accounts() []*account {
	v.mu.RLock()
	defer v.mu.RUnlock()
	all := make([]*account, 0, len(v.functions))
	for _, a := range v.functions {
		all = append(all, a)
	}
	return all
}

// each calls do with all instances, under the lock of the function of each.
func (v *Inventory) each(do func(in *Instance)) {
	for _, a := range v.accounts() {
		a.mu.Lock()
		for _, in := range a.instances {
			do(in)
		}
		a.mu.Unlock()
	}
}

// change changes what is counted of an instance, and tells whether it is known.
func (v *Inventory) change(key Key, how func(a *account, in *Instance)) bool {
	a := v.find(key.FunctionUID)
	if a == nil {
		return false
	}
	defer a.mu.Unlock()
	in := a.instances[key.CID]
	if in != nil {
		a.change(in, func(in *Instance) { how(a, in) })
	}
	return in != nil
}

// Look returns an instance, if it was ordered or adopted and has not ended.
func (v *Inventory) Look(key Key) (Instance, bool) {
	a := v.find(key.FunctionUID)
	if a == nil {
		return Instance{}, false
	}
	defer a.mu.Unlock()
	in := a.instances[key.CID]
	if in == nil {
		return Instance{}, false
	}
	return *in, true
}

// get is Look with an error, which is ErrUnknownInstance or nil.
func (v *Inventory) get(key Key) (Instance, error) {
	in, known := v.Look(key)
	if !known {
		return Instance{}, fmt.Errorf("%w: %s", ErrUnknownInstance, key.CID)
	}
	return in, nil
}

// Has tells whether an instance was ordered, or taken over, and has not ended.
func (v *Inventory) Has(key Key) bool {
	_, known := v.Look(key)
	return known
}

// Instances returns a function's instances, in no order.
func (v *Inventory) Instances(uid string) []Instance {
	a := v.find(uid)
	if a == nil {
		return nil
	}
	defer a.mu.Unlock()
	all := make([]Instance, 0, len(a.instances))
	for _, in := range a.instances {
		all = append(all, *in)
	}
	return all
}

// Connected says of each instance that is not leaving whether its agent's stream is
// believed to be there.
func (v *Inventory) Connected() map[Key]bool {
	connected := make(map[Key]bool)
	v.each(func(in *Instance) {
		if in.State != Leaving {
			connected[in.Key] = in.Connected
		}
	})
	return connected
}

// keys are those of all instances.
func (v *Inventory) keys() reconcile.Set[Key] {
	keys := make(reconcile.Set[Key])
	v.each(func(in *Instance) { keys.Add(in.Key) })
	return keys
}
