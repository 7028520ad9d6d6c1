package httpadapter

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// switching is a function that switches to the protocol of its name, and serves it by treat.
func switching(t *testing.T, protocol string, treat func(in io.Reader, c *net.TCPConn)) *Adapter {
	t.Helper()
	return script(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		request, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if request.Header.Get("Upgrade") == "" || !strings.EqualFold(request.Header.Get("Connection"), "upgrade") {
			_, _ = io.WriteString(c, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n")
			return
		}
		// The first bytes come with the head.
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: "+protocol+"\r\nSec-WebSocket-Accept: x\r\n\r\nhi ")
		treat(in, c.(*net.TCPConn))
	})
}

func upgrade(to string, body io.Reader) *adapter.Call {
	call := get("/socket")
	call.Upgrade, call.Body = to, body
	return call
}

func echo(in io.Reader, c *net.TCPConn) {
	_, _ = io.Copy(c, in)
	_, _ = io.WriteString(c, " bye")
}

func TestAnUpgradedCallIsAStreamBothWays(t *testing.T) {
	a := switching(t, "websocket", echo)
	pr, pw := io.Pipe()
	left := []string{"a", "b", "c"}
	// Each part is sent when the one before it has come back.
	w := &recorder{onWrite: func() error {
		if len(left) == 0 {
			return pw.Close()
		}
		part := left[0]
		left = left[1:]
		_, err := io.WriteString(pw, part)
		return err
	}}
	if err := a.Invoke(t.Context(), upgrade("WebSocket, other/2", pr), w); err != nil {
		t.Fatal(err)
	}
	if w.head.Status != 101 || w.head.Upgrade != "websocket" || w.head.Header.Get("Upgrade") != "" || w.head.Header.Get("Sec-Websocket-Accept") != "x" {
		t.Errorf("head %+v", w.head)
	}
	if w.body.String() != "hi abc bye" {
		t.Errorf("got %q", w.body.String())
	}
}

func TestAnUpgradeReachesARealClient(t *testing.T) {
	a := switching(t, "tea", echo)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, front(t, a).URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tea")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "tea" {
		t.Fatalf("%v, %+v", err, resp)
	}
	stream := resp.Body.(io.ReadWriteCloser)
	_, _ = io.WriteString(stream, "abc")
	got := make([]byte, 6)
	if _, err := io.ReadFull(stream, got); err != nil || string(got) != "hi abc" {
		t.Errorf("%v, %q", err, got)
	}
	_ = stream.Close()
}

func TestTheFunctionEndsAnUpgradedCallWhileTheClientIsSilent(t *testing.T) {
	pr, pw := io.Pipe()
	defer pw.Close()
	a := switching(t, "tea", func(io.Reader, *net.TCPConn) {})
	if w := must(t, a, upgrade("tea", pr)); w.body.String() != "hi " {
		t.Errorf("got %q", w.body.String())
	}
}

func TestAnUpgradedCallThatBreaksIsLost(t *testing.T) {
	gone := errors.New("client went away")
	t.Run("at the function", func(t *testing.T) {
		pr, pw := io.Pipe()
		defer pw.Close()
		read := make(chan struct{})
		a := switching(t, "tea", func(_ io.Reader, c *net.TCPConn) { <-read; _ = c.SetLinger(0) })
		w := &recorder{onWrite: func() error { close(read); return nil }}
		wantError(t, a.Invoke(t.Context(), upgrade("tea", pr), w), adapter.ErrFunctionLost)
	})
	t.Run("at the client", func(t *testing.T) {
		pr, pw := io.Pipe()
		_ = pw.CloseWithError(gone)
		a := switching(t, "tea", echo)
		if err := a.Invoke(t.Context(), upgrade("tea", pr), &recorder{}); !errors.Is(err, gone) || !errors.Is(err, adapter.ErrFunctionLost) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("by its context", func(t *testing.T) {
		ctx, cancel := cancelled(t)
		pr, pw := io.Pipe()
		defer pw.Close()
		a := switching(t, "tea", echo)
		w := &recorder{onWrite: func() error { cancel(); return nil }}
		wantError(t, a.Invoke(ctx, upgrade("tea", pr), w), adapter.ErrFunctionLost)
	})
}

// Behind these upgrades would be requests that no gateway has seen.
func TestUpgradesToHTTPAreNotAskedFor(t *testing.T) {
	for _, to := range []string{"h2c", "tea, H2C", "HTTP/2.0", "TLS/1.2", "h2", "h2c-17"} {
		a := switching(t, "h2c", echo)
		if w := must(t, a, upgrade(to, strings.NewReader(""))); w.head.Status != http.StatusUpgradeRequired {
			t.Errorf("%s: %+v", to, w.head)
		}
	}
}

func TestASwitchToWhatNobodyAskedForIsABadAnswer(t *testing.T) {
	for _, to := range []string{"coffee", "", "te", "tea, coffee"} {
		w := &recorder{}
		wantError(t, switching(t, to, echo).Invoke(t.Context(), upgrade("tea", strings.NewReader("")), w), adapter.ErrBadAnswer)
		if w.heads != 0 {
			t.Errorf("%q: %+v", to, w.head)
		}
	}
}

func TestAFunctionNeedNotSwitch(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no") })
	for range 2 {
		if w := must(t, a, upgrade("tea", strings.NewReader(""))); w.head.Status != 200 || w.body.String() != "no" {
			t.Errorf("%+v %q", w.head, w.body.String())
		}
	}
}
