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
			idle := idleConns{most: 1}
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

// brokenConn takes the first bytes of a write and breaks then.
type brokenConn struct {
	net.Conn
	takes int
}

func (c brokenConn) Write(p []byte) (int, error) {
	_, _ = c.Conn.Write(p[:c.takes])
	return c.takes, errors.New("broken")
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
			near.net = brokenConn{near.net, tc.takes}
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
	for name, call := range map[string]*adapter.Call{
		"with its body": post(bytes.NewReader([]byte("abc")), 3), "before its body": post(io.MultiReader(strings.NewReader("abc")), 3),
	} {
		t.Run(name, func(t *testing.T) {
			a := script(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"))
			near, far := pair(t)
			half := brokenConn{near.net, 7}
			near.net = half
			a.idle.put(near)
			seen := make(chan string, 1)
			go func() {
				got := make([]byte, 7)
				_, _ = io.ReadFull(far, got)
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
				rest, _ := io.ReadAll(far)
				seen <- string(got) + string(rest)
			}()
			if w := must(t, a, call); w.body.String() != "early" {
				t.Errorf("got %q", w.body.String())
			}
			if w := must(t, a, get("/")); w.body.String() != "next" {
				t.Errorf("the next call got %q", w.body.String())
			}
			if got := <-seen; got != "POST / " {
				t.Errorf("the connection saw %q", got)
			}
		})
	}
}

func TestIdleConnectionsAreClosedAfterATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pauses := rapid.SliceOfN(rapid.Int64Range(0, int64(2*idleTimeout)), 1, 10).Draw(rt, "pauses")
		most := rapid.IntRange(1, 10).Draw(rt, "most")
		synctest.Test(t, func(t *testing.T) {
			idle := idleConns{most: most}
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
				kept := closed[n].Sub(put[n])
				if kept != idleTimeout && kept != 0 {
					t.Errorf("connection %d was closed after %v", n, kept)
				}
				if kept == 0 && countWithin(put[:n], put[n]) < most {
					t.Errorf("connection %d was not kept, beside %d others of %d", n, countWithin(put[:n], put[n]), most)
				}
			}
			if idle.last() != nil || idle.sweeper != nil {
				t.Error("something is left")
			}
		})
	})
}

// countWithin is how many of the times are at most idleTimeout before now.
func countWithin(times []time.Time, now time.Time) (n int) {
	for _, t := range times {
		if now.Sub(t) <= idleTimeout {
			n++
		}
	}
	return n
}
