package provisioner

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Take makes a spare instance one of the function's, which counts as ordered from now
// on. It returns at once; told is called later with whether it worked. If it did not,
// nothing is left of either instance, and another one must be ordered. It is false,
// and nothing happens, if the spare instance cannot be had, or if the function may
// not be given an instance now, since its last ones did not start.
func (p *Provisioner) Take(fn *v1alpha1.Function, term invocation.Term, pooled Key, told func(key Key, taken bool)) (Key, bool) {
	if p.deps.Taker == nil {
		return Key{}, false
	}
	in, ok := p.enter(fn, term, pooled)
	if !ok {
		return Key{}, false
	}
	key := in.Key
	settled := func(taken bool) {
		if !taken {
			p.Inventory.remove(key)
		}
		told(key, taken)
	}
	if !p.deps.Taker.Take(pooled.FunctionUID, pooled.CID, InstanceSpec{Function: fn, CID: in.CID, Node: in.Node}, settled) {
		// The spare instance has ended, which its Exit will tell.
		p.Inventory.remove(key)
		return Key{}, false
	}
	p.Inventory.remove(pooled)
	return key, true
}

// enter orders an instance in the place of a spare one, which stays until the other
// is there.
func (p *Provisioner) enter(fn *v1alpha1.Function, term invocation.Term, pooled Key) (Instance, bool) {
	in, known := p.Look(pooled)
	if !known || in.State != Created || !in.Connected || in.Blamed != "" {
		return Instance{}, false
	}
	now := p.deps.Now()
	entered := p.Inventory.order(string(fn.UID), names(fn, term), 1, func() (Instance, bool) {
		return Instance{
			Revision: fn.Revision(), Node: in.Node, Requests: in.Requests,
			Ordered: now, StartBy: now.Add(startLimit(fn)), Spare: true,
		}, true
	})
	if len(entered) == 0 {
		return Instance{}, false
	}
	return entered[0], true
}
