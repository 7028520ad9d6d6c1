package experiments

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

var burst = Experiment{
	Name:    "burst",
	Summary: "steady calls after silence: how many of the needed instances each decider creates",
	Full:    Size{Seeds: 9, Scale: 1},
	Quick:   Size{Seeds: 9, Scale: 1, Sparse: true},
	run:     runBurst,
}

const (
	// burstLength is how long calls come, and settled when what is created is to
	// be right.
	burstLength = time.Minute
	settled     = 10 * time.Second
	// leastWait is what a shorter wait counts as when waits are compared: a warm
	// call's own set-up takes longer.
	leastWait = time.Millisecond
	// waitSlack and createdGoal are the goals: the wait's p99 beside FPCSch's, and
	// what is created beside what is needed.
	waitSlack   = 1.2
	createdGoal = 1.3
)

// deciderNames are the deciders that are compared, ours first.
var deciderNames = autoscaler.Names()

func decider(name string) autoscaler.Decider {
	d, known := autoscaler.ByName(name)
	if !known {
		panic("experiments: no decider " + name)
	}
	return d
}

// burstCell is calls of one kind, and how long instances take to start.
type burstCell struct {
	work  time.Duration
	rate  float64
	start time.Duration
}

func burstCells(sparse bool) []burstCell {
	rates := []float64{10, 50, 200, 1000}
	if sparse {
		rates = []float64{10, 200}
	}
	var cells []burstCell
	for _, work := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond} {
		for _, rate := range rates {
			for _, start := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
				cells = append(cells, burstCell{work, rate, start})
			}
		}
	}
	return cells
}

// config is a simulation of the cell. Known says that the function's durations and
// start times are known from before.
func (c burstCell) config(o Options, seed uint64, d autoscaler.Decider, known bool) cluster.Config {
	fn := cluster.Function{Work: cluster.Fixed(c.work), Start: cluster.Fixed(c.start)}
	if known {
		fn.KnownWork, fn.KnownStart = c.work, c.start
	}
	// Calls do not wait for a tick to begin.
	phase := time.Duration(rand.New(rand.NewPCG(seed, 0)).Int64N(int64(100 * time.Millisecond)))
	return cluster.Config{
		Seed: seed, Decider: d, Gateways: o.Gateways, ReportEvery: o.reportEvery, Functions: []cluster.Function{fn},
		Loads: []cluster.Load{cluster.Poisson{Rate: c.rate, From: phase, Until: phase + o.length(burstLength)}},
	}
}

// burstRun is the result of a cell with one decider and one seed.
type burstRun struct {
	created, cancelled, late int
	p50, p99                 time.Duration
	wasted                   time.Duration
	// reversals are how often, once it should have settled, the decider changed
	// between creating and canceling.
	reversals int
	lost      int
}

func (c burstCell) run(o Options, seed uint64, d autoscaler.Decider, known bool) burstRun {
	var out burstRun
	config := c.config(o, seed, d, known)
	last := 0
	config.Observe = func(now time.Duration, _ int, _ autoscaler.Snapshot, d autoscaler.Decision) {
		direction := 0
		switch {
		case d.Create > 0:
			direction = 1
		case d.Cancel > 0:
			direction = -1
		}
		if direction == 0 {
			return
		}
		if now > settled {
			if last != 0 && last != direction {
				out.reversals++
			}
			out.late += d.Create
		}
		last = direction
	}
	r := mustRun(config)
	out.created, out.cancelled = r.Total.Created, r.Total.Cancelled
	out.p50, out.p99 = r.Total.Wait.Quantile(.5), r.Total.Wait.Quantile(.99)
	out.wasted = r.Total.Starting + r.Total.Idle
	out.lost = r.Total.Refused + r.Total.Expired
	return out
}

// mustRun runs a configuration that this package made.
func mustRun(config cluster.Config) cluster.Result {
	r, err := cluster.Run(config)
	if err != nil {
		panic(err)
	}
	return r
}

// counted is what a wait counts as when it is compared.
func counted(wait time.Duration) time.Duration { return max(wait, leastWait) }

