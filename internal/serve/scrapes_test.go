package serve

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
)

var (
	testSet  metric.Set
	heldDecl = testSet.Gauge(metric.Stable, "windlass_test_held", "What is held.", "name")
	freeDecl = testSet.Gauge(metric.Stable, "windlass_test_free", "What is free.")
)

// manyHeld is a registry with a family of one series and one of n.
func manyHeld(n int) *exposition.Registry {
	reg := exposition.NewRegistry()
	reg.MustRegister(freeDecl.New(), exposition.NewCollector([]exposition.Series[int]{
		{Declaration: heldDecl.Declaration, Of: func(_ *int, tell exposition.Tell) {
			tell(exposition.Sample{Labels: exposition.Labels{strings.Repeat("long", 30)}, Value: 7})
		}},
	}, func() []int { return make([]int, n) }))
	return reg
}

func scrapeOf(from exposition.Source, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Operations(from, func() string { return "" }).ServeHTTP(w, r)
	return w
}

func TestMetricsAreCompressedForThoseWhoTakeThat(t *testing.T) {
	plain := scrapeOf(manyHeld(300), "/metrics").Body.String()
	for accepted, want := range map[string]bool{
		"": false, "gzip": true, "deflate, GZIP;q=0.5, br": true, "identity, gzip; q=0": false, "gzip;q=0": false, "zstd": false,
	} {
		w := scrapeOf(manyHeld(300), "/metrics", "Accept-Encoding", accepted)
		var body io.Reader = w.Body
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("%q: compressed is %t, want %t", accepted, got, want)
			continue
		}
		if want {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != plain {
			t.Errorf("%q: %v, and the text is\n%s", accepted, err, text)
		}
	}
}

func TestAScrapeCanAskForNames(t *testing.T) {
	got := scrapeOf(manyHeld(1), "/metrics?name[]=windlass_test_free&name[]=windlass_other").Body.String()
	if want := "# HELP windlass_test_free What is free.\n# TYPE windlass_test_free gauge\nwindlass_test_free 0\n"; got != want {
		t.Errorf("the answer is\n%s", got)
	}
}

type broken struct{}

func (broken) Read() (exposition.Reading, error) { return exposition.Reading{}, errors.New("no sums") }

func TestACollectionThatFailsIsAnError(t *testing.T) {
	if w := scrapeOf(broken{}, "/metrics"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "no sums") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// gone is a scraper that takes the first bytes only.
type gone struct {
	*httptest.ResponseRecorder
	takes int
}

func (g *gone) Write(p []byte) (int, error) {
	if g.takes -= len(p); g.takes < 0 {
		return 0, errors.New("it has gone")
	}
	return len(p), nil
}

// What was cut off ends without its end, as net/http does it for a handler that panics so.
func TestS3AnAnswerThatIsCutOffDoesNotLookWhole(t *testing.T) {
	for _, accepted := range []string{"", "gzip"} {
		for takes := range 2 {
			func() {
				defer func() {
					if p := recover(); p != http.ErrAbortHandler {
						t.Errorf("%q: the handler ended with %v", accepted, p)
					}
				}()
				r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				r.Header.Set("Accept-Encoding", accepted)
				w := &gone{httptest.NewRecorder(), takes * 10}
				Operations(manyHeld(10_000), func() string { return "" }).ServeHTTP(w, r)
			}()
		}
	}
}
