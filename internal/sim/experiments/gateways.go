package experiments

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

var gatewaysExperiment = Experiment{
	Name:           "gateways",
	Summary:        "1 to 16 gateways to which instances lend their pulls, beside one central queue",
	CountsGateways: true,
	Full:           Size{Seeds: 3, Scale: 1},
	Quick:          Size{Seeds: 2, Scale: .25, Sparse: true},
	run:            runGateways,
}

// sameFigures is by how much a figure with gateways may differ from that of a central queue.
const sameFigures = .03

// gatewayCounts are the numbers of gateways that are compared with a central queue.
var gatewayCounts = []int{1, 3, 10}

// variant is how the calls of a probe come to instances.
type variant struct {
	gateways int
	// others says that the seeds are others, which shows what chance alone changes.
	others bool
	// reportEvery is how often gateways report; 0 is what the product has.
	reportEvery time.Duration
}

// soon is how often gateways report where the reports are not to matter.
const soon = 5 * time.Millisecond

// variants are a central queue, twice, the numbers of gateways, and what shows where the price of
// gateways comes from.
func variants() []variant {
	all := []variant{{}, {others: true}}
	for _, n := range gatewayCounts {
		all = append(all, variant{gateways: n})
	}
	return append(all, variant{gateways: gatewayCounts[0], reportEvery: soon}, variant{gateways: gatewayCounts[len(gatewayCounts)-1], reportEvery: soon})
}

func (v variant) name() string {
	switch {
	case v.others:
		return "other seeds"
	case v.reportEvery > 0:
		return fmt.Sprintf("%s, reports every %v", gatewaysName(v.gateways), v.reportEvery)
	case v.gateways == 0:
		return "central queue"
	}
	return gatewaysName(v.gateways)
}

// otherSeeds is what is added to seeds for others.
const otherSeeds = 1000

// probe is a cell of another experiment.
type probe struct {
	experiment, cell string
	figures          []string
	// shown is how many figures at the end explain others, and have no goal.
	shown int
	// repeats is how often it is run for each seed.
	repeats int
	// run returns the figures.
	run func(o Options, seed uint64) ([]float64, error)
}

// probed is a probe with the means of its figures by variant.
type probed struct {
	probe
	means [][]float64
}

// ratio is a figure of a variant, divided by that of the central queue.
func (p probed) ratio(variant, figure int) float64 {
	return (p.means[variant][figure] + tiny) / (p.means[0][figure] + tiny)
}

// runProbes runs all probes with all variants.
func runProbes(o Options, probes []probe) ([]probed, error) {
	type job struct{ probe, variant, nth int }
	var jobs []job
	for i, p := range probes {
		for v := range variants() {
			for nth := range o.Seeds * p.repeats {
				jobs = append(jobs, job{i, v, nth})
			}
		}
	}
	found, errs := make([][]float64, len(jobs)), make([]error, len(jobs))
	o.Each(len(jobs), func(i int) {
		j, v, seed := jobs[i], variants()[jobs[i].variant], o.Seed+uint64(jobs[i].nth)
		if v.others {
			seed += otherSeeds
		}
		each := o
		each.Gateways, each.reportEvery = v.gateways, v.reportEvery
		found[i], errs[i] = probes[j.probe].run(each, seed)
	})
	all := make([]probed, len(probes))
	for i, p := range probes {
		all[i] = probed{p, make([][]float64, len(variants()))}
		for v := range variants() {
			all[i].means[v] = make([]float64, len(p.figures))
		}
	}
	for i, j := range jobs {
		if errs[i] != nil {
			return nil, errs[i]
		}
		for f, value := range found[i] {
			all[j.probe].means[j.variant][f] += value / float64(o.Seeds*probes[j.probe].repeats)
		}
	}
	return all, nil
}

