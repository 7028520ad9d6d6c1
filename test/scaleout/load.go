package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// pauseAfterFailure keeps clients that are refused from doing nothing else.
const pauseAfterFailure = 200 * time.Millisecond

// caller calls one URL.
type caller struct {
	transport *http.Transport
	url       string
}

func newCaller(url string, connections int) *caller {
	return &caller{url: url, transport: loadgen.NewTransport(connections)}
}

func (c *caller) close() { c.transport.CloseIdleConnections() }

// answer is what became of one call.
type answer struct {
	// waited is how long the call waited for an instance.
	waited time.Duration
	cold   bool
	// err is set if there is no answer, or one that is not the function's.
	err error
}

// maxProblem is how much of an answer is kept for its error, in bytes.
const maxProblem = 200

// call calls once.
func (c *caller) call(ctx context.Context) (a answer) {
	client := loadgen.Client{Transport: c.transport, Keep: maxProblem}
	call := client.Do(ctx, loadgen.Request{Method: http.MethodGet, URL: c.url, Resend: true})
	timing, known := invocation.ParseTiming(call.Header[invocation.HeaderTiming])
	switch {
	case call.Err != nil:
		a.err = call.Err
	case call.Status != http.StatusOK:
		a.err = fmt.Errorf("the call was answered with %d %s: %s", call.Status, http.StatusText(call.Status), call.Body)
	case !known:
		a.err = fmt.Errorf("the answer's header %s is %q", invocation.HeaderTiming, call.Header[invocation.HeaderTiming])
	default:
		a.waited, a.cold = timing.Queue, timing.Cold
	}
	return a
}

// outcomes counts while calls go on.
type outcomes struct{ answered, failed atomic.Int64 }

// next makes calls that are counted.
func (c *caller) next(t *outcomes) func(loadgen.Turn) func(context.Context) answer {
	return func(loadgen.Turn) func(context.Context) answer {
		return func(ctx context.Context) answer {
			a := c.call(ctx)
			switch {
			case a.err == nil:
				t.answered.Add(1)
			case ctx.Err() == nil:
				t.failed.Add(1)
			}
			return a
		}
	}
}

// closed lets clients call, each again as soon as it is answered, until stop is
// called, which waits for the calls under way.
func (c *caller) closed(ctx context.Context, clients int) (t *outcomes, stop func()) {
	t = &outcomes{}
	l := loadgen.Start(ctx, loadgen.Config[answer]{Clients: clients, Next: c.next(t), Rest: func(a answer) time.Duration {
		if a.err != nil {
			return pauseAfterFailure
		}
		return 0
	}})
	return t, func() { l.Stop() }
}

// open calls at random times, whatever becomes of the calls before, and returns the
// answers to all of them.
func (c *caller) open(ctx context.Context, rate float64, length time.Duration, seed uint64) []answer {
	arrivals := loadgen.Within(length, loadgen.Poisson(rand.New(rand.NewPCG(seed, 0)), rate))
	return loadgen.Start(ctx, loadgen.Config[answer]{Arrivals: arrivals, Next: c.next(&outcomes{})}).Wait()
}
