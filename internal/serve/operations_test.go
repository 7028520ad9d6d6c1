package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
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
	"github.com/windlass-dev/windlass/internal/metric/exposition"
)

// A scraper asks for a format: the text format has neither examples nor native
// buckets, OpenMetrics has examples, and protobuf has both.
func TestMetricsAreServedInEveryFormat(t *testing.T) {
	var set metric.Set
	took := set.Histogram(metric.Stable, "windlass_took_seconds", "What it took.", []float64{1}).New()
	took.(prometheus.ExemplarObserver).ObserveWithExemplar(0.5, prometheus.Labels{"trace_id": "abc"})
	reg := exposition.NewRegistry()
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

// counted is a source that takes a while.
type counted struct {
	collections atomic.Int32
	takes       time.Duration
}

func (c *counted) Read() (exposition.Reading, error) {
	c.collections.Add(1)
	time.Sleep(c.takes)
	return exposition.Reading{}, nil
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
		handler := Operations(&counted{takes: time.Minute}, func() string { return "" })
		get := func(path string) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Code
		}
		var mu sync.Mutex
		codes := make(map[int]int)
		var asking sync.WaitGroup
		for range 30 {
			asking.Go(func() {
				code := get("/metrics")
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
			})
		}
		synctest.Wait()
		if code := get("/healthz"); code != http.StatusOK {
			t.Errorf("health is %d", code)
		}
		asking.Wait()
		if codes[http.StatusOK] != maxScrapes || codes[http.StatusServiceUnavailable] != 30-maxScrapes {
			t.Errorf("%v", codes)
		}
	})
}

// endless writes until it fails.
type endless struct{ ended chan error }

func (e endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for part := make([]byte, 64<<10); ; {
		if _, err := w.Write(part); err != nil {
			e.ended <- err
			return
		}
	}
}

func TestS3AClientThatDoesNotReadIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		what := endless{make(chan error, 1)}
		server, client := net.Pipe()
		served := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			served <- HTTP(ctx, newOne(server), FewAtATime(what), time.Second, slog.New(slog.DiscardHandler))
		}()
		began := time.Now()
		if _, err := io.WriteString(client, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-what.ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != scrapeWithin {
			t.Errorf("it ended after %v: %v", time.Since(began), err)
		}
		_ = client.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// one is a listener that accepts one connection.
type one struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func newOne(c net.Conn) *one {
	o := &one{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	o.conns <- c
	return o
}

func (o *one) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *one) Close() error   { o.close.Do(func() { close(o.closed) }); return nil }
func (o *one) Addr() net.Addr { return &net.TCPAddr{} }
