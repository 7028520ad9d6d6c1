package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// Target is a gateway.
type Target struct {
	Name string
	// URL is where it takes calls, and Ready where it says whether it wants
	// some; empty for always.
	URL, Ready string
}

// Config says what to call, and how often.
type Config struct {
	Targets []Target
	// Rate is how many calls begin in a second, whatever became of those
	// before. If it is 0, Clients callers make one call after the other.
	Rate    float64
	Clients int
	// Next is the next call to make.
	Next func(*rand.Rand) Request
	// Patience is how long a caller waits for its answer.
	Patience time.Duration
	// Name begins every nonce, so that loads do not mix, and Seed makes the
	// calls the same again.
	Name string
	Seed uint64
}

// maxInFlight bounds the calls of a load that are not answered yet. Those that
// would be more are not begun.
const maxInFlight = 4000

// Load is a load that runs.
type Load struct {
	config Config
	rng    *rand.Rand
	stop   context.CancelFunc
	// ending is done when the last call has ended.
	ending  sync.WaitGroup
	flying  atomic.Int64
	number  atomic.Int64
	targets []*target

	mu    sync.Mutex
	calls []verdict.Call
}

// target is a gateway and what is known of it.
type target struct {
	Target
	*caller
	ready atomic.Bool
}

// Start begins to call, until Stop.
func Start(ctx context.Context, config Config) *Load {
	l := &Load{config: config, rng: rand.New(rand.NewPCG(config.Seed, 1))}
	for _, t := range config.Targets {
		made := &target{Target: t, caller: newCaller(t.Name, t.URL, config.Patience)}
		made.ready.Store(true)
		l.targets = append(l.targets, made)
	}
	begin, stop := context.WithCancel(ctx)
	l.stop = stop
	for _, t := range l.targets {
		if t.Ready != "" {
			l.ending.Go(func() { t.probe(begin) })
		}
	}
	if config.Rate > 0 {
		l.ending.Go(func() { l.open(begin, ctx) })
	} else {
		for i := range config.Clients {
			rng := rand.New(rand.NewPCG(config.Seed, uint64(i)+2))
			l.ending.Go(func() { l.closed(begin, ctx, rng) })
		}
	}
	return l
}

// open begins calls at random moments, whose rate is the configured one.
func (l *Load) open(begin, ctx context.Context) {
	next := time.Now()
	for begin.Err() == nil {
		next = next.Add(time.Duration(l.rng.ExpFloat64() / l.config.Rate * float64(time.Second)))
		sleep.For(begin, time.Until(next))
		if begin.Err() != nil || l.flying.Load() >= maxInFlight {
			continue
		}
		request, t := l.config.Next(l.rng), l.pick(l.rng)
		l.ending.Go(func() { l.one(ctx, t, request) })
	}
}

// closed makes one call after the other.
func (l *Load) closed(begin, ctx context.Context, rng *rand.Rand) {
	for begin.Err() == nil {
		call := l.one(ctx, l.pick(rng), l.config.Next(rng))
		if !call.Succeeded() {
			// Nobody hammers at a service that fails.
			sleep.For(begin, 20*time.Millisecond)
		}
	}
}

func (l *Load) one(ctx context.Context, t *target, r Request) verdict.Call {
	l.flying.Add(1)
	defer l.flying.Add(-1)
	call := t.call(ctx, fmt.Sprintf("%s-%d", l.config.Name, l.number.Add(1)), r)
	l.mu.Lock()
	l.calls = append(l.calls, call)
	l.mu.Unlock()
	return call
}

// pick is a gateway that is ready, or any if none is.
func (l *Load) pick(rng *rand.Rand) *target {
	first := rng.IntN(len(l.targets))
	for i := range l.targets {
		if t := l.targets[(first+i)%len(l.targets)]; t.ready.Load() {
			return t
		}
	}
	return l.targets[first]
}

// Stop begins no more calls, and returns all when the last one has ended.
func (l *Load) Stop() []verdict.Call {
	l.stop()
	l.ending.Wait()
	for _, t := range l.targets {
		t.client.CloseIdleConnections()
	}
	return l.calls
}

// Begun is how many calls have begun.
func (l *Load) Begun() int { return int(l.number.Load()) }

// probeEvery is how often a gateway is asked whether it wants calls.
const probeEvery = 250 * time.Millisecond

// probe follows whether a gateway wants calls, as a load balancer does.
func (t *target) probe(ctx context.Context) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		answer, err := client.Get(t.Ready)
		ready := err == nil && answer.StatusCode == http.StatusOK
		if err == nil {
			answer.Body.Close()
		}
		if was := t.ready.Swap(ready); was && !ready {
			t.client.CloseIdleConnections()
		}
		sleep.For(ctx, probeEvery)
	}
}

// Some makes n calls one after the other and returns what became of them.
func Some(ctx context.Context, config Config, n int) []verdict.Call {
	rng := rand.New(rand.NewPCG(config.Seed, 1))
	l := &Load{config: config}
	for _, t := range config.Targets {
		l.targets = append(l.targets, &target{Target: t, caller: newCaller(t.Name, t.URL, config.Patience)})
	}
	for range n {
		if ctx.Err() == nil {
			l.one(ctx, l.pick(rng), config.Next(rng))
		}
	}
	for _, t := range l.targets {
		t.client.CloseIdleConnections()
	}
	return l.calls
}
