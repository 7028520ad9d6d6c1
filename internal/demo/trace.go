package demo

import (
	"fmt"
	"os"
	"time"

	"github.com/windlass-dev/windlass/internal/workload"
)

// A trace is made to fit the machine: its functions compute for real, and the
// machine must also carry Windlass and the clients.
const (
	// busyShare is the share of the cores that the functions may need.
	busyShare = 0.5
	// longest call, after durations were divided.
	longest = 500 * time.Millisecond
	// syntheticRate is the rate of the built-in trace in calls per second:
	// about that of the real one.
	syntheticRate = 11
)

// durationFactors are tried in turn until the trace fits.
var durationFactors = []float64{1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200}

// source says which trace it is.
func source(dir string) string {
	if dir == "" {
		return "A synthetic trace: Poisson arrivals, and the durations of Table I of the SFS paper. --trace replays a recorded one."
	}
	return "The trace of Azure Functions in " + dir + "."
}

// load reads the trace of a folder, or makes one if dir is empty.
func load(dir string, minutes int, seed uint64) (workload.Trace, error) {
	if dir == "" {
		return workload.Synthetic(workload.SyntheticOptions{
			Seed: seed, Length: time.Duration(minutes) * time.Minute, Rate: syntheticRate, FunctionsPerRange: 4,
		})
	}
	trace, err := workload.LoadAzure(os.DirFS(dir), workload.AzureOptions{Seed: seed, Minutes: minutes})
	if err != nil {
		return workload.Trace{}, fmt.Errorf("reading the trace in %s: %w", dir, err)
	}
	return trace, nil
}

// fit compresses a trace in time by timeFactor, and shortens its calls by the first factor
// with which that many cores can run it.
func fit(trace workload.Trace, timeFactor float64, cores int) (workload.Trace, error) {
	var shaped workload.Trace
	var err error
	for _, factor := range durationFactors {
		shape := workload.Shape{TimeFactor: timeFactor, DurationFactor: factor, MaxDuration: longest}
		if shaped, err = shape.Apply(trace); err != nil {
			return workload.Trace{}, err
		}
		if shaped.Load().Cores <= busyShare*float64(cores) {
			return shaped, nil
		}
	}
	return workload.Trace{}, fmt.Errorf("the trace asks for %.1f cores even with its calls shortened %v times: choose fewer minutes, or a lower --speed",
		shaped.Load().Cores, durationFactors[len(durationFactors)-1])
}
