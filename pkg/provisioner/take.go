package provisioner

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// Recognize returns the instance that an agent's proof is of. The error is
// ErrUnknownInstance, wraps ErrBadToken or is a passing one. Where there are no
// spare instances, nobody is recognized.
func (p *Provisioner) Recognize(proof string) (Instance, error) {
	if p.deps.Identify == nil {
		return Instance{}, ErrUnknownInstance
	}
	key, err := p.deps.Identify(proof)
	if err != nil {
		return Instance{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Get(key)
}

// Take makes a spare instance one of the function's, which counts as ordered from now
// on. It returns at once; told is called later with whether it worked. If it did not,
// nothing is left of either instance, and another one must be ordered. It is false,
// and nothing happens, if the spare instance cannot be had, or if the function may
// not be given an instance now, since its last ones did not start.
func (p *Provisioner) Take(fn *v1alpha1.Function, term invoke.Term, pooled Key, told func(key Key, taken bool)) (Key, bool) {
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
			p.strike(key)
		}
		told(key, taken)
	}
	if !p.deps.Taker.Take(pooled.FunctionUID, pooled.CID, InstanceSpec{Function: fn, CID: in.CID, Node: in.Node}, settled) {
		// The spare instance has ended, which its Exit will tell.
		p.strike(key)
		return Key{}, false
	}
	p.strike(pooled)
	return key, true
}

// enter orders an instance in the place of a spare one, which stays until the other
// is there.
func (p *Provisioner) enter(fn *v1alpha1.Function, term invoke.Term, pooled Key) (Instance, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid, now := string(fn.UID), p.deps.Now()
	in, err := p.inventory.Get(pooled)
	if err != nil || in.State != Created || !in.Connected || in.Blamed != "" {
		return Instance{}, false
	}
	if p.guards.of(uid).Allowed(now, 1, p.inventory.Count(uid).Creating) == 0 {
		return Instance{}, false
	}
	entry := Instance{
		Revision: fn.Revision(), Node: in.Node, Requests: in.Requests,
		Ordered: now, StartBy: now.Add(startLimit(fn)), Spare: true,
	}
	entry.Key = p.inventory.Order(uid, term, entry)
	return entry, true
}

// strike takes an instance off the inventory that has no Exit.
func (p *Provisioner) strike(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.inventory.Remove(key)
}
