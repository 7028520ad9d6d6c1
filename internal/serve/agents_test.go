package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

// memory is a listener in memory.
type memory struct {
	come   chan any // a net.Conn or an error
	closed chan struct{}
}

func newMemory() *memory { return &memory{come: make(chan any), closed: make(chan struct{})} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case what := <-m.come:
		if err, failed := what.(error); failed {
			return nil, err
		}
		return what.(net.Conn), nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error { close(m.closed); return nil }

func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects.
func (m *memory) dial() net.Conn {
	server, client := net.Pipe()
	m.come <- server
	return client
}

// handling is a handler that does something with each frame.
type handling struct {
	frame func(f callwire.Frame, guard AgentGuard) error
	ended chan error // why each conversation has ended
}

func (h *handling) ServeAgent(conn *callwire.Conn, guard AgentGuard) (err error) {
	defer func() { h.ended <- err }()
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		if err := h.frame(f, guard); err != nil {
			return err
		}
	}
}

// agents are a running server of agents' connections.
type agents struct {
	*memory
	server  *AgentServer
	handler *handling
	stop    func()
	done    chan error
}

// serveAgents begins to serve. Its handler has nothing to say about frames but what frame says.
func serveAgents(t *testing.T, secure *tls.Config, frame func(callwire.Frame, AgentGuard) error) *agents {
	t.Helper()
	if frame == nil {
		frame = func(callwire.Frame, AgentGuard) error { return nil }
	}
	ctx, stop := context.WithCancel(t.Context())
	a := &agents{memory: newMemory(), handler: &handling{frame, make(chan error, 2*maxStrangers)}, stop: stop, done: make(chan error, 1)}
	a.server = NewAgents(prometheus.NewPedanticRegistry(), secure, a.handler)
	go func() { a.done <- Agents(ctx, a.memory, a.server) }()
	return a
}

// end stops the server and waits for it.
func (a *agents) end(t *testing.T) {
	t.Helper()
	a.stop()
	if err := <-a.done; err != nil {
		t.Error(err)
	}
}

func (a *agents) refused(code codes.Code) float64 {
	return testutil.ToFloat64(a.server.guard.refused.WithLabelValues(callMethod, code.String()))
}

// say writes what a client says, and waits until the connection has ended.
func say(t *testing.T, client net.Conn, said []byte) (took time.Duration) {
	t.Helper()
	began := time.Now()
	go func() { _, _ = client.Write(said) }()
	_, _ = io.Copy(io.Discard, client)
	_ = client.Close()
	return time.Since(began)
}

func claims(n int) []byte {
	said := (&callwire.Hello{CID: "cid"}).Append(nil)
	for number := range uint32(n) {
		said = callwire.AppendClaim(said, 2*number+1, callwire.Claim{})
	}
	return said
}

func TestAgentsAreServedUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frames := 0
		a := serveAgents(t, nil, func(callwire.Frame, AgentGuard) error { frames++; return nil })
		client := a.dial()
		_, _ = client.Write(claims(2))
		synctest.Wait()
		if frames != 3 {
			t.Errorf("%d frames came", frames)
		}
		a.end(t)
		if len(a.handler.ended) != 1 || a.server.strangers.count != 0 {
			t.Errorf("%d handlers have ended; %d strangers", len(a.handler.ended), a.server.strangers.count)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the client reads %v", err)
		}
	})
}

// A stack that was large once stays so, and most connections are idle.
func TestAConversationHasAGoroutineThatMadeNoHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serveAgents(t, nil, nil)
		const many = 3
		for range many {
			_, _ = a.dial().Write(claims(0))
		}
		synctest.Wait()
		all := make([]byte, 1<<20)
		conversing, handshaking := 0, 0
		for _, stack := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
			stack, _, _ = strings.Cut(stack, "created by ")
			switch {
			case strings.Contains(stack, "(*AgentServer).serve("):
				handshaking++
			case strings.Contains(stack, "(*AgentServer).converse("):
				conversing++
			}
		}
		if conversing != many || handshaking != 0 {
			t.Errorf("%d connections have %d goroutines that converse and %d that made the handshake", many, conversing, handshaking)
		}
		a.end(t)
	})
}

func TestTheEndOfAHandlerClosesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("over")
		a := serveAgents(t, nil, func(callwire.Frame, AgentGuard) error { return over })
		if took := say(t, a.dial(), claims(1)); took != 0 {
			t.Errorf("it took %v", took)
		}
		if err := <-a.handler.ended; !errors.Is(err, over) {
			t.Error(err)
		}
		a.end(t)
		if got := testutil.CollectAndCount(a.server.guard.refused); got != 0 {
			t.Errorf("%d refusals are counted", got)
		}
	})
}

func TestS2AnAgentSaysSoonAndBrieflyWhoItIs(t *testing.T) {
	long := callwire.AppendFrame(nil, callwire.KindHello, 0, 0, func(b []byte) []byte { return append(b, make([]byte, callwire.MaxFirst+1)...) })
	never := callwire.AppendFrame(claims(0), callwire.KindClaim, 0, 1, func(b []byte) []byte { return append(b, make([]byte, callwire.MaxFirst+1)...) })
	for name, c := range map[string]struct {
		said []byte
		want codes.Code
		took time.Duration
	}{
		"nothing":              {nil, codes.DeadlineExceeded, firstMessageTimeout},
		"a part of a hello":    {claims(0)[:10], codes.DeadlineExceeded, firstMessageTimeout},
		"a long hello":         {long, codes.InvalidArgument, 0},
		"a long second frame":  {never, codes.InvalidArgument, 0},
		"claims without end":   {claims(10_000), codes.ResourceExhausted, 0},
		"a hello and no claim": {claims(0), codes.OK, 15 * time.Second}, // it answers no ping
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := serveAgents(t, nil, nil)
				if took := say(t, a.dial(), c.said); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				a.end(t)
				if c.want != codes.OK && a.refused(c.want) != 1 {
					t.Errorf("it is not counted as %v", c.want)
				}
				if c.want == codes.OK && testutil.CollectAndCount(a.server.guard.refused) != 0 {
					t.Error("it is counted as a refusal")
				}
			})
		})
	}
}

func TestS2AnAgentWithAValidClaimMaySendMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frames := 0
		a := serveAgents(t, nil, func(f callwire.Frame, guard AgentGuard) error {
			if frames++; f.Kind == callwire.KindClaim {
				guard.CountToken(true)
				guard.Prove()
			}
			return nil
		})
		client := a.dial()
		const many = 10_000
		if _, err := client.Write(claims(many)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if frames != many+1 || a.server.strangers.count != 0 {
			t.Errorf("%d frames came; %d strangers", frames, a.server.strangers.count)
		}
		a.end(t)
	})
}

func TestGuessedTokensEndTheConnection(t *testing.T) {
	for name, c := range map[string]struct {
		rightEvery int
		want       float64
	}{"only wrong ones": {1 << 20, 1}, "a right one now and then": {maxWrong, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens := 0
				a := serveAgents(t, nil, func(f callwire.Frame, guard AgentGuard) error {
					if f.Kind == callwire.KindClaim {
						tokens++
						guard.CountToken(tokens%c.rightEvery == 0)
					}
					return nil
				})
				client := a.dial()
				_, _ = client.Write(claims(100))
				synctest.Wait()
				if got := a.refused(codes.Unauthenticated); got != c.want || c.want == 0 && tokens != 100 {
					t.Errorf("after %d tokens it was refused %v times, want %v", tokens, got, c.want)
				}
				a.end(t)
			})
		})
	}
}

