package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// loadRows are faults of those who call.
func loadRows() []row {
	return []row{
		{
			id: "F73", rate: 30, load: "30/s of others; 3/s, then 300/s", fault: "one function with room for 50 calls is called a hundred times as much as before",
			promise: "calls of others go on; those that are too many are refused", allow: refusals(), run: burst,
		},
		{
			id: "F75", load: "10 callers, and those", fault: "a hundred and fifty clients give up after 0.7 s and call again at once",
			promise: "calls of others go on, and afterwards all", allow: nothing(), run: retryStorm,
		},
		{
			id: "F76", rate: 20, fault: "one payload ends the process of its function each time",
			promise: "calls with other payloads are answered",
			allow:   verdict.Allowance{Patience: testTimeout, Maybe: verdict.Any, No: verdict.Any}, run: poison,
		},
		{
			id: "F77", fault: "two hundred clients send their headers a byte at a time, as many their bodies",
			promise: "calls of others go on, and no instance waits for them", allow: nothing(), run: slowClients,
		},
		{
			id: "F77b", fault: "fifty clients hang up while their calls wait or run",
			promise: "calls of others go on; what waited does not run", allow: nothing(), run: hangUp,
		},
		{
			id: "F78", fault: "there are two thousand idle connections to each gateway",
			promise: "calls go on", allow: nothing(), run: idleConnections,
		},
	}
}

// fixed makes the same call each time.
func fixed(r request) func(*rand.Rand) request {
	return func(*rand.Rand) request { return r }
}

// burst calls a function a hundred times as much as before, which is more than its instances can run.
func burst(ctx context.Context, s *faultEnv) error {
	limited := func(spec *v1alpha1.FunctionSpec) {
		spec.Scaling.MaxInstances, spec.Calls.MaxInFlight = new(int32(4)), inBurst
	}
	return s.with(ctx, "noisy", limited, func(*v1alpha1.Function) error {
		quiet, few := startLoad(ctx, s.config(toWork)), s.noisy(ctx, 3)
		sleep.For(ctx, 3*time.Second)
		began := now()
		many := s.noisy(ctx, 300)
		sleep.For(ctx, 8*time.Second)
		ended := now()
		calls, noisy := quiet.Stop(), append(many.Stop(), few.Stop()...)
		s.calls = append(append(s.calls, noisy...), calls...)
		s.note("victim_p99_before=%v", latency(calls, 0, began, 0.99))
		s.note("victim_p99_during=%v", latency(calls, began, ended, 0.99))
		for _, c := range calls {
			s.holds(c.Succeeded(), "a call of another function: %+v", c)
		}
		s.refusedSome(noisy)
		return nil
	})
}

// inBurst is how many calls of the function may wait or run.
const inBurst = 50

// noisy calls the function of a burst.
func (s *faultEnv) noisy(ctx context.Context, rate float64) *load {
	config := s.config(fixed(request{Function: "faults/noisy", Query: "ms=100", Body: 10}))
	config.Rate = rate
	return startLoad(ctx, config)
}

// refusedSome holds it against the lab if no call was one too many.
func (s *faultEnv) refusedSome(calls []verdict.Call) {
	refused := slices.ContainsFunc(calls, func(c verdict.Call) bool {
		return c.Executed == verdict.No && c.Reason == string(invocation.RefusedConcurrency)
	})
	s.shows(refused, "no call was refused because of the limit")
}

// latency is a quantile of calls that began between two moments.
func latency(calls []verdict.Call, from, to int64, q float64) time.Duration {
	var all []time.Duration
	for i := range calls {
		if calls[i].Began >= from && calls[i].Began < to {
			all = append(all, calls[i].Latency())
		}
	}
	return verdict.Quantile(all, q).Round(100 * time.Microsecond)
}

func retryStorm(ctx context.Context, s *faultEnv) error {
	limited := func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MaxInstances = new(int32(2)) }
	return s.with(ctx, "storm", limited, func(*v1alpha1.Function) error {
		config := s.config(fixed(request{Function: "faults/storm", Query: "ms=50", Body: 10}))
		config.Rate, config.Clients, config.Patience = 0, 10, testTimeout
		_, err := s.underLoad(ctx, config, func() error {
			// Those who repeat have less patience than calls take.
			angry := s.config(fixed(request{Function: "faults/storm", Query: "ms=50", Body: 10}))
			angry.Rate, angry.Clients, angry.Patience = 0, 150, 700*time.Millisecond
			l := startLoad(ctx, angry)
			sleep.For(ctx, 6*time.Second)
			for _, c := range l.Stop() {
				if c.Outcome == verdict.Unanswered {
					c.Outcome = verdict.Left
				}
				s.calls = append(s.calls, c)
			}
			return nil
		})
		good := s.call(ctx, 10, request{Function: "faults/storm", Body: 10})
		for _, c := range good {
			s.holds(c.Succeeded(), "a call after the storm: %+v", c)
		}
		return err
	})
}

