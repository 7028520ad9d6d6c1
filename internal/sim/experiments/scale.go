package experiments

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var scaleExperiment = Experiment{
	Name:    "scale",
	Summary: "up to 100,000 nodes and 1,000,000 functions: how fast the simulator is, and what memory it takes",
	Full:    Size{Seeds: 1, Scale: 1},
	Quick:   Size{Seeds: 1, Scale: .25, Sparse: true},
	run:     runScale,
}

const scaleLength = time.Minute

// scaleCell is a cluster of a size, in which calls are in proportion to its nodes.
type scaleCell struct{ nodes, functions int }

func (c scaleCell) config(o Options, seed uint64) cluster.Config {
	popular := max(1, c.functions/1000)
	rate := float64(c.nodes) / 5
	return cluster.Config{
		Seed: seed, Length: o.length(scaleLength), Decider: decider("Horizon"), Gateways: o.Gateways,
		Nodes: []cluster.Nodes{{Count: c.nodes, Allocatable: placement.Amount{MilliCPU: 16000, Memory: 64 << 30, Pods: 110}}},
		Functions: []cluster.Function{{
			Copies: c.functions, Requests: placement.Amount{MilliCPU: 100, Memory: 256 << 20, Pods: 1},
			Work: cluster.Exponential(100 * time.Millisecond), Start: cluster.LogNormal(time.Second, 3*time.Second),
		}},
		// Most calls are of few functions, as in traces.
		Loads: []cluster.Load{
			cluster.Poisson{Functions: popular, Rate: .9 * rate},
			cluster.Poisson{Functions: c.functions, Rate: .1 * rate},
		},
	}
}

func runScale(o Options) (report.Report, error) { return scaleReport(o, mustRun), nil }

// scaleReport measures the machine that it runs on, one cell after the other; only what
// was simulated is the same for the same seed.
func scaleReport(o Options, run func(cluster.Config) cluster.Result) report.Report {
	cells := []scaleCell{{100, 1000}, {1000, 10_000}, {10_000, 100_000}, {100_000, 1_000_000}}
	if o.Sparse {
		cells = cells[:3]
	}
	r := report.Report{
		Title: "clusters of 100 to 100,000 nodes, with ten functions to a node",
		Parameters: []report.Parameter{
			{Name: "calls", Value: "one for 5 nodes a second; 9 of 10 are of a thousandth of the functions", Source: "assumed"},
			{Name: "work and start", Value: "exponential, 100 ms; log-normal, median 1 s, p99 3 s", Source: "assumed"},
			{Name: "nodes", Value: "16 cores, 64 GB, 110 pods", Source: "assumed"},
			{Name: "simulated", Value: o.length(scaleLength).String(), Source: "assumed"},
		},
	}
	simulated := report.Table{Name: "simulated", Caption: "what happened, in virtual time", Columns: []string{
		"nodes", "functions", "calls", "answered", "created", "decisions", "events",
	}}
	measured := report.Table{Name: "measured", Caption: "on this machine, one processor", Columns: []string{
		"nodes", "functions", "simulated s per s", "events per s", "memory MB", "bytes per function",
	}}
	unanswered := 0
	for _, c := range cells {
		var result cluster.Result
		took, memory := o.measure(func() { result = run(c.config(o, o.Seed)) })
		unanswered += result.Total.Refused + result.Total.Expired
		simulated.Add(report.Num(c.nodes), report.Num(c.functions), report.Num(result.Total.Calls), report.Num(result.Total.Answered),
			report.Num(result.Total.Created), report.Num(result.Decisions), report.Num(result.Events))
		if took > 0 {
			pace := result.Length.Seconds() / took.Seconds()
			measured.Add(report.Num(c.nodes), report.Num(c.functions), report.Num(pace), report.Num(float64(result.Events)/took.Seconds()),
				report.Num(float64(memory)/(1<<20)), report.Num(float64(memory)/float64(c.functions)))
			r.Findings = append(r.Findings,
				report.Found(fmt.Sprintf("simulated_s_per_s_%d_nodes", c.nodes), pace),
				report.Found(fmt.Sprintf("memory_mb_%d_nodes", c.nodes), float64(memory)/(1<<20)))
		}
	}
	r.Findings = append(r.Findings, report.Found("refused", float64(unanswered)).Most(0))
	r.Tables = []report.Table{simulated, measured}
	r.Notes = []string{
		"The second table is measured with a clock, and differs from run to run and from machine to machine; the first does not. What a tick of a real scheduler costs with 10,000 idle functions is measured by make bench (pkg/scheduler).",
	}
	return r
}

func (o Options) measure(do func()) (time.Duration, uint64) {
	if o.Measure == nil {
		do()
		return 0, 0
	}
	return o.Measure(do)
}
