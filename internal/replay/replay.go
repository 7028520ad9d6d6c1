package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/workload"
)

// Config says where a replay sends its calls.
type Config struct {
	// Gateway is the base URL, such as http://127.0.0.1:8080. Paths of
	// targets are appended to it.
	Gateway string
	// MaxInFlight bounds the running calls, 1 to 100000. A call that is due beyond it is not
	// sent and counts as an error.
	MaxInFlight int
	// Timeout bounds each call, more than 0. A call without a whole answer
	// by then is lost.
	Timeout time.Duration
}

// Validate reports a field that is out of range.
func (c Config) Validate() error {
	u, err := url.Parse(c.Gateway)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("replay: Gateway %q is not a URL such as http://127.0.0.1:8080", c.Gateway)
	case c.MaxInFlight < 1 || c.MaxInFlight > 100_000:
		return fmt.Errorf("replay: MaxInFlight is %d; it must be 1 to 100000", c.MaxInFlight)
	case c.Timeout <= 0:
		return fmt.Errorf("replay: Timeout is %v; it must be more than 0", c.Timeout)
	}
	return nil
}

// Deps are what a replay works with.
type Deps struct {
	// Transport sends the calls; see loadgen.NewTransport.
	Transport http.RoundTripper
	// Progress, if not nil, is called every second with the progress of the replay and once
	// more at its end, by one goroutine at a time. Seconds in which it still runs are left
	// out.
	Progress func(Progress)
}

// Progress is how far a replay is.
type Progress struct {
	// Sent calls were put on the gateway; Done of them have ended and
	// InFlight have not.
	Sent, Done, InFlight int
	// NotSent calls were due and could not be sent. They are among the
	// Errors.
	NotSent, Errors int
	// Calls is how many the trace has.
	Calls int
	// Elapsed is the trace's time so far, and Length its end.
	Elapsed, Length time.Duration
	// Ended says that this is the last report.
	Ended bool
}

// Replay puts a trace's calls on a gateway.
type Replay struct {
	config  Config
	deps    Deps
	trace   workload.Trace
	mapping Mapping
}

// New makes a replay of the trace. It fails if the configuration or the trace
// is not valid or the mapping was made for another trace.
func New(c Config, d Deps, t workload.Trace, m Mapping) (*Replay, error) {
	if err := errors.Join(c.Validate(), t.Validate()); err != nil {
		return nil, err
	}
	if d.Transport == nil {
		return nil, errors.New("replay: Transport is missing; give one such as loadgen.NewTransport makes")
	}
	for _, a := range t.Arrivals {
		if _, ok := m.Target(a.Function); !ok {
			return nil, fmt.Errorf("replay: function %s of trace %q has no target; make the mapping for this trace", a.Function, t.Name)
		}
	}
	c.Gateway = strings.TrimRight(c.Gateway, "/")
	return &Replay{config: c, deps: d, trace: t, mapping: m}, nil
}

// Run replays the trace and returns one sample for each call that came due, in the order of
// the trace, when all of them have ended. If ctx ends before, it sends no further call, cuts
// off running ones, and returns the error of ctx.
func (r *Replay) Run(ctx context.Context) ([]Sample, error) {
	run := &run{
		Replay: r,
		start:  time.Now(),
		client: loadgen.Client{Transport: r.deps.Transport, Timeout: r.config.Timeout},
	}
	stopProgress := run.reportProgress()
	sent := loadgen.Start(ctx, loadgen.Config[numbered]{
		Arrivals: r.arrivals, MaxInFlight: r.config.MaxInFlight, Next: run.prepare, Refused: run.refused,
	}).Wait()
	stopProgress()
	slices.SortFunc(sent, func(a, b numbered) int { return a.n - b.n })
	samples := make([]Sample, len(sent))
	cutOff := len(samples) < len(r.trace.Arrivals)
	for i := range sent {
		samples[i] = sent[i].Sample
		cutOff = cutOff || samples[i].Outcome == CutOff
	}
	if cutOff {
		return samples, ctx.Err()
	}
	return samples, nil
}

