package estimate

import (
	"math"
	"time"
)

// LastN is the mean of the last n observations. It takes memory for them only once
// there are some. It must not be copied once it is used.
type LastN struct {
	ring    []time.Duration // grows to n
	n, next int32
}

// NewLastN makes a LastN of n observations, at least 1.
func NewLastN(n int) *LastN { return &LastN{n: int32(max(1, min(n, math.MaxInt32)))} }

// Observe takes one observation. Those of 0 or less, which nothing that ran
// can have taken, are ignored.
func (l *LastN) Observe(d time.Duration) {
	switch {
	case d <= 0:
		return
	case len(l.ring) < int(l.n):
		l.ring = append(l.ring, d)
	default:
		l.ring[l.next] = d
	}
	l.next = (l.next + 1) % l.n
}

// Seed takes what was learnt elsewhere as one observation, unless something was
// observed here already.
func (l *LastN) Seed(d time.Duration) {
	if len(l.ring) == 0 {
		l.Observe(d)
	}
}

// Mean is the mean of the last n observations, or of fewer if there were
// fewer; it is 0 before the first.
func (l *LastN) Mean() time.Duration {
	if len(l.ring) == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range l.ring {
		sum += d
	}
	return sum / time.Duration(len(l.ring))
}
