package estimate

import (
	"math"
	"time"
)

// LastN is the mean of the last n observations. It allocates memory at the first observation.
// It must not be copied after that.
type LastN struct {
	ring    []time.Duration // grows to n
	n, next int32
}

// NewLastN makes a LastN of n observations, at least 1.
func NewLastN(n int) *LastN { return &LastN{n: int32(max(1, min(n, math.MaxInt32)))} }

// Observe adds an observation. It ignores values of 0 or less, which no run can have taken.
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

// Seed adds a mean that was measured elsewhere as one observation, unless this LastN already
// has one.
func (l *LastN) Seed(d time.Duration) {
	if len(l.ring) == 0 {
		l.Observe(d)
	}
}

// Mean is the mean of the last n observations, or of all if there are fewer; 0 before the
// first.
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
