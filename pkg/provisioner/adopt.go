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
	p.Inventory.adopt(string(fn.UID), func() []Instance {
		existing, now := p.deps.Shared.Adopt(fn), p.deps.Now()
		found := make([]Instance, 0, len(existing))
		for _, e := range existing {
			found = append(found, e.instance(fn, now))
		}
		return found
	})
}

// instance is the entry of an instance that is adopted now.
func (e Existing) instance(fn *v1alpha1.Function, now time.Time) Instance {
	ordered := e.Started
	if ordered.After(now) {
		ordered = now // the clock that it was ordered by is ahead
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
	return in
}

// Release leaves a function's instances to somebody else.
func (p *Provisioner) Release(uid string) {
	if p.deps.Shared != nil {
		p.Inventory.release(uid, func() { p.deps.Shared.Release(uid) })
	}
}
