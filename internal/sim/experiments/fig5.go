package experiments

import (
	"fmt"
	"math"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var fig5 = Experiment{
	Name:    "fig5",
	Summary: "paper Fig. 5, resource-intensive calls: how they spread over 8 workers, and what contention costs",
	Full:    Size{Seeds: 5, Scale: 1},
	Quick:   Size{Seeds: 2, Scale: .2},
	run:     runFig5,
}

const fig5Length = 10 * time.Minute

// fig5Kinds are the paper's three functions.
var fig5Kinds = []struct {
	name   string
	alone  time.Duration // work of a call that runs alone
	rate   float64       // calls in a second
	demand cluster.Demand
}{
	{"CPU", 1200 * time.Millisecond, 60, cluster.Demand{CPU: 1000.0 / 1200}},
	{"I/O", 3300 * time.Millisecond, 6, cluster.Demand{IO: 512 / 3.3}},
	{"network", 1500 * time.Millisecond, 60, cluster.Demand{Network: 2 * 3 * 15 / 1.5}},
}

// fig5Capacity is what the calls on a worker share: cores, and MB in a second.
var fig5Capacity = cluster.Demand{CPU: 8, IO: 600, Network: 1250}

func fig5Config(o Options, seed uint64) cluster.Config {
	nodes := paperNodes(paperWorkers)
	nodes.Capacity = fig5Capacity
	config := cluster.Config{
		Seed: seed, Length: o.length(fig5Length), Nodes: []cluster.Nodes{nodes},
		Overheads: cluster.Overheads{Admit: paperAdmit, Claim: paperClaim, Pull: paperHold},
	}
	for i, kind := range fig5Kinds {
		config.Functions = append(config.Functions, cluster.Function{
			Requests: slotRequest(), Work: cluster.Fixed(kind.alone), Start: paperStart(), Demand: kind.demand,
		})
		config.Loads = append(config.Loads, cluster.Poisson{First: i, Rate: kind.rate})
	}
	return config
}

func slotRequest() placement.Amount {
	return placement.Amount{MilliCPU: 1, Memory: slotMemory, Pods: 1}
}

// fig5Resources are what a worker's calls share.
var fig5Resources = []struct {
	name string
	of   func(cluster.Demand) float64
}{
	{"cores", func(d cluster.Demand) float64 { return d.CPU }},
	{"disk", func(d cluster.Demand) float64 { return d.IO }},
	{"network", func(d cluster.Demand) float64 { return d.Network }},
}

// utilisation is which part of a resource the workers used, the busiest first, in
// percent.
func utilisation(r cluster.Result, of func(cluster.Demand) float64) []float64 {
	used := make([]float64, len(r.Nodes))
	for i, n := range r.Nodes {
		used[i] = 100 * of(n.Used) / r.Length.Seconds() / of(fig5Capacity)
	}
	sortDown(used)
	return used
}

// spread is the coefficient of variation of what the workers used of a resource.
func spread(of func(cluster.Demand) float64) func(cluster.Result) float64 {
	return func(r cluster.Result) float64 {
		s := statsOf(utilisation(r, of), func(u float64) float64 { return u })
		return s.deviation / s.mean
	}
}

// fullest is what the busiest worker used of a resource, in percent.
func fullest(of func(cluster.Demand) float64) func(cluster.Result) float64 {
	return func(r cluster.Result) float64 { return utilisation(r, of)[0] }
}

func coldRatio(r cluster.FunctionResult) float64 {
	return 100 * float64(r.Created) / math.Max(1, float64(r.Calls))
}

func runFig5(o Options) (report.Report, error) {
	s := sweepOver(o, contenders(o), []int{paperWorkers}, func(_ int, seed uint64) cluster.Config { return fig5Config(o, seed) })
	figures := []figure{{"calls/s", true, cluster.Result.Throughput}, {"cold starts", true, createdOf}}
	for _, resource := range fig5Resources {
		figures = append(figures,
			figure{resource.name + ": busiest worker %", false, fullest(resource.of)}, figure{"variation", false, spread(resource.of)})
	}
	return report.Report{
		Title:      "60 CPU-, 6 I/O- and 60 network-intensive calls a second on 8 workers",
		Parameters: fig5Parameters(),
		Tables: []report.Table{
			s.table("fig5", "means over the seeds, and standard deviations (sd)", "workers", figures), kindsTable(s),
		},
		Charts: append(fig5Loads(s),
			kindsChart(s, "fig5d-execution", "Mean execution time of each kind of call", "seconds", executionOf),
			kindsChart(s, "fig5e-cold-ratio", "Cold starts per 100 calls", "cold starts per 100 calls", coldRatio)),
		Findings: fig5Findings(s),
		Notes: []string{
			"Contention: calls on a worker share its cores, its disk and its network card. Where the sum of demands exceeds a capacity, every call that demands that resource runs slower by the same factor (processor sharing); a call is as slow as its scarcest resource.",
			"The paper's utilisations are of real machines, and it does not say what disks and network cards they have; that they can carry the load together, but no single one can, is what it says and what is modelled.",
			"The paper sees one or two workers overused with hashsch. The model does not: there the calls that run at a time are more than a function's home takes, and step on to all other workers, so that hashsch uses them about as evenly, at the price of a start for every other call.",
		},
	}, nil
}

func executionOf(r cluster.FunctionResult) float64 { return r.Execution.Mean().Seconds() }

// ofKind is a figure of a kind of call over the seeds.
func ofKind(results []cluster.Result, kind int, of func(cluster.FunctionResult) float64) stats {
	return statsOf(results, func(r cluster.Result) float64 { return of(r.Functions[kind]) })
}

func kindsTable(s sweep) report.Table {
	t := report.Table{Name: "kinds", Caption: "each kind of call", Columns: []string{
		"scheduler", "kind", "alone s", "execution s", "sd", "cold starts per 100 calls", "sd", "wait p99 s", "unanswered",
	}}
	for i, contender := range s.contenders {
		for k, kind := range fig5Kinds {
			took, cold := ofKind(s.result(i, 0), k, executionOf), ofKind(s.result(i, 0), k, coldRatio)
			wait := ofKind(s.result(i, 0), k, func(r cluster.FunctionResult) float64 { return r.Wait.Quantile(.99).Seconds() })
			open := ofKind(s.result(i, 0), k, func(r cluster.FunctionResult) float64 { return float64(r.Calls - r.Answered) })
			t.Add(contender.name, kind.name, report.Num(kind.alone.Seconds()), report.Num(took.mean), report.Num(took.deviation),
				report.Num(cold.mean), report.Num(cold.deviation), report.Num(wait.mean), report.Num(open.mean))
		}
	}
	return t
}

func kindsChart(s sweep, name, title, unit string, of func(cluster.FunctionResult) float64) report.Chart {
	c := report.Chart{
		Name: name, Title: title, Kind: report.Bars, X: report.Axis{Label: "kind", Names: kindNames()}, Y: report.Axis{Label: unit, FromZero: true},
	}
	for i, contender := range s.contenders {
		line := report.Series{Name: contender.name}
		for k := range fig5Kinds {
			line.Points = append(line.Points, report.Point{X: float64(k), Y: ofKind(s.result(i, 0), k, of).mean})
		}
		c.Series = append(c.Series, line)
	}
	return c
}

func kindNames() []string {
	var names []string
	for _, kind := range fig5Kinds {
		names = append(names, kind.name)
	}
	return names
}

// fig5Loads draw how much of each resource each worker used.
func fig5Loads(s sweep) []report.Chart {
	var charts []report.Chart
	for i, resource := range fig5Resources {
		c := report.Chart{
			Name: fmt.Sprintf("fig5%c-%s", 'a'+i, resource.name), Title: "Use of the workers' " + resource.name + ", the busiest worker first",
			Kind: report.Bars, X: report.Axis{Label: "worker, by rank", Names: []string{"1", "2", "3", "4", "5", "6", "7", "8"}},
			Y: report.Axis{Label: "% of its " + resource.name, FromZero: true},
		}
		for j, contender := range s.contenders {
			line := report.Series{Name: contender.name}
			for rank := range paperWorkers {
				used := statsOf(s.result(j, 0), func(r cluster.Result) float64 { return utilisation(r, resource.of)[rank] })
				line.Points = append(line.Points, report.Point{X: float64(rank), Y: used.mean})
			}
			c.Series = append(c.Series, line)
		}
		charts = append(charts, c)
	}
	return charts
}

func fig5Findings(s sweep) []report.Finding {
	var findings []report.Finding
	of := map[string]int{}
	for i, contender := range s.contenders {
		of[contender.name] = i
		for _, resource := range fig5Resources {
			findings = append(findings, report.Found(contender.name+"_"+resource.name+"_variation", statsOf(s.result(i, 0), spread(resource.of)).mean))
		}
	}
	paper := []string{"1.2", "7.8", "2.7"}
	for k, kind := range []string{"cpu", "io", "network"} {
		ratio := ofKind(s.result(of[baseline], 0), k, executionOf).mean / ofKind(s.result(of["Horizon"], 0), k, executionOf).mean
		findings = append(findings, report.Found("hashsch_"+kind+"_execution_to_horizon", ratio).Compare("paper, to FPCSch: %s", paper[k]))
	}
	created := func(name string) float64 { return statsOf(s.result(of[name], 0), createdOf).mean }
	return append(findings,
		report.Found("horizon_cold_starts_to_hashsch", created("Horizon")/created(baseline)).Most(1).Compare("paper: considerably fewer"))
}

func fig5Parameters() []report.Parameter {
	return []report.Parameter{
		{Name: "workers", Value: "8 of 40 instances and 8 cores", Source: "paper V-B"},
		{Name: "CPU-intensive", Value: "60 calls/s, 1.2 s alone, 0.83 cores", Source: "paper V-E: 1,000 ms of computation in 1.2 s"},
		{Name: "I/O-intensive", Value: "6 calls/s, 3.3 s alone, 155 MB/s", Source: "paper V-E: 1,000 times 512 KB in 3.3 s"},
		{Name: "network-intensive", Value: "60 calls/s, 1.5 s alone, 60 MB/s", Source: "paper V-E: 15 times 3 MB there and back in 1.5 s"},
		{Name: "disk of a worker", Value: "600 MB/s", Source: "assumed"},
		{Name: "network of a worker", Value: "1,250 MB/s", Source: "assumed: 10 Gbit/s; less could not carry the load"},
		{Name: "calls", Value: "open loop, Poisson, 10 minutes", Source: "rates: paper V-E; Poisson: assumed"},
		{Name: "everything else", Value: "as in fig3", Source: "fig3"},
	}
}