// arrivals are when the trace's calls are due.
func (r *Replay) arrivals(yield func(time.Duration) bool) {
	for _, a := range r.trace.Arrivals {
		if !yield(a.At) {
			return
		}
	}
}

// run is one run of a replay.
type run struct {
	*Replay
	start  time.Time
	client loadgen.Client

	sent, done, notSent, failed atomic.Int64
}

// numbered is the sample of the trace's n-th call.
type numbered struct {
	n int
	Sample
}

// sample is that of a call before it is sent.
func (r *run) sample(turn loadgen.Turn) numbered {
	target, _ := r.mapping.Target(r.trace.Arrivals[turn.N].Function)
	return numbered{turn.N, Sample{Function: target.Function, At: turn.Due, Late: turn.Late}}
}

// prepare makes the call that is due.
func (r *run) prepare(turn loadgen.Turn) func(context.Context) numbered {
	s := r.sample(turn)
	arrival := r.trace.Arrivals[turn.N]
	target, _ := r.mapping.Target(arrival.Function)
	request := target.request(r.config.Gateway, arrival.Duration)
	return func(ctx context.Context) numbered {
		r.sent.Add(1)
		s.read(r.client.Do(ctx, request))
		if s.Failed() {
			r.failed.Add(1)
		}
		if s.Outcome == NotSent {
			r.notSent.Add(1)
			r.sent.Add(-1)
		} else {
			r.done.Add(1)
		}
		return s
	}
}

// refused is a call that was due while too many were under way.
func (r *run) refused(turn loadgen.Turn) numbered {
	s := r.sample(turn)
	s.Outcome, s.Failure = NotSent, fmt.Sprintf("not sent: %d calls were under way", r.config.MaxInFlight)
	r.notSent.Add(1)
	r.failed.Add(1)
	return s
}

// reportProgress begins to report every second. The function that it returns
// reports once more and ends that.
func (r *run) reportProgress() (stop func()) {
	if r.deps.Progress == nil {
		return func() {}
	}
	ended := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.deps.Progress(r.progress())
			case <-ended:
				last := r.progress()
				last.Ended = true
				r.deps.Progress(last)
				return
			}
		}
	})
	return func() {
		close(ended)
		reporter.Wait()
	}
}

func (r *run) progress() Progress {
	// Done is read before Sent, so that it is never the larger.
	done, notSent := int(r.done.Load()), int(r.notSent.Load())
	sent := int(r.sent.Load())
	return Progress{
		Sent: sent, Done: done, InFlight: sent - done,
		NotSent: notSent, Errors: int(r.failed.Load()),
		Calls:   len(r.trace.Arrivals),
		Elapsed: min(time.Since(r.start), r.trace.Length), Length: r.trace.Length,
	}
}

// progressEvery is how often progress is printed where lines cannot be
// rewritten.
const progressEvery = 5

// ProgressPrinter returns a function for Deps.Progress that prints one line to
// w. On a terminal it rewrites that line; elsewhere it prints a new one for
// every fifth report and for the last. Errors of writing are ignored: progress
// is a courtesy.
func ProgressPrinter(w io.Writer, terminal bool) func(Progress) {
	reports := 0
	return func(p Progress) {
		reports++
		switch {
		case terminal && p.Ended:
			fmt.Fprintf(w, "\r\x1b[K%s\n", p)
		case terminal:
			fmt.Fprintf(w, "\r\x1b[K%s", p)
		case p.Ended || reports%progressEvery == 0:
			fmt.Fprintln(w, p)
		}
	}
}

// String is the progress as one line of less than 100 columns.
func (p Progress) String() string {
	line := fmt.Sprintf("%3.0f s of %.0f s: sent %d of %d, done %d, in flight %d, errors %d",
		p.Elapsed.Seconds(), p.Length.Seconds(), p.Sent, p.Calls, p.Done, p.InFlight, p.Errors)
	if p.NotSent > 0 {
		line += fmt.Sprintf(" (%d not sent)", p.NotSent)
	}
	return line
}
