package experiments

import (
	"math"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/sim/cluster"
	"github.com/windlass-dev/windlass/pkg/sim/report"
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

func slotRequest() nodepick.Amount {
	return nodepick.Amount{MilliCPU: 1, Memory: slotMemory, Pods: 1}
}

// spread is the coefficient of variation of the workers' busy times.
func spread(r cluster.Result) float64 {
	of := statsOf(r.Nodes, func(n cluster.NodeResult) float64 { return n.Busy.Seconds() })
	return of.deviation / of.mean
}

// fullest is the busy time of the busiest worker beside the mean.
func fullest(r cluster.Result) float64 {
	most := 0.0
	for _, n := range r.Nodes {
		most = max(most, n.Busy.Seconds())
	}
	return most / statsOf(r.Nodes, func(n cluster.NodeResult) float64 { return n.Busy.Seconds() }).mean
}

func coldRatio(r cluster.FunctionResult) float64 {
	return 100 * float64(r.Created) / math.Max(1, float64(r.Calls))
}

func runFig5(o Options) (report.Report, error) {
	s := sweepOver(o, contenders(), []int{paperWorkers}, func(_ int, seed uint64) cluster.Config { return fig5Config(o, seed) })
	figures := []figure{
		{"calls/s", true, cluster.Result.Throughput},
		{"worker busy: variation", true, spread}, {"busiest to mean", false, fullest}, {"cold starts", true, createdOf},
	}
	kinds := report.Table{Name: "kinds", Caption: "each kind of call", Columns: []string{
		"scheduler", "kind", "alone s", "execution s", "sd", "cold starts per 100 calls", "sd", "wait p99 s", "unanswered",
	}}
	executions := report.Chart{
		Name: "fig5d-execution", Title: "Mean execution time of each kind of call", Kind: report.Bars,
		X: report.Axis{Label: "kind", Names: kindNames()}, Y: report.Axis{Label: "seconds", FromZero: true},
	}
	cold := report.Chart{
		Name: "fig5e-cold-ratio", Title: "Cold starts per 100 calls", Kind: report.Bars,
		X: report.Axis{Label: "kind", Names: kindNames()}, Y: report.Axis{Label: "cold starts per 100 calls", FromZero: true},
	}
	load := report.Chart{
		Name: "fig5abc-workers", Title: "Busy instances on each worker, the busiest first", Kind: report.Bars,
		X: report.Axis{Label: "worker, by rank", Names: []string{"1", "2", "3", "4", "5", "6", "7", "8"}},
		Y: report.Axis{Label: "mean busy instances", FromZero: true},
	}
	r := report.Report{
		Title:      "60 CPU-, 6 I/O- and 60 network-intensive calls a second on 8 workers",
		Parameters: fig5Parameters(),
		Notes: []string{
			"Contention: calls on a worker share its cores, its disk and its network card. Where the sum of demands exceeds a capacity, every call that demands that resource runs slower by the same factor (processor sharing); a call is as slow as its scarcest resource.",
			"The paper's utilisations are of real machines, and it does not say what disks and network cards they have; that they can carry the load together, but no single one can, is what it says and what is modelled.",
		},
	}
	executionOf := map[string][]float64{}
	for i, contender := range s.contenders {
		results := s.at(i, 0)
		line, coldLine := report.Series{Name: contender.name}, report.Series{Name: contender.name}
		for k, kind := range fig5Kinds {
			took := statsOf(results, func(r cluster.Result) float64 { return r.Functions[k].Execution.Mean().Seconds() })
			ratio := statsOf(results, func(r cluster.Result) float64 { return coldRatio(r.Functions[k]) })
			kinds.Add(contender.name, kind.name, report.Num(kind.alone.Seconds()), report.Num(took.mean), report.Num(took.deviation),
				report.Num(ratio.mean), report.Num(ratio.deviation),
				report.Num(statsOf(results, func(r cluster.Result) float64 { return r.Functions[k].Wait.Quantile(.99).Seconds() }).mean),
				report.Num(statsOf(results, func(r cluster.Result) float64 { return float64(r.Functions[k].Calls - r.Functions[k].Answered) }).mean))
			line.Points = append(line.Points, report.Point{X: float64(k), Y: took.mean})
			coldLine.Points = append(coldLine.Points, report.Point{X: float64(k), Y: ratio.mean})
			executionOf[contender.name] = append(executionOf[contender.name], took.mean)
		}
		executions.Series = append(executions.Series, line)
		cold.Series = append(cold.Series, coldLine)
		load.Series = append(load.Series, report.Series{Name: contender.name, Points: busyByRank(results)})
	}
	r.Tables = []report.Table{s.table("fig5", "means over the seeds, and standard deviations (sd)", "workers", figures), kinds}
	r.Charts = []report.Chart{load, executions, cold}
	r.Findings = fig5Findings(s, executionOf)
	return r, nil
}

func kindNames() []string {
	var names []string
	for _, kind := range fig5Kinds {
		names = append(names, kind.name)
	}
	return names
}

// busyByRank is how many instances of the workers are busy in the mean, the busiest
// worker first.
func busyByRank(results []cluster.Result) []report.Point {
	sums := make([]float64, paperWorkers)
	for _, r := range results {
		busy := make([]float64, 0, len(r.Nodes))
		for _, n := range r.Nodes {
			busy = append(busy, n.Busy.Seconds()/r.Length.Seconds())
		}
		sortDown(busy)
		for i, b := range busy {
			sums[i] += b / float64(len(results))
		}
	}
	points := make([]report.Point, len(sums))
	for i, sum := range sums {
		points[i] = report.Point{X: float64(i), Y: sum}
	}
	return points
}

func fig5Findings(s sweep, execution map[string][]float64) []report.Finding {
	var findings []report.Finding
	of := map[string]int{}
	for i, contender := range s.contenders {
		of[contender.name] = i
		findings = append(findings, report.Found(contender.name+"_busiest_worker_to_mean", statsOf(s.at(i, 0), fullest).mean))
	}
	paper := []string{"1.2", "7.8", "2.7"}
	for k, kind := range []string{"cpu", "io", "network"} {
		ratio := execution[baseline][k] / execution["horizon"][k]
		findings = append(findings, report.Found("hashsch_"+kind+"_execution_to_horizon", ratio).Compare("paper, to FPCSch: %s", paper[k]))
	}
	created := func(name string) float64 { return statsOf(s.at(of[name], 0), createdOf).mean }
	return append(findings,
		report.Found("horizon_cold_starts_to_hashsch", created("horizon")/created(baseline)).Most(1).Compare("paper: considerably fewer"),
		report.Found("horizon_spread_to_hashsch", statsOf(s.at(of["horizon"], 0), spread).mean/statsOf(s.at(of[baseline], 0), spread).mean).Most(1))
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
