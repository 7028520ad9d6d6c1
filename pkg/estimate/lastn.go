package estimate

import "time"

// LastN is the mean of the last n observations.
type LastN struct {
	ring []time.Duration
	size int
	next int
}

// NewLastN makes a LastN of n observations, at least 1.
func NewLastN(n int) *LastN { return &LastN{ring: make([]time.Duration, max(1, n))} }

// Observe takes one observation. Those of 0 or less, which nothing that ran
// can have taken, are ignored.
func (l *LastN) Observe(d time.Duration) {
	if d <= 0 {
		return
	}
	l.ring[l.next] = d
	l.next = (l.next + 1) % len(l.ring)
	l.size = min(l.size+1, len(l.ring))
}

// Mean is the mean of the last n observations, or of fewer if there were
// fewer; it is 0 before the first.
func (l *LastN) Mean() time.Duration {
	if l.size == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range l.ring[:l.size] {
		sum += d
	}
	return sum / time.Duration(l.size)
}
