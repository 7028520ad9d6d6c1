package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// host is what the command has around it: its streams, the clock and the environment.
type host struct {
	Streams
	now    func() time.Time
	getenv func(string) string
	// exit ends the process at once.
	exit func(code int)
}

// getenvBut is the environment without one variable.
func (h *host) getenvBut(without, name string) string {
	if name == without {
		return ""
	}
	return h.getenv(name)
}

// interruptible runs work, whose context ends at the first SIGINT or SIGTERM; the second one
// ends the process.
func (h *host) interruptible(parent context.Context, work func(ctx context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, done := h.cancelOnSignal(parent, signals)
	defer done()
	return work(ctx)
}

// cancelOnSignal makes a context that ends with the first signal. The caller calls done when
// the work is over.
func (h *host) cancelOnSignal(parent context.Context, signals <-chan os.Signal) (ctx context.Context, done func()) {
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