// ofResult makes the run of a probe that is one simulation.
func ofResult(config func(o Options, seed uint64) cluster.Config, figures ...func(cluster.Result) float64) func(Options, uint64) ([]float64, error) {
	return func(o Options, seed uint64) ([]float64, error) {
		c := config(o, seed)
		c.Decider, c.Gateways, c.ReportEvery = decider("Horizon"), o.Gateways, o.reportEvery
		r := mustRun(c)
		values := make([]float64, len(figures))
		for i, of := range figures {
			values[i] = of(r)
		}
		return values, nil
	}
}

// quick are options at the quick size of an experiment, and at the scale of this one.
func (o Options) quick(e Experiment) Options {
	o.Scale *= e.Quick.Scale
	o.Sparse = e.Quick.Sparse
	return o
}

// paperProbes are cells of the paper's figures.
func paperProbes() []probe {
	var all []probe
	for _, n := range []int{1, 8, 64} {
		all = append(all, probe{
			experiment: "fig3", cell: fmt.Sprintf("%d functions", n), repeats: 1, figures: []string{"throughput", "cold starts", "set-up"},
			run: ofResult(func(o Options, seed uint64) cluster.Config {
				return paperConfig(seed, n, cluster.Clients{Count: fig3Clients, Calls: o.quick(fig3).scaled(fig3Calls)})
			}, cluster.Result.Throughput, createdOf, setupOf),
		})
	}
	for _, n := range []int{1, 30, 110, 300, 1000} {
		all = append(all, probe{
			experiment: "fig4", cell: fmt.Sprintf("%d clients", n), repeats: 1, figures: []string{"throughput", "set-up"},
			run: ofResult(func(o Options, seed uint64) cluster.Config {
				config := paperConfig(seed, fig4Functions, cluster.Clients{Count: n})
				config.Length = o.quick(fig4).length(fig4Length)
				return config
			}, cluster.Result.Throughput, setupOf),
		})
	}
	stage := func(nth int) func(cluster.Result) float64 {
		return func(r cluster.Result) float64 { return stageThroughput(r, nth) }
	}
	return append(all, probe{
		experiment: "fig5", cell: "8 workers", repeats: 1, figures: []string{"throughput", "cold starts", "execution", "wait p99"},
		run: ofResult(func(o Options, seed uint64) cluster.Config { return fig5Config(o.quick(fig5), seed) },
			cluster.Result.Throughput, createdOf, func(r cluster.Result) float64 { return milliseconds(r.Total.Execution.Mean()) }, countedP99Of),
	}, probe{
		experiment: "fig6", cell: "1,000 clients", repeats: 1, shown: 2,
		figures: []string{"throughput of 2 workers", "throughput of 8 workers", "evicted", "idle instance-time"},
		run: ofResult(func(o Options, seed uint64) cluster.Config {
			return fig6Config(o.quick(fig6), fig6Clients("Horizon"), seed)
		}, stage(0), stage(fig6Stages-1), evictedOf, func(r cluster.Result) float64 { return r.Total.Idle.Seconds() }),
	})
}

// burstProbes are cells of bursts.
func burstProbes() []probe {
	var all []probe
	for _, cell := range burstCells(burst.Quick.Sparse) {
		all = append(all, probe{
			experiment: "burst", cell: fmt.Sprintf("%v, %g calls/s, start %v", cell.work, cell.rate, cell.start), repeats: cell.repeats(),
			figures: []string{"created", "wait p99"},
			run: ofResult(func(o Options, seed uint64) cluster.Config {
				return cell.config(o.quick(burst), seed, nil, true)
			}, createdOf, countedP99Of),
		})
	}
	return all
}

// azureProbes are the recorded traces that the quick size replays; none without data.
func azureProbes(o Options) []probe {
	found, err := samples(o.Data, azure.Quick.Sparse)
	if err != nil {
		return nil
	}
	var all []probe
	for _, s := range found {
		p := probe{experiment: "azure", cell: s.name, repeats: 1, run: func(o Options, seed uint64) ([]float64, error) {
			o = o.quick(azure)
			trace, err := loadSample(s, o, seed)
			if err != nil {
				return nil, err
			}
			r := runTrace(o, trace, combinations()[0], seed)
			values := make([]float64, len(axes))
			for i, a := range axes {
				values[i] = a.of(r)
				if a.name == "wait p99 ms" {
					values[i] = max(values[i], milliseconds(leastWait))
				}
			}
			return values, nil
		}}
		for _, a := range axes {
			p.figures = append(p.figures, a.name)
		}
		all = append(all, p)
	}
	return all
}

