//go:build linux

package rawtcp

import (
	"errors"
	"os"
	"sync"
	"time"
)

// deadline is the deadline of one direction.
//
// To set one in the runtime's poller costs a timer, and a server sets several for each request,
// most of which are replaced before anything waits. So the poller gets one only if a wait would
// otherwise end too late, or at once if its time is over. A wait that ends too early goes on.
type deadline struct {
	// poller sets the one that the poller has.
	poller func(time.Time) error

	mu             sync.Mutex // guards everything below
	wanted, polled time.Time  // zero for none
	waiting        bool
}

// want sets the deadline.
func (d *deadline) want(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if d.waiting && isEarlier(t, d.polled) || isOver(t) {
		return d.poll()
	}
	return nil
}

// begin begins a transfer. It lets it fail if the deadline is over.
func (d *deadline) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isOver(d.polled) || isOver(d.wanted) {
		_ = d.poll() // fails if the connection is closed, as the transfer will
	}
}

// wait begins a wait.
func (d *deadline) wait() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = true
	if isEarlier(d.wanted, d.polled) {
		_ = d.poll()
	}
}

// goesOn ends a wait, if there was one, and reports whether it ended too early.
func (d *deadline) goesOn(err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = false
	return errors.Is(err, os.ErrDeadlineExceeded) && !isOver(d.wanted) && d.poll() == nil
}

// poll gives the poller the deadline. The caller holds the lock.
func (d *deadline) poll() error {
	if d.polled.Equal(d.wanted) {
		return nil
	}
	d.polled = d.wanted
	return d.poller(d.wanted)
}

// isOver reports whether a deadline has passed. Zero never does.
func isOver(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// isEarlier reports whether a deadline comes before another one. Zero is later than all others.
func isEarlier(t, than time.Time) bool { return !t.IsZero() && (than.IsZero() || t.Before(than)) }
