package serve

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Limits of scrapes: one may take megabytes and a second of a core.
const (
	// maxScrapes is how many are answered at a time; more get 503. A client that reads
	// slowly counts until it has read, since what it is sent is kept for it.
	maxScrapes = 4
	// scrapeWithin is how long a client may take to read: Prometheus' own default.
	scrapeWithin = 10 * time.Second
	// sharedFor is how long all who ask get the same numbers.
	sharedFor = time.Second
)

// Operations serves health checks and metrics. unready says why the program
// should get no work now; empty means that it should. Metrics are collected at most
// once in a second, however many ask for them.
func Operations(gatherer prometheus.Gatherer, unready func() string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := unready(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", FewAtATime(promhttp.HandlerFor(newShared(gatherer), promhttp.HandlerOpts{EnableOpenMetrics: true})))
	return mux
}

// FewAtATime is for answers that are large: maxScrapes clients are answered at a time, and
// one that has not read its answer within scrapeWithin is cut off.
func FewAtATime(next http.Handler) http.Handler {
	room := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d clients are being answered: try again in a second", maxScrapes), http.StatusServiceUnavailable)
			return
		}
		to := http.NewResponseController(w)
		_ = to.SetWriteDeadline(time.Now().Add(scrapeWithin))
		defer func() { _ = to.SetWriteDeadline(time.Time{}) }() // it is the connection's
		next.ServeHTTP(w, r)
	})
}

// shared is a gatherer that collects once for all who ask within sharedFor. Who asks
// meanwhile waits for that collection.
type shared struct {
	from prometheus.Gatherer
	// turn holds what was collected, or nil; who has taken it may collect.
	turn chan *collection
}

type collection struct {
	families []*dto.MetricFamily
	err      error
}

func newShared(from prometheus.Gatherer) *shared {
	s := &shared{from: from, turn: make(chan *collection, 1)}
	s.turn <- nil
	return s
}

// Gather implements prometheus.Gatherer. What it returns is only to be read.
func (s *shared) Gather() ([]*dto.MetricFamily, error) {
	c := <-s.turn
	if c == nil {
		c = new(collection)
		c.families, c.err = s.from.Gather()
		time.AfterFunc(sharedFor, s.drop)
	}
	s.turn <- c
	return c.families, c.err
}

func (s *shared) drop() {
	<-s.turn
	s.turn <- nil
}
