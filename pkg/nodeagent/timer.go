package nodeagent

import (
	"time"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
)

// Timer calls a function once, after the time of the last Reset, in a goroutine of its own. Stop ends it.
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
		timer := time.AfterFunc(time.Hour, due)
		timer.Stop()
		return goTimer{timer}
	}
	return d.NewTimer(due)
}

// NewKernelTimer returns a timer that wakes one thread. With one of Go's, more than half of the context switches of a
// program that wakes up every 5 ms and does little are of the runtime's monitor thread. Where the kernel has no such timer, it is Go's.
func NewKernelTimer(due func()) Timer {
	timer, err := kerneltimer.New(due)
	if err != nil {
		return Deps{}.newTimer(due)
	}
	return timer
}
