package provisioner

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Assign makes a spare instance an instance of the function, which counts as launched from now
// on. It returns at once and later calls done. Unless it is AssignTaken, neither instance exists
// any more, and the caller must launch another one. Assign returns false and does nothing if the
// spare instance is not available, or while the function's start back-off lasts.
func (p *Provisioner) Assign(fn *v1alpha1.Function, term invocation.Term, spare Key, done func(key Key, result AssignResult)) (Key, bool) {
	if p.deps.Assigner == nil {
		return Key{}, false
	}
	in, ok := p.launchAssigned(fn, term, spare)
	if !ok {
		return Key{}, false
	}
	key := in.Key
	settled := func(result AssignResult) {
		if result != AssignTaken {
			p.Inventory.removeWithoutExit(key)
		}
		done(key, result)
	}
	if !p.deps.Assigner.Assign(spare.FunctionUID, spare.CID, InstanceSpec{Function: fn, CID: in.CID, Node: in.Node}, settled) {
		// The spare instance has ended, which its Exit reports.
		p.Inventory.removeWithoutExit(key)
		return Key{}, false
	}
	p.Inventory.removeWithoutExit(spare)
	return key, true
}

// launchAssigned enters an instance that replaces a spare one, which stays until the other
// exists.
func (p *Provisioner) launchAssigned(fn *v1alpha1.Function, term invocation.Term, spare Key) (Instance, bool) {
	in, known := p.Lookup(spare)
	if !known || in.State != Created || !in.Connected || in.Cause != "" {
		return Instance{}, false
	}
	now := p.deps.Now()
	launched := p.Inventory.launch(string(fn.UID), names(fn, term), 1, func() (Instance, bool) {
		return Instance{
			Function: fn.Key(), Revision: fn.Revision(), Node: in.Node, Requests: in.Requests,
			Launched: now, StartWithin: startLimit(fn), Spare: true,
		}, true
	})
	if len(launched) == 0 {
		return Instance{}, false
	}
	return launched[0], true
}
