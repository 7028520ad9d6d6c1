package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// host is what the command has around it: its streams, the clock and the environment.
type host struct {
	Streams
	now    func() time.Time
	getenv func(string) string
	// exit ends the process at once.
	exit func(code int)
	// kill ends what would outlive this process; nil for nothing.
	kill atomic.Pointer[func()]
}

// getenvBut is the environment without one variable.
func (h *host) getenvBut(without, name string) string {
	if name == without {
		return ""
	}
	return h.getenv(name)
}

// endingSignals end work. A terminal that is closed sends SIGHUP, unless nohup has had it ignored.
func endingSignals() []os.Signal {
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ending = append(ending, syscall.SIGHUP)
	}
	return ending
}

// interruptible runs work, whose context ends at the first of endingSignals; the second one
// ends the process. That nobody reads the output any more ends neither, as with other servers: the
// process would leave calls and processes of functions behind. Ctrl-C ends the tee of up | tee, too,
// before up has drained.
func (h *host) interruptible(parent context.Context, work func(ctx context.Context) error) error {
	// It is caught, not ignored: functions would inherit that.
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	defer signal.Stop(unread)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endingSignals()...)
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
			h.endAtOnce()
		case <-over:
		}
	}()
	return ctx, func() {
		close(over)
		<-ended
		cancel()
	}
}

// readerEvery is how often whileRead looks for the reader.
const readerEvery = 500 * time.Millisecond

// whileRead makes work whose context also ends when nobody can read the standard output any more.
// That this ended it is no error: grep -m1 needs one line, and the next may be written tomorrow.
func (h *host) whileRead(work func(ctx context.Context) error) func(ctx context.Context) error {
	out, isFile := h.Out.(*os.File)
	if !isFile {
		return work
	}
	return func(parent context.Context) error {
		ctx, cancel := context.WithCancel(parent)
		unread := false
		var looking sync.WaitGroup
		looking.Go(func() {
			ticker := time.NewTicker(readerEvery)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				if isUnread(out) {
					unread = true
					cancel()
				}
			}
		})
		err := work(ctx)
		cancel()
		looking.Wait()
		if unread && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
}

// isUnread reports whether a file is a pipe or socket whose other end is closed.
func isUnread(file *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(file.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// killTime is how long the end may wait for what would outlive this process.
const killTime = 2 * time.Second

// endAtOnce ends the process, and before it what would outlive it.
func (h *host) endAtOnce() {
	if kill := h.kill.Load(); kill != nil {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			(*kill)()
		}()
		select {
		case <-killed:
		case <-time.After(killTime):
		}
	}
	h.exit(exitPlatform)
}
