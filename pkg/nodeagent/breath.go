package nodeagent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// BreathParams say what an instance gets that starves in the low band. A breath is for its agent,
// which must tell its scheduler that it is there.
type BreathParams struct {
	// An instance that got less than Least of processor time in Every is due for a breath.
	Every, Least time.Duration
	// It is then normal until it has used Usage, or for Wall.
	Usage, Wall time.Duration
	// Share is how much of the node's processor time all breaths together may take, in [0, 1]; with
	// 0 there are none, for groups that have no agents in them.
	Share float64
}

func (p BreathParams) validate() error {
	if p.Every <= 0 || p.Least <= 0 || p.Usage <= 0 || p.Wall <= 0 || !(p.Share >= 0 && p.Share <= 1) {
		return fmt.Errorf("nodeagent: Breath is %+v: times must be positive, and Share from 0 to 1", p)
	}
	return nil
}

// breaths decides which instances of the low band breathe. Time and usage come from its user.
type breaths struct {
	params BreathParams
	cores  int
	low    map[callorder.InstanceID]*lowInstance
	// credit is the processor time that breaths may take now. Each takes Usage at its begin, and
	// gives back at its end what it did not use, or more is taken.
	credit   time.Duration
	refilled time.Duration
	// drawing is how many instances breathe.
	drawing int
}

// lowInstance is an instance in the low band.
type lowInstance struct {
	id        callorder.InstanceID
	breathing bool
	// since and from are the time and the usage when its breath or its hunger began.
	since, from time.Duration
	usage       time.Duration
}

func newBreaths(params BreathParams, cores int) *breaths {
	b := &breaths{params: params, cores: cores, low: map[callorder.InstanceID]*lowInstance{}}
	b.credit = b.most()
	return b
}

// most is the credit of a node on which nothing has breathed for long.
func (b *breaths) most() time.Duration { return b.params.Usage * time.Duration(b.cores) }

// lowered says that an instance is in the low band from now on.
func (b *breaths) lowered(now time.Duration, id callorder.InstanceID, usage time.Duration) {
	b.low[id] = &lowInstance{id: id, since: now, from: usage, usage: usage}
}

// lifted says that an instance is not in the low band any more.
func (b *breaths) lifted(id callorder.InstanceID) {
	if i := b.low[id]; i != nil && i.breathing {
		b.settle(i)
	}
	delete(b.low, id)
}

// settle ends the account of a breath.
func (b *breaths) settle(i *lowInstance) {
	b.credit += b.params.Usage - (i.usage - i.from)
	b.drawing--
}

// breathing says whether an instance is normal though it belongs into the low band.
func (b *breaths) breathing(id callorder.InstanceID) bool {
	i := b.low[id]
	return i != nil && i.breathing
}

// observe takes in how much an instance has used, and reports whether its breath is over.
func (b *breaths) observe(now time.Duration, id callorder.InstanceID, usage time.Duration) (over bool) {
	i := b.low[id]
	if i == nil {
		return false
	}
	i.usage = max(i.usage, usage)
	grew := i.usage - i.from
	switch {
	case i.breathing && (grew >= b.params.Usage || now-i.since >= b.params.Wall):
		b.settle(i)
		i.breathing = false
		over = true
	case !i.breathing && grew >= b.params.Least:
	default:
		return false
	}
	i.since, i.from = now, i.usage
	return over
}

// letBreathe returns the instances that breathe from now on: those that have starved for the longest
// first, as far as the credit goes.
func (b *breaths) letBreathe(now time.Duration) []callorder.InstanceID {
	if b.params.Share == 0 {
		return nil
	}
	earned := time.Duration(float64(now-b.refilled) * b.params.Share * float64(b.cores))
	b.credit, b.refilled = min(b.most(), b.credit+earned), now
	var hungry []*lowInstance
	for _, i := range b.low {
		if !i.breathing && now-i.since >= b.params.Every {
			hungry = append(hungry, i)
		}
	}
	slices.SortFunc(hungry, func(x, y *lowInstance) int {
		return cmp.Or(cmp.Compare(x.since, y.since), cmp.Compare(x.id, y.id))
	})
	var admitted []callorder.InstanceID
	for _, i := range hungry {
		if b.credit < b.params.Usage {
			break
		}
		b.credit -= b.params.Usage
		b.drawing++
		i.breathing, i.since, i.from = true, now, i.usage
		admitted = append(admitted, i.id)
	}
	return admitted
}
