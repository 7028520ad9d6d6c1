package experiments

import (
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

var fig6 = Experiment{
	Name:    "fig6",
	Summary: "paper Fig. 6, scale-out: throughput while workers grow from 2 to 8",
	Full:    Size{Seeds: 3, Scale: 1},
	Quick:   Size{Seeds: 5, Scale: .1},
	run:     runFig6,
}

const (
	fig6Stage  = 5 * time.Minute
	fig6Stages = 4
	fig6Step   = 2 // workers that are added with each stage
)

// fig6Clients are as many as the paper finds affordable for a scheduler.
func fig6Clients(scheduler string) int {
	if scheduler == baseline {
		return 110
	}
	return 1000
}

func fig6Config(o Options, clients int, seed uint64) cluster.Config {
	config := paperConfig(seed, fig4Functions, cluster.Clients{Count: clients})
	stage := o.length(fig6Stage)
	config.Nodes = nil
	for i := range fig6Stages {
		nodes := paperNodes(fig6Step)
		nodes.From = time.Duration(i) * stage
		config.Nodes = append(config.Nodes, nodes)
	}
	config.Length, config.Resolution = stage*fig6Stages, stage/50
	return config
}

// stageThroughput is what was answered in a second of the last half of a stage, when
// what joined has been put to use.
func stageThroughput(r cluster.Result, stage int) float64 {
	length := r.Length / fig6Stages
	from, to := time.Duration(stage)*length+length/2, time.Duration(stage+1)*length
	var first, last *cluster.Point
	for i := range r.Series {
		p := &r.Series[i]
		if p.At <= from {
			first = p
		}
		if p.At <= to {
			last = p
		}
	}
	if first == nil || last.At <= first.At {
		return 0
	}
	return float64(last.Answered-first.Answered) / (last.At - first.At).Seconds()
}

func runFig6(o Options) (report.Report, error) {
	all := contenders(o)
	results := grid(o, len(all), func(i int, seed uint64) cluster.Result {
		return all[i].run(fig6Config(o, fig6Clients(all[i].name), seed))
	})
	table := report.Table{Name: "fig6", Caption: "calls a second in the second half of each stage", Columns: []string{
		"scheduler", "clients", "2 workers", "4 workers", "6 workers", "8 workers", "8:2", "cold starts", "evicted", "refused",
	}}
	course := report.Chart{
		Name: "fig6-scale-out", Title: "Throughput while workers join, two at a time", Kind: report.Steps,
		X: report.Axis{Label: "minutes", FromZero: true}, Y: report.Axis{Label: "calls per second", FromZero: true},
	}
	r := report.Report{
		Title: "2 workers become 8, two every " + o.length(fig6Stage).String() + "; 1,000 clients (hashsch: 110) call 4 functions",
		Parameters: append(paperParameters(),
			report.Parameter{Name: "clients", Value: "1,000; 110 for hashsch", Source: "paper V-F, Fig. 6: as many as each can afford"}),
		Notes: []string{
			"With two workers hashsch collapses under the 110 clients that the paper gives it, as in the paper: containers are started and evicted for nearly each call. From four workers on these clients are too few to fill them, so its ratio says little, and no goal is set for it.",
		},
	}
	for i, contender := range all {
		row := []report.Cell{contender.name, report.Num(fig6Clients(contender.name))}
		var means []float64
		for stage := range fig6Stages {
			means = append(means, statsOf(results[i], func(r cluster.Result) float64 { return stageThroughput(r, stage) }).mean)
			row = append(row, report.Num(means[stage]))
		}
		ratio := means[fig6Stages-1] / means[0]
		table.Add(append(row, report.Num(ratio), report.Num(statsOf(results[i], createdOf).mean),
			report.Num(statsOf(results[i], evictedOf).mean), report.Num(statsOf(results[i], refusedOf).mean))...)
		course.Series = append(course.Series, throughputCourse(contender.name, results[i][0]))
		found := report.Found(contender.name+"_throughput_8_to_2", ratio)
		if contender.name == baseline {
			found = found.Compare("paper: out of control with 2 workers, at a standstill from 4 on")
		} else {
			found = found.Least(3.8).Compare("paper: linear")
		}
		r.Findings = append(r.Findings, found)
	}
	r.Tables, r.Charts = []report.Table{table}, []report.Chart{course}
	return r, nil
}

// throughputCourse is what was answered in a second between two points of time.
func throughputCourse(name string, r cluster.Result) report.Series {
	s := report.Series{Name: name}
	for i := 1; i < len(r.Series); i++ {
		before, now := r.Series[i-1], r.Series[i]
		s.Points = append(s.Points, report.Point{
			X: before.At.Minutes(), Y: float64(now.Answered-before.Answered) / (now.At - before.At).Seconds(),
		})
	}
	return s
}