func TestS2AgentsThatProveNothingLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serveAgents(t, nil, nil)
		for range maxStrangers {
			_, _ = a.dial().Write(claims(0))
		}
		synctest.Wait()
		if a.server.strangers.count != maxStrangers || len(a.handler.ended) != 0 {
			t.Fatalf("%d strangers; %d have ended", a.server.strangers.count, len(a.handler.ended))
		}
		if took := say(t, a.dial(), nil); took != 0 {
			t.Errorf("one too many is served for %v", took)
		}
		if got := testutil.ToFloat64(a.server.strangers.closed); got != 1 {
			t.Errorf("%v were closed", got)
		}
		a.end(t)
		if a.server.strangers.count != 0 {
			t.Errorf("%d strangers are left", a.server.strangers.count)
		}
	})
}

func TestFramesThatAreNotKnownAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serveAgents(t, nil, nil)
		_, _ = a.dial().Write(callwire.AppendFrame(claims(0), 200, 0, 0, nil))
		synctest.Wait()
		if got := testutil.ToFloat64(a.server.guard.unknown.WithLabelValues("Frame")); got != 1 {
			t.Errorf("%v are counted", got)
		}
		a.end(t)
	})
}

func TestAgentsAgreeOnTheWireInTheHandshake(t *testing.T) {
	for name, c := range map[string]struct {
		client func(net.Conn)
		took   time.Duration
		want   codes.Code
		frames int
	}{
		"callwire":              {hello(callwire.ALPN), 0, codes.OK, 1},
		"gRPC":                  {hello("h2"), 0, codes.OK, 0},
		"nothing":               {hello(), 0, codes.FailedPrecondition, 0},
		"no handshake":          {func(c net.Conn) { _, _ = c.Write([]byte("not TLS")) }, 0, codes.OK, 0},
		"a handshake that ends": {func(net.Conn) {}, handshakeWithin, codes.OK, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				frames := 0
				a := serveAgents(t, &tls.Config{
					Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{callwire.ALPN},
					MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
				}, func(callwire.Frame, AgentGuard) error { frames++; return io.EOF })
				client, began := a.dial(), time.Now()
				c.client(client)
				_, _ = io.Copy(io.Discard, client)
				if took := time.Since(began); took != c.took || frames != c.frames {
					t.Errorf("%d frames came, and it took %v, want %d and %v", frames, took, c.frames, c.took)
				}
				_ = client.Close()
				a.end(t)
				if c.want != codes.OK && a.refused(c.want) != 1 {
					t.Errorf("it is not counted as %v", c.want)
				}
			})
		})
	}
}

// hello is a client that says hello over TLS.
func hello(protocols ...string) func(net.Conn) {
	return func(c net.Conn) {
		secured := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols, MinVersion: tls.VersionTLS13})
		if secured.Handshake() == nil {
			_, _ = secured.Write(claims(0))
		}
	}
}

// certificate is one that these clients do not check.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	dir := testca.New(t).Folder(t, "gateway")
	c, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAListenerMayFailForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serveAgents(t, nil, nil)
		began := time.Now()
		for range 20 {
			a.come <- error(syscall.EMFILE)
		}
		client := a.dial()
		if took := time.Since(began); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("after %v it accepts again", took)
		}
		_, _ = client.Write(claims(0))
		broken := errors.New("broken")
		a.come <- broken
		if err := <-a.done; !errors.Is(err, broken) || len(a.handler.ended) != 1 {
			t.Errorf("it ends with %v, and %d handlers have", err, len(a.handler.ended))
		}
		a.stop()
	})
}

// A program that runs everything serves gRPC and agents, and exports one set of metrics.
func TestTwoServersShareTheirMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	wire, calls := NewWire(reg, nil), NewAgents(reg, nil, nil)
	wire.strangers.closed.Inc()
	if got := testutil.ToFloat64(calls.strangers.closed); got != 1 {
		t.Errorf("the other server counts %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("another metric of the same name is taken for it")
		}
	}()
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "windlass_wire_unauthenticated_closed_total", Help: "Another."})
	registered(reg, other)
}
