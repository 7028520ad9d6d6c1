package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// now is the machine's monotonic clock in nanoseconds, which the run log has, too.
func now() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // Every Linux has it.
	}
	return now.Nano()
}

// request is one call of a function of the lab.
type request struct {
	Function string
	// Query is the function's, such as ms=20.
	Query string
	// Body is how many bytes are sent, and Answer how many the function adds to its
	// answer.
	Body, Answer int
	// Streamed bodies are sent piece by piece, without a length.
	Streamed bool
	// Repeatable says that the function may run twice.
	Repeatable bool
}

// loadConfig says what to call, and how often.
type loadConfig struct {
	Targets []loadgen.Target
	// Rate is how many calls begin in a second, whatever became of those before. If
	// it is 0, Clients callers make one call after the other.
	Rate    float64
	Clients int
	// Next is the next call to make.
	Next func(*rand.Rand) request
	// Patience is how long a caller waits for its answer.
	Patience time.Duration
	// Name begins every nonce, so that loads do not mix, and Seed makes the calls
	// the same again.
	Name string
	Seed uint64
}

// maxInFlight bounds the calls of a load that are not answered yet. More are not begun.
const maxInFlight = 4000

// restAfterFailure is how long a caller rests, since nobody hammers at a service that
// fails.
const restAfterFailure = 20 * time.Millisecond

// load is a load that runs, with a record of every call.
type load struct {
	*loadgen.Load[verdict.Call]
	balancer *loadgen.Balancer
}

// startLoad begins to call, until Stop.
func startLoad(ctx context.Context, config loadConfig) *load {
	l, loop := newLoad(ctx, config), loadgen.Config[verdict.Call]{}
	if config.Rate > 0 {
		rng := rand.New(rand.NewPCG(config.Seed, 1))
		loop.Arrivals, loop.MaxInFlight = loadgen.Poisson(rng, config.Rate), maxInFlight
		loop.Next = l.next(config, func(loadgen.Turn) *rand.Rand { return rng })
	} else {
		var rngs []*rand.Rand
		for i := range config.Clients {
			rngs = append(rngs, rand.New(rand.NewPCG(config.Seed, uint64(i)+2)))
		}
		loop.Clients = config.Clients
		loop.Next = l.next(config, func(turn loadgen.Turn) *rand.Rand { return rngs[turn.Client] })
		loop.Rest = func(call verdict.Call) time.Duration {
			if call.Succeeded() {
				return 0
			}
			return restAfterFailure
		}
	}
	l.Load = loadgen.Start(ctx, loop)
	return l
}

// callSome makes n calls one after the other, at any gateways, and returns what became
// of them.
func callSome(ctx context.Context, config loadConfig, n int) []verdict.Call {
	rng := rand.New(rand.NewPCG(config.Seed, 1))
	config.Targets = slices.Clone(config.Targets)
	for i := range config.Targets {
		config.Targets[i].Ready = ""
	}
	l := newLoad(ctx, config)
	defer l.balancer.Close()
	return loadgen.Start(ctx, loadgen.Config[verdict.Call]{
		Clients: 1, Calls: n, Next: l.next(config, func(loadgen.Turn) *rand.Rand { return rng }),
	}).Wait()
}

// newLoad is a load that has not begun.
func newLoad(ctx context.Context, config loadConfig) *load {
	return &load{balancer: loadgen.Balance(ctx, config.Targets, loadgen.Client{Timeout: config.Patience, Keep: maxAnswer})}
}

// next prepares calls, with chance of their caller's own.
func (l *load) next(config loadConfig, chance func(loadgen.Turn) *rand.Rand) func(loadgen.Turn) func(context.Context) verdict.Call {
	var number atomic.Int64
	return func(turn loadgen.Turn) func(context.Context) verdict.Call {
		rng := chance(turn)
		r, gateway := config.Next(rng), l.balancer.Pick(rng.IntN(len(config.Targets)))
		return func(ctx context.Context) verdict.Call {
			return call(ctx, gateway, fmt.Sprintf("%s-%d", config.Name, number.Add(1)), r)
		}
	}
}

// Stop begins no more calls, and returns all when the last one has ended.
func (l *load) Stop() []verdict.Call {
	defer l.balancer.Close()
	return l.Load.Stop()
}

// maxAnswer is how much of an answer is looked at, in bytes.
const maxAnswer = 64 << 20

// path is where a gateway has a function, by its key.
func path(function string) string {
	namespace, name, _ := strings.Cut(function, "/")
	return address.Path(invocation.FunctionKey{Namespace: namespace, Name: name})
}

// call makes one call and records what its caller saw.
func call(ctx context.Context, gateway *loadgen.Backend, nonce string, r request) verdict.Call {
	body := bytes.Repeat([]byte(nonce+"|"), r.Body/(len(nonce)+1)+1)[:r.Body]
	url := fmt.Sprintf("%s%s?%s", gateway.URL, path(r.Function), r.Query)
	if r.Answer > 0 {
		url += fmt.Sprintf("&out=%d", r.Answer)
	}
	record := verdict.Call{Nonce: nonce, Function: r.Function, Gateway: gateway.Name, Repeatable: r.Repeatable, Began: now()}
	seen := gateway.Do(ctx, loadgen.Request{
		Method: http.MethodPost, URL: url, Header: http.Header{"Lab-Nonce": {nonce}}, Body: body, Streamed: r.Streamed,
	})
	record.Ended = now()
	record.Status = seen.Status
	record.Executed = verdict.Executed(seen.Header.Get(invocation.HeaderExecuted))
	record.Invocation, record.Revision = seen.Header.Get(invocation.HeaderInvocationID), seen.Header.Get(invocation.HeaderRevision)
	switch {
	case seen.Outcome == loadgen.TimedOut:
		record.Outcome = verdict.Unanswered
	case seen.Outcome != loadgen.Answered:
		record.Outcome, record.Error = verdict.Broken, seen.Err.Error()
	case record.Succeeded():
		record.Echo, record.Whole = readEcho(seen.Body, body, r.Answer)
	default:
		var problem struct{ Reason string }
		_ = json.Unmarshal(seen.Body, &problem)
		record.Reason = problem.Reason
	}
	return record
}

// readEcho reads the answer of the lab's function to a body, to which it was to add some
// bytes: the nonce that it names, and whether the rest fits the request.
func readEcho(answer, body []byte, added int) (nonce string, whole bool) {
	var n int
	var sum string
	line, rest, _ := bytes.Cut(answer, []byte("\n"))
	_, _ = fmt.Sscan(string(line), &nonce, &n, &sum)
	want := sha256.Sum256(body)
	return nonce, n == len(body) && sum == hex.EncodeToString(want[:]) && len(rest) == added
}
