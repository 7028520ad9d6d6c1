package provisioner

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/internal/reconcile"
)

// Inventory has the instances that were launched or adopted and have not ended, and the
// results of the last starts.
type Inventory struct {
	*functionTable
	now func() time.Time
}

func newInventory(now func() time.Time) *Inventory {
	return &Inventory{functionTable: newFunctionTable(), now: now}
}

// change changes an instance and updates the sums. It reports whether the instance is known.
func (i *Inventory) change(key Key, how func(e *functionEntry, in *Instance)) bool {
	e := i.find(key.FunctionUID)
	if e == nil {
		return false
	}
	defer e.mu.Unlock()
	in := e.instances[key.CID]
	if in != nil {
		e.change(in, func(in *Instance) { how(e, in) })
	}
	return in != nil
}

// Lookup returns an instance that was launched or adopted and has not ended.
func (i *Inventory) Lookup(key Key) (Instance, bool) {
	e := i.find(key.FunctionUID)
	if e == nil {
		return Instance{}, false
	}
	defer e.mu.Unlock()
	in := e.instances[key.CID]
	if in == nil {
		return Instance{}, false
	}
	return *in, true
}

// get is Lookup with an error, which is ErrUnknownInstance or nil.
func (i *Inventory) get(key Key) (Instance, error) {
	in, known := i.Lookup(key)
	if !known {
		return Instance{}, fmt.Errorf("%w: %s", ErrUnknownInstance, key.CID)
	}
	return in, nil
}

// Instances returns a function's instances, in no order.
func (i *Inventory) Instances(uid string) []Instance {
	e := i.find(uid)
	if e == nil {
		return nil
	}
	defer e.mu.Unlock()
	all := make([]Instance, 0, len(e.instances))
	for _, in := range e.instances {
		all = append(all, *in)
	}
	return all
}

// Connected says, for each instance that is not leaving, whether its agent is recorded as
// connected.
func (i *Inventory) Connected() map[Key]bool {
	connected := make(map[Key]bool)
	i.each(func(in *Instance) {
		if in.State != Leaving {
			connected[in.Key] = in.Connected
		}
	})
	return connected
}

// keys are the keys of all instances.
func (i *Inventory) keys() reconcile.Set[Key] {
	keys := make(reconcile.Set[Key])
	i.each(func(in *Instance) { keys.Add(in.Key) })
	return keys
}
