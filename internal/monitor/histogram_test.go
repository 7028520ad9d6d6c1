package monitor

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"
)

// meter is a histogram as programs have it.
type meter struct{ prometheus.Histogram }

func newMeter(native bool) meter {
	opts := prometheus.HistogramOpts{Name: "h", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}
	if native {
		opts.NativeHistogramBucketFactor, opts.NativeHistogramMaxBucketNumber = 1.1, 100
		opts.NativeHistogramMinResetDuration = time.Hour
	}
	return meter{prometheus.NewHistogram(opts)}
}

func (m meter) read(t interface{ Fatal(...any) }) histogram {
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return readHistogram(out.Histogram)
}

// exact is the quantile of values by their ranks.
func exact(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// TestQuantilesAreNearTheExactOnes compares with sorting: a native bucket is 9 % wide,
// and a classic one of these a factor of 2.
func TestQuantilesAreNearTheExactOnes(t *testing.T) {
	for name, tc := range map[string]struct {
		native bool
		factor float64
	}{"native": {true, 1.1}, "classic": {false, 2}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				value := rapid.Float64Range(0.001, 15)
				m := newMeter(tc.native)
				for _, v := range rapid.SliceOfN(value, 0, 50).Draw(t, "before") {
					m.Observe(v)
				}
				before := m.read(t)
				values := rapid.SliceOfN(value, 1, 200).Draw(t, "values")
				for _, v := range values {
					m.Observe(v)
				}
				news := merge(m.read(t).since(before))
				for _, q := range []float64{0.5, 0.99} {
					got, want := news.quantile(q), exact(values, q)
					if got > want*tc.factor*1.0001 || got < want/tc.factor/1.0001 {
						t.Fatalf("the %g-quantile is %g, want about %g", q, got, want)
					}
				}
			})
		})
	}
}

// TestCoarserBucketsAreComparedWithFiner lets a histogram run out of buckets.
func TestCoarserBucketsAreComparedWithFiner(t *testing.T) {
	m := newMeter(true)
	m.Observe(0.05)
	before := m.read(t)
	for i := range 200 {
		m.Observe(math.Pow(1.15, float64(i-100)))
	}
	after := m.read(t)
	if after.schema >= before.schema {
		t.Fatalf("the schema is %d and was %d, so that nothing is tested", after.schema, before.schema)
	}
	news := after.since(before)
	count := 0.0
	for _, b := range news {
		count += b.count
	}
	if p50 := news.quantile(0.5); count != 200 || p50 < 0.7 || p50 > 1.5 {
		t.Errorf("%g values with a median of %g, want 200 and about 1", count, p50)
	}
}

func TestQuantilesOfFewBuckets(t *testing.T) {
	for name, tc := range map[string]struct {
		of   spread
		q    float64
		want float64
	}{
		"nothing":                    {nil, 0.5, 0},
		"the middle of the only one": {spread{{lower: 1, upper: 3, count: 2}}, 0.5, 2},
		"its end":                    {spread{{lower: 1, upper: 3, count: 2}}, 1, 3},
		"beyond the last bound":      {spread{{lower: 1, upper: 3, count: 2}, {lower: 3, upper: math.Inf(1), count: 98}}, 0.99, 3},
		"the geometric middle":       {spread{{lower: 1, upper: 4, count: 2, geometric: true}}, 0.5, 2},
		"about zero":                 {spread{{lower: 0, upper: 0.001, count: 2, geometric: true}}, 0.5, 0.0005},
		"several spreads, one on top of the other": {merge(spread{{lower: 1, upper: 2, count: 1}, {lower: 2, upper: 3, count: 1}, {lower: 1, upper: 2, count: 2}}), 0.75, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.quantile(tc.q); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("got %g, want %g", got, tc.want)
			}
		})
	}
}

func TestAHistogramThatBeganAnew(t *testing.T) {
	for _, native := range []bool{true, false} {
		m, again := newMeter(native), newMeter(native)
		for range 100 {
			m.Observe(1)
		}
		again.Observe(0.01)
		news := again.read(t).since(m.read(t))
		if p99 := news.quantile(0.99); p99 > 0.02 {
			t.Errorf("native %v: the p99 is %g, and the only value was 0.01", native, p99)
		}
	}
	// A new version that has native buckets follows one that had none.
	m, again := newMeter(false), newMeter(true)
	m.Observe(1)
	again.Observe(1)
	again.Observe(1)
	if news := again.read(t).since(m.read(t)); len(news) != 1 || news[0].count != 2 {
		t.Errorf("new are %+v", news)
	}
}
