package replay

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/workload"
)

// serve starts a gateway that answers with the given function.
func serve(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}

func transport(t *testing.T) *http.Transport {
	t.Helper()
	tr := loadgen.NewTransport(4)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// one replays one call of target f and returns its sample.
func one(t *testing.T, url string, f Target) Sample {
	t.Helper()
	tr := traceOf(0)
	r, err := New(Config{Gateway: url + "/", MaxInFlight: 1, Timeout: 10 * time.Second}, Deps{Transport: transport(t)}, tr, mapped(t, tr, f))
	if err != nil {
		t.Fatal(err)
	}
	samples, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return samples[0]
}

func TestTheRequestIsTheTargets(t *testing.T) {
	type seen struct {
		Method, URI, ContentType, Body string
		Length                         int64
	}
	var got seen
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.RequestURI, r.Header.Get("Content-Type"), string(body), r.ContentLength}
		w.Header().Set("Windlass-Executed", "yes")
	})
	f := target("fib.shop", 0)
	f.Header = http.Header{"Content-Type": {"application/json"}}
	f.Body = func(d time.Duration) []byte { return []byte(`{"work":"` + d.String() + `"}`) }
	if s := one(t, server.URL, f); s.Failed() || s.Function != "fib.shop" {
		t.Errorf("sample %+v", s)
	}
	want := seen{"POST", "/function/fib.shop?work=10ms", "application/json", `{"work":"10ms"}`, 15}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	f.Method, f.Header, f.Body = "GET", nil, nil
	one(t, server.URL, f)
	want = seen{Method: "GET", URI: "/function/fib.shop?work=10ms"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without a body: %s", diff)
	}
}

func TestWhatAnAnswerSaysIsRecorded(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		headers map[string]string
		want    Sample
		lost    bool
	}{
		"warm": {200, map[string]string{"Windlass-Executed": "yes", "Server-Timing": "queue;dur=1, function;dur=12.5"},
			Sample{Status: 200, Executed: "yes", Own: 12500 * time.Microsecond, OwnKnown: true}, false},
		"cold, quicker than the clock": {204, map[string]string{"Windlass-Executed": "yes", "Server-Timing": "queue;dur=1, start, function;dur=0"},
			Sample{Status: 204, Executed: "yes", Cold: true, OwnKnown: true}, false},
		"no duration": {200, map[string]string{"Windlass-Executed": "yes"},
			Sample{Status: 200, Executed: "yes"}, false},
		"senseless duration": {200, map[string]string{"Windlass-Executed": "yes", "Server-Timing": "queue;dur=1, function;dur=NaN"},
			Sample{Status: 200, Executed: "yes"}, false},
		"redirect is an answer": {302, map[string]string{"Windlass-Executed": "yes", "Location": "/elsewhere"},
			Sample{Status: 302, Executed: "yes"}, false},
		"function failed": {500, map[string]string{"Windlass-Executed": "yes", "Server-Timing": "queue;dur=1, function;dur=1"},
			Sample{Status: 500, Executed: "yes", Own: ms, OwnKnown: true, Failure: "status 500 from the function"}, false},
		"function reported an error": {200, map[string]string{"Windlass-Executed": "yes", "Windlass-Function-Error": "Unhandled"},
			Sample{Status: 200, Executed: "yes", Failure: "function error Unhandled"}, false},
		"refused": {503, map[string]string{"Windlass-Executed": "no"},
			Sample{Status: 503, Executed: "no", Failure: "status 503, executed: no"}, false},
		"not from the gateway": {502, nil,
			Sample{Status: 502, Failure: "status 502 without a valid Windlass-Executed"}, true},
		"senseless executed": {200, map[string]string{"Windlass-Executed": "perhaps"},
			Sample{Status: 200, Failure: "status 200 without a valid Windlass-Executed"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for k, v := range tt.headers {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.status)
			})
			got := one(t, server.URL, target("f", 0))
			if got.Total <= 0 {
				t.Errorf("total time %v", got.Total)
			}
			if got.Lost() != tt.lost {
				t.Errorf("lost: %v, want %v", got.Lost(), tt.lost)
			}
			got.Total, got.Late = 0, 0
			tt.want.Function = "f"
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnAnswerThatBreaksOffIsLost(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Windlass-Executed", "yes")
		w.Header().Set("Content-Length", "10")
		w.Write([]byte("half"))
	})
	s := one(t, server.URL, target("f", 0))
	if !s.Lost() || s.Failure != "no answer: unexpected EOF" {
		t.Errorf("sample %+v, want it lost", s)
	}
}

