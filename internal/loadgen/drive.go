package loadgen

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Drive says how to call servers over a fixed number of connections.
type Drive struct {
	// URLs are called with plain HTTP/1.1; connection i calls URL i modulo their number.
	URLs []string `json:"urls"`
	// Body is the size of requests in bytes, 0 for a GET without one.
	Body int64 `json:"body,omitempty"`
	// Connections, at least 1, each run one call at a time.
	Connections int `json:"connections"`
	// Rate makes an open loop of this many calls a second in all, at random times. With 0 each
	// connection makes one call after the other.
	Rate float64 `json:"rate,omitempty"`
	// Span is how long calls begin. Those that run then are awaited.
	Span time.Duration `json:"span"`
	// Timeout bounds each call, more than 0. In an open loop it also bounds how long after the
	// span due calls still begin.
	Timeout time.Duration `json:"timeout"`
	// HangUpWithin lets every other call of a closed loop be given up: its client closes the
	// connection at a random moment before that, whether or not the answer has begun. 0 lets all
	// clients wait.
	HangUpWithin time.Duration `json:"hangUpWithin,omitempty"`
}

// Validate reports a field that is out of range.
func (d Drive) Validate() error {
	switch {
	case len(d.URLs) == 0:
		return errors.New("a drive needs at least one URL")
	case d.Connections < 1 || d.Connections > 10_000:
		return fmt.Errorf("connections are %d; there must be 1 to 10000", d.Connections)
	case d.HangUpWithin < 0 || d.HangUpWithin > 0 && d.Rate > 0:
		return errors.New("hangUpWithin must be at least 0, and clients of an open loop do not hang up")
	case d.Body < 0 || d.Rate < 0 || d.Span <= 0 || d.Timeout <= 0:
		return errors.New("body and rate must be at least 0, span and timeout more than 0")
	}
	return nil
}

// Driven is what a drive measured.
type Driven struct {
	// Calls were answered with 200, Failed otherwise or not at all. Failure says why for the
	// first one.
	Calls   int    `json:"calls"`
	Failed  int    `json:"failed,omitempty"`
	Failure string `json:"failure,omitempty"`
	// HungUp calls were given up by their clients. They count neither as answered nor as failed.
	HungUp int `json:"hungUp,omitempty"`
	// MostRunning is the largest number of calls that an answer's RunningHeader named.
	MostRunning int `json:"mostRunning,omitempty"`
	// Took is the time from the first call's begin to the last one's end.
	Took time.Duration `json:"took"`
	// Latency is that of answered calls. In an open loop it counts from the moment when a call
	// was due, so that a call which had to wait for a connection, or for a late sender, shows
	// it: there is no coordinated omission. In a closed loop there is: a server that stalls is
	// sent fewer calls.
	Latency Latency `json:"latency"`
	// LateP99 is by how much the sender itself was late in an open loop.
	LateP99 time.Duration `json:"lateP99,omitempty"`
}

// Latency are quantiles, exact to three digits.
type Latency struct {
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P99  time.Duration `json:"p99"`
	P999 time.Duration `json:"p999"`
	Max  time.Duration `json:"max"`
}

// Driver has the connections of a drive open.
type Driver struct {
	drive Drive
	lanes []*lane
}

// lane is one connection and its request.
type lane struct {
	addr    string
	message Message
	conn    *Conn
	// mostRunning is that of the connections that were closed.
	mostRunning int
}

