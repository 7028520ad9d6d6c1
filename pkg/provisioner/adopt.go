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
func (p *Provisioner) Adopt(fn *v1alpha1.Function) {
	if p.deps.Shared == nil {
		return
	}
	existing := p.deps.Shared.Adopt(fn)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.deps.Now()
	for _, e := range existing {
		in := Instance{
			Key:      Key{FunctionUID: string(fn.UID), CID: e.CID},
			Revision: e.Revision, Node: e.Node, Requests: e.Requests, Ordered: e.Started,
			StartBy: e.Started.Add(startLimit(fn)), Ran: e.Ran,
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
	p.deps.Shared.Release(uid)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.guards, uid)
	p.inventory.Release(uid)
}
