package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/pkg/workload"
)

// Config says where a replay sends its calls.
type Config struct {
	// Gateway is the base URL, such as http://127.0.0.1:8080. Paths of
	// targets are appended to it.
	Gateway string
	// MaxInFlight bounds the calls under way, 1 to 100000. A call that is
	// due while so many are is not sent and counts as an error.
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
		return fmt.Errorf("bench: Gateway %q is not a URL such as http://127.0.0.1:8080", c.Gateway)
	case c.MaxInFlight < 1 || c.MaxInFlight > 100_000:
		return fmt.Errorf("bench: MaxInFlight is %d; it must be 1 to 100000", c.MaxInFlight)
	case c.Timeout <= 0:
		return fmt.Errorf("bench: Timeout is %v; it must be more than 0", c.Timeout)
	}
	return nil
}

// Deps are what a replay works with.
type Deps struct {
	// Transport sends the calls; see NewTransport.
	Transport http.RoundTripper
	// Progress, if not nil, is told every second how far the replay is and
	// once more when it has ended. It is called by one goroutine at a time;
	// while it has not returned, further seconds are left out.
	Progress func(Progress)
}

// NewTransport makes a transport that keeps connections for as many calls as
// may be under way. Its owner closes idle connections in the end.
func NewTransport(maxInFlight int) *http.Transport {
	return &http.Transport{
		MaxIdleConns:        maxInFlight,
		MaxIdleConnsPerHost: maxInFlight,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
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
		return nil, errors.New("bench: Transport is missing; give one such as NewTransport makes")
	}
	for _, a := range t.Arrivals {
		if _, ok := m.Target(a.Function); !ok {
			return nil, fmt.Errorf("bench: function %s of trace %q has no target; make the mapping for this trace", a.Function, t.Name)
		}
	}
	c.Gateway = strings.TrimRight(c.Gateway, "/")
	return &Replay{config: c, deps: d, trace: t, mapping: m}, nil
}

// Run replays the trace and returns one sample for each call that came due, in
// the order of the trace, when all of them have ended. If ctx ends before, no
// further call is sent, calls under way are broken off, and the error is that
// of ctx.
func (r *Replay) Run(ctx context.Context) ([]Sample, error) {
	run := &run{
		Replay:  r,
		start:   time.Now(),
		slots:   make(chan struct{}, r.config.MaxInFlight),
		samples: make([]Sample, len(r.trace.Arrivals)),
	}
	stopProgress := run.reportProgress()
	due := run.send(ctx)
	run.calls.Wait()
	stopProgress()
	if due < len(run.samples) {
		return run.samples[:due], ctx.Err()
	}
	return run.samples, run.cutOff(ctx)
}

// run is one run of a replay.
type run struct {
	*Replay
	start time.Time
	// slots holds one element for each call under way.
	slots chan struct{}
	// samples has one element for each arrival. Each is written once, by
	// whoever ends its call.
	samples []Sample
	calls   sync.WaitGroup

	sent, done, notSent, failed atomic.Int64
}

// send sends every call when it is due, and returns how many came due before
// ctx ended.
func (r *run) send(ctx context.Context) int {
	for i, a := range r.trace.Arrivals {
		if !sleepUntil(ctx, r.start.Add(a.At)) {
			return i
		}
		target, _ := r.mapping.Target(a.Function)
		r.samples[i] = Sample{Function: target.Function, At: a.At, Late: time.Since(r.start) - a.At}
		request, err := newRequest(r.config.Gateway, target, a.Duration)
		if err != nil {
			r.refuse(i, "not sent: "+err.Error())
			continue
		}
		select {
		case r.slots <- struct{}{}:
		default:
			r.refuse(i, fmt.Sprintf("not sent: %d calls were under way", r.config.MaxInFlight))
			continue
		}
		r.sent.Add(1)
		r.calls.Go(func() {
			r.call(ctx, request, &r.samples[i])
			if r.samples[i].Failed() {
				r.failed.Add(1)
			}
			r.done.Add(1)
			<-r.slots
		})
	}
	return len(r.trace.Arrivals)
}

func (r *run) refuse(i int, why string) {
	r.samples[i].Outcome, r.samples[i].Failure = NotSent, why
	r.notSent.Add(1)
	r.failed.Add(1)
}

// call makes one call within the timeout.
func (r *run) call(ctx context.Context, request *http.Request, s *Sample) {
	callCtx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	start := time.Now()
	status, header, err := exchange(r.deps.Transport, request.WithContext(callCtx))
	s.Total = time.Since(start)
	switch {
	case err == nil:
		s.readAnswer(status, header)
	case ctx.Err() != nil:
		s.Outcome = CutOff
	default:
		s.Outcome, s.Failure = NoAnswer, "no answer: "+cause(err)
	}
}

// cutOff is the error of ctx if it broke off a call.
func (r *run) cutOff(ctx context.Context) error {
	for i := range r.samples {
		if r.samples[i].Outcome == CutOff {
			return ctx.Err()
		}
	}
	return nil
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
		Calls:   len(r.samples),
		Elapsed: min(time.Since(r.start), r.trace.Length), Length: r.trace.Length,
	}
}

// sleepUntil says whether the time came before ctx ended.
func sleepUntil(ctx context.Context, when time.Time) bool {
	wait := time.Until(when)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