// countedP99Of is the p99 wait in milliseconds, as waits are compared.
func countedP99Of(r cluster.Result) float64 { return milliseconds(counted(r.Total.Wait.Quantile(.99))) }

func runGateways(o Options) (report.Report, error) {
	found, err := runProbes(o, append(append(paperProbes(), burstProbes()...), azureProbes(o)...))
	if err != nil {
		return report.Report{}, err
	}
	busy := runBottleneck(o)
	r := report.Report{
		Title:      "gateways that hand calls over by lent pulls, beside one central queue; and gateways whose processors are the bottleneck",
		Parameters: append(gatewayParameters(gatewayCounts...), gatewaysParameters(o)...),
		Tables:     []report.Table{ratiosTable(found), busy.table()},
		Charts:     []report.Chart{busy.chart()},
		Findings:   append(ratioFindings(found), busy.findings()...),
		Notes:      gatewaysNotes,
	}
	return r, nil
}

func ratiosTable(found []probed) report.Table {
	t := report.Table{Name: "ratios", Caption: "figures of Horizon with gateways, divided by those of a central queue with the same seeds; other seeds: what chance alone changes",
		Columns: []string{"experiment", "cell", "figure"}}
	for _, v := range variants() {
		t.Columns = append(t.Columns, v.name())
	}
	for _, p := range found {
		for f, name := range p.figures {
			row := []report.Cell{p.experiment, report.Cell(p.cell), report.Cell(name), report.Num(p.means[0][f])}
			for v := range variants()[1:] {
				row = append(row, report.Num(p.ratio(v+1, f)))
			}
			t.Add(row...)
		}
	}
	return t
}

func gatewaysName(n int) string {
	if n == 1 {
		return "1 gateway"
	}
	return fmt.Sprintf("%d gateways", n)
}

// ratioFindings are the geometric means of each figure's ratios over the cells.
func ratioFindings(found []probed) []report.Finding {
	type subject struct{ experiment, figure string }
	var order []subject
	logs := map[subject][][]float64{}
	for _, p := range found {
		for f, figure := range p.figures[:len(p.figures)-p.shown] {
			s := subject{p.experiment, figure}
			if logs[s] == nil {
				order, logs[s] = append(order, s), make([][]float64, len(variants()))
			}
			for v := range variants() {
				logs[s][v] = append(logs[s][v], math.Log(p.ratio(v, f)))
			}
		}
	}
	mean := func(s subject, v int) float64 {
		return math.Exp(statsOf(logs[s][v], func(l float64) float64 { return l }).mean)
	}
	var findings []report.Finding
	for _, s := range order {
		for v, of := range variants() {
			if of.gateways == 0 || of.reportEvery > 0 {
				continue
			}
			cells := ""
			if n := len(logs[s][v]); n > 1 {
				cells = fmt.Sprintf("%d cells: %.3g to %.3g; ", n, math.Exp(slices.Min(logs[s][v])), math.Exp(slices.Max(logs[s][v])))
			}
			findings = append(findings, report.Found(s.experiment+"_"+slug(s.figure)+"_"+slug(gatewaysName(of.gateways)), mean(s, v)).
				Least(1-sameFigures).Most(1+sameFigures).Compare("%scentral queue with other seeds: %.3g", cells, mean(s, 1)))
		}
	}
	return findings
}

// The bottleneck: gateways whose processors are busy with each call for gatewayWork.
const (
	gatewayWork       = 100 * time.Microsecond
	bottleneckLength  = 4 * time.Second
	bottleneckFirst   = time.Second
	bottleneckClients = 2000
	bottleneckKinds   = 16
	bottleneckPool    = 40
)

