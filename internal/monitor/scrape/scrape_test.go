package scrape

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/serve"
)

func TestNativeHistogramsAreTold(t *testing.T) {
	registry := exposition.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", NativeHistogramBucketFactor: 1.1, NativeHistogramMinResetDuration: time.Hour})
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total"})
	registry.MustRegister(h, c)
	h.Observe(0.3)
	c.Add(7)
	server := httptest.NewServer(serve.Operations(registry, func() string { return "" }))
	defer server.Close()
	families, err := Metrics(t.Context(), http.DefaultTransport, server.URL+"/metrics")
	if err != nil || len(families) != 2 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != 7 {
		t.Errorf("the counter is %g", got)
	}
	if got := families[1].GetMetric()[0].GetHistogram(); got.Schema == nil || got.GetSampleCount() != 1 {
		t.Errorf("the histogram is %v", got)
	}
}

func TestWhatIsNoMetricsIsSaid(t *testing.T) {
	for answer, want := range map[string]string{"404": "it answered 404", "nonsense{": "cannot be read"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if answer == "404" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = w.Write([]byte(answer))
		}))
		_, err := Metrics(t.Context(), http.DefaultTransport, server.URL)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q is said: %v", answer, err)
		}
		server.Close()
	}
	if _, err := Metrics(t.Context(), http.DefaultTransport, "http://127.0.0.1:1/metrics"); err == nil {
		t.Error("nobody answered, and there is no error")
	}
}
