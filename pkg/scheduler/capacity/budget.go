package capacity

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
)

// maxLaunches bounds the instances that are ordered in one tick where no rate does: the next
// one decides with what became of them.
const maxLaunches = 1024

// Budget is how many instances may be ordered. Namespaces share it.
type Budget struct {
	shares fairshare.Shares
	// rate is nil if there is none.
	rate *rate.Limiter
}

// NewBudget makes a Budget of perSecond instances in the long run and burst at once; 0 a
// second means that nothing bounds them.
func NewBudget(perSecond float64, burst int) *Budget {
	if perSecond == 0 {
		return &Budget{}
	}
	return &Budget{rate: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// Left is how many instances may be ordered now.
func (b *Budget) Left(now time.Time) int {
	if b.rate == nil {
		return maxLaunches
	}
	return max(0, min(maxLaunches, int(b.rate.TokensAt(now))))
}

// LeftNow is how many may be ordered without waiting for a tick, and so for others. Half of
// a burst is kept back: calls of many functions of one namespace must not leave nothing to
// divide.
func (b *Budget) LeftNow(now time.Time) int {
	if b.rate == nil {
		return maxLaunches
	}
	return max(0, b.Left(now)-b.rate.Burst()/2)
}

// Spend notes that instances were ordered.
func (b *Budget) Spend(now time.Time, n int) {
	if b.rate != nil {
		b.rate.AllowN(now, n)
	}
}

// Allocate divides what is left now between those that want some, in turns of their
// namespaces.
func (b *Budget) Allocate(wants []fairshare.Want, now time.Time) *fairshare.Round {
	return b.shares.Begin(wants, b.Left(now))
}

// Contender is a function that takes part in a tick.
type Contender struct {
	// Index is which one it is for the caller.
	Index     int
	Namespace string
	// Waited is for how long calls have waited for its first instance; 0 if none do.
	Waited time.Duration
	// Last says that it comes after all others of its namespace.
	Last bool

	round int
}

func (t Contender) rank() int {
	if t.Last {
		return 1
	}
	return 0
}

// RoundRobin puts functions into the order in which room is made for them: in each namespace
// those whose first instance is waited for the longest are first, those that are Last are
// last, and the first of all namespaces come before the second of any.
func RoundRobin(all []Contender) {
	slices.SortStableFunc(all, func(a, b Contender) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.rank(), b.rank()))
	})
	rounds := make(map[string]int)
	for i := range all {
		all[i].round = rounds[all[i].Namespace]
		rounds[all[i].Namespace]++
	}
	slices.SortStableFunc(all, func(a, b Contender) int { return cmp.Compare(a.round, b.round) })
}
