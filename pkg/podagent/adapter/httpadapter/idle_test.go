package httpadapter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// pair is a connection and its other end.
func pair(t *testing.T) (*conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return newConn(near), far
}

func TestKeptConnectionIsLookedAtBeforeTheFirstByte(t *testing.T) {
	for _, tc := range []struct {
		name string
		far  func(net.Conn)
		dead bool
	}{
		{"open and silent", func(net.Conn) {}, false},
		{"closed", func(c net.Conn) { c.Close() }, true},
		{"closed by a reset", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() }, true},
		{"holding bytes that nobody asked for", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 408 \r\n\r\n") }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, far := pair(t)
			idle := idleConns{}
			defer idle.close()
			idle.put(c)
			tc.far(far)
			got := idle.take()
			if dead := got == nil; dead != tc.dead {
				t.Errorf("dead %t, want %t", dead, tc.dead)
			}
			if _, err := c.net.Write([]byte("x")); tc.dead != errors.Is(err, net.ErrClosed) {
				t.Errorf("writing to it said %v", err)
			}
		})
	}
}

// brokenConn takes so many bytes and breaks then.
type brokenConn struct {
	net.Conn
	takes *int
}

func (c brokenConn) Write(p []byte) (int, error) {
	n, _ := c.Conn.Write(p[:min(*c.takes, len(p))])
	*c.takes -= n
	if n < len(p) {
		return n, errors.New("broken")
	}
	return n, nil
}

func TestOnlyARequestThatIsWhollyUnseenIsWrittenAgain(t *testing.T) {
	for _, tc := range []struct {
		name  string
		kept  bool
		takes int
		want  error
	}{
		{"a kept connection that took nothing", true, 0, nil},
		{"a kept connection that took a byte", true, 1, adapter.ErrFunctionLost},
		{"a new connection that took nothing", false, 0, adapter.ErrNotStarted},
		{"a new connection that took a byte", false, 1, adapter.ErrFunctionLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := script(t, answering("HTTP/1.1 204 No Content\r\n\r\n"))
			near, far := pair(t)
			takes := tc.takes
			near.net = brokenConn{near.net, &takes}
			dials, dial := 0, a.dial
			a.dial = nil
			if tc.kept {
				a.idle.put(near)
				a.dial = dial
			} else {
				a.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials++; dials > 1 {
						return dial(ctx, network, addr)
					}
					return near.net, nil
				}
			}
			go func() { _, _ = io.CopyN(io.Discard, far, int64(tc.takes)); far.Close() }()
			err := a.Invoke(t.Context(), get("/"), &recorder{})
			if tc.want == nil && err == nil {
				return
			}
			wantError(t, err, tc.want)
			if dials > 1 {
				t.Errorf("dialled %d times", dials)
			}
		})
	}
}

// The answer counts, but behind half a request no other can be written.
func TestAConnectionThatTookHalfARequestHasNoOther(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: hello.example\r\nContent-Length: 3\r\n\r\n"
	inMemory := func() *adapter.Call { return post(bytes.NewReader([]byte("abc")), 3) }
	streamed := func() *adapter.Call { return post(io.MultiReader(strings.NewReader("abc")), 3) }
	for _, tc := range []struct {
		name  string
		call  *adapter.Call
		takes string
	}{
		{"a part of the head", inMemory(), head[:7]},
		{"a part of the head, before the body", streamed(), head[:7]},
		{"a part of the body with the head", inMemory(), head + "a"},
		{"a part of the body", streamed(), head + "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := script(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"))
			near, far := pair(t)
			takes := len(tc.takes)
			near.net = brokenConn{near.net, &takes}
			a.idle.put(near)
			seen := make(chan string, 1)
			go func() {
				got := make([]byte, len(tc.takes))
				_, _ = io.ReadFull(far, got)
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
				rest, _ := io.ReadAll(far)
				seen <- string(got) + string(rest)
			}()
			if w := must(t, a, tc.call); w.body.String() != "early" {
				t.Errorf("got %q", w.body.String())
			}
			takes = 1000 // as if it were well again
			if w := must(t, a, get("/")); w.body.String() != "next" {
				t.Errorf("the next call got %q", w.body.String())
			}
			if got := <-seen; got != tc.takes {
				t.Errorf("the connection saw %q", got)
			}
		})
	}
}

func TestOnlyAConnectionThatCanHaveAnotherCallIsKept(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	ctx, cancel := cancelled(t)
	for _, tc := range []struct {
		name, answer string
		onWrite      func(*Adapter)
		want         bool
	}{
		{"after an ordinary call", answer, func(*Adapter) {}, true},
		{"which the function says it closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", func(*Adapter) {}, false},
		{"of HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", func(*Adapter) {}, false},
		{"after the adapter was closed", answer, (*Adapter).Close, false},
		{"after the call's context ended", answer, func(*Adapter) { cancel() }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			over := make(chan struct{})
			a := script(t, func(c net.Conn) { answering(tc.answer)(c); <-over })
			defer close(over)
			err := a.Invoke(ctx, get("/"), &recorder{onWrite: func() error { tc.onWrite(a); return nil }})
			c := a.idle.last()
			if got := c != nil; err != nil || got != tc.want {
				t.Errorf("%v, kept %t, want %t", err, got, tc.want)
			}
			if c != nil {
				c.close()
			}
		})
	}
}

func TestIdleConnectionsAreClosedAfterATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pauses := rapid.SliceOfN(rapid.Int64Range(0, int64(2*idleTimeout)), 1, 10).Draw(rt, "pauses")
		synctest.Test(t, func(t *testing.T) {
			idle := idleConns{}
			closed := make([]time.Time, len(pauses))
			put := make([]time.Time, len(pauses))
			for n, pause := range pauses {
				time.Sleep(time.Duration(pause))
				near, far := net.Pipe()
				put[n] = time.Now()
				go func() { _, _ = far.Read(make([]byte, 1)); closed[n] = time.Now() }()
				idle.put(newConn(near))
			}
			time.Sleep(2 * idleTimeout)
			synctest.Wait()
			for n := range pauses {
				if kept := closed[n].Sub(put[n]); kept != idleTimeout {
					t.Errorf("connection %d was closed after %v", n, kept)
				}
			}
			if idle.last() != nil || idle.sweeper != nil {
				t.Error("something is left")
			}
		})
	})
}