var bottleneckCounts = []int{1, 2, 4, 8, 16}

// bottleneck are results by number of gateways and seed.
type bottleneck [][]cluster.Result

func runBottleneck(o Options) bottleneck {
	return grid(o, len(bottleneckCounts), func(i int, seed uint64) cluster.Result {
		return mustRun(bottleneckConfig(o, bottleneckCounts[i], seed))
	})
}

func bottleneckConfig(o Options, gateways int, seed uint64) cluster.Config {
	f := cluster.Function{Copies: bottleneckKinds, Work: cluster.Exponential(paperWork)}
	f.Limits.Min = bottleneckPool
	return cluster.Config{
		Seed: seed, Length: bottleneckFirst + o.length(bottleneckLength), Decider: cluster.FixedPool(bottleneckPool),
		Functions: []cluster.Function{f}, Gateways: gateways, GatewayWork: gatewayWork,
		Clients: []cluster.Clients{{Count: bottleneckClients, Functions: bottleneckKinds, From: bottleneckFirst}},
	}
}

// bottleneckRate is how many calls were answered in a second since the first.
func bottleneckRate(r cluster.Result) float64 {
	return float64(r.Total.Answered) / (r.LastAnswer - bottleneckFirst).Seconds()
}

func meanWaitOf(r cluster.Result) float64 { return milliseconds(r.Total.Wait.Mean()) }

func byLoanOf(r cluster.Result) float64 {
	return 100 * float64(r.Gateways.ByLoan) / math.Max(1, float64(r.Total.Execution.Count()))
}

func recalledOf(r cluster.Result) float64 {
	return 100 * float64(r.Gateways.Recalled) / math.Max(1, float64(r.Total.Execution.Count()))
}

// ratio is a figure at a number of gateways beside that of one.
func (b bottleneck) ratio(i int, of func(cluster.Result) float64) float64 {
	return statsOf(b[i], of).mean / statsOf(b[0], of).mean
}

func (b bottleneck) table() report.Table {
	t := report.Table{Name: "bottleneck", Caption: "gateways whose processors are the bottleneck; waits include those for the processor", Columns: []string{
		"gateways", "calls/s", "sd", "beside one", "wait mean ms", "beside one", "wait p99 ms", "beside one", "by loan %", "recalled places per 100 calls",
	}}
	for i, n := range bottleneckCounts {
		rate := statsOf(b[i], bottleneckRate)
		t.Add(report.Num(n), report.Num(rate.mean), report.Num(rate.deviation), report.Num(b.ratio(i, bottleneckRate)),
			report.Num(statsOf(b[i], meanWaitOf).mean), report.Num(b.ratio(i, meanWaitOf)),
			report.Num(statsOf(b[i], p99WaitOf).mean), report.Num(b.ratio(i, p99WaitOf)),
			report.Num(statsOf(b[i], byLoanOf).mean), report.Num(statsOf(b[i], recalledOf).mean))
	}
	return t
}

func (b bottleneck) chart() report.Chart {
	measured, linear := report.Series{Name: "gateways"}, report.Series{Name: "in proportion", Guide: true}
	for i, n := range bottleneckCounts {
		rate := statsOf(b[i], bottleneckRate)
		measured.Points = append(measured.Points, report.Point{X: float64(n), Y: rate.mean, Err: rate.deviation})
		linear.Points = append(linear.Points, report.Point{X: float64(n), Y: float64(n) * statsOf(b[0], bottleneckRate).mean})
	}
	return report.Chart{
		Name: "gateways-throughput", Title: "Throughput by number of gateways whose processors are busy", Kind: report.Lines,
		X: report.Axis{Label: "gateways", FromZero: true}, Y: report.Axis{Label: "calls per second", FromZero: true},
		Series: []report.Series{measured, linear},
	}
}

// twoBesideOne is how much more calls a second two gateways must answer than one.
const twoBesideOne = 1.9

