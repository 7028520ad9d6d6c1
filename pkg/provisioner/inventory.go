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
func (v *Inventory) change(key Key, how func(a *functionEntry, in *Instance)) bool {
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

// Lookup returns an instance that was launched or adopted and has not ended.
func (v *Inventory) Lookup(key Key) (Instance, bool) {
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

// get is Lookup with an error, which is ErrUnknownInstance or nil.
func (v *Inventory) get(key Key) (Instance, error) {
	in, known := v.Lookup(key)
	if !known {
		return Instance{}, fmt.Errorf("%w: %s", ErrUnknownInstance, key.CID)
	}
	return in, nil
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

// Connected says, for each instance that is not leaving, whether its agent is recorded as
// connected.
func (v *Inventory) Connected() map[Key]bool {
	connected := make(map[Key]bool)
	v.each(func(in *Instance) {
		if in.State != Leaving {
			connected[in.Key] = in.Connected
		}
	})
	return connected
}

// keys are the keys of all instances.
func (v *Inventory) keys() reconcile.Set[Key] {
	keys := make(reconcile.Set[Key])
	v.each(func(in *Instance) { keys.Add(in.Key) })
	return keys
}
