package attacks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/cluster"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

const (
	// manyFunctions are registered while the port for operations is attacked, and of as
	// many as /debug/decisions tells of something was decided.
	manyFunctions = 10_000
	decidedLately = 1_000
)

var scrapeAttacks = []attack{
	{"F104", "S3: 30 at a time ask for metrics, again and again", "", func(w *platform) {
		ops := w.operations()
		var answered atomic.Int64
		w.concurrently(30, func(client *http.Client) {
			for range 5 {
				answered.Add(w.scraped(client, ops+"/metrics"))
			}
		})
		if answered.Load() == 0 {
			w.Error("nobody was answered")
		}
		w.stillScraped(ops)
	}},
	{"F104", "S3: 300 ask for metrics and do not read them", "", func(w *platform) {
		ops := w.operations()
		for range 300 {
			conn := w.dial(ops[len("http://"):])
			_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
		}
		w.honestCall()
		w.stillScraped(ops) // once those are cut off
	}},
	{"F104", "S3: 300 at a time ask for all decisions", "", func(w *platform) {
		ops := w.operations()
		w.concurrently(300, func(client *http.Client) {
			for range 5 {
				w.scraped(client, ops+"/debug/decisions")
			}
		})
		w.stillScraped(ops)
	}},
}

// operations serves a scheduler's port for operations, as a cluster's does, after many
// functions were registered.
func (w *platform) operations() (url string) {
	w.Helper()
	series := w.series()
	for n := range manyFunctions {
		fn := &v1alpha1.Function{}
		fn.Namespace, fn.Name, fn.UID, fn.Generation = fmt.Sprintf("tenant-%d", n%100), fmt.Sprintf("function-%d", n), types.UID(fmt.Sprintf("uid-%d", n)), 1
		v1alpha1.Default(fn)
		if n >= manyFunctions-decidedLately {
			fn.Spec.Scaling.MinInstances = 1
		}
		w.catalog.Put(rollout.Alone(fn))
	}
	w.untilWithin(10*patience, "all are known", func() bool { return len(w.decider.Latest().Functions) >= decidedLately })
	w.added = w.series() - series
	l := w.listen()
	handler := cluster.SchedulerOperations(w.registry, func() string { return "" }, func() cluster.Decider { return w.decider })
	w.runs(func(ctx context.Context) error {
		return serve.HTTP(ctx, l, handler, time.Second, slog.New(slog.DiscardHandler))
	})
	return "http://" + l.Addr().String()
}

// concurrently has n clients do something at a time.
func (w *platform) concurrently(n int, do func(*http.Client)) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			client := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}
			defer client.CloseIdleConnections()
			do(client)
		})
	}
	all.Wait()
}

// scraped asks once, and is 1 if that was answered. What is refused must say so.
func (w *platform) scraped(client *http.Client, url string) int64 {
	resp, err := client.Get(url)
	if err != nil {
		w.Errorf("asking for %s: %v", url, err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	switch resp.StatusCode {
	case http.StatusOK:
		return 1
	case http.StatusServiceUnavailable:
	default:
		w.Errorf("%s is answered with %s", url, resp.Status)
	}
	return 0
}

// stillScraped waits until an honest Prometheus is answered, and health is told.
func (w *platform) stillScraped(ops string) {
	w.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	w.until("metrics are told again", func() bool { return w.scraped(client, ops+"/metrics") == 1 })
	if w.scraped(client, ops+"/healthz") != 1 {
		w.Error("health is not told")
	}
}
