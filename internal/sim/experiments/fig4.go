package experiments

import (
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

var fig4 = Experiment{
	Name:    "fig4",
	Summary: "paper Fig. 4, concurrency: throughput with 1 to 1,000 clients of 4 functions",
	Full:    Size{Seeds: 1, Scale: 1},
	Quick:   Size{Seeds: 1, Scale: .04, Sparse: true},
	run:     runFig4,
}

const (
	fig4Functions = 4
	fig4Length    = 5 * time.Minute
)

func runFig4(o Options) (report.Report, error) {
	counts := []int{1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 200, 300, 400, 500, 1000}
	if o.Sparse {
		counts = []int{1, 30, 110, 300, 1000}
	}
	length := o.length(fig4Length)
	s := sweepOver(o, contenders(o), counts, func(clients int, seed uint64) cluster.Config {
		config := paperConfig(seed, fig4Functions, cluster.Clients{Count: clients})
		config.Length = length
		return config
	})
	r := report.Report{
		Title:      "1 to 1,000 clients call 4 functions on 8 workers for " + length.String(),
		Parameters: paperParameters(),
		Tables: []report.Table{s.table("fig4", "means over the seeds, and standard deviations (sd)", "clients", []figure{
			{"calls/s", true, cluster.Result.Throughput}, {"cold starts", true, createdOf}, {"set-up ms", false, setupOf},
			{"wait p99 ms", false, p99WaitOf}, {"evicted", false, evictedOf},
		})},
		Charts: []report.Chart{{
			Name: "fig4-concurrency", Title: "Throughput by number of clients (4 functions, 8 workers)", Kind: report.Lines,
			X: report.Axis{Label: "clients", FromZero: true}, Y: report.Axis{Label: "calls per second", FromZero: true},
			Series: s.series(cluster.Result.Throughput),
		}},
		Notes: []string{
			"320 instances that are held for 24 ms a call can answer 13,300 calls a second; 1,000 clients could make 19,000. The control plane has no limit here.",
			"With many clients that begin at once, FPCSch creates an instance for each of them at its first tick that sees them. Horizon begins with fewer and adds to them while calls still wait, which takes it some seconds; what it has in the end is less.",
		},
	}
	for i, contender := range s.contenders {
		least := 1.0
		for j := 1; j < len(counts); j++ {
			before, now := statsOf(s.result(i, j-1), cluster.Result.Throughput).mean, statsOf(s.result(i, j), cluster.Result.Throughput).mean
			least = min(least, now/before)
		}
		steady := report.Found(contender.name+"_least_step_up", least)
		if contender.name == baseline {
			r.Findings = append(r.Findings, steady.Compare("paper: fluctuates seriously from 30 to 200 clients, and degrades beyond"))
			continue
		}
		r.Findings = append(r.Findings, steady.Least(1).Compare("paper: increasing, saturated eventually"))
	}
	return r, nil
}
