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
	// unit is the revision that it belongs to, as a function of its own.
	unit *v1alpha1.Function
	// slot is that of the unit.
	slot ownership.Slot
}

func destined(unit *v1alpha1.Function) destination {
	return destination{unit, ownership.SlotOf(string(unit.UID), 0)}
}

// lots are the numbers by which calls are parted among units, a sequence of rollout's for
// each function. Functions that share one are rare, and each other's chance.
type lots struct {
	seed maphash.Seed
	last [1 << 10]atomic.Uint32
}

// newLots are lots that begin anywhere, so that no two gateways begin with the same unit.
func newLots() *lots {
	l := &lots{seed: maphash.MakeSeed()}
	for i := range l.last {
		l.last[i].Store(rand.Uint32())
	}
	return l
}

// draw is the next number for a call of a function.
func (l *lots) draw(uid string) uint32 {
	return l.last[maphash.String(l.seed, uid)%uint64(len(l.last))].Add(rollout.DrawStep)
}

// assign picks the unit of a call: that of the tag which it names or, if it names none, one
// by weight.
func (l *lots) assign(e *rollout.Entry, tag string) (*v1alpha1.Function, *problem) {
	if e.Pick(0) == nil {
		p := newProblem(problems.RevisionPending, "the function is new, and no revision of it was made yet; try again soon")
		return nil, &p
	}
	if tag == "" {
		return e.Pick(l.draw(e.UID())), nil
	}
	if at := slices.IndexFunc(e.Routes, func(r rollout.Route) bool { return r.Tag == tag }); at >= 0 {
		return e.Routes[at].Unit, nil
	}
	p := newProblem(problems.UnknownTag, fmt.Sprintf("the function has no tag %q; see the traffic in windlass describe %s", tag, e.Key()))
	if slices.ContainsFunc(e.Function.Spec.Traffic, func(t v1alpha1.TrafficTarget) bool { return t.Tag == tag }) {
		p = newProblem(problems.RevisionPending, fmt.Sprintf("the tag %q is new, and calls are not routed by it yet; try again soon", tag))
	}
	return nil, &p
}

// has tells whether a unit is still one of the function's.
func has(e *rollout.Entry, unit *v1alpha1.Function) bool {
	return slices.ContainsFunc(e.Units, func(u *v1alpha1.Function) bool { return u.UID == unit.UID })
}
