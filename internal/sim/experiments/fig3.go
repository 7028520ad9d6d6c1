package experiments

import (
	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

var fig3 = Experiment{
	Name:    "fig3",
	Summary: "paper Fig. 3, multi-tenancy: throughput, cold starts and set-up time with 1 to 64 functions",
	Full:    Size{Seeds: 5, Scale: 1},
	Quick:   Size{Seeds: 2, Scale: 1, Sparse: true},
	run:     runFig3,
}

const (
	fig3Clients = 100
	fig3Calls   = 100_000
)

func runFig3(o Options) (report.Report, error) {
	counts := []int{1, 2, 4, 8, 16, 32, 64}
	if o.Sparse {
		counts = []int{1, 8, 64}
	}
	s := sweepOver(o, contenders(o), counts, func(functions int, seed uint64) cluster.Config {
		return paperConfig(seed, functions, cluster.Clients{Count: fig3Clients, Calls: o.scaled(fig3Calls)})
	})
	x := report.Axis{Label: "functions", Log: true, Base2: true}
	r := report.Report{
		Title:      "100 clients call 1 to 64 functions, 100,000 calls on 8 workers",
		Parameters: paperParameters(),
		Tables: []report.Table{s.table("fig3", "means over the seeds, and standard deviations (sd)", "functions", []figure{
			{"calls/s", true, cluster.Result.Throughput}, {"cold starts", true, createdOf}, {"set-up ms", true, setupOf},
			{"cold calls", false, coldOf}, {"wait p99 ms", false, p99WaitOf}, {"evicted", false, evictedOf},
		}), heldTable(o)},
		Charts: []report.Chart{
			{
				Name: "fig3a-throughput", Title: "Throughput by number of functions (100 clients)", Kind: report.Lines, X: x,
				Y: report.Axis{Label: "calls per second", FromZero: true}, Series: s.series(cluster.Result.Throughput),
			}, {
				Name: "fig3b-cold-starts", Title: "Cold starts by number of functions (100 clients)", Kind: report.Lines, X: x,
				Y: report.Axis{Label: "cold starts", Log: true}, Series: s.series(createdOf),
			}, {
				Name: "fig3c-setup", Title: "Mean set-up time by number of functions (100 clients)", Kind: report.Lines, X: x,
				Y: report.Axis{Label: "ms", Log: true}, Series: s.series(setupOf),
			},
		},
		Notes: []string{
			"Cold starts are instances created, as in the paper; cold calls are those that came before the instance that ran them was ready. Throughput counts from the first call to the last answer, so it includes the first starts.",
			"What the model leaves out: the control plane costs nothing beyond the fixed set-up time, and a worker's containers do not slow each other down. The paper's absolute numbers depend on both, so only ratios within a run are to be compared.",
			"The paper does not say how long a call holds its container beyond its 2 ms, nor how many containers a worker can start at a time, and much depends on it: the table held shows how much. Both were chosen so that FPCSch's cold starts grow as the paper's do; hashsch was not fitted. It collapses as in the paper where containers are held for 20 ms and more and starts get in each other's way: a call that finds its home full steps on, needs a container there, evicts another function's, and holds its slot for the start. The factor of 169 is not reached: once it has collapsed, starts are all that its workers do, and the model's are quicker.",
			"How many instances there are with one function is how many calls FPCSch finds waiting at its first tick. All 100 clients call at once here, and it creates 100; clients that begin one by one within a second leave it with about 26, and with about 165 for 64 functions: then the ratio is about 6, with fewer cold starts. The same holds for Horizon, which creates few for one function and so has the larger ratio.",
		},
	}
	r.Findings = fig3Findings(s)
	return r, nil
}

func fig3Findings(s sweep) []report.Finding {
	var findings []report.Finding
	last := len(s.values) - 1
	for i, contender := range s.contenders {
		throughput := report.Found(contender.name+"_throughput_64_to_1", s.ratio(i, cluster.Result.Throughput))
		cold := report.Found(contender.name+"_cold_starts_64_to_1", s.ratio(i, createdOf))
		setup := report.Found(contender.name+"_setup_64_to_1", s.ratio(i, setupOf))
		switch contender.name {
		case baseline:
			findings = append(findings, throughput.Compare("paper Fig. 3a: a radical degradation"),
				cold.Compare("paper: about 169"), setup.Compare("paper: about 91"))
		case "FPCSch":
			findings = append(findings, throughput.Least(.95).Compare("paper: no significant decrease"),
				cold.Most(3).Compare("paper: about 2.6"), setup.Compare("paper: %.3g", 11.50/9.83))
		default:
			// A ratio to a poor beginning is easily good.
			alone := statsOf(s.result(i, 0), cluster.Result.Throughput).mean / statsOf(s.result(i+1, 0), cluster.Result.Throughput).mean
			findings = append(findings, report.Found(contender.name+"_throughput_at_1_to_fpcsch", alone).Least(.95))
			beside := statsOf(s.result(i, last), createdOf).mean / statsOf(s.result(i+1, last), createdOf).mean
			findings = append(findings, throughput.Least(.95), setup.Most(1.15),
				cold.Compare("it creates few for one function"),
				report.Found(contender.name+"_cold_starts_at_64_to_fpcsch", beside).Most(1.05))
		}
	}
	return findings
}
