package podagent

import (
	"time"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
)

// Timer calls a function once, after the time of the last Reset. Stop ends it.
type Timer interface {
	Reset(after time.Duration)
	Stop()
}

// goTimer is one of Go's.
type goTimer struct{ timer *time.Timer }

// Reset implements Timer.
func (t goTimer) Reset(after time.Duration) { t.timer.Reset(after) }

// Stop implements Timer.
func (t goTimer) Stop() { t.timer.Stop() }

func (d Deps) newTimer(due func()) Timer {
	if d.NewTimer == nil {
		return goTimer{time.AfterFunc(time.Hour, due)}
	}
	return d.NewTimer(due)
}

// NewKernelTimer returns a timer that wakes one thread. An idle agent makes less than half as many context switches with it as
// with one of Go's, which it is where the kernel has no such timer.
func NewKernelTimer(due func()) Timer {
	timer, err := kerneltimer.New(due)
	if err != nil {
		return Deps{}.newTimer(due)
	}
	return timer
}
