package podtoken

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// A token may say what it likes until it was reviewed. One that names a pod which
	// runs here has a budget of its own, of which each pod gets one review in podRest:
	// a function knows its own pod, and must not use up the budget of all.
	knownPerSecond, knownAtOnce = 20, 50
	podRest                     = 10 * time.Second
	// All others share what strangers can make the API server do.
	strangersPerSecond, strangersAtOnce = 5, 10
)

// budget bounds the reviews that tokens cause. It is for concurrent use.
type budget struct {
	strangers *rate.Limiter

	mu    sync.Mutex
	known *rate.Limiter
	// last is when each known pod had its last review of the known ones' budget, for as
	// long as it has to rest.
	last map[string]time.Time
}

func newBudget() *budget {
	return &budget{
		known:     rate.NewLimiter(knownPerSecond, knownAtOnce),
		strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
		last:      map[string]time.Time{},
	}
}

// allow takes a review of the budget of the pod that a token names, or else of that of
// strangers. It is false if neither has one.
func (b *budget) allow(now time.Time, podUID string, known bool) bool {
	return known && b.allowKnown(now, podUID) || b.strangers.AllowN(now, 1)
}

func (b *budget) allowKnown(now time.Time, podUID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.last, func(_ string, at time.Time) bool { return now.Sub(at) >= podRest })
	if _, rests := b.last[podUID]; rests || !b.known.AllowN(now, 1) {
		return false
	}
	b.last[podUID] = now
	return true
}
