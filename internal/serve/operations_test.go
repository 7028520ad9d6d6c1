package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/windlass-dev/windlass/internal/metric"
)

// Whoever scrapes asks for a format: the text format has neither examples nor native
// buckets, OpenMetrics has examples, and protobuf has both.
func TestMetricsAreServedInEveryFormat(t *testing.T) {
	var set metric.Set
	took := set.Histogram("windlass_took_seconds", "What it took.", []float64{1}).New()
	took.(prometheus.ExemplarObserver).ObserveWithExemplar(0.5, prometheus.Labels{"trace_id": "abc"})
	reg := prometheus.NewRegistry()
	reg.MustRegister(took)
	handler := Operations(reg, func() string { return "" })
	scrape := func(accept string) (contentType string, body io.Reader) {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Header().Get("Content-Type"), w.Body
	}

	_, body := scrape("text/plain")
	if text, _ := io.ReadAll(body); !strings.Contains(string(text), `windlass_took_seconds_bucket{le="1"} 1`+"\n") {
		t.Errorf("as text:\n%s", text)
	}
	kind, body := scrape("application/openmetrics-text;version=1.0.0")
	if text, _ := io.ReadAll(body); !strings.Contains(string(text), `# {trace_id="abc"} 0.5`) {
		t.Errorf("as OpenMetrics, which is %s:\n%s", kind, text)
	}
	kind, body = scrape("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	var family dto.MetricFamily
	if err := expfmt.NewDecoder(body, expfmt.ResponseFormat(http.Header{"Content-Type": {kind}})).Decode(&family); err != nil {
		t.Fatalf("as protobuf, which is %s: %v", kind, err)
	}
	h := family.GetMetric()[0].GetHistogram()
	if len(h.GetPositiveSpan()) == 0 || len(h.GetExemplars())+len(h.GetBucket()[0].GetExemplar().GetLabel()) == 0 {
		t.Errorf("as protobuf, which is %s: %v", kind, h)
	}
}

// counted is a gatherer that takes a while, or until it is let go.
type counted struct {
	collections atomic.Int32
	takes       time.Duration
}

func (c *counted) Gather() ([]*dto.MetricFamily, error) {
	c.collections.Add(1)
	time.Sleep(c.takes)
	return nil, nil
}

func TestS3OneCollectionIsSharedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &counted{takes: 100 * time.Millisecond}
		handler := Operations(from, func() string { return "" })
		scrapes := func(n int) {
			var asking sync.WaitGroup
			for range n {
				asking.Go(func() {
					handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
				})
			}
			asking.Wait()
		}
		for round := range int32(3) {
			scrapes(maxScrapes)
			time.Sleep(sharedFor / 2)
			scrapes(maxScrapes)
			if n := from.collections.Load(); n != round+1 {
				t.Errorf("%d collections in round %d", n, round)
			}
			time.Sleep(sharedFor)
			synctest.Wait()
		}
	})
}

func TestS3OnlyAFewScrapesAreAnsweredAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := Operations(&counted{takes: 3 * scrapeWithin}, func() string { return "" })
		var mu sync.Mutex
		codes := make(map[int]int)
		began := time.Now()
		var asking sync.WaitGroup
		for range 30 {
			asking.Go(func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				mu.Lock()
				defer mu.Unlock()
				codes[w.Code]++
			})
		}
		asking.Wait()
		if codes[http.StatusServiceUnavailable] != 30 || time.Since(began) != scrapeWithin {
			t.Errorf("%v after %v", codes, time.Since(began))
		}
		time.Sleep(3 * scrapeWithin) // until the collection has ended
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if w.Code != http.StatusOK {
			t.Errorf("health is %d", w.Code)
		}
	})
}