func TestAnUnreachableGatewayIsLostWithAReasonThatCanBeCounted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	s := one(t, "http://"+listener.Addr().String(), target("f", 0))
	if !s.Lost() || s.Failure != "no answer: connection refused" {
		t.Errorf("sample %+v, want it lost", s)
	}
}

func TestABrokenConnectionNeverRepeatsACall(t *testing.T) {
	var calls atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Windlass-Executed", "yes")
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	// The second call goes out on the connection of the first.
	f := target("f", 0)
	f.Method = "GET"
	shared := transport(t)
	replay := func() Sample {
		tr := traceOf(0)
		r, err := New(Config{Gateway: server.URL, MaxInFlight: 1, Timeout: 10 * time.Second}, Deps{Transport: shared}, tr, mapped(t, tr, f))
		if err != nil {
			t.Fatal(err)
		}
		samples, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return samples[0]
	}
	if s := replay(); s.Failed() {
		t.Fatalf("first call: %+v", s)
	}
	if s := replay(); !s.Lost() {
		t.Errorf("second call: %+v, want it lost", s)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("the gateway saw %d calls, want 2", n)
	}
}

func TestAPathThatIsNoURLIsNotSent(t *testing.T) {
	f := target("f", 0)
	f.Path = func(time.Duration) string { return "/%zz" }
	s := one(t, "http://127.0.0.1:1", f)
	if s.Outcome != NotSent || !strings.HasPrefix(s.Failure, "not sent: ") {
		t.Errorf("sample %+v, want it not sent", s)
	}
}

func TestAWholeReplayOverHTTP(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Windlass-Executed", "yes")
		w.Header().Set("Server-Timing", "queue;dur=1, function;dur=0.001")
	})
	tr, err := workload.Synthetic(workload.SyntheticOptions{Seed: 1, Length: 200 * ms, Rate: 1000, FunctionsPerRange: 2})
	if err != nil {
		t.Fatal(err)
	}
	m := mapped(t, tr, target("short", 100*ms), target("long", 0))
	r, err := New(Config{Gateway: server.URL, MaxInFlight: 1000, Timeout: 30 * time.Second}, Deps{Transport: transport(t)}, tr, m)
	if err != nil {
		t.Fatal(err)
	}
	samples, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report := Summarize(samples, nil)
	if failed := Violations(report, Bounds{}); failed != nil {
		t.Errorf("verdict %q", failed)
	}
	if len(report.Functions) != 2 || report.Total.Calls != len(tr.Arrivals) || report.Total.Setup.N != len(tr.Arrivals) {
		t.Errorf("report %+v of %d calls", report, len(tr.Arrivals))
	}
}

func TestWarmProbeUsesOneConnectionAndLeavesColdCallsOut(t *testing.T) {
	var calls, connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		w.Header().Set("Windlass-Executed", "yes")
		w.Header().Set("Server-Timing", "queue;dur=1, function;dur=0")
		if n == 1 || n == 3 {
			w.Header().Set("Server-Timing", "queue;dur=1, start, function;dur=0")
		}
		w.Write([]byte("body"))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	warm, err := WarmProbe(t.Context(), server.URL, 5)
	if err != nil {
		t.Fatal(err)
	}
	if warm.Cold != 1 || warm.Added.N != 4 || warm.Added.P50 <= 0 || warm.Added.P99 < warm.Added.P50 {
		t.Errorf("found %+v, want 4 warm calls and 1 cold one", warm)
	}
	if calls.Load() != 6 || connections.Load() != 1 {
		t.Errorf("%d calls on %d connections, want 6 on 1", calls.Load(), connections.Load())
	}
}

func TestWarmProbeRefusesToMeasureWhatIsNotThere(t *testing.T) {
	for name, tt := range map[string]struct {
		calls   int
		headers map[string]string
		want    string
	}{
		"no calls":   {0, nil, "make at least 1"},
		"failing":    {1, map[string]string{"Windlass-Executed": "no"}, "warm call 0"},
		"unmeasured": {1, map[string]string{"Windlass-Executed": "yes"}, "does not tell the function's own time"},
		"never warm": {2, map[string]string{"Windlass-Executed": "yes", "Server-Timing": "queue;dur=1, start, function;dur=1"}, "all 2 calls"},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for k, v := range tt.headers {
					w.Header().Set(k, v)
				}
			})
			if _, err := WarmProbe(t.Context(), server.URL, tt.calls); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