// needed is the smallest fixed pool, started at the first call, whose p99 wait is at
// most waitSlack times another's. A larger pool waits no longer, so it is found by
// halving; what is created by the other is taken to be enough, or doubled until it is.
func (c burstCell) needed(o Options, seed uint64, other burstRun) int {
	target := time.Duration(waitSlack * float64(counted(other.p99)))
	enough := func(n int) bool {
		r := c.run(o, seed, cluster.FixedPool(n), true)
		return r.lost == 0 && r.p99 <= target
	}
	low, high := 0, max(1, other.created)
	for !enough(high) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// burstResult is a cell with one seed: the needed instances, and the results of all deciders.
type burstResult struct {
	needed int
	runs   map[string]burstRun
}

// compare runs all deciders with what is known from before, and finds what is needed;
// fresh runs them with nothing known, which changes nothing about what is needed.
func (c burstCell) compare(o Options, seed uint64) (known, fresh burstResult) {
	known.runs, fresh.runs = map[string]burstRun{}, map[string]burstRun{}
	for _, name := range deciderNames {
		known.runs[name] = c.run(o, seed, decider(name), true)
		fresh.runs[name] = c.run(o, seed, decider(name), false)
	}
	known.needed = c.needed(o, seed, known.runs["FPCSch"])
	fresh.needed = known.needed
	return known, fresh
}

// burstSummary is a cell with one decider over all seeds.
type burstSummary struct {
	cell                             burstCell
	decider                          string
	feasibility                      feasibility
	needed, created, cancelled, late float64
	p50, p99, toFPCSch               float64 // seconds, and a ratio
	wasted                           float64 // seconds
	reversals                        float64
}

func (s burstSummary) ratio() float64 { return s.created / s.needed }

func (s burstSummary) met() bool {
	return s.ratio() <= createdGoal && s.toFPCSch <= waitSlack && s.reversals == 0
}

func summarise(cell burstCell, name string, results []burstResult, feasible feasibility) burstSummary {
	mean := func(figure func(burstRun) float64) float64 {
		return statsOf(results, func(r burstResult) float64 { return figure(r.runs[name]) }).mean
	}
	median := func(figure func(burstResult) float64) float64 {
		values := make([]float64, len(results))
		for i, r := range results {
			values[i] = figure(r)
		}
		return middle(values)
	}
	return burstSummary{
		cell: cell, decider: name, feasibility: feasible,
		needed:    neededOf(results),
		created:   mean(func(r burstRun) float64 { return float64(r.created) }),
		cancelled: mean(func(r burstRun) float64 { return float64(r.cancelled) }),
		late:      mean(func(r burstRun) float64 { return float64(r.late) }),
		wasted:    mean(func(r burstRun) float64 { return r.wasted.Seconds() }),
		reversals: mean(func(r burstRun) float64 { return float64(r.reversals) }),
		p50:       median(func(r burstResult) float64 { return r.runs[name].p50.Seconds() }),
		p99:       median(func(r burstResult) float64 { return r.runs[name].p99.Seconds() }),
		toFPCSch: median(func(r burstResult) float64 {
			return r.runs[name].waitBeside(r.runs["FPCSch"])
		}),
	}
}

// repeats is how often a cell is run for each seed that was asked for. Where few calls
// come in a minute, chance decides whether one instance or two are needed, and whatever
// the rate it decides the mean of nine runs.
func (c burstCell) repeats() int { return min(27, max(3, int(1500/c.rate))) }

// burstGrid runs all cells; the summaries are by cell, then by decider.
func burstGrid(o Options) (known, fresh []burstSummary) {
	cells := burstCells(o.Sparse)
	results := make([][2][]burstResult, len(cells))
	var jobs [][2]int
	for i, cell := range cells {
		runs := o.Seeds * cell.repeats()
		results[i] = [2][]burstResult{make([]burstResult, runs), make([]burstResult, runs)}
		for nth := range runs {
			jobs = append(jobs, [2]int{i, nth})
		}
	}
	o.Each(len(jobs), func(job int) {
		i, nth := jobs[job][0], jobs[job][1]
		results[i][0][nth], results[i][1][nth] = cells[i].compare(o, o.Seed+uint64(nth))
	})
	feasible := make([]feasibility, len(cells))
	o.Each(len(cells), func(i int) { feasible[i] = cells[i].explore(o, results[i][0]) })
	for i, cell := range cells {
		for _, name := range deciderNames {
			known = append(known, summarise(cell, name, results[i][0], feasible[i]))
			fresh = append(fresh, summarise(cell, name, results[i][1], feasible[i]))
		}
	}
	return known, fresh
}

func burstTable(name, caption string, all []burstSummary) report.Table {
	t := report.Table{Name: name, Caption: caption, Columns: []string{
		"work ms", "calls/s", "start s", "decider", "feasible", "oracle", "needed", "created", "created/needed", "cancelled", "created after 10 s",
		"wait p50 ms", "wait p99 ms", "p99/FPCSch", "wasted instance-s", "reversals after 10 s",
	}}
	for _, s := range all {
		t.Add(report.Num(s.cell.work.Seconds()*1000), report.Num(s.cell.rate), report.Num(s.cell.start.Seconds()), s.decider,
			s.feasibility.word(), report.Num(s.feasibility.oracle), report.Num(s.needed), report.Num(s.created), report.Num(s.ratio()), report.Num(s.cancelled), report.Num(s.late),
			report.Num(s.p50*1000), report.Num(s.p99*1000), report.Num(s.toFPCSch), report.Num(s.wasted), report.Num(s.reversals))
	}
	return t
}

func runBurst(o Options) (report.Report, error) {
	known, fresh := burstGrid(o)
	r := report.Report{
		Title:      "calls come at a steady rate from one moment on; how many instances each decider creates, beside how many are needed",
		Parameters: burstParameters(o),
		Tables: []report.Table{
			burstTable("known", "durations and start times are known from before, as after any restart (means over the seeds; of waits the median seed)", known),
			burstTable("fresh", "the function's very first calls: nothing is known of it", fresh),
		},
		Charts: []report.Chart{burstScatter(known), burstWaits(known), burstCourse(o)},
		Notes: []string{
			"Needed is the smallest fixed pool, all of it started at the first call, whose p99 wait is at most 1.2 times that of FPCSch with the same calls. It knows the future, which no decider does. Whatever was ever ordered counts as created, even if it was cancelled. A p99 wait below 1 ms counts as 1 ms, when waits are compared: a warm call's own set-up takes longer than that.",
			"Whether a cell is feasible is found by an oracle: when the first call comes it orders one instance, as nobody can know that others will come; when another one comes, at least 10 ms later, it orders as many as it takes, the same number with every seed, which was found by halving. Whoever orders some of them later waits longer. A cell is feasible if that meets both goals; oracle is the least that it takes, or one more than is allowed.",
			"Nothing leaves within the minute, so what a decider creates too much stays: wasted are the instance-seconds in which an instance started or idled.",
		},
	}
	r.Findings = append(knownFindings(known), freshFindings(fresh)...)
	return r, nil
}

func burstParameters(o Options) []report.Parameter {
	return []report.Parameter{
		{Name: "calls", Value: fmt.Sprintf("open loop, Poisson, for %v; they begin at any time between two ticks", o.length(burstLength)), Source: "assumed"},
		{Name: "work and start", Value: "each fixed", Source: "assumed; 0.1 s is a warm process, 0.5 s a container (paper II-B), 3 s a pod"},
		{Name: "concurrency", Value: "1", Source: "the paper's"},
		{Name: "tick", Value: "100 ms; Horizon looks sooner at calls that come before the first instance is there", Source: "paper IV-B, and Windlass's own"},
		{Name: "runs of a cell", Value: "1,500 calls a second by its own, at most 27 and at least 3, times the seeds", Source: "assumed: with fewer, chance decides the means"},
		{Name: "nodes", Value: "without bounds", Source: "assumed: what is not there cannot be wasted"},
		{Name: "platform overhead", Value: "none", Source: "assumed: waits are waits for an instance"},
	}
}
