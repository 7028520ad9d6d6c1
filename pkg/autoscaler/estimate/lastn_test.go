package estimate

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMeanIsOfTheLastNOnly(t *testing.T) {
	l := NewLastN(3)
	if got := l.Mean(); got != 0 {
		t.Errorf("before the first observation: %v", got)
	}
	for _, d := range []time.Duration{900, 0, -5, 10, 20, 30} {
		l.Observe(d * time.Millisecond)
	}
	if got := l.Mean(); got != 20*time.Millisecond {
		t.Errorf("got %v, want 20ms", got)
	}
}

func TestMeanStaysBetweenSmallestAndLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		observed := rapid.SliceOfN(rapid.Int64Range(1, int64(24*time.Hour)), 1, 40).Draw(t, "observed")
		l := NewLastN(n)
		for _, d := range observed {
			l.Observe(time.Duration(d))
		}
		last := observed[max(0, len(observed)-n):]
		lo, hi := last[0], last[0]
		for _, d := range last {
			lo, hi = min(lo, d), max(hi, d)
		}
		if got := int64(l.Mean()); got < lo || got > hi {
			t.Fatalf("mean %d of %v", got, last)
		}
	})
}

func TestASeedIsOneObservationAndNoneAfterOthers(t *testing.T) {
	l := NewLastN(2)
	l.Seed(0)
	l.Seed(10 * time.Second)
	l.Seed(time.Second) // a seed is there
	if got := l.Mean(); got != 10*time.Second {
		t.Errorf("seeded: %v, want 10s", got)
	}
	l.Observe(2 * time.Second)
	if got := l.Mean(); got != 6*time.Second {
		t.Errorf("with one observation: %v, want 6s", got)
	}
	l.Observe(4 * time.Second)
	if got := l.Mean(); got != 3*time.Second {
		t.Errorf("with two: %v, want 3s, without the seed", got)
	}
}

func TestMeansAreRounded(t *testing.T) {
	got := Means{Execution: 1499 * time.Microsecond, Start: 0}.Round(time.Millisecond)
	if want := (Means{Execution: time.Millisecond}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
