package provisioner

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// adoptTimeout is how long the agent of an adopted instance has to connect: it may first have
// to notice that it lost its scheduler.
const adoptTimeout = 15 * time.Second

// Adopt takes over the instances of a function that another scheduler launched. It may be
// repeated.
func (p *Provisioner) Adopt(fn *v1alpha1.Function) {
	if p.deps.Adopting == nil {
		return
	}
	p.Inventory.adopt(string(fn.UID), func() []Instance {
		existing, now := p.deps.Adopting.Adopt(fn), p.deps.Now()
		found := make([]Instance, 0, len(existing))
		for _, e := range existing {
			found = append(found, e.instance(fn, now))
		}
		return found
	})
}

// instance is the inventory's entry of an instance that is adopted now.
func (e Existing) instance(fn *v1alpha1.Function, now time.Time) Instance {
	launched := e.Started
	if launched.After(now) {
		launched = now // the clock that it was launched by is ahead
	}
	in := Instance{
		Key:      Key{FunctionUID: string(fn.UID), CID: e.CID},
		Function: fn.Key(), Revision: e.Revision, Node: e.Node, Requests: e.Requests, Launched: launched,
		StartBy: launched.Add(startLimit(fn)), Ran: e.Ran,
	}
	if soonest := now.Add(adoptTimeout); in.StartBy.Before(soonest) {
		in.StartBy = soonest
	}
	if e.Ending {
		in.State = Leaving
	}
	return in
}

// Release leaves a function's instances to another scheduler.
func (p *Provisioner) Release(uid string) {
	if p.deps.Adopting != nil {
		p.Inventory.release(uid, func() { p.deps.Adopting.Release(uid) })
	}
}
