package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// durationRange is one row of sfsTable.
type durationRange struct {
	percent  float64
	from, to time.Duration
	name     string
}

// sfsTable is Table I of Fu et al., "SFS: Smart OS Scheduling for Serverless
// Functions" (SC 2022): the distribution of function durations on day 1 of the
// Azure Functions trace. Ranges that the table leaves out have less than 1 %
// each; its rows add up to 95.6 %, so they are drawn in proportion. The last
// row is open upwards in the table. Here it ends at 2350 ms, which is about
// what the largest computation that the table gives for it, fib(35), takes
// with the authors' own calibration (2344 ms).
var sfsTable = []durationRange{
	{40.6, 0, 50 * time.Millisecond, "0-50ms"},
	{9.8, 50 * time.Millisecond, 100 * time.Millisecond, "50-100ms"},
	{6.8, 100 * time.Millisecond, 200 * time.Millisecond, "100-200ms"},
	{22.7, 200 * time.Millisecond, 400 * time.Millisecond, "200-400ms"},
	{15.7, 1550 * time.Millisecond, 2350 * time.Millisecond, "1550ms"},
}

// SyntheticOptions say what Synthetic makes.
type SyntheticOptions struct {
	// Seed of everything random.
	Seed uint64
	// Length of the trace, more than 0.
	Length time.Duration
	// Rate is the mean number of calls in a second, more than 0.
	Rate float64
	// FunctionsPerRange is how many functions share the calls of each of
	// the table's five duration ranges, at least 1.
	FunctionsPerRange int
}

// Validate reports a field that is out of range.
func (o SyntheticOptions) Validate() error {
	switch {
	case o.Length <= 0:
		return fmt.Errorf("workload: Length is %v; it must be more than 0", o.Length)
	case !(o.Rate > 0) || math.IsInf(o.Rate, 1):
		return fmt.Errorf("workload: Rate is %v calls per second; it must be more than 0", o.Rate)
	case o.FunctionsPerRange < 1:
		return fmt.Errorf("workload: FunctionsPerRange is %d; it must be at least 1", o.FunctionsPerRange)
	}
	return nil
}

// Synthetic makes a trace out of published numbers alone: calls arrive as a
// Poisson process (exponential gaps), each call belongs to a duration range
// with the probability that Table I of the SFS paper gives it, and its duration
// is uniform within that range. Functions are called "0-50ms-0", "0-50ms-1" and
// so on, after their range.
func Synthetic(o SyntheticOptions) (Trace, error) {
	if err := o.Validate(); err != nil {
		return Trace{}, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	t := Trace{Name: "sfs-table-1", Length: o.Length}
	t.addNote("arrivals: Poisson, %g calls per second, seed %d", o.Rate, o.Seed)
	t.addNote("durations: Table I of the SFS paper, uniform within each range, the open last range up to %v", sfsTable[len(sfsTable)-1].to)
	// Times are added up in seconds, so that a gap beyond the range of
	// time.Duration ends the trace instead of wrapping around.
	for at := rng.ExpFloat64() / o.Rate; at < o.Length.Seconds(); at += rng.ExpFloat64() / o.Rate {
		r := drawRange(rng.Float64())
		t.Arrivals = append(t.Arrivals, Arrival{
			At:       time.Duration(at * float64(time.Second)),
			Function: fmt.Sprintf("%s-%d", r.name, rng.IntN(o.FunctionsPerRange)),
			Duration: r.from + time.Duration(rng.Float64()*float64(r.to-r.from)),
		})
	}
	sortArrivals(t.Arrivals)
	return t, nil
}

// drawRange is the row of the table at u, 0 to 1, of the cumulated shares.
func drawRange(u float64) durationRange {
	var sum float64
	for _, r := range sfsTable {
		sum += r.percent
	}
	u *= sum
	for _, r := range sfsTable {
		if u < r.percent {
			return r
		}
		u -= r.percent
	}
	return sfsTable[len(sfsTable)-1]
}
