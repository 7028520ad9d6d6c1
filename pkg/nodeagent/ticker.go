package nodeagent

import (
	"time"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
)

// kernelTicker is a timer of the kernel.
type kernelTicker struct {
	timer *kerneltimer.Timer
	ticks chan time.Time
}

// NewKernelTicker returns a ticker that wakes one thread. With one of Go's, more than half of the context switches of a
// program that wakes up every 5 ms and does little are of the runtime's monitor thread. Where the kernel has no such timer, it is Go's.
func NewKernelTicker() Ticker {
	ticks := make(chan time.Time, 1)
	timer, err := kerneltimer.New(func() {
		select {
		case ticks <- time.Now():
		default:
		}
	})
	if err != nil {
		return newGoTicker()
	}
	return kernelTicker{timer, ticks}
}

// Ticks implements Ticker.
func (t kernelTicker) Ticks() <-chan time.Time { return t.ticks }

// Reset implements Ticker.
func (t kernelTicker) Reset(every time.Duration) { t.timer.Every(every) }

// Stop implements Ticker.
func (t kernelTicker) Stop() { t.timer.Stop() }