func poison(ctx context.Context, s *faultEnv) error {
	return s.with(ctx, "poisoned", func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MinInstances = 3 }, func(*v1alpha1.Function) error {
		s.call(ctx, 3, request{Function: "faults/poisoned", Body: 10})
		config := s.config(fixed(request{Function: "faults/poisoned", Query: "ms=20", Body: 10}))
		calls, err := s.underLoad(ctx, config, func() error {
			for range 5 {
				s.call(ctx, 1, request{Function: "faults/poisoned", Query: "do=exit", Body: 10})
				sleep.For(ctx, time.Second)
			}
			return nil
		})
		for _, c := range calls {
			s.holds(c.Succeeded() || c.Executed == verdict.No, "a good payload: %+v", c)
		}
		return err
	})
}

// raw is a call that a client sends byte by byte. It has a name, so that the run log
// tells whether it was executed.
func (s *faultEnv) raw(name, function, query, headers string) (nonce, head string) {
	nonce = s.prefix + "." + name
	return nonce, "POST " + path(lab.Namespace+"/"+function) + "?" + query + " HTTP/1.1\r\nHost: lab\r\nLab-Nonce: " + nonce + "\r\n" + headers + "\r\n"
}

func slowClients(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		var open []net.Conn
		var heads []string
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for i := range 400 {
			c, err := s.dial(ctx, anyOf(s, s.Gateways))
			if err != nil {
				return err
			}
			nonce, head := s.raw(fmt.Sprintf("slow%d", i), work, "ms=1", "Content-Length: 100\r\n")
			// None of them comes to its end, so that no instance may ever have it.
			s.forbid(nonce, 0)
			open, heads = append(open, c), append(heads, head)
			if i%2 == 0 {
				_, _ = c.Write([]byte(head))
			}
		}
		for i := range 10 {
			for j, c := range open {
				text := "x"
				if j%2 == 1 {
					text = heads[j][i : i+1]
				}
				_, _ = c.Write([]byte(text))
			}
			sleep.For(ctx, 500*time.Millisecond)
		}
		return nil
	})
}

// dial opens a connection to where a gateway takes calls.
func (s *faultEnv) dial(ctx context.Context, gateway *lab.Member) (net.Conn, error) {
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", strings.TrimPrefix(s.CallURL(gateway), "http://"))
}

// heardWithin is how long a gateway may take to notice that a client has hung up.
const heardWithin = time.Second

// uploads are the ways in which clients that hang up send their bodies: not at all,
// a part of a long one, and a piece of one without length.
var uploads = []struct{ headers, body string }{
	{"Content-Length: 0\r\n", ""},
	{"Content-Length: 1048576\r\n", strings.Repeat("x", 100_000)},
	{"Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"},
}

// hangUp lets clients hang up, some of them while their calls wait behind one that
// takes longer than any gateway takes to notice.
func hangUp(ctx context.Context, s *faultEnv) error {
	alone := func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MaxInstances = new(int32(1)) }
	return s.with(ctx, "left", alone, func(*v1alpha1.Function) error {
		s.call(ctx, 1, request{Function: "faults/left", Body: 10})
		return s.under(ctx, toWork, func() error {
			config := s.config(fixed(request{Function: "faults/left", Query: "ms=6000", Body: 10}))
			var before sync.WaitGroup
			before.Go(func() { s.calls = append(s.calls, callSome(ctx, config, 1)...) })
			defer before.Wait()
			sleep.For(ctx, 500*time.Millisecond)
			for i := range 50 {
				how := uploads[i%len(uploads)]
				nonce, head := s.raw(fmt.Sprintf("left%d", i), "left", "ms=10", how.headers)
				if err := s.hangUpAfter(ctx, time.Duration(s.rng.IntN(100))*time.Millisecond, head+how.body); err != nil {
					return err
				}
				s.forbid(nonce, now()+int64(heardWithin))
			}
			return nil
		})
	})
}

// hangUpAfter sends a part of a call to any gateway, and hangs up.
func (s *faultEnv) hangUpAfter(ctx context.Context, d time.Duration, text string) error {
	c, err := s.dial(ctx, anyOf(s, s.Gateways))
	if err != nil {
		return err
	}
	defer c.Close()
	_, _ = c.Write([]byte(text))
	sleep.For(ctx, d)
	return nil
}

func idleConnections(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		var open []net.Conn
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for _, gateway := range s.Gateways {
			for range 2000 {
				c, err := s.dial(ctx, gateway)
				if err != nil {
					return err
				}
				open = append(open, c)
			}
		}
		sleep.For(ctx, 3*time.Second)
		return nil
	})
}
