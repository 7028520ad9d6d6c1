package workload

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func small() Trace {
	return Trace{Name: "t", Length: 12 * sec, Notes: []string{"made up"}, Arrivals: []Arrival{
		{1 * sec, "a", 1 * sec},
		{2 * sec, "a", 2 * sec},
		{3 * sec, "a", 3 * sec},
		{4 * sec, "b", 4 * sec},
		{6 * sec, "a", 5 * sec},
	}}
}

func TestEachStepOfAShapeSaysWhatItChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		shape  Shape
		want   []Arrival
		length time.Duration
		note   string
	}{
		"window": {Shape{Start: 2 * sec, Length: 2 * sec},
			[]Arrival{{0, "a", 2 * sec}, {1 * sec, "a", 3 * sec}}, 2 * sec, "window from 2s to 4s: 2 of 5 calls"},
		"window up to the end": {Shape{Start: 4 * sec},
			[]Arrival{{0, "b", 4 * sec}, {2 * sec, "a", 5 * sec}}, 8 * sec, "window from 4s to 12s: 2 of 5 calls"},
		"thinning": {Shape{KeepOneIn: 3},
			[]Arrival{{1 * sec, "a", 1 * sec}, {4 * sec, "b", 4 * sec}, {6 * sec, "a", 5 * sec}}, 12 * sec,
			"kept the first call of each function and then one in 3: 3 of 5 calls"},
		"time": {Shape{TimeFactor: 4},
			[]Arrival{{250 * ms, "a", 1 * sec}, {500 * ms, "a", 2 * sec}, {750 * ms, "a", 3 * sec}, {1 * sec, "b", 4 * sec}, {1500 * ms, "a", 5 * sec}},
			3 * sec, "time compressed by 4: 12s became 3s"},
		"durations": {Shape{DurationFactor: 2},
			[]Arrival{{1 * sec, "a", 500 * ms}, {2 * sec, "a", 1 * sec}, {3 * sec, "a", 1500 * ms}, {4 * sec, "b", 2 * sec}, {6 * sec, "a", 2500 * ms}},
			12 * sec, "durations divided by 2: all 5"},
		"cap after division": {Shape{DurationFactor: .5, MaxDuration: 8 * sec},
			[]Arrival{{1 * sec, "a", 2 * sec}, {2 * sec, "a", 4 * sec}, {3 * sec, "a", 6 * sec}, {4 * sec, "b", 8 * sec}, {6 * sec, "a", 8 * sec}},
			12 * sec, "durations capped at 8s: 1 of 5"},
	} {
		t.Run(name, func(t *testing.T) {
			before := small()
			got, err := tt.shape.Apply(before)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Arrivals); diff != "" {
				t.Error(diff)
			}
			if got.Length != tt.length {
				t.Errorf("length %v, want %v", got.Length, tt.length)
			}
			if last := got.Notes[len(got.Notes)-1]; last != tt.note || got.Notes[0] != "made up" {
				t.Errorf("notes %q, want the last to be %q", got.Notes, tt.note)
			}
			if diff := cmp.Diff(small(), before); diff != "" {
				t.Errorf("the trace that was given changed: %s", diff)
			}
		})
	}
}

func TestAnEmptyShapeChangesNothing(t *testing.T) {
	for _, s := range []Shape{{}, {KeepOneIn: 1, TimeFactor: 1, DurationFactor: 1, Length: time.Hour}} {
		got, err := s.Apply(small())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(small(), got); diff != "" {
			t.Errorf("%+v: %s", s, diff)
		}
	}
}

func TestAShapeOutOfRangeNamesItsField(t *testing.T) {
	for field, s := range map[string]Shape{
		"Start":          {Start: -1},
		"Length":         {Length: -1},
		"KeepOneIn":      {KeepOneIn: -1},
		"TimeFactor":     {TimeFactor: math.Inf(1)},
		"DurationFactor": {DurationFactor: math.NaN()},
		"MaxDuration":    {MaxDuration: -1},
	} {
		if _, err := s.Apply(small()); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: error %v, want one about %s", s, err, field)
		}
	}
	if _, err := (Shape{Start: time.Hour}).Apply(small()); err == nil || !strings.Contains(err.Error(), "only 12s long") {
		t.Errorf("window beyond the end: error %v", err)
	}
}

func TestAShapedTraceKeepsThePromisesOfATrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		s := Shape{
			Start:          time.Duration(rapid.Int64Range(0, int64(trace.Length)-1).Draw(t, "start")),
			Length:         time.Duration(rapid.Int64Range(0, int64(trace.Length)).Draw(t, "length")),
			KeepOneIn:      rapid.IntRange(0, 5).Draw(t, "keepOneIn"),
			TimeFactor:     rapid.Float64Range(.1, 1e6).Draw(t, "timeFactor"),
			DurationFactor: rapid.Float64Range(.1, 1e6).Draw(t, "durationFactor"),
			MaxDuration:    time.Duration(rapid.Int64Range(0, int64(sec)).Draw(t, "maxDuration")),
		}
		got, err := s.Apply(trace)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, a := range got.Arrivals {
			if s.MaxDuration > 0 && a.Duration > s.MaxDuration {
				t.Fatalf("%+v is longer than %v", a, s.MaxDuration)
			}
		}
		windowed, err := Shape{Start: s.Start, Length: s.Length}.Apply(trace)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(functionsOf(windowed), functionsOf(got)) {
			t.Fatalf("functions %v of the window became %v", functionsOf(windowed), functionsOf(got))
		}
	})
}

func drawTrace(t *rapid.T) Trace {
	trace := Trace{Name: "drawn", Length: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "traceLength"))}
	for range rapid.IntRange(0, 50).Draw(t, "calls") {
		trace.Arrivals = append(trace.Arrivals, Arrival{
			At:       time.Duration(rapid.Int64Range(0, int64(trace.Length)).Draw(t, "at")),
			Function: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "function"),
			Duration: time.Duration(rapid.Int64Range(0, int64(5*sec)).Draw(t, "duration")),
		})
	}
	sortArrivals(trace.Arrivals)
	return trace
}

func functionsOf(t Trace) []string {
	var names []string
	for _, a := range t.Arrivals {
		names = append(names, a.Function)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
