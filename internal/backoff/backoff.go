package backoff

import (
	"math/rand/v2"
	"time"
)

// Backoff are pauses that double from First up to Last.
type Backoff struct {
	First, Last time.Duration
	next        time.Duration
}

// Next is the pause before the next try.
func (b *Backoff) Next() time.Duration {
	b.next = min(max(2*b.next, b.First), b.Last)
	return b.next
}

// Reset makes the next pause the first again.
func (b *Backoff) Reset() { b.next = 0 }

// Jitter shortens a pause by up to half at random, so that clients that failed together do not
// retry together.
func Jitter(d time.Duration) time.Duration { return d - rand.N(d/2) }
