package serve

import (
	"fmt"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/metric/exposition"
)

// Limits of scrapes: one may take megabytes and a second of a core.
const (
	// maxScrapes is how many are answered at a time; more get 503. A client that reads
	// slowly counts until it has read, since what was collected is kept for it.
	maxScrapes = 4
	// scrapeWithin is how long a client may take to read: Prometheus' own default.
	scrapeWithin = 10 * time.Second
	// sharedFor is how long all who ask get the same numbers. One who asks every second,
	// as windlass top does, must get new ones each time.
	sharedFor = 900 * time.Millisecond
)

// Operations serves health checks and metrics. unready says why the program
// should get no work now; empty means that it should. Metrics are collected at most
// once in a second, however many ask for them.
func Operations(metrics exposition.Source, unready func() string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := unready(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", FewAtATime(scrapes{newShared(metrics)}))
	return mux
}

// FewAtATime is for large answers: it serves maxScrapes clients at a time, and cuts off a
// client that has not read its answer within scrapeWithin.
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
