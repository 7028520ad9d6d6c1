package local

import (
	"context"
	"fmt"
)

// lifecycle runs parts that are started one after the other and stopped in the
// reverse order, each when all that were started after it have ended.
type lifecycle struct {
	stops  []func()
	failed chan error
}

func newLifecycle() *lifecycle { return &lifecycle{failed: make(chan error, 1)} }

// start runs a part until it is stopped. A part that ends with an error before
// that makes the whole fail.
func (l *lifecycle) start(name string, run func(ctx context.Context) error) {
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
	l.onStop(func() {
		cancel()
		<-ended
	})
}

// onStop lets stop do something in its turn.
func (l *lifecycle) onStop(stop func()) { l.stops = append(l.stops, stop) }

// stop stops all parts.
func (l *lifecycle) stop() {
	for i := len(l.stops) - 1; i >= 0; i-- {
		l.stops[i]()
	}
	l.stops = nil
}
