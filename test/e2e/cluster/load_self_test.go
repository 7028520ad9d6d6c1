package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// These need no cluster: they test what the specs of load measure with.

func TestTrafficTellsFailuresApart(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			w.Header().Set("Windlass-Executed", "no")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"reason": "NoCapacity"}`)
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/half":
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "half")
		}
	}))
	defer server.Close()
	paths := []string{"good", "refused", "cut", "half"}
	var streams []stream
	for _, path := range paths {
		streams = append(streams, stream{name: path, method: "POST", url: server.URL + "/" + path, body: "CALL", clients: 1, oneCall: true})
	}
	streams = append(streams, stream{name: "nobody", method: "GET", url: "http://127.0.0.1:1/", clients: 1})
	traffic := startTraffic(t.Context(), 40, streams...)
	traffic.Wait() // until there were 40
	r := traffic.stop()
	if !r.exhausted || len(r.calls) != 40 {
		t.Errorf("%d calls were made (exhausted: %v), want 40", len(r.calls), r.exhausted)
	}
	want := map[string]string{
		"good":    "",
		"refused": `status 503, executed "no", reason "NoCapacity"`,
		"cut":     "transport: EOF on a new connection",
		"half":    "transport: the answer breaks off",
		"nobody":  "transport: connection refused before it was sent",
	}
	seen := map[string]bool{}
	for _, c := range r.calls {
		seen[c.stream] = true
		if c.kind != want[c.stream] {
			t.Errorf("%s: %q (%s), want %q", c.stream, c.kind, c.detail, want[c.stream])
		}
	}
	if len(seen) != len(streams) {
		t.Errorf("only %v were called", seen)
	}
	for _, says := range []string{"calls=40", `x refused: status 503, executed "no", reason "NoCapacity"`} {
		if !strings.Contains(r.String(), says) {
			t.Errorf("the result does not say %q:\n%s", says, r)
		}
	}
}

func TestTrafficThatEndsBeginsNoLongCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	traffic := startTraffic(t.Context(), mostCalls,
		stream{name: "short", method: "GET", url: server.URL, clients: 1}, stream{name: "long", method: "GET", url: server.URL, clients: 1, takes: longCall})
	answered := func(name string) (n int) {
		for _, c := range traffic.since(traffic.began).calls {
			if c.stream == name {
				n++
			}
		}
		return n
	}
	reaches := func(name string, n int) {
		t.Helper()
		if err := sleep.Until(t.Context(), time.Millisecond, func() (bool, error) { return answered(name) >= n, nil }); err != nil {
			t.Fatal(err)
		}
	}
	reaches("long", 2)
	traffic.ending.Store(true)
	long, short := answered("long"), answered("short")
	reaches("short", short+100)
	traffic.stop()
	// One may have begun before.
	if more := answered("long") - long; more > 1 {
		t.Errorf("%d long calls began when the traffic was to end", more)
	}
}

func TestTrafficNamesEachCallDifferently(t *testing.T) {
	recorded, err := openRunLog()
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.close()
	url := fmt.Sprintf("http://127.0.0.1:%d/CALL", recorded.port)
	var calls []tripped
	for range 2 {
		traffic := startTraffic(context.Background(), 20, stream{name: "s", method: "GET", url: url, clients: 3})
		traffic.Wait()
		calls = append(calls, traffic.stop().calls...)
	}
	if wrong := recorded.check(calls); len(calls) != 40 || len(wrong) > 0 {
		t.Errorf("of %d calls %q", len(calls), wrong)
	}
}

func TestRunLogFindsWhatIsWrong(t *testing.T) {
	recorded := &runLog{ran: map[string]int{"once": 1, "twice": 2, "denied": 1, "resent": 2}}
	wrong := recorded.check([]tripped{
		{name: "once"}, {name: "twice", sent: 1, kind: `transport: EOF`}, {name: "resent", sent: 2}, {name: "never"}, {name: "not run", kind: `status 503, executed "no"`},
		{name: "denied", kind: `status 503, executed "no", reason "NoCapacity"`},
	})
	want := []string{"denied ran, and its client was told that it did not", "never was answered and did not run", "twice was sent 1 times and ran 2 times"}
	if strings.Join(wrong, "\n") != strings.Join(want, "\n") {
		t.Errorf("found %q, want %q", wrong, want)
	}
}

func TestStallIsMoreThanTheUsualPause(t *testing.T) {
	from := time.Now()
	answered := func(stream string, usual, at time.Duration) tripped {
		return tripped{stream: stream, usual: usual, ended: from.Add(at)}
	}
	r := trafficResult{calls: []tripped{
		answered("rare", 3*time.Second, 6*time.Second), answered("rare", 3*time.Second, 3*time.Second),
		answered("busy", time.Second, time.Second), answered("busy", time.Second, 4*time.Second),
	}}
	if stall, which := r.stall(); stall != 2*time.Second || which != "busy" {
		t.Errorf("the longest stall is %v of %q, want 2s of busy", stall, which)
	}
}
