package provisioner

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// adoptPatience is how long an instance that was adopted has to say hello: its
// agent may have to notice first that it lost its scheduler.
const adoptPatience = 15 * time.Second

// Adopt takes over the instances of a function that somebody else started. To do
// it twice does no harm.
//
// From the runtime's answer until its instances are in the inventory the lock is held:
// an instance that ends meanwhile is looked for only when it is there to be found.
func (p *Provisioner) Adopt(fn *v1alpha1.Function) {
	if p.deps.Shared == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.deps.Now()
	for _, e := range p.deps.Shared.Adopt(fn) {
		ordered := e.Started
		if ordered.After(now) {
			// The clock of whoever ordered it is ahead.
			ordered = now
		}
		in := Instance{
			Key:      Key{FunctionUID: string(fn.UID), CID: e.CID},
			Revision: e.Revision, Node: e.Node, Requests: e.Requests, Ordered: ordered,
			StartBy: ordered.Add(startLimit(fn)), Ran: e.Ran,
		}
		if soonest := now.Add(adoptPatience); in.StartBy.Before(soonest) {
			in.StartBy = soonest
		}
		if e.Ending {
			in.State = Leaving
		}
		p.inventory.Adopt(in)
	}
}

// Release leaves a function's instances to somebody else.
func (p *Provisioner) Release(uid string) {
	if p.deps.Shared == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deps.Shared.Release(uid)
	p.guards.drop(uid)
	p.inventory.Release(uid)
}
