package monitor

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// counter is a process that is watched. It has counted some calls since it began, and
// begins again now and then.
type counter struct {
	calls float64
	there bool
	// known says that the last sample had it.
	known bool
}

// TestRatesAreThoseOfASlowCount compares with adding up what every process did in every
// interval.
func TestRatesAreThoseOfASlowCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Watcher
		counters := make([]counter, rapid.IntRange(1, 4).Draw(t, "processes"))
		now := noon
		type interval struct{ length, calls float64 }
		var seen []interval
		for step := range rapid.IntRange(2, 80).Draw(t, "steps") {
			length := time.Duration(rapid.IntRange(1, 40).Draw(t, "tenths")) * 100 * time.Millisecond
			now = now.Add(length)
			news := 0.0
			var readings []Reading
			for i := range counters {
				c := &counters[i]
				more := float64(rapid.IntRange(0, 50).Draw(t, "more"))
				switch rapid.IntRange(0, 9).Draw(t, "what") {
				case 0:
					c.there = !c.there
				case 1:
					// It has less than before, or nobody could tell.
					more = math.Min(more, math.Max(0, c.calls-1))
					c.calls = 0
				}
				c.calls += more
				if !c.there {
					c.known = false
					continue
				}
				if c.known {
					news += more
				} else {
					c.known = true
				}
				readings = append(readings, gateway(c.calls, 0).reading(fmt.Sprint("g", i)))
			}
			v := w.See(Read(now, readings))
			if step > 0 {
				seen = append(seen, interval{length.Seconds(), news})
			}
			var over, calls float64
			for i := len(seen) - 1; i >= 0 && (over == 0 || over+seen[i].length <= 10.0001); i-- {
				over += seen[i].length
				calls += seen[i].calls
			}
			if len(readings) == 0 || over == 0 {
				continue
			}
			if math.Abs(v.Over-over) > 1e-6 || math.Abs(v.Totals.Rate-calls/over) > 1e-6 {
				t.Fatalf("after %d samples %g calls/s over %g s, want %g over %g s", step+1, v.Totals.Rate, v.Over, calls/over, over)
			}
		}
	})
}

// BenchmarkSee is of 10,000 functions, a thousand of which are called.
func BenchmarkSee(b *testing.B) {
	var w Watcher
	at := noon
	sample := func(calls float64) Sample {
		p := process()
		for i := range 10_000 {
			labels := []string{"function_namespace", "default", "function", fmt.Sprint("f", i)}
			p.says("windlass_scheduler_queue_length", 0, labels...)
			if i < 1000 {
				p.says("windlass_gateway_invocations_total", calls, with(labels, "code", "200")...)
			}
		}
		at = at.Add(time.Second)
		return Read(at, []Reading{p.reading("g")})
	}
	samples := make([]Sample, b.N+1)
	for i := range samples {
		samples[i] = sample(float64(i))
	}
	w.See(samples[0])
	b.ResetTimer()
	for _, s := range samples[1:] {
		w.See(s)
	}
}
