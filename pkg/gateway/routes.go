package gateway

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// destination is where a call goes.
type destination struct {
	// unit is the revision that it belongs to, as a function of its own, and entry its function's.
	unit  *v1alpha1.Function
	entry *rollout.Entry
}

// slot is that of the unit. Few calls send a ticket, so it is not made for all.
func (d destination) slot() ownership.Slot { return ownership.SlotOf(string(d.unit.UID), 0) }

// picker picks the unit of each call by weight. It has a sequence of rollout's numbers for
// each function. That two functions share a sequence is rare and does no harm.
type picker struct {
	seed maphash.Seed
	last [1 << 10]atomic.Uint32
}

// newPicker starts its sequences at random numbers, so that no two gateways begin with the
// same unit.
func newPicker() *picker {
	p := &picker{seed: maphash.MakeSeed()}
	for i := range p.last {
		p.last[i].Store(rand.Uint32())
	}
	return p
}

// nextDraw is the next number of a function's sequence.
func (p *picker) nextDraw(uid string) uint32 {
	return p.last[maphash.String(p.seed, uid)%uint64(len(p.last))].Add(rollout.DrawStep)
}

// pick is the unit of a call: the one of its tag or, without a tag, one by weight.
func (p *picker) pick(e *rollout.Entry, tag string) (*v1alpha1.Function, *problem) {
	if e.Pick(0) == nil {
		why := newProblem(problems.RevisionPending, "the function is new, and no revision of it was made yet; try again soon")
		return nil, &why
	}
	if tag == "" {
		return e.Pick(p.nextDraw(e.UID())), nil
	}
	if at := slices.IndexFunc(e.Routes, func(r rollout.Route) bool { return r.Tag == tag }); at >= 0 {
		return e.Routes[at].Unit, nil
	}
	why := newProblem(problems.UnknownTag, fmt.Sprintf("the function has no tag %q; see the traffic in windlass describe %s", tag, e.Key()))
	if slices.ContainsFunc(e.Function.Spec.Traffic, func(t v1alpha1.TrafficTarget) bool { return t.Tag == tag }) {
		why = newProblem(problems.RevisionPending, fmt.Sprintf("the tag %q is new, and calls are not routed by it yet; try again soon", tag))
	}
	return nil, &why
}

// hasUnit reports whether a unit is still one of the function's.
func hasUnit(e *rollout.Entry, unit *v1alpha1.Function) bool {
	return slices.ContainsFunc(e.Units, func(u *v1alpha1.Function) bool { return u.UID == unit.UID })
}
