package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/test/tenant"
)

// pauseAfterFailure keeps clients that are refused from doing nothing else.
const pauseAfterFailure = 200 * time.Millisecond

// caller calls one URL.
type caller struct {
	client *http.Client
	url    string
}

func newCaller(url string, connections int) *caller {
	return &caller{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}}
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// answer is what became of one call.
type answer struct {
	// took is the client's time, and waited how long the call waited for an
	// instance.
	took, waited time.Duration
	cold         bool
}

// call calls once. An answer that is not the function's is an error.
func (c *caller) call(ctx context.Context) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return answer{}, err
	}
	begun := time.Now()
	response, err := c.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(response.Body)
	took := time.Since(begun)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, err
	}
	if response.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("the call was answered with %s: %.200s", response.Status, text)
	}
	ms, err := strconv.ParseFloat(response.Header.Get(invoke.HeaderQueueMs), 64)
	if err != nil {
		return answer{}, fmt.Errorf("the answer's header %s is %q", invoke.HeaderQueueMs, response.Header.Get(invoke.HeaderQueueMs))
	}
	return answer{
		took: took, waited: time.Duration(ms * float64(time.Millisecond)), cold: response.Header.Get(invoke.HeaderColdStart) != "",
	}, nil
}

// tally counts while calls go on.
type tally struct {
	answered, failed atomic.Int64
	// last is the last failure.
	last atomic.Pointer[error]
}

func (t *tally) fail(err error) {
	t.failed.Add(1)
	t.last.Store(&err)
}

// closed lets clients call, each again as soon as it is answered, until stop is
// called, which waits for the calls under way.
func (c *caller) closed(ctx context.Context, clients int) (t *tally, stop func()) {
	t = &tally{}
	ending := make(chan struct{})
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for {
				select {
				case <-ending:
					return
				case <-ctx.Done():
					return
				default:
				}
				if _, err := c.call(ctx); err == nil {
					t.answered.Add(1)
				} else if ctx.Err() == nil {
					t.fail(err)
					_ = tenant.Rest(ctx, pauseAfterFailure)
				}
			}
		})
	}
	return t, func() { close(ending); running.Wait() }
}

// open calls at random times, whatever becomes of the calls before, and returns the
// answers to all of them.
func (c *caller) open(ctx context.Context, rate float64, length time.Duration, seed uint64) ([]answer, *tally) {
	var (
		mu      sync.Mutex
		answers []answer
		running sync.WaitGroup
		t       tally
	)
	begun := time.Now()
	for _, at := range arrivals(rate, length, seed) {
		if tenant.Rest(ctx, time.Until(begun.Add(at))) != nil {
			break
		}
		running.Go(func() {
			a, err := c.call(ctx)
			if err != nil {
				t.fail(err)
				return
			}
			t.answered.Add(1)
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, a)
		})
	}
	running.Wait()
	return answers, &t
}

// arrivals are the times of a Poisson process from the first call on.
func arrivals(rate float64, length time.Duration, seed uint64) []time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	var times []time.Duration
	for at := time.Duration(0); at < length; at += time.Duration(random.ExpFloat64() / rate * float64(time.Second)) {
		times = append(times, at)
	}
	return times
}
