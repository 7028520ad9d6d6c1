package podagent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// onNetwork prepares a world whose agent connects to a scheduler and a gateway.
func onNetwork(t *testing.T, scheduler, gateway string) *harness {
	w := newHarness(t)
	c := config()
	c.Scheduler = scheduler
	w.agent = New(c, Deps{Adapter: w.adapter, Log: slog.New(slog.DiscardHandler)})
	w.agent.dialGateway = func(ctx context.Context, _ string) (net.Conn, error) { return Dialer{}.Gateway(ctx, gateway) }
	return w
}

// serve serves the world's scheduler until the returned function is called, or the test ends.
func (w *harness) serve(l net.Listener) (stop func()) {
	server := grpc.NewServer()
	agentwire.RegisterInstancesServer(server, w.scheduler)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	w.t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return server.Stop
}

// serveGateway serves the world's gateway until the returned function is called, or the test
// ends.
func (w *harness) serveGateway(l net.Listener) (stop func()) {
	var mu sync.Mutex
	var serving sync.WaitGroup
	var conns []net.Conn
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			serving.Go(func() { _ = w.gateway.serve(c) })
		}
	})
	stop = func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		serving.Wait()
	}
	w.t.Cleanup(stop)
	return stop
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLifeOnARealNetwork(t *testing.T) {
	l, gateways := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	w := onNetwork(t, l.Addr().String(), gateways.Addr().String())
	stop, stopGateway := w.serve(l), w.serveGateway(gateways)
	p := w.begin()

	// A large request and a large answer.
	p.ticket("a")
	claim := w.claim()
	claim.grant(callwire.Call{Method: "POST", ContentLength: -1})
	call := <-w.adapter.calls
	big := strings.Repeat("x", 1<<20)
	go func() {
		out := callwire.NewOutflow(claim.wire, claim.number)
		claim.opens(out)
		for part := range strings.SplitSeq(strings.Repeat(big+" ", 4)+"end", " ") {
			_, _ = io.WriteString(out, part)
		}
		claim.bodyEnd(false)
	}()
	if body, err := io.ReadAll(call.Body); err != nil || len(body) != 4<<20+3 {
		t.Fatalf("read %d bytes: %v", len(body), err)
	}
	go call.answer(adapter.Head{Status: 200, ContentLength: -1}, big[:6<<17], "end")
	claim.hear("head 200 cold")
	for range 24 {
		claim.hear("body of 32768 bytes")
	}
	claim.hear(`body "end"`, "end")
	claim.hearEnd()
	p.hear("pull 1 done a")

	// The scheduler and the gateway are replaced.
	stopGateway()
	stop()
	w.serve(listen(t, l.Addr().String()))
	w.serveGateway(listen(t, gateways.Addr().String()))
	p = w.stream()
	p.hear(helloText, "pull 2")
	claim, call = w.call(p, "b")

	// The agent is stopped during a call.
	w.signal(errSignal)
	p.hear("goodbye STOPPED")
	call.hello()
	claim.hear(`head 200 whole "hello"`)
	claim.hearEnd()
	p.hear("hung up")
	w.ended(nil)
}

// A stream that the scheduler has not touched when it goes away is one that gRPC
// would open again by itself, inside the agent's next Send.
func TestSchedulerThatGoesAwayUntouchedBlocksNothing(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	w := onNetwork(t, l.Addr().String(), l.Addr().String())
	goneAway, over := make(chan error, 1), make(chan struct{})
	go func() { goneAway <- goAway(l, over) }()
	t.Cleanup(func() { close(over) })
	w.run()
	w.adapter.ready <- nil
	if err := <-goneAway; err != nil {
		t.Fatal(err)
	}
	w.signal(errSignal)
	select {
	case err := <-w.ran:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * lastWords):
		t.Fatal("the agent hangs")
	}
}

// goAway takes one connection, waits for the first message of its first stream,
// and says that it went away before that. Nobody can connect again.
func goAway(l net.Listener, over <-chan struct{}) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	_ = l.Close()
	go func() {
		<-over
		_ = conn.Close()
	}()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return fmt.Errorf("reading what the agent says: %w", err)
		}
		if frame.Header().Type == http2.FrameData {
			break
		}
	}
	if err := framer.WriteGoAway(0, http2.ErrCodeNo, nil); err != nil {
		return err
	}
	for { // until the agent has seen it and hangs up
		if _, err := framer.ReadFrame(); err != nil {
			return nil
		}
	}
}

// An owner that refuses, one that takes connections and says nothing, and one whose
// address is none: each is left for any scheduler.
func TestOwnersThatAreNotThereOnARealNetwork(t *testing.T) {
	closed := listen(t, "127.0.0.1:0")
	_ = closed.Close()
	frozen := listen(t, "127.0.0.1:0")
	defer func() { _ = frozen.Close() }()
	for name, owner := range map[string]string{
		"refuses":    closed.Addr().String(),
		"frozen":     frozen.Addr().String(),
		"no address": "nowhere",
	} {
		t.Run(name, func(t *testing.T) {
			l, gateways := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
			w := onNetwork(t, l.Addr().String(), gateways.Addr().String())
			w.agent.config.Owner = owner
			w.serve(l)
			w.serveGateway(gateways)
			p := w.begin()
			claim, call := w.call(p, "a")
			call.hello()
			claim.hear(`head 200 cold whole "hello"`)
			claim.hearEnd()
			p.hear("pull 1 done a")
			p.retire("enough")
			w.ended(nil)
		})
	}
}

// The gateway ends in the middle of a call, and another one has the next.
func TestGatewayThatEndsDuringACallOnARealNetwork(t *testing.T) {
	schedulers, gateways := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	w := onNetwork(t, schedulers.Addr().String(), gateways.Addr().String())
	w.serve(schedulers)
	stop := w.serveGateway(gateways)
	p := w.begin()
	_, call := w.call(p, "a")
	stop()
	call.answer(adapter.Head{Status: 200, ContentLength: -1}, strings.Repeat("x", 1<<20))
	p.hear("pull 1 done a")
	w.serveGateway(listen(t, gateways.Addr().String()))
	for {
		p.ticket("b")
		select {
		case claim := <-w.gateway.claims:
			claim.t = t
			claim.refuse()
			p.hear("pull 1 done b")
			p.retire("enough")
			w.ended(nil)
			return
		case said := <-p.said: // the agent has not connected again yet
			if !strings.HasSuffix(said, unclaimed) {
				t.Fatalf("heard %q", said)
			}
		}
	}
}
