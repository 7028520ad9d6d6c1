package nodeagent

import "time"

// Ticker wakes the Agent up for its looks.
type Ticker interface {
	// Ticks gets something each time. Ticks that nobody has taken are one.
	Ticks() <-chan time.Time
	// Reset changes the time between two ticks, the first included.
	Reset(every time.Duration)
	// Stop ends it.
	Stop()
}

// goTicker is one of Go's.
type goTicker struct{ *time.Ticker }

func newGoTicker() Ticker { return goTicker{time.NewTicker(time.Hour)} }

// Ticks implements Ticker.
func (t goTicker) Ticks() <-chan time.Time { return t.C }