// Connect opens the connections of a drive, and makes one call over each, which must succeed.
// Its caller must call Close.
func Connect(ctx context.Context, drive Drive) (*Driver, error) {
	if err := drive.Validate(); err != nil {
		return nil, err
	}
	d := &Driver{drive: drive}
	for i := range drive.Connections {
		u, err := url.Parse(drive.URLs[i%len(drive.URLs)])
		if err != nil {
			return nil, err
		}
		d.lanes = append(d.lanes, &lane{addr: u.Host, message: NewMessage(u.Host, u.RequestURI(), drive.Body)})
	}
	failed := make([]error, len(d.lanes))
	var calling sync.WaitGroup
	for i, l := range d.lanes {
		calling.Go(func() { failed[i] = l.call(ctx, drive.Timeout) })
	}
	calling.Wait()
	for _, err := range failed {
		if err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// Close closes all connections.
func (d *Driver) Close() {
	for _, l := range d.lanes {
		l.drop()
	}
}

func (l *lane) drop() {
	if l.conn != nil {
		l.mostRunning = max(l.mostRunning, l.conn.mostRunning)
		_ = l.conn.Close()
		l.conn = nil
	}
}

// call makes one call, over a new connection if there is none. The timeout includes connecting.
func (l *lane) call(ctx context.Context, timeout time.Duration) (err error) {
	deadline := time.Now().Add(timeout)
	if l.conn == nil {
		if l.conn, err = Dial(ctx, l.addr, deadline); err != nil {
			return err
		}
	}
	status, err := l.conn.Do(l.message, deadline)
	if err != nil {
		l.drop()
	}
	if err != nil && !errors.Is(err, ErrClosing) {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("answered %d", status)
	}
	return nil
}

// Run makes the calls, and returns when the last one has ended. If ctx ends, it begins no more.
func (d *Driver) Run(ctx context.Context) Driven {
	spent := newTotals()
	began := time.Now()
	var calling sync.WaitGroup
	if d.drive.Rate > 0 {
		due := make(chan time.Time, d.backlog())
		calling.Go(func() { d.schedule(ctx, began, due, spent) })
		for _, l := range d.lanes {
			calling.Go(func() { d.serveDue(ctx, l, due, spent) })
		}
	} else {
		end := began.Add(d.drive.Span)
		for _, l := range d.lanes {
			calling.Go(func() {
				// At least one call, however busy the machine is.
				for more := true; more && ctx.Err() == nil; more = time.Now().Before(end) {
					d.callOnce(ctx, l, spent)
				}
			})
		}
	}
	calling.Wait()
	driven := spent.driven(time.Since(began))
	for _, l := range d.lanes {
		l.drop()
		driven.MostRunning = max(driven.MostRunning, l.mostRunning)
	}
	return driven
}

// callOnce makes a call of a closed loop, and waits for it, or gives it up.
func (d *Driver) callOnce(ctx context.Context, l *lane, spent *totals) {
	at, patience := time.Now(), d.drive.Timeout
	hangsUp := d.drive.HangUpWithin > 0 && rand.IntN(2) == 0
	if hangsUp {
		patience = 1 + rand.N(d.drive.HangUpWithin)
	}
	err := l.call(ctx, patience)
	var slow net.Error
	if hangsUp && errors.As(err, &slow) && slow.Timeout() {
		spent.hangUp()
		return
	}
	spent.add(at, err)
}

// backlog is more than the calls of an open loop.
func (d *Driver) backlog() int {
	return int(2*d.drive.Rate*d.drive.Span.Seconds()) + 1000
}

// schedule puts calls into the channel when they are due, and closes it.
func (d *Driver) schedule(ctx context.Context, began time.Time, due chan<- time.Time, spent *totals) {
	defer close(due)
	for after := range d.arrivals() {
		at := began.Add(after)
		if wait := time.Until(at); wait > 0 && !sleep.For(ctx, wait) || ctx.Err() != nil {
			return
		}
		spent.late(time.Since(at))
		due <- at
	}
}

// arrivals are the same in every run of one rate, so that servers get the same load.
func (d *Driver) arrivals() iter.Seq[time.Duration] {
	return Within(d.drive.Span, Poisson(rand.New(rand.NewPCG(1, 1)), d.drive.Rate))
}

// errOverdue is why a call of an open loop never began.
var errOverdue = errors.New("no connection was free for longer than the timeout")

// serveDue makes due calls over one connection.
func (d *Driver) serveDue(ctx context.Context, l *lane, due <-chan time.Time, spent *totals) {
	for at := range due {
		err := ctx.Err()
		switch {
		case err != nil:
		case time.Since(at) > d.drive.Timeout:
			err = errOverdue
		default:
			err = l.call(ctx, d.drive.Timeout)
		}
		spent.add(at, err)
	}
}

// Histograms have steps of less than a tenth of a microsecond for short times, and reach ten
// minutes.
const (
	shortest = 100
	longest  = int64(10 * time.Minute)
	digits   = 3
)

// totals adds calls up.
type totals struct {
	mu       sync.Mutex // covers everything below
	failed   int
	hungUp   int
	latency  *hdrhistogram.Histogram
	lateness *hdrhistogram.Histogram
	failure  error
}

func newTotals() *totals {
	return &totals{latency: hdrhistogram.New(shortest, longest, digits), lateness: hdrhistogram.New(shortest, longest, digits)}
}

// add counts a call from a moment until now.
func (t *totals) add(from time.Time, err error) {
	took := time.Since(from)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		// What is longer than a histogram reaches counts as its longest.
		_ = t.latency.RecordValue(min(int64(took), longest))
		return
	}
	t.failed++
	if t.failure == nil {
		t.failure = err
	}
}

func (t *totals) hangUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hungUp++
}

func (t *totals) late(by time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.lateness.RecordValue(min(max(0, int64(by)), longest))
}

func (t *totals) driven(took time.Duration) Driven {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := func(quantile float64) time.Duration { return time.Duration(t.latency.ValueAtQuantile(quantile)) }
	d := Driven{
		Calls: int(t.latency.TotalCount()), Failed: t.failed, HungUp: t.hungUp, Took: took,
		Latency: Latency{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: time.Duration(t.latency.Max())},
		LateP99: time.Duration(t.lateness.ValueAtQuantile(99)),
	}
	if t.failure != nil {
		d.Failure = t.failure.Error()
	}
	return d
}
