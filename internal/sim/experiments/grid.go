package experiments

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// grid runs a function for each cell and each seed, and returns the results by cell
// and seed.
func grid[R any](o Options, cells int, run func(cell int, seed uint64) R) [][]R {
	results := make([][]R, cells)
	for i := range results {
		results[i] = make([]R, o.Seeds)
	}
	o.Each(cells*o.Seeds, func(i int) {
		cell, nth := i/o.Seeds, i%o.Seeds
		results[cell][nth] = run(cell, o.Seed+uint64(nth))
	})
	return results
}

// stats are the mean and the standard deviation of a figure over some results.
type stats struct{ mean, deviation float64 }

func statsOf[R any](results []R, figure func(R) float64) stats {
	var s stats
	for _, r := range results {
		s.mean += figure(r)
	}
	s.mean /= float64(len(results))
	for _, r := range results {
		s.deviation += (figure(r) - s.mean) * (figure(r) - s.mean)
	}
	// Of a sample, as the paper's: one result has none.
	if len(results) < 2 {
		return stats{mean: s.mean}
	}
	s.deviation = math.Sqrt(s.deviation / float64(len(results)-1))
	return s
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// sortDown sorts the largest to the front.
func sortDown(values []float64) {
	slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(b, a) })
}
