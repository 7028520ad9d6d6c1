package kerneltimer

import "time"

// Waker calls a function once, after the time of the last Reset, in a goroutine of its own. Stop ends it.
type Waker interface {
	Reset(after time.Duration)
	Stop()
}

// NewOrGo returns a timer of the kernel that is not set or, where the kernel has none, one of Go's.
func NewOrGo(due func()) Waker {
	timer, err := New(due)
	if err != nil {
		return Go(due)
	}
	return timer
}

// Go returns one of Go's timers that is not set.
func Go(due func()) Waker {
	timer := time.AfterFunc(time.Hour, due)
	timer.Stop()
	return goTimer{timer}
}

type goTimer struct{ timer *time.Timer }

// Reset implements Waker.
func (t goTimer) Reset(after time.Duration) { t.timer.Reset(after) }

// Stop implements Waker.
func (t goTimer) Stop() { t.timer.Stop() }
