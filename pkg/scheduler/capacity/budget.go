package capacity

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
)

// maxLaunches bounds the launches in one tick if no rate does; the next tick sees their
// outcome.
const maxLaunches = 1024

// Budget bounds the launches of all namespaces together.
type Budget struct {
	shares fairshare.Shares
	// rate is nil for no limit.
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

// Left is how many instances may be launched now.
func (b *Budget) Left(now time.Time) int {
	if b.rate == nil {
		return maxLaunches
	}
	return max(0, min(maxLaunches, int(b.rate.TokensAt(now))))
}

// LeftNow is how many instances may be launched between ticks, ahead of other functions. Half
// of a burst is kept back, so that the calls of one namespace leave something to divide.
func (b *Budget) LeftNow(now time.Time) int {
	if b.rate == nil {
		return maxLaunches
	}
	return max(0, b.Left(now)-b.rate.Burst()/2)
}

// Spend subtracts launches.
func (b *Budget) Spend(now time.Time, n int) {
	if b.rate != nil {
		b.rate.AllowN(now, n)
	}
}

// Allocate divides the rest of the budget in turns of the namespaces.
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

// RoundRobin orders functions for making room. Within a namespace the longest wait for a first
// instance comes first and those that are Last come last. The first functions of all
// namespaces come before the second of any.
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
