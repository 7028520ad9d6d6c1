package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// harness is a gateway with everything around it: clients on one side, a
// scheduler and instances that the test plays on the other.
type harness struct {
	*testing.T
	catalog   *catalog.Catalog
	registry  *prometheus.Registry
	scheduler *fakeScheduler
	router    *router
	gateway   *gateway.Gateway
	url       string
	// http1 and http2 are clients of either protocol.
	http1, http2 *http.Client
	// wireAddr is where agents are served, and guard watches over all of them.
	wireAddr string
	guard    *fakeGuard
}

// newHarness starts a gateway with the function default/hello. Options may change
// its configuration.
func newHarness(t *testing.T, options ...func(*gateway.Config)) *harness {
	return newGuardedHarness(t, nil, options...)
}

// newGuardedHarness is newHarness with somebody who says who may call.
func newGuardedHarness(t *testing.T, callers gateway.Callers, options ...func(*gateway.Config)) *harness {
	return newHarnessWith(t, func(config *gateway.Config, deps *gateway.Deps) {
		deps.Callers = callers
		for _, option := range options {
			option(config)
		}
	})
}

// newHarnessWith is newHarness with whatever else there is.
func newHarnessWith(t *testing.T, change func(*gateway.Config, *gateway.Deps)) *harness {
	w := &harness{T: t, catalog: catalog.New(), registry: prometheus.NewRegistry(), scheduler: newFakeScheduler(t), guard: new(fakeGuard)}
	w.router = &router{changed: make(chan struct{}, 1), addr: w.scheduler.addr}
	w.put("default", "hello", time.Minute)
	wire := listen(t, "127.0.0.1:0")
	config := gateway.DefaultConfig()
	config.ClaimAddr = wire.Addr().String()
	deps := gateway.Deps{Catalog: w.catalog, Router: w.router, Registry: w.registry, Log: slog.New(slog.DiscardHandler), Linger: serve.Linger}
	change(&config, &deps)
	var err error
	if w.gateway, err = gateway.New(config, deps); err != nil {
		t.Fatal(err)
	}
	w.serveWire(wire)
	w.serveHTTP()
	w.run()
	return w
}

// router sends everything to one scheduler.
type router struct {
	changed chan struct{}
	mu      sync.Mutex
	addr    string
}

func (r *router) Route(ownership.Slot) (to ownership.Owner, provisional, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ownership.Owner{ID: r.addr, Addr: r.addr, Epoch: 1}, false, true
}

func (r *router) Changed() <-chan struct{} { return r.changed }

// routeTo sends everything to another one.
func (r *router) routeTo(addr string) {
	r.mu.Lock()
	r.addr = addr
	r.mu.Unlock()
	r.changed <- struct{}{}
}

// in is the same world for a subtest.
func (w *harness) in(t *testing.T) *harness {
	sub := *w
	sub.T = t
	return &sub
}

// run runs the gateway until the test ends.
func (w *harness) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.gateway.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := receive(w.T, ended, "the end of Run"); err != nil {
			w.Errorf("Run: %v", err)
		}
	})
}

// serveHTTP serves the gateway as programs do and makes clients of it.
func (w *harness) serveHTTP() {
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() {
			// net/http logs it, and goes on.
			if p := recover(); p != nil {
				if p != http.ErrAbortHandler {
					w.Errorf("the gateway panicked: %v\n%s", p, debug.Stack())
				}
				panic(p)
			}
		}()
		w.gateway.ServeHTTP(rw, r)
	})
	l := listen(w.T, "127.0.0.1:0")
	w.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serve.Calls(ctx, l, handler, patience, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	}()
	w.Cleanup(func() {
		cancel()
		if err := receive(w.T, ended, "the end of the server"); err != nil {
			w.Error(err)
		}
	})
	client := func(protocols *http.Protocols) *http.Client {
		transport := &http.Transport{Protocols: protocols, DisableCompression: true, MaxIdleConnsPerHost: 64}
		w.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: patience}
	}
	var p1, p2 http.Protocols
	p1.SetHTTP1(true)
	p2.SetUnencryptedHTTP2(true)
	w.http1, w.http2 = client(&p1), client(&p2)
}

// eachProtocol runs a test in a world of its own for both protocols.
func eachProtocol(t *testing.T, test func(w *harness, client *http.Client), options ...func(*gateway.Config)) {
	t.Run("HTTP/1.1", func(t *testing.T) { w := newHarness(t, options...); test(w, w.http1) })
	t.Run("HTTP/2", func(t *testing.T) { w := newHarness(t, options...); test(w, w.http2) })
}

func listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *harness) put(namespace, name string, timeout time.Duration) *v1alpha1.Function {
	fn := newFunction(namespace, name, timeout)
	w.catalog.Put(rollout.Alone(fn))
	return fn
}

func newFunction(namespace, name string, timeout time.Duration) *v1alpha1.Function {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-of-" + namespace + "-" + name),
	}}
	fn.Spec.Template.Timeout = v1alpha1.Duration{Duration: timeout}
	fn.Spec.Template.Concurrency = 8 // an instance may lend several places
	v1alpha1.Default(fn)
	return fn
}

// receive returns what comes from a channel.
func receive[V any](t testing.TB, from <-chan V, what string) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited, and there was not %s", what)
		panic("unreachable")
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.After(patience); !holds(); {
		select {
		case <-limit:
			t.Fatalf("waited, but it did not come so far that %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// answer is what a client was told.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of the request, or of reading the body
	proto  int
}

// call makes a call and returns where its answer will be.
func (w *harness) call(r *http.Request) <-chan answer { return w.callWith(w.http1, r) }

func (w *harness) callWith(client *http.Client, r *http.Request) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- do(client, r) }()
	return answers
}

func do(client *http.Client, r *http.Request) answer {
	resp, err := client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err, resp.ProtoMajor}
}

// request is a request to the gateway; path and query are sent as they are.
func (w *harness) request(method, path string, body io.Reader) *http.Request {
	w.Helper()
	r, err := http.NewRequest(method, w.url+path, body)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *harness) get(path string) *http.Request { return w.request("GET", path, nil) }

// wrote checks an answer and returns it.
func wrote(t *testing.T, answers <-chan answer, status int, executed invocation.Executed) answer {
	t.Helper()
	a := receive(t, answers, "the answer")
	if a.err != nil {
		t.Fatalf("the call failed: %v", a.err)
	}
	if said := a.header.Get(invocation.HeaderExecuted); a.status != status || said != string(executed) {
		t.Fatalf("answered %d, executed %q, want %d, %q; %s", a.status, said, status, executed, a.body)
	}
	return a
}

// raw is a connection that speaks HTTP/1.1 by hand.
type raw struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (w *harness) dial() *raw {
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &raw{t: w.T, conn: conn, r: bufio.NewReader(conn)}
}

func (r *raw) send(s string) {
	r.t.Helper()
	if _, err := io.WriteString(r.conn, s); err != nil {
		r.t.Fatal(err)
	}
}

// answer reads one answer.
func (r *raw) answer() answer {
	resp, err := http.ReadResponse(r.r, nil)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err, 1}
}

// closed checks that the server ends the connection and says nothing more.
func (r *raw) closed() {
	r.t.Helper()
	rest, err := io.ReadAll(r.r)
	if len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Errorf("the connection went on: %q, %v", rest, err)
	}
}
