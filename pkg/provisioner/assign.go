package provisioner

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Assign makes a spare instance one of the function's, which counts as ordered from now
// on. It returns at once; told is called later with whether it worked. If it did not,
// nothing is left of either instance, and another one must be ordered. It is false,
// and nothing happens, if the spare instance cannot be had, or if the function may
// not be given an instance now, since its last ones did not start.
func (p *Provisioner) Assign(fn *v1alpha1.Function, term invocation.Term, spare Key, done func(key Key, taken bool)) (Key, bool) {
	if p.deps.Assigner == nil {
		return Key{}, false
	}
	in, ok := p.launchAssigned(fn, term, spare)
	if !ok {
		return Key{}, false
	}
	key := in.Key
	settled := func(taken bool) {
		if !taken {
			p.Inventory.removeWithoutExit(key)
		}
		done(key, taken)
	}
	if !p.deps.Assigner.Assign(spare.FunctionUID, spare.CID, InstanceSpec{Function: fn, CID: in.CID, Node: in.Node}, settled) {
		// The spare instance has ended, which its Exit will tell.
		p.Inventory.removeWithoutExit(key)
		return Key{}, false
	}
	p.Inventory.removeWithoutExit(spare)
	return key, true
}

// launchAssigned orders an instance in the place of a spare one, which stays until the other
// is there.
func (p *Provisioner) launchAssigned(fn *v1alpha1.Function, term invocation.Term, spare Key) (Instance, bool) {
	in, known := p.Lookup(spare)
	if !known || in.State != Created || !in.Connected || in.Cause != "" {
		return Instance{}, false
	}
	now := p.deps.Now()
	launched := p.Inventory.launch(string(fn.UID), names(fn, term), 1, func() (Instance, bool) {
		return Instance{
			Revision: fn.Revision(), Node: in.Node, Requests: in.Requests,
			Launched: now, StartBy: now.Add(startLimit(fn)), Spare: true,
		}, true
	})
	if len(launched) == 0 {
		return Instance{}, false
	}
	return launched[0], true
}
