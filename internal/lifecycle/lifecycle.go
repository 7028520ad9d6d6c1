package lifecycle

import (
	"context"
	"fmt"
)

// Lifecycle starts parts one after the other and stops them in reverse order, each when all
// that started after it have ended.
type Lifecycle struct {
	stops  []func()
	failed chan error
}

// New makes a Lifecycle without parts.
func New() *Lifecycle { return &Lifecycle{failed: make(chan error, 1)} }

// Failed yields the error of the first part that failed.
func (l *Lifecycle) Failed() <-chan error { return l.failed }

// Start runs a part until it is stopped. A part that ends with an error before
// that makes the whole fail.
func (l *Lifecycle) Start(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			select {
			case l.failed <- fmt.Errorf("%s: %w", name, err):
			default: // the first failure is the one to tell
			}
		}
	}()
	l.OnStop(func() {
		cancel()
		<-ended
	})
}

// OnStop lets Stop do something in its turn.
func (l *Lifecycle) OnStop(stop func()) { l.stops = append(l.stops, stop) }

// Stop stops all parts.
func (l *Lifecycle) Stop() {
	for i := len(l.stops) - 1; i >= 0; i-- {
		l.stops[i]()
	}
	l.stops = nil
}
