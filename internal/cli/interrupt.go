package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruptible does work whose context ends at the first SIGINT or SIGTERM; the
// second ends the process.
func (h *host) interruptible(parent context.Context, work func(ctx context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, done := h.heed(parent, signals)
	defer done()
	return work(ctx)
}

// heed makes the context that signals from a channel end. done must be called when
// the work is over.
func (h *host) heed(parent context.Context, signals <-chan os.Signal) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(parent)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-signals:
		case <-over:
			return
		}
		fmt.Fprintln(h.Err, "stopping: waiting for calls in flight; press Ctrl-C again to end at once")
		cancel()
		select {
		case <-signals:
			h.exit(exitPlatform)
		case <-over:
		}
	}()
	return ctx, func() {
		close(over)
		<-ended
		cancel()
	}
}
