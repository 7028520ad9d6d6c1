package lambda

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// memory is a listener whose connections are in memory, so that waiting on
// them is waiting in the sense of synctest.
type memory struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), gone: make(chan struct{})} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.gone:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error { m.once.Do(func() { close(m.gone) }); return nil }

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (m *memory) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-m.gone:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// harness is an adapter and a runtime client to play by hand.
type harness struct {
	*testing.T
	a      *Adapter
	l      *memory
	client *http.Client
	end    func()
}

// newHarness is for use within a synctest bubble.
func newHarness(t *testing.T, concurrency int) *harness {
	t.Helper()
	return newHarnessOf(t, New(Config{Namespace: "shop", Function: "hello", Concurrency: concurrency}))
}

func newHarnessOf(t *testing.T, a *Adapter) *harness {
	t.Helper()
	l := newMemory()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) },
	}
	s := &harness{T: t, a: a, l: l, client: &http.Client{Transport: transport}}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.a.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	s.end = func() { cancel(); serving.Wait(); transport.CloseIdleConnections() }
	return s
}

// reply is what the server replied.
type reply struct {
	status int
	header http.Header
	body   string
}

func (s *harness) do(ctx context.Context, method, path string, header http.Header, body io.Reader) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:9001"+path, body)
	if err != nil {
		s.Fatal(err)
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text)}, err
}

// next asks for the next event, which has to come.
func (s *harness) next() reply {
	s.Helper()
	got, err := s.do(context.Background(), http.MethodGet, base+"/invocation/next", nil, nil)
	if err != nil || got.status != http.StatusOK {
		s.Fatalf("next: %+v, %v", got, err)
	}
	return got
}

// post answers the call id; what is "response" or "error".
func (s *harness) post(id, what, body string, header ...string) reply {
	s.Helper()
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	got, err := s.do(context.Background(), http.MethodPost, base+"/invocation/"+id+"/"+what, h, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	return got
}

func (s *harness) want(got reply, status int, body string) {
	s.Helper()
	if got.status != status || !strings.Contains(got.body, body) {
		s.Errorf("reply %d %q, want %d with %q", got.status, got.body, status, body)
	}
}

// pending is a call under way.
type pending struct {
	w      recorder
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

// result waits for the call's end.
func (p *pending) result() error { <-p.done; return p.err }

// invoke starts the call id with body as its event.
func (s *harness) invoke(id, body string, more ...func(*adapter.Call)) *pending {
	s.Helper()
	call := &adapter.Call{
		ID: id, Attempt: 1, Method: http.MethodPost, RequestURI: "/",
		ContentLength: int64(len(body)), Body: strings.NewReader(body), Deadline: time.Now().Add(time.Minute),
	}
	for _, change := range more {
		change(call)
	}
	p := &pending{done: make(chan struct{})}
	ctx, end := context.WithDeadline(context.Background(), call.Deadline)
	ctx, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	go func() {
		defer close(p.done)
		defer end()
		defer cancel()
		p.err = s.a.Invoke(ctx, call, &p.w)
	}()
	return p
}

func (s *harness) wantError(got, want error) {
	s.Helper()
	for _, kind := range []error{adapter.ErrNotStarted, adapter.ErrFunctionLost, adapter.ErrBadAnswer, adapter.ErrTimedOut, adapter.ErrTooLate, adapter.ErrNotTaken} {
		if errors.Is(got, kind) != (kind == want) {
			s.Errorf("got error %v, want one that wraps %v alone", got, want)
		}
	}
}

// wantAnswer waits for p to end well.
func (s *harness) wantAnswer(p *pending, status int, body string) {
	s.Helper()
	if err := p.result(); err != nil {
		s.Fatal(err)
	}
	if p.w.head.Status != status || p.w.body.String() != body || p.w.heads != 1 {
		s.Errorf("answer %d %q (%d heads), want %d %q", p.w.head.Status, p.w.body.String(), p.w.heads, status, body)
	}
	if n := p.w.head.ContentLength; n >= 0 && n != int64(p.w.body.Len()) {
		s.Errorf("length %d and %d bytes", n, p.w.body.Len())
	}
}

// recorder is a ResultWriter that keeps what it is given.
type recorder struct {
	head    adapter.Head
	heads   int
	body    bytes.Buffer
	onWrite func() error
}

func (r *recorder) WriteHead(h adapter.Head) error {
	r.head, r.heads = h, r.heads+1
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

// WriteTrailer is not called: Lambda has no trailers.
func (r *recorder) WriteTrailer(invocation.Fields) error { panic("trailers") }

// faulty is the server's side of a connection that takes only so much.
type faulty struct {
	net.Conn
	mu    sync.Mutex
	fails bool
	left  int
	total int
}

// written is how many bytes the server wrote.
func (f *faulty) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// failWrites lets all writes fail after n more bytes.
func (f *faulty) failWrites(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails, f.left = true, n
}

func (f *faulty) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.fails {
		n, err := f.Conn.Write(p)
		f.total += n
		return n, err
	}
	n, err := f.Conn.Write(p[:min(f.left, len(p))])
	f.left -= n
	f.total += n
	if err == nil && n < len(p) {
		err = errors.New("broken")
	}
	return n, err
}

// park lets a runtime client wait for an event on a connection of its own, of
// which it reads all that comes.
func (s *harness) park() *faulty {
	s.Helper()
	near, far := net.Pipe()
	conn := &faulty{Conn: far}
	s.l.conns <- conn
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, near) })
	end := s.end
	s.end = func() { near.Close(); reading.Wait(); end() }
	if _, err := io.WriteString(near, "GET "+base+"/invocation/next HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n\r\n"); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
	return conn
}