func (b bottleneck) findings() []report.Finding {
	var findings []report.Finding
	for i, n := range bottleneckCounts[1:] {
		rate := report.Found(fmt.Sprintf("throughput_%d_gateways_to_1", n), b.ratio(i+1, bottleneckRate))
		if n == 2 {
			rate = rate.Least(twoBesideOne)
		}
		findings = append(findings, rate, report.Found(fmt.Sprintf("mean_wait_%d_gateways_to_1", n), b.ratio(i+1, meanWaitOf)))
	}
	return findings
}

// gatewayParameters are assumptions about gateways.
func gatewayParameters(counts ...int) []report.Parameter {
	return []report.Parameter{
		{Name: "gateways", Value: fmt.Sprint(counts) + "; each call comes to one of them at random; hashsch has none", Source: "assumed: a load balancer that knows nothing"},
		{Name: "rules of lent pulls", Value: "the product's code: gateway/core.Pool, scheduler/core with pkg/queue, podagent/core", Source: "docs/design/0039-lent-pulls.md"},
		{Name: "modelled, not the product's code", Value: "a claim is granted while its call waits; messages are never lost; no audits, no limits of calls; instances that have drained are gone at once", Source: "assumed: nothing fails"},
		{Name: "messages", Value: "under way for no time; reports every 100 ms, at times of each gateway's own", Source: "reports: pkg/gateway; no time: assumed, as in the central queue"},
	}
}

func gatewaysParameters(o Options) []report.Parameter {
	return []report.Parameter{
		{Name: "cells", Value: fmt.Sprintf("those of the quick sizes of fig3 to fig6 and burst, and of azure with data, Horizon alone, at scale %g of theirs", o.Scale), Source: "fig3 to fig6, burst, azure"},
		{Name: "waits", Value: "below 1 ms count as 1 ms", Source: "burst"},
		{Name: "CPU of a gateway for a call", Value: gatewayWork.String() + ", one processor each, in order of arrival, before the call is handed over; in the table bottleneck only", Source: "assumed"},
		{Name: "bottleneck: calls", Value: fmt.Sprintf("%d clients without think time, for %v; %d functions, exponential work with a mean of %v", bottleneckClients, o.length(bottleneckLength), bottleneckKinds, paperWork), Source: "assumed"},
		{Name: "bottleneck: instances", Value: fmt.Sprintf("%d of each function, there before the first call", bottleneckPool), Source: "assumed: enough for all"},
	}
}

var gatewaysNotes = []string{
	"Reports are up to 100 ms late. The scheduler hears of calls that wait for busy loans, of executions and of idle loans when a gateway reports, so a decider sees a rush later than in a central queue: that is the price with one gateway, whose order of arrival is that of all calls. The column with reports every 5 ms shows what is left without that delay.",
	"With several gateways, a call may wait at one of them while a place is idle that was lent to another. It sends a ticket: at once if its gateway has no loan, as the only probe or after 100 ms otherwise; the scheduler recalls a place, and the instance gives it back once it is idle for 2 ms. Where calls hardly wait in a central queue, as in bursts of 200 calls a second with starts of 100 ms, this multiplies a p99 wait of a few milliseconds.",
	"Idle time is spread over more instances, which the evictions and the idle instance-time of fig6 show. Each gateway uses the lowest CID first, but only among the instances that lend to it, so fewer instances are idle for long. That azure has fewer cold calls and more instance-hours fits it. In fig6, 1,000 clients of four functions fill two workers, and a function with too few instances needs room of one with too many: fewer of those are idle for long enough to be evicted.",
	"About one in a hundred calls of azure is cold, so that its p99 wait is that of a start or nothing: a small change of cold calls makes a large ratio.",
	"The quick sizes are short, so starts and the first decisions have much weight in them. Of one function, with few instances, a single one more or less is some percent.",
	"In the table bottleneck the processors of gateways take all the time and instances are enough, so that throughput grows with their number until instances become scarce for so many gateways, which the recalls show.",
}
