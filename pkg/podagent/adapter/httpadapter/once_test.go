package httpadapter

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// repeatable are calls that net/http takes for repeatable, and others.
var repeatable = []struct {
	name string
	call func() *adapter.Call
}{
	{"GET", func() *adapter.Call { return get("/") }},
	{"HEAD", func() *adapter.Call { c := get("/"); c.Method = http.MethodHead; return c }},
	{"OPTIONS", func() *adapter.Call { c := get("/"); c.Method = http.MethodOptions; return c }},
	{"POST without a body and with Idempotency-Key", func() *adapter.Call {
		c := post(strings.NewReader(""), 0)
		add(c, "Idempotency-Key", "k")
		return c
	}},
	{"POST without a body and with X-Idempotency-Key", func() *adapter.Call {
		c := post(strings.NewReader(""), 0)
		add(c, "X-Idempotency-Key", "k")
		return c
	}},
	{"POST without a body", func() *adapter.Call { return post(strings.NewReader(""), 0) }},
}

// A function that answers the first call on each connection and breaks the
// connection off on the second, having run it.
func TestEachCallRunsOnceThoughKeptConnectionsBreak(t *testing.T) {
	const calls = 100
	for _, tc := range repeatable {
		t.Run(tc.name, func(t *testing.T) {
			var ran atomic.Int64
			a := script(t, func(c net.Conn) {
				if !readHead(c) {
					return
				}
				ran.Add(1)
				_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
				if readHead(c) {
					ran.Add(1)
				}
			})
			lost := 0
			for range calls {
				err := a.Invoke(t.Context(), tc.call(), &recorder{})
				if errors.Is(err, adapter.ErrFunctionLost) {
					lost++
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if ran.Load() != calls {
				t.Errorf("the function ran %d times for %d calls", ran.Load(), calls)
			}
			if lost == 0 {
				t.Error("no call met a kept connection that broke, so this tested nothing")
			}
		})
	}
}

// A function that answers the first call on each connection and breaks the
// connection off when it has read the second to its end. That the caller declared
// it safe to repeat must not matter: an answer was on its way, for all anybody knows.
func TestRequestThatWasReadWholeIsNeverSentAgain(t *testing.T) {
	const calls = 50
	var ran atomic.Int64
	a := script(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for n := range 2 {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			ran.Add(1)
			if n == 0 {
				_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}
	})
	lost := 0
	for range calls {
		call := post(strings.NewReader("body"), 4)
		add(call, "Idempotency-Key", "k")
		switch err := a.Invoke(t.Context(), call, &recorder{}); {
		case errors.Is(err, adapter.ErrFunctionLost):
			lost++
		case err != nil:
			t.Fatal(err)
		}
	}
	if ran.Load() != calls || lost != calls/2 {
		t.Errorf("the function ran %d times for %d calls, of which %d were lost", ran.Load(), calls, lost)
	}
}

func TestFunctionSeesThatItsCallWasCancelled(t *testing.T) {
	saw := make(chan error, 1)
	ctx, cancel := cancelled(t)
	a := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		saw <- r.Context().Err()
	})
	wantError(t, a.Invoke(ctx, get("/"), &recorder{}), adapter.ErrFunctionLost)
	if err := <-saw; !errors.Is(err, context.Canceled) {
		t.Errorf("the function saw %v", err)
	}
}

// The function closes each connection after its answer without saying so. By
// the time of the next call the connection is closed, and whether the
// transport has noticed by then must not matter.
func TestCallsSucceedThoughTheFunctionClosesIdleConnections(t *testing.T) {
	for _, tc := range []struct {
		name string
		call func() *adapter.Call
	}{
		{"GET", func() *adapter.Call { return get("/") }},
		{"POST without a body", func() *adapter.Call { return post(strings.NewReader(""), 0) }},
		{"POST with a streamed body", func() *adapter.Call { return post(io.MultiReader(strings.NewReader("abc")), 3) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const calls = 100
			var ran atomic.Int64
			closed := make(chan struct{}, calls)
			a := script(t, func(c net.Conn) {
				defer func() { closed <- struct{}{} }()
				defer c.Close()
				if !readHead(c) {
					return
				}
				if tc.name == "POST with a streamed body" {
					_, _ = io.ReadFull(c, make([]byte, 3))
				}
				ran.Add(1)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			})
			for range calls {
				must(t, a, tc.call())
				<-closed
			}
			if ran.Load() != calls {
				t.Errorf("the function ran %d times for %d calls", ran.Load(), calls)
			}
		})
	}
}

func TestDialFailureIsNotStarted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	a := New(Config{Addr: l.Addr().String()})
	wantError(t, a.Invoke(t.Context(), get("/"), &recorder{}), adapter.ErrNotStarted)
}

func TestContextThatEndsBeforeTheConnectionIsNotStarted(t *testing.T) {
	ctx, cancel := cancelled(t)
	a := New(Config{Addr: "127.0.0.1:1"})
	a.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	wantError(t, a.Invoke(ctx, get("/"), &recorder{}), adapter.ErrNotStarted)
}

func TestConnectionThatBreaksBeforeTheAnswerIsFunctionLost(t *testing.T) {
	for name, answer := range map[string]string{
		"at once":         "",
		"within the head": "HTTP/1.1 200 OK\r\nContent-Le",
	} {
		t.Run(name, func(t *testing.T) {
			w := &recorder{}
			wantError(t, script(t, answering(answer)).Invoke(t.Context(), get("/"), w), adapter.ErrFunctionLost)
			if w.heads != 0 {
				t.Errorf("a head was written: %+v", w.head)
			}
		})
	}
}

func TestContextThatEndsDuringTheCall(t *testing.T) {
	for _, tc := range []struct {
		name     string
		deadline time.Duration
		answer   string
		want     error
	}{
		{"cancelled before the head", time.Hour, "", adapter.ErrFunctionLost},
		{"cancelled within the body", time.Hour, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", adapter.ErrFunctionLost},
		{"deadline before the head", -time.Second, "", adapter.ErrTimedOut},
		{"deadline within the body", -time.Second, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", adapter.ErrTimedOut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := cancelled(t)
			a := script(t, func(c net.Conn) {
				readHead(c)
				_, _ = io.WriteString(c, tc.answer)
				if tc.answer == "" {
					cancel()
				}
				_, _ = io.Copy(io.Discard, c)
			})
			call := get("/")
			call.Deadline = time.Now().Add(tc.deadline)
			w := &recorder{onWrite: func() error { cancel(); return nil }}
			err := a.Invoke(ctx, call, w)
			wantError(t, err, tc.want)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v does not wrap the context's", err)
			}
		})
	}
}

func TestCallsRunAtATime(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	a := serve(t, func(http.ResponseWriter, *http.Request) { both.Done(); both.Wait() })
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { must(t, a, get("/")) })
	}
	calls.Wait()
}

func TestWriterErrorIsReturnedAsItIs(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	gone := errors.New("gone")
	if err := a.Invoke(t.Context(), get("/"), &recorder{onWrite: func() error { return gone }}); err != gone {
		t.Errorf("got %v, want %v", err, gone)
	}
}
