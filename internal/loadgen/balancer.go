package loadgen

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Target is a gateway.
type Target struct {
	Name string
	// URL is where it takes calls, and Ready where it says whether it wants some;
	// empty for always.
	URL, Ready string
}

// Balancer picks gateways. It stops using one that reports that it is not ready, or does not
// accept connections.
type Balancer struct {
	targets []*Backend
	stop    context.CancelFunc
	probing sync.WaitGroup
}

// Backend is a gateway with a client of its own.
type Backend struct {
	Target
	Client
	transport *http.Transport
	ready     atomic.Bool
}

// keptConnections is how many connections to a gateway are kept.
const keptConnections = 256

// Balance begins to follow which targets are ready, until Close. Each has a client with
// these settings and connections of its own.
func Balance(ctx context.Context, targets []Target, settings Client) *Balancer {
	probing, stop := context.WithCancel(ctx)
	b := &Balancer{stop: stop}
	for _, t := range targets {
		backend := &Backend{Target: t, Client: settings, transport: NewTransport(keptConnections)}
		backend.Transport = backend.transport
		backend.ready.Store(true)
		b.targets = append(b.targets, backend)
		if t.Ready != "" {
			b.probing.Go(func() { backend.probe(probing) })
		}
	}
	return b
}

// Pick is the n-th gateway, n modulo their number, or the next one that is ready. If none is,
// it is the n-th.
func (b *Balancer) Pick(n int) *Backend {
	for i := range b.targets {
		if t := b.targets[(n+i)%len(b.targets)]; t.ready.Load() {
			return t
		}
	}
	return b.targets[n%len(b.targets)]
}

// Close ends the probes and closes idle connections.
func (b *Balancer) Close() {
	b.stop()
	b.probing.Wait()
	for _, t := range b.targets {
		t.transport.CloseIdleConnections()
	}
}

const (
	// probeEvery is how often a gateway is asked whether it wants calls.
	probeEvery = 250 * time.Millisecond
	// probeTimeout bounds one question.
	probeTimeout = 2 * time.Second
)

// probe follows whether a gateway wants calls, as a load balancer does.
func (t *Backend) probe(ctx context.Context) {
	prober := Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: probeTimeout}
	for ctx.Err() == nil {
		answer := prober.Do(ctx, Request{Method: http.MethodGet, URL: t.Ready})
		ready := answer.Outcome == Answered && answer.Status == http.StatusOK
		if was := t.ready.Swap(ready); was && !ready {
			t.transport.CloseIdleConnections()
		}
		sleep.For(ctx, probeEvery)
	}
}
