package admission

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// appetite is how many times of what is free a namespace may hold.
	appetite = 7
	// soon is when it makes sense to try again once some call has ended.
	soon = time.Second
)

// Reason is why a call is refused.
type Reason int

// The reasons, of which the first is none.
const (
	Admitted Reason = iota
	// RateReached says that the namespace has called too often.
	RateReached
	// InFlightReached says that too many of its calls wait or run.
	InFlightReached
	// BytesReached says that the bodies of its calls take too much memory.
	BytesReached
	// OverShare says that the gateway is nearly full, and that the namespace
	// holds much of it already.
	OverShare
	// Full says that the gateway can hold no more, whoever calls.
	Full
)

// Verdict says whether a call was taken.
type Verdict struct {
	Reason Reason
	// RetryAfter is when it makes sense to try again, if it was refused.
	RetryAfter time.Duration
}

// Book is what the namespaces hold of a gateway. It is not for concurrent use.
type Book struct {
	capacity   Capacity
	total      holding
	namespaces map[string]*account
}

type holding struct {
	calls int
	bytes int64
}

type account struct {
	holding
	// bucket is nil while there is no rate.
	bucket *rate.Limiter
}

// New makes a Book for a gateway that holds nothing.
func New(capacity Capacity) *Book {
	return &Book{capacity: capacity, namespaces: make(map[string]*account)}
}

// Enter takes a call of a namespace whose body takes so much memory, or says why
// not. What was taken must Leave.
func (b *Book) Enter(now time.Time, namespace string, limits Limits, bytes int64) Verdict {
	a := b.namespaces[namespace]
	if a == nil {
		a = &account{}
	}
	if reason := b.room(a, limits, bytes); reason != Admitted {
		return Verdict{Reason: reason, RetryAfter: soon}
	}
	a.adjust(now, limits)
	if wait := a.spend(now); wait > 0 {
		b.namespaces[namespace] = a
		return Verdict{Reason: RateReached, RetryAfter: wait}
	}
	b.namespaces[namespace] = a
	a.add(1, bytes)
	b.total.add(1, bytes)
	return Verdict{}
}

// Held is what all calls together take.
func (b *Book) Held() Capacity { return Capacity{Calls: b.total.calls, Bytes: b.total.bytes} }

// room tells whether there is room for one more call.
func (b *Book) room(a *account, limits Limits, bytes int64) Reason {
	free := holding{calls: b.capacity.Calls - b.total.calls, bytes: b.capacity.Bytes - b.total.bytes}
	switch {
	case free.calls < 1, free.bytes < bytes:
		return Full
	case limits.InFlight > 0 && a.calls >= limits.InFlight:
		return InFlightReached
	case limits.Bytes > 0 && a.bytes+bytes > limits.Bytes:
		return BytesReached
	case a.calls+1 > appetite*free.calls, bytes > 0 && a.bytes+bytes > appetite*free.bytes:
		return OverShare
	}
	return Admitted
}

// Leave gives back what a call took.
func (b *Book) Leave(now time.Time, namespace string, bytes int64) {
	a := b.namespaces[namespace]
	a.add(-1, -bytes)
	b.total.add(-1, -bytes)
	if a.calls == 0 && a.full(now) {
		delete(b.namespaces, namespace)
	}
}

// Forget drops what is remembered of a namespace that has no functions any more,
// except for what its last calls hold.
func (b *Book) Forget(namespace string) {
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

// adjust makes the bucket that of the limits. One whose rate changes keeps what
// is in it; a new one is full.
func (a *account) adjust(now time.Time, limits Limits) {
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

// spend takes one token, or else says how long it takes until there is one.
func (a *account) spend(now time.Time) time.Duration {
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

// full tells whether nothing would be lost by forgetting the bucket.
func (a *account) full(now time.Time) bool {
	return a.bucket == nil || a.bucket.TokensAt(now) >= float64(a.bucket.Burst())
}
