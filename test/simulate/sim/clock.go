package sim

import "time"

// clock is the clock of one machine: it shows another time than the others and
// may run faster or slower than the world does.
type clock struct {
	rate float64
	// shown is what it showed at the world's time since.
	shown time.Time
	since time.Duration
}

// read is what the clock shows at a time of the world.
func (c clock) read(at time.Duration) time.Time {
	return c.shown.Add(time.Duration(float64(at-c.since) * c.rate))
}

// span is how long the world takes until d has passed on the clock. It is
// rounded up, so that who waits for it never wakes too early.
func (c clock) span(d time.Duration) time.Duration {
	return max(0, time.Duration(float64(d)/c.rate)+1)
}
