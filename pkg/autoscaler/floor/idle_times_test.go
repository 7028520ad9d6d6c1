package floor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// learnt has heard of an idle time for each of the numbers of minutes.
func learnt(minutes ...float64) *Histogram {
	l := &Histogram{}
	for _, m := range minutes {
		l.Add(time.Duration(m * float64(time.Minute)))
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
		idle     []float64
		keepLast time.Duration
		want     Windows
		ok       bool
	}{
		"nothing":                  {nil, 0, Windows{}, false},
		"too little":               {hourly[:9], 0, Windows{}, false},
		"just enough":              {hourly, 0, Windows{Prewarm: 54 * time.Minute, KeepAlive: 67*time.Minute + 6*time.Second - 54*time.Minute}, true},
		"pauses within bursts":     {append(slices.Repeat([]float64{0.99}, 5000), hourly...), 0, Windows{54 * time.Minute, 13*time.Minute + 6*time.Second}, true},
		"only pauses in bursts":    {slices.Repeat([]float64{0.5}, 5000), 0, Windows{}, false},
		"the shortest that count":  {slices.Repeat([]float64{1}, 10), 0, Windows{54 * time.Second, 2*time.Minute + 12*time.Second - 54*time.Second}, true},
		"the longest within range": {slices.Repeat([]float64{239.9}, 10), 0, Windows{215*time.Minute + 6*time.Second, 264*time.Minute - 215*time.Minute - 6*time.Second}, true},
		"as many beyond range":     {append(slices.Repeat([]float64{240}, 10), hourly...), 0, Windows{54 * time.Minute, 13*time.Minute + 6*time.Second}, true},
		"more beyond range":        {append(slices.Repeat([]float64{240}, 11), hourly...), 0, Windows{}, false},
		"without a pattern":        {slices.Repeat(everywhere, 4), 0, Windows{}, false},
		"kept for as long as said": {hourly, 2 * time.Hour, Windows{54 * time.Minute, 66 * time.Minute}, true},
		"kept for longer":          {hourly, 67 * time.Minute, Windows{54 * time.Minute, 13*time.Minute + 6*time.Second}, true},
		"the rare left out": {append(slices.Repeat([]float64{60}, 400), 5, 6, 7, 200, 201, 202), 0, Windows{
			54 * time.Minute, 13*time.Minute + 6*time.Second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := learnt(c.idle...).Windows(c.keepLast); got != c.want || ok != c.ok {
				t.Errorf("got %v, %t, want %v, %t", got, ok, c.want, c.ok)
			}
		})
	}
}

// slowly is what Windows are without a histogram: from all idle times, sorted.
func slowly(idle []time.Duration, keepLast time.Duration) (Windows, bool) {
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
	// The sums are exact to the 9th digit at least.
	if len(within) < 10 || beyond > len(within) || math.Sqrt(variance)/mean <= 2+1e-9 {
		return Windows{}, false
	}
	slices.Sort(within)
	first := within[int(math.Ceil(0.01*float64(len(within))))-1]
	last := within[int(math.Ceil(0.99*float64(len(within))))-1] + Bin
	prewarm := time.Duration(0.9 * float64(first))
	return Windows{Prewarm: prewarm, KeepAlive: max(time.Duration(1.1*float64(last)), keepLast) - prewarm}, true
}

func near(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }

// drawIdle are idle times of which most are around one, and the rest anywhere.
// They come from a generator of their own, since rapid draws small numbers most.
func drawIdle(t *rapid.T) []time.Duration {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	around, spread := rng.Int64N(int64(5*time.Hour)), 1+rng.Int64N(int64(2*time.Hour))
	anywhere := rng.Float64() * rng.Float64()
	idle := make([]time.Duration, rapid.SampledFrom([]int{8, 15, 40, 120, 500, most - 1}).Draw(t, "idle times"))
	for i := range idle {
		idle[i] = time.Duration(around + rng.Int64N(spread))
		if rng.Float64() < anywhere {
			idle[i] = time.Duration(rng.Int64N(int64(5 * time.Hour)))
		}
	}
	return idle
}

func TestWindowsAreThoseOfTheSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		idle := drawIdle(t)
		var l Histogram
		for _, d := range idle {
			l.Add(d)
		}
		keepLast := time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "keepLast"))
		got, ok := l.Windows(keepLast)
		want, wanted := slowly(idle, keepLast)
		if ok != wanted || !near(got.Prewarm, want.Prewarm) || !near(got.KeepAlive, want.KeepAlive) {
			t.Fatalf("got %v, %t, want %v, %t", got, ok, want, wanted)
		}
	})
}

func TestWhatIsLearntFades(t *testing.T) {
	l := learnt(slices.Repeat([]float64{200}, 5000)...)
	if w, _ := l.Windows(0); w.Prewarm != 3*time.Hour {
		t.Fatalf("after many idle times of 200 minutes: %v", w)
	}
	for range 11 * most / 2 {
		l.Add(10 * time.Minute)
	}
	if w, ok := l.Windows(0); !ok || w != (Windows{9 * time.Minute, 12*time.Minute + 6*time.Second - 9*time.Minute}) {
		t.Errorf("after as many of 10 minutes: %v, %t", w, ok)
	}
	for range 3 * most {
		l.Add(Range)
	}
	if w, ok := l.Windows(0); ok {
		t.Errorf("after many beyond the range: %v", w)
	}
}

// TestSumsAreThoseOfTheCounts checks what is kept so that it need not be summed.
func TestSumsAreThoseOfTheCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Histogram
		minutes := rapid.SliceOfN(rapid.IntRange(1, 300), 1, 5).Draw(t, "minutes")
		for i := range rapid.SampledFrom([]int{5, most - 1, most, most + 1, 2 * most, 5 * most}).Draw(t, "how many") {
			l.Add(time.Duration(minutes[i%len(minutes)]) * time.Minute)
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
	var l Histogram
	for i := 0; b.Loop(); i++ {
		l.Add(time.Duration(i%300) * time.Minute)
	}
}

func BenchmarkWindows(b *testing.B) {
	l := learnt(slices.Repeat([]float64{200}, 100)...)
	for b.Loop() {
		l.Windows(0)
	}
}
