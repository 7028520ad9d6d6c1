package floor

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// sample reads a day of calls of so many functions of the Azure trace: for each
// function when it was called, in order. The trace has calls per minute; they
// are spread over it at random.
func sample(t *testing.T, functions int) [][]time.Duration {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "data", "azure2019_day1", fmt.Sprintf("%d_inv.csv", functions))
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("the Azure sample of %d functions is not there: %v", functions, err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const minutes = 24 * 60
	rng := rand.New(rand.NewPCG(1, uint64(functions)))
	var called [][]time.Duration
	for _, row := range rows[1:] {
		var times []time.Duration
		for minute, text := range row[len(row)-minutes:] {
			calls, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			for range calls {
				times = append(times, time.Duration(minute)*time.Minute+time.Duration(rng.Int64N(int64(time.Minute))))
			}
		}
		slices.Sort(times)
		called = append(called, times)
	}
	return called
}

// cost is what a policy costs: how many calls have to wait for a start, how long
// instances are idle, and how many are started ahead of a call.
type cost struct {
	cold, ahead int
	idle        time.Duration
}

func (c cost) String() string {
	return fmt.Sprintf("%d cold starts, %.0f idle hours, %d starts ahead", c.cold, c.idle.Hours(), c.ahead)
}

// gap is one idle time under a plan.
func (c *cost) gap(w Windows, idle, start time.Duration) {
	now, called := noon, noon.Add(idle)
	for {
		p := w.Plan(noon, now, start)
		until := called
		if !p.Change.IsZero() && p.Change.Before(called) {
			until = p.Change
		}
		if p.Keep {
			c.idle += until.Sub(now)
		}
		c.ahead += p.Floor
		if until.Equal(called) {
			if !p.Keep {
				c.cold++
			}
			return
		}
		now = until
	}
}

// replay is the cost of a policy for functions whose calls take no time.
func replay(functions [][]time.Duration, policy func(*Histogram) Windows) (c cost) {
	for _, called := range functions {
		var l Histogram
		for i, at := range called {
			if i == 0 {
				c.cold++
				continue
			}
			idle := at - called[i-1]
			c.gap(policy(&l), idle, 3*time.Second)
			l.Add(idle)
		}
	}
	return c
}

// TestHistogramIsBetterThanTheFixedTimeOnRealSamples prints what either costs, and
// holds for the default of keepLast. It reads samples that are not
// part of the project.
func TestHistogramIsBetterThanTheFixedTimeOnRealSamples(t *testing.T) {
	fixed := func(keepLast time.Duration) func(*Histogram) Windows {
		return func(*Histogram) Windows { return Windows{KeepAlive: keepLast} }
	}
	learnt := func(keepLast time.Duration) func(*Histogram) Windows {
		return func(h *Histogram) Windows {
			if w, ok := h.Windows(keepLast); ok {
				return w
			}
			return Windows{KeepAlive: keepLast}
		}
	}
	for _, n := range []int{50, 100, 200, 500} {
		functions := sample(t, n)
		for _, keepLast := range []time.Duration{10 * time.Minute, time.Hour, 2 * time.Hour} {
			f, h := replay(functions, fixed(keepLast)), replay(functions, learnt(keepLast))
			t.Logf("%d functions, keepLast %v\n  Fixed:   %v\n  Learned: %v", n, keepLast, f, h)
			if keepLast == time.Hour && (h.cold > f.cold || h.idle > f.idle) {
				t.Errorf("with %d functions and a keepLast of %v, Learned has %v, and Fixed %v", n, keepLast, h, f)
			}
		}
	}
}
