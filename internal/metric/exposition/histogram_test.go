package exposition

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"
)

// What is counted is what prometheus' own histogram counts.
func TestAHistogramIsThatOfPrometheus(t *testing.T) {
	values := rapid.OneOf(
		rapid.Float64Range(0, 1e-4), rapid.Float64Range(0, 10), rapid.Float64Range(0, 1e6),
		rapid.Custom(func(t *rapid.T) float64 {
			return math.Ldexp(rapid.SampledFrom(octave[:]).Draw(t, "bound"), rapid.IntRange(-18, 20).Draw(t, "power"))
		}),
		rapid.SampledFrom([]float64{0, zeroThreshold, math.Nextafter(zeroThreshold, 1), 1, math.Exp2(20)}),
	)
	rapid.Check(t, func(t *rapid.T) {
		theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "h", NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: zeroThreshold,
		})
		var ours Histogram
		// A message that was that of another one before.
		var m nativeMessage
		m.set(&Histogram{buckets: []nativeBucket{{-3, 2}, {7, 9}}})
		for _, v := range rapid.SliceOfN(values, 1, 60).Draw(t, "values") {
			theirs.Observe(v)
			ours.Observe(v)
		}
		var want dto.Metric
		if err := theirs.Write(&want); err != nil {
			t.Fatal(err)
		}
		m.set(&ours)
		if diff := cmp.Diff(want.GetHistogram(), &m.Histogram, protocmp.Transform(),
			protocmp.IgnoreFields(&dto.Histogram{}, "created_timestamp")); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestAHistogramIsBounded(t *testing.T) {
	var h Histogram
	for i := range 3000 {
		h.Observe(math.Exp2(float64(i)/10 - 150))
	}
	if n := len(h.buckets); n > 300 || h.count != 3000 {
		t.Errorf("%d values take %d buckets", h.count, n)
	}
}

func TestACopyStaysAsItIs(t *testing.T) {
	var h Histogram
	h.Observe(1)
	c := h.Clone()
	h.Observe(1)
	h.Observe(2)
	if c.count != 1 || c.sum != 1 || len(c.buckets) != 1 || c.buckets[0].n != 1 {
		t.Errorf("the copy became %+v", *c)
	}
	if (*Histogram)(nil).Clone() != nil {
		t.Error("a copy of nothing is something")
	}
}
