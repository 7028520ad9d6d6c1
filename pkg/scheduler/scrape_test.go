package scheduler

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// wasted is an answer that nobody keeps.
type wasted struct {
	header http.Header
	bytes  int
}

func (w *wasted) Header() http.Header { return w.header }
func (w *wasted) WriteHeader(int)     {}
func (w *wasted) Write(p []byte) (int, error) {
	w.bytes += len(p)
	return len(p), nil
}

// scrapes are requests as scrapers make them: a Prometheus that wants native histograms,
// one that does not, and people.
var scrapes = []struct {
	name   string
	header http.Header
}{
	{"protobuf", http.Header{"Accept": {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"}, "Accept-Encoding": {"gzip"}}},
	{"OpenMetrics", http.Header{"Accept": {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}, "Accept-Encoding": {"gzip"}}},
	{"text", http.Header{}},
}

// scraped is one scrape that shares nothing with others, from the request to the last byte.
func (w *harness) scraped(header http.Header) (bytes int) {
	answer := &wasted{header: make(http.Header)}
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header = header
	serve.Operations(w.registry, func() string { return "" }).ServeHTTP(answer, r)
	return answer.bytes
}

// scrapedFunctions are what a scheduler with many functions is scraped for: such as nobody
// calls, such as have an instance that was called and whose agent has reported, and such as
// everything has happened to.
var scrapedFunctions = []struct {
	name string
	use  func(t testing.TB, w *harness, fn *v1alpha1.Function, n int)
}{
	{"never called", func(testing.TB, *harness, *v1alpha1.Function, int) {}},
	{"with an idle instance", useAndHear},
	{"with all that is counted", func(t testing.TB, w *harness, fn *v1alpha1.Function, n int) {
		useAndHear(t, w, fn, n)
		f := w.scheduler.shell.lookup(string(fn.UID))
		for e := range numCounters {
			f.increment(e, 1)
		}
		for _, why := range []invocation.RefusalReason{invocation.RefusedQueueFull, invocation.RefusedNoCapacity, invocation.RefusedCannotStart} {
			f.stats.byReason.refusals.add(string(why), 1)
		}
		f.stats.byReason.failures.add("StartFailed", 1)
		f.stats.byReason.failures.add("StartTimeout", 1)
		f.stats.byReason.losses.add("FunctionExited", 1)
	}},
}

// BenchmarkScrape is one scrape of 10,000 functions, with its encoding.
func BenchmarkScrape(b *testing.B) {
	for _, of := range scrapedFunctions {
		w, functions := benchHarness(b, idleFunctions)
		w.register(functions)
		for n, fn := range functions {
			of.use(b, w, fn, n)
		}
		for _, scrape := range scrapes {
			b.Run(of.name+"/"+scrape.name, func(b *testing.B) {
				bytes := 0
				b.ReportAllocs()
				for b.Loop() {
					bytes = w.scraped(scrape.header)
				}
				b.ReportMetric(float64(bytes), "B/answer")
			})
		}
	}
}

func TestS3AScrapeOf10000FunctionsAllocatesAtMost20MB(t *testing.T) {
	const most = 20_000_000
	for _, of := range scrapedFunctions {
		w, functions := benchHarness(t, idleFunctions)
		w.register(functions)
		for n, fn := range functions {
			of.use(t, w, fn, n)
		}
		for _, scrape := range scrapes {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			bytes := w.scraped(scrape.header)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most || bytes < idleFunctions {
				t.Errorf("%s, %s: %d bytes were allocated for an answer of %d, want at most %d", of.name, scrape.name, got, bytes, most)
			} else {
				t.Logf("%s, %s: %d bytes were allocated for an answer of %d", of.name, scrape.name, got, bytes)
			}
		}
	}
}

// What is scraped is what is gathered, and says since when it is counted.
func TestS3AScrapeTellsAllThatIsGathered(t *testing.T) {
	w, functions := benchHarness(t, 200)
	w.register(functions)
	for n, fn := range functions[:150] {
		useAndHear(t, w, fn, n)
	}
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			c, h := m.GetCounter(), m.GetHistogram()
			if c != nil && c.GetCreatedTimestamp() == nil || h != nil && h.GetCreatedTimestamp() == nil {
				t.Fatalf("%s does not say since when: %v", f.GetName(), m)
			}
		}
	}
	reading, err := w.registry.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range exposition.Formats() {
		var got, want bytes.Buffer
		if err := reading.Write(&got, format, nil); err != nil {
			t.Fatal(err)
		}
		encoder := expfmt.NewEncoder(&want, format)
		for _, f := range families {
			if err := encoder.Encode(f); err != nil {
				t.Fatal(err)
			}
		}
		_ = encoder.(expfmt.Closer).Close()
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// useAndHear lets a function be called once by an instance whose start was timed and
// whose agent has reported, and that ran calls of ten durations before.
func useAndHear(b testing.TB, w *harness, fn *v1alpha1.Function, n int) {
	useOnce(b, w, fn, n)
	f := w.scheduler.shell.lookup(string(fn.UID))
	f.addPhases(coldstart.Durations{coldstart.Ready: time.Second})
	f.stats.reports.addReport("c", report{resident: 1 << 23}, false)
	for i := range 10 {
		f.stats.observeExecutions(time.Millisecond<<i, 1)
	}
}
