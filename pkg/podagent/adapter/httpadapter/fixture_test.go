package httpadapter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// serve is an adapter for a function that is handler.
func serve(t *testing.T, handler http.HandlerFunc) *Adapter {
	t.Helper()
	server := httptest.NewServer(handler)
	a := New(Config{Addr: server.Listener.Addr().String()})
	t.Cleanup(func() { a.Close(); server.Close() })
	return a
}

// script is an adapter for a function that treats each connection as it likes.
func script(t *testing.T, treat func(net.Conn)) *Adapter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { defer c.Close(); treat(c) })
		}
	})
	a := New(Config{Addr: l.Addr().String()})
	t.Cleanup(func() { a.Close(); l.Close(); conns.Wait() })
	return a
}

// answering treats a connection by reading one request and writing answer.
func answering(answer string) func(net.Conn) {
	return func(c net.Conn) {
		readHead(c)
		_, _ = io.WriteString(c, answer)
	}
}

// readHead reads from c up to the end of a head without a body and says
// whether there was one.
func readHead(c io.Reader) bool {
	var got []byte
	b := make([]byte, 1)
	for !bytes.HasSuffix(got, []byte("\r\n\r\n")) {
		if _, err := c.Read(b); err != nil {
			return false
		}
		got = append(got, b[0])
	}
	return true
}

func get(uri string) *adapter.Call {
	return &adapter.Call{
		ID: strings.Repeat("0", 32), Attempt: 1, Method: http.MethodGet, RequestURI: uri, Host: "hello.example",
		Body: strings.NewReader(""), Deadline: time.Now().Add(time.Hour),
	}
}

func post(body io.Reader, length int64) *adapter.Call {
	call := get("/")
	call.Method, call.Body, call.ContentLength = http.MethodPost, body, length
	return call
}

// recorder is a ResultWriter that keeps what it is given.
type recorder struct {
	interim []adapter.Head
	head    adapter.Head
	heads   int
	body    bytes.Buffer
	trailer http.Header
	// onInterim, onHead and onWrite are called when they are set.
	onInterim func()
	onHead    func()
	onWrite   func() error
}

func (r *recorder) WriteHead(h adapter.Head) error {
	if h.Status < 200 && h.Status != http.StatusSwitchingProtocols {
		r.interim = append(r.interim, h)
		if r.onInterim != nil {
			r.onInterim()
		}
		return nil
	}
	r.head, r.heads = h, r.heads+1
	if r.onHead != nil {
		r.onHead()
	}
	return nil
}

func (r *recorder) Write(p []byte) (int, error) {
	r.body.Write(p)
	if r.onWrite != nil {
		if err := r.onWrite(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (r *recorder) WriteTrailer(trailer invocation.Fields) error {
	r.trailer = adapter.HeaderOf(trailer)
	return nil
}

// add adds a header to a call.
func add(call *adapter.Call, name, value string) {
	call.Header = append(call.Header, invocation.Field{Name: name, Value: value})
}

// must is the answer to a call that has to go well.
func must(t *testing.T, a *Adapter, call *adapter.Call) *recorder {
	t.Helper()
	w := &recorder{}
	if err := a.Invoke(t.Context(), call, w); err != nil {
		t.Fatalf("%s %s: %v", call.Method, call.RequestURI, err)
	}
	return w
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want one that wraps %q", got, want)
	}
	for _, other := range []error{adapter.ErrNotStarted, adapter.ErrNotTaken, adapter.ErrFunctionLost, adapter.ErrBadAnswer, adapter.ErrUnsendable, adapter.ErrOtherProtocol, adapter.ErrTimedOut} {
		if other != want && errors.Is(got, other) {
			t.Errorf("error %v wraps %q too", got, other)
		}
	}
}

// cancelled is a context that ends with the test or by its function.
func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}
