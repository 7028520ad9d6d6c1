package admission

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxTimesFree is the maximum use of a namespace as a multiple of the free capacity.
	maxTimesFree = 7
	// retrySoon is when to try again once some call has ended.
	retrySoon = time.Second
)

// Reason is why a call is refused.
type Reason int

// Reasons to refuse a call; the zero value admits it.
const (
	Admitted Reason = iota
	// RateReached says that the namespace has called too often.
	RateReached
	// InFlightReached says that too many of its calls wait or run.
	InFlightReached
	// BytesReached says that the bodies of its calls take too much memory.
	BytesReached
	// OverShare says that the gateway is nearly full, and that the namespace already uses much
	// of it.
	OverShare
	// Full says that the gateway is full for all callers.
	Full
)

// Decision says whether a call is admitted.
type Decision struct {
	Reason Reason
	// RetryAfter is when it makes sense to try again, if it was refused.
	RetryAfter time.Duration
}

// Limiter counts what the namespaces use of a gateway. It is not for concurrent use.
type Limiter struct {
	capacity   Capacity
	total      holding
	namespaces map[string]*usage
}

type holding struct {
	calls int
	bytes int64
}

type usage struct {
	holding
	// bucket is nil for no rate limit.
	bucket *rate.Limiter
}

// New makes a Limiter for a gateway that holds nothing.
func New(capacity Capacity) *Limiter {
	return &Limiter{capacity: capacity, namespaces: make(map[string]*usage)}
}

// Admit admits a call of a namespace whose body needs that many bytes of memory, or returns
// the reason why not. Each admitted call must be released.
func (b *Limiter) Admit(now time.Time, namespace string, limits Limits, bytes int64) Decision {
	a := b.namespaces[namespace]
	if a == nil {
		a = &usage{}
	}
	if reason := b.limitReached(a, limits, holding{1, bytes}); reason != Admitted {
		return Decision{Reason: reason, RetryAfter: retrySoon}
	}
	a.setRate(now, limits)
	if wait := a.takeToken(now); wait > 0 {
		b.namespaces[namespace] = a
		return Decision{Reason: RateReached, RetryAfter: wait}
	}
	b.namespaces[namespace] = a
	a.add(1, bytes)
	b.total.add(1, bytes)
	return Decision{}
}

// Grow lets an admitted call of a namespace use more bytes of memory, or returns the reason why
// not. They are released with the call.
func (b *Limiter) Grow(namespace string, limits Limits, bytes int64) Decision {
	a := b.namespaces[namespace]
	if reason := b.limitReached(a, limits, holding{0, bytes}); reason != Admitted {
		return Decision{Reason: reason, RetryAfter: retrySoon}
	}
	a.add(0, bytes)
	b.total.add(0, bytes)
	return Decision{}
}

// Held is what all calls together use.
func (b *Limiter) Held() Capacity { return Capacity{Calls: b.total.calls, Bytes: b.total.bytes} }

// limitReached is the limit that this much more would exceed; Admitted if none.
func (b *Limiter) limitReached(a *usage, limits Limits, more holding) Reason {
	free := holding{calls: b.capacity.Calls - b.total.calls, bytes: b.capacity.Bytes - b.total.bytes}
	switch {
	case free.calls < more.calls, free.bytes < more.bytes:
		return Full
	case more.calls > 0 && limits.InFlight > 0 && a.calls >= limits.InFlight:
		return InFlightReached
	case limits.Bytes > 0 && a.bytes+more.bytes > limits.Bytes:
		return BytesReached
	case more.calls > 0 && a.calls+more.calls > maxTimesFree*free.calls, more.bytes > 0 && a.bytes+more.bytes > maxTimesFree*free.bytes:
		return OverShare
	}
	return Admitted
}

// Release gives back what a call used.
func (b *Limiter) Release(now time.Time, namespace string, bytes int64) {
	a := b.namespaces[namespace]
	a.add(-1, -bytes)
	b.total.add(-1, -bytes)
	if a.calls == 0 && a.bucketFull(now) {
		delete(b.namespaces, namespace)
	}
}

// DropNamespace drops the usage of a namespace that has no functions any more, except for what
// its last calls use.
func (b *Limiter) DropNamespace(namespace string) {
	a := b.namespaces[namespace]
	if a == nil {
		return
	}
	a.bucket = nil
	if a.calls == 0 {
		delete(b.namespaces, namespace)
	}
}

func (h *holding) add(calls int, bytes int64) {
	h.calls += calls
	h.bytes += bytes
}

// setRate makes the bucket that of the limits. One whose rate changes keeps its tokens; a new
// one is full.
func (a *usage) setRate(now time.Time, limits Limits) {
	per, burst := rate.Limit(limits.Rate), limits.burst()
	switch {
	case limits.Rate == 0:
		a.bucket = nil
	case a.bucket == nil:
		a.bucket = rate.NewLimiter(per, burst)
	case a.bucket.Limit() != per || a.bucket.Burst() != burst:
		a.bucket.SetLimitAt(now, per)
		a.bucket.SetBurstAt(now, burst)
	}
}

// takeToken takes a token, or returns how long it takes until one is available.
func (a *usage) takeToken(now time.Time) time.Duration {
	if a.bucket == nil {
		return 0
	}
	reservation := a.bucket.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// bucketFull reports whether dropping the bucket would lose nothing.
func (a *usage) bucketFull(now time.Time) bool {
	return a.bucket == nil || a.bucket.TokensAt(now) >= float64(a.bucket.Burst())
}
