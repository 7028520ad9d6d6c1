package keepalive

import (
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// learnt has heard of an idle time for each of the numbers of minutes.
func learnt(minutes ...float64) *Learner {
	l := &Learner{}
	for _, m := range minutes {
		l.Idle(time.Duration(m * float64(time.Minute)))
	}
	return l
}

func TestWindows(t *testing.T) {
	hourly := slices.Repeat([]float64{60.5}, 10)
	everywhere := make([]float64, 0, 240)
	for m := range 240 {
		everywhere = append(everywhere, float64(m))
	}
	for name, c := range map[string]struct {
		idle []float64
		want Windows
		ok   bool
	}{
		"nothing":                  {nil, Windows{}, false},
		"too little":               {hourly[:9], Windows{}, false},
		"just enough":              {hourly, Windows{Prewarm: 54 * time.Minute, KeepAlive: 67*time.Minute + 6*time.Second - 54*time.Minute}, true},
		"pauses within bursts":     {append(slices.Repeat([]float64{0.99}, 5000), hourly...), Windows{54 * time.Minute, 13*time.Minute + 6*time.Second}, true},
		"only pauses in bursts":    {slices.Repeat([]float64{0.5}, 5000), Windows{}, false},
		"the shortest that count":  {slices.Repeat([]float64{1}, 10), Windows{54 * time.Second, 2*time.Minute + 12*time.Second - 54*time.Second}, true},
		"the longest within range": {slices.Repeat([]float64{239.9}, 10), Windows{215*time.Minute + 6*time.Second, 264*time.Minute - 215*time.Minute - 6*time.Second}, true},
		"as many beyond range":     {append(slices.Repeat([]float64{240}, 10), hourly...), Windows{54 * time.Minute, 13*time.Minute + 6*time.Second}, true},
		"more beyond range":        {append(slices.Repeat([]float64{240}, 11), hourly...), Windows{}, false},
		"without a pattern":        {slices.Repeat(everywhere, 4), Windows{}, false},
		"the rare left out": {append(slices.Repeat([]float64{60}, 400), 5, 6, 200, 201), Windows{
			54 * time.Minute, 13*time.Minute + 6*time.Second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := learnt(c.idle...).Windows(); got != c.want || ok != c.ok {
				t.Errorf("got %v, %t, want %v, %t", got, ok, c.want, c.ok)
			}
		})
	}
}

// slowly is what Windows are without a histogram: from all idle times, sorted.
func slowly(idle []time.Duration) (Windows, bool) {
	var within []time.Duration
	counts := make([]float64, bins)
	beyond := 0
	for _, d := range idle {
		switch {
		case d >= Range:
			beyond++
		case d >= Bin:
			within = append(within, d.Truncate(Bin))
			counts[d/Bin]++
		}
	}
	var mean, variance float64
	for _, c := range counts {
		mean += c / float64(bins)
	}
	for _, c := range counts {
		variance += (c - mean) * (c - mean) / float64(bins)
	}
	if len(within) < 10 || beyond > len(within) || math.Sqrt(variance)/mean <= 2 {
		return Windows{}, false
	}
	slices.Sort(within)
	first := within[int(math.Ceil(0.05*float64(len(within))))-1]
	last := within[int(math.Ceil(0.99*float64(len(within))))-1] + Bin
	prewarm := time.Duration(0.9 * float64(first))
	return Windows{Prewarm: prewarm, KeepAlive: time.Duration(1.1*float64(last)) - prewarm}, true
}

func near(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }

func TestWindowsAreThoseOfTheSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		around := rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "around")
		idle := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.OneOf(
				rapid.Int64Range(around, around+int64(20*time.Minute)),
				rapid.Int64Range(0, int64(5*time.Hour)),
			).Draw(t, "idle"))
		}), 0, most-1).Draw(t, "idle times")
		var l Learner
		for _, d := range idle {
			l.Idle(d)
		}
		got, ok := l.Windows()
		want, wanted := slowly(idle)
		if ok != wanted || !near(got.Prewarm, want.Prewarm) || !near(got.KeepAlive, want.KeepAlive) {
			t.Fatalf("got %v, %t, want %v, %t", got, ok, want, wanted)
		}
	})
}

func TestWhatIsLearntFades(t *testing.T) {
	l := learnt(slices.Repeat([]float64{200}, 5000)...)
	if w, _ := l.Windows(); w.Prewarm != 3*time.Hour {
		t.Fatalf("after many idle times of 200 minutes: %v", w)
	}
	for range 11 * most / 2 {
		l.Idle(10 * time.Minute)
	}
	if w, ok := l.Windows(); !ok || w != (Windows{9 * time.Minute, 12*time.Minute + 6*time.Second - 9*time.Minute}) {
		t.Errorf("after as many of 10 minutes: %v, %t", w, ok)
	}
	for range 3 * most {
		l.Idle(Range)
	}
	if w, ok := l.Windows(); ok {
		t.Errorf("after many beyond the range: %v", w)
	}
}

// TestSumsAreThoseOfTheCounts checks what is kept so that it need not be summed.
func TestSumsAreThoseOfTheCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Learner
		minutes := rapid.SliceOfN(rapid.IntRange(1, 300), 1, 5).Draw(t, "minutes")
		for i := range rapid.IntRange(0, 3*most).Draw(t, "how many") {
			l.Idle(time.Duration(minutes[i%len(minutes)]) * time.Minute)
		}
		within, squares := 0, 0
		if l.counts != nil {
			for _, count := range l.counts {
				within += int(count)
				squares += int(count) * int(count)
			}
		}
		if l.within != within || l.squares != squares || within+l.beyond >= most {
			t.Fatalf("it has %d, %d and %d, but the counts sum up to %d and %d", l.within, l.squares, l.beyond, within, squares)
		}
	})
}

func TestAFunctionThatIsNeverIdleTakesNextToNoMemory(t *testing.T) {
	l := learnt(slices.Repeat([]float64{0.5, 240}, 1000)...)
	if size := unsafe.Sizeof(*l); l.counts != nil || size > 32 {
		t.Errorf("it has a histogram, or takes %d bytes", size)
	}
}

func BenchmarkIdle(b *testing.B) {
	var l Learner
	for i := 0; b.Loop(); i++ {
		l.Idle(time.Duration(i%300) * time.Minute)
	}
}

func BenchmarkWindows(b *testing.B) {
	l := learnt(slices.Repeat([]float64{200}, 100)...)
	for b.Loop() {
		l.Windows()
	}
}
