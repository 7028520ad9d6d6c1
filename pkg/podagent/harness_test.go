package podagent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// harness is a running Agent between a scheduler, a gateway and a function that
// the test plays.
type harness struct {
	t         *testing.T
	agent     *Agent
	adapter   *fakeAdapter
	scheduler *fakeScheduler
	gateway   *fakeGateway
	node      *fakeNode
	conn      *memoryConn // to schedulers; nil over the network
	signal    context.CancelCauseFunc
	ends      chan FunctionEnd
	ran       chan error
	// warnings are the log's; they are read once the agent has ended.
	warnings bytes.Buffer
}

var errSignal = errors.New("SIGTERM")

func config() agentenv.Config {
	return agentenv.Config{
		FunctionUID: "uid", Function: "default/f", Revision: "3", CID: "cid", Token: "secret", Concurrency: 2,
		StartupTimeout: time.Minute, BackoffAfter: 10 * time.Second, IdleTimeout: 10 * time.Minute,
	}
}

const helloText = "hello uid/3 cid secret"

func newHarness(t *testing.T) *harness {
	return &harness{
		t: t,
		adapter: &fakeAdapter{
			ready: make(chan error, 1), calls: make(chan *called, 100),
			waits: make(chan error, 1), assigned: make(chan adapter.Assignment, 10),
		},
		scheduler: &fakeScheduler{streams: make(chan *pulls, 100)},
		gateway:   newFakeGateway(),
		node:      &fakeNode{streams: make(chan *computing, 100)},
		ends:      make(chan FunctionEnd, 1),
		ran:       make(chan error, 1),
	}
}

// withHarness plays in a world without a network, in its own time. The agent must
// have ended when play returns.
func withHarness(t *testing.T, change func(*agentenv.Config), play func(*harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		w.conn = newMemoryConn(w.scheduler)
		c := config()
		if change != nil {
			change(&c)
		}
		w.agent = New(c, Deps{Adapter: w.adapter, Spare: w.adapter, FunctionEnd: w.ends, Log: slog.New(slog.NewTextHandler(&w.warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		w.agent.jitter = 1
		w.agent.dialScheduler = func(string) (conn, error) { return w.conn, nil }
		w.agent.dialGateway = w.gateway.dial
		w.agent.dialNode = func(string) (conn, error) { return newMemoryConnTo(w.node.serve), nil }
		play(w)
	})
}

// run runs the agent.
func (w *harness) run() {
	ctx, signal := context.WithCancelCause(context.Background())
	w.signal = signal
	w.t.Cleanup(func() { signal(nil) })
	go func() { w.ran <- w.agent.Run(ctx) }()
}

// begin runs an agent with a function that is ready, and returns its stream
// after it has asked for work.
func (w *harness) begin() *pulls {
	w.t.Helper()
	w.run()
	w.adapter.ready <- nil
	p := w.stream()
	p.hear(helloText, "pull 2")
	return p
}

// stream is the next stream to the scheduler.
func (w *harness) stream() *pulls {
	p := <-w.scheduler.streams
	p.t = w.t
	return p
}

// claim is the next claim at the gateway.
func (w *harness) claim() *claimed {
	c := <-w.gateway.claims
	c.t = w.t
	return c
}

// get is a request without a body.
func get() callwire.Call {
	return callwire.Call{Attempt: 1, Method: "GET", RequestURI: "/", Whole: true}
}

// loan runs a call by a ticket whose place stays with the gateway, and returns the connection.
func (w *harness) loan(p *pulls, id string) *gatewayEnd {
	w.t.Helper()
	p.lent(id)
	c := w.claim()
	c.grant(get())
	(<-w.adapter.calls).hello()
	if f := <-c.said; !f.Has(callwire.FlagKeeps) {
		w.t.Fatalf("the place does not stay: %s", tellAttempt(f))
	}
	c.hearEnd()
	return c.gatewayEnd
}

// call hands out a ticket, grants the claim, and returns both ends of the call.
func (w *harness) call(p *pulls, id string) (*claimed, *called) {
	w.t.Helper()
	p.ticket(id)
	c := w.claim()
	c.grant(get())
	return c, <-w.adapter.calls
}

// ended expects that the agent has ended, or does so without a further cause.
func (w *harness) ended(want error) {
	w.t.Helper()
	if err := <-w.ran; !errors.Is(err, want) {
		w.t.Fatalf("Run: %v, want %v", err, want)
	}
}

// runs expects that the agent has not ended.
func (w *harness) runs() {
	w.t.Helper()
	synctest.Wait()
	select {
	case err := <-w.ran:
		w.t.Fatalf("Run has ended: %v", err)
	default:
	}
}
