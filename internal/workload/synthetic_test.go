package workload

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func synthetic(t *testing.T, o SyntheticOptions) Trace {
	t.Helper()
	trace, err := Synthetic(o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestSyntheticCallsFollowTableI(t *testing.T) {
	trace := synthetic(t, SyntheticOptions{Seed: 1, Length: 1000 * sec, Rate: 100, FunctionsPerRange: 3})
	calls := map[string]float64{}
	for _, a := range trace.Arrivals {
		var in *durationRange
		for i, r := range sfsTable {
			if strings.HasPrefix(a.Function, r.name+"-") {
				in = &sfsTable[i]
			}
		}
		if in == nil || a.Duration < in.from || a.Duration >= in.to {
			t.Fatalf("%+v does not lie in the range that its name says", a)
		}
		calls[in.name]++
	}
	// The shares that the paper prints, of the 95.6 % that it prints.
	for name, percent := range map[string]float64{"0-50ms": 40.6, "50-100ms": 9.8, "100-200ms": 6.8, "200-400ms": 22.7, "1550ms": 15.7} {
		want, got := percent/95.6, calls[name]/float64(len(trace.Arrivals))
		if math.Abs(got-want) > .01 {
			t.Errorf("share of %s is %.3f, want about %.3f", name, got, want)
		}
	}
	if functions := trace.Load().Functions; functions != 15 {
		t.Errorf("%d functions, want 3 for each of 5 ranges", functions)
	}
}

func TestSyntheticArrivalsAreAPoissonProcess(t *testing.T) {
	trace := synthetic(t, SyntheticOptions{Seed: 2, Length: 1000 * sec, Rate: 100, FunctionsPerRange: 1})
	if n := len(trace.Arrivals); math.Abs(float64(n)-100_000) > 2000 {
		t.Errorf("%d calls, want about 100000", n)
	}
	// Exponential gaps have a coefficient of variation of 1.
	var sum, squares, n float64
	for i, a := range trace.Arrivals[1:] {
		gap := (a.At - trace.Arrivals[i].At).Seconds()
		sum, squares, n = sum+gap, squares+gap*gap, n+1
	}
	mean := sum / n
	if cv := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(cv-1) > .03 {
		t.Errorf("coefficient of variation of the gaps is %.3f, want about 1", cv)
	}
}

func TestSyntheticIsSoundAndTheSameForTheSameSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := SyntheticOptions{
			Seed:              rapid.Uint64().Draw(t, "seed"),
			Length:            time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "length")),
			Rate:              rapid.Float64Range(1e-9, 50).Draw(t, "rate"),
			FunctionsPerRange: rapid.IntRange(1, 4).Draw(t, "functions"),
		}
		first, err := Synthetic(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Validate(); err != nil {
			t.Fatal(err)
		}
		second, _ := Synthetic(o)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
	})
	a := synthetic(t, SyntheticOptions{Seed: 1, Length: sec, Rate: 50, FunctionsPerRange: 1})
	b := synthetic(t, SyntheticOptions{Seed: 2, Length: sec, Rate: 50, FunctionsPerRange: 1})
	if cmp.Equal(a.Arrivals, b.Arrivals) {
		t.Error("two seeds made the same trace")
	}
}

func TestSyntheticOptionsOutOfRangeNameTheirField(t *testing.T) {
	for field, o := range map[string]SyntheticOptions{
		"Length":            {Rate: 1, FunctionsPerRange: 1},
		"Rate":              {Length: sec, Rate: math.NaN(), FunctionsPerRange: 1},
		"FunctionsPerRange": {Length: sec, Rate: 1},
	} {
		if _, err := Synthetic(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: error %v, want one about %s", o, err, field)
		}
	}
}
