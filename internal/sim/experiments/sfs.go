package experiments

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

var sfs = Experiment{
	Name:           "sfs",
	Summary:        "the SFS paper on one node of 16 cores: short and long calls by true load, from half to 1.7 times what it can compute",
	CountsGateways: true,
	Full:           Size{Seeds: 5, Scale: 1},
	Quick:          Size{Seeds: 1, Scale: 1, Sparse: true},
	run:            runSFS,
}

const (
	sfsCores = 16
	sfsCalls = 10000
	// sfsShort is the longest call that counts as short: 83 % of the paper's.
	sfsShort = 346 * time.Millisecond
	// sfsOverload is the load that the goals are about.
	sfsOverload = 1.5
	// The goals: short calls beside sharing, and long ones.
	sfsShorts, sfsLongs = 40, 1.05
)

// sfsClasses are the paper's calls: how long one takes alone, and how many of 1,000 are such.
var sfsClasses = []struct {
	n      int
	ms     int
	weight int
}{
	{20, 13, 64}, {21, 14, 61}, {22, 15, 62}, {23, 18, 61}, {24, 23, 59}, {25, 30, 63}, {26, 42, 60},
	{27, 60, 56}, {28, 90, 50}, {29, 140, 77}, {30, 220, 222}, {31, 346, 13}, {34, 1425, 77}, {35, 2344, 76},
}

// sfsLoad is a load and how it comes.
type sfsLoad struct {
	bursty bool
	load   float64
	// sleeping is which part of the calls sleep before they compute.
	sleeping float64
	// alike says that all calls are of one function.
	alike bool
	// spikes has a fifth of the calls come in five spikes, in each of them five times as fast.
	spikes bool
}

func (l sfsLoad) arrivals() string {
	if l.bursty {
		return "bursty"
	}
	return "Poisson"
}

// calls are the calls of the load, as many as the paper's.
func (l sfsLoad) calls(o Options, seed uint64) []node.Call {
	r := rand.New(rand.NewPCG(seed, 17))
	total, mean := 0, 0.0
	for _, c := range sfsClasses {
		total += c.weight
		mean += float64(c.weight*c.ms) / 1000
	}
	mean /= float64(total)
	gap := mean / (l.load * sfsCores)
	calls := make([]node.Call, o.scaled(sfsCalls))
	at := 0.0
	for i := range calls {
		at += gap * l.relativeGap(r) * l.pace(i, len(calls))
		class := sfsClasses[0]
		for left := r.IntN(total); left >= 0; {
			for _, c := range sfsClasses {
				if left -= c.weight; left < 0 {
					class = c
					break
				}
			}
		}
		name := fmt.Sprint("fib", class.n)
		if l.alike {
			name = "fib"
		}
		calls[i] = node.Computing(time.Duration(at*1e9), name, time.Duration(class.ms)*time.Millisecond)
		if r.Float64() < l.sleeping {
			sleep := node.Phase{Kind: node.Sleep, Length: time.Duration(10+r.IntN(91)) * time.Millisecond}
			calls[i].Phases = append([]node.Phase{sleep}, calls[i].Phases...)
		}
	}
	return calls
}

// pace is the factor on the gap before a call.
func (l sfsLoad) pace(i, n int) float64 {
	switch {
	case !l.spikes:
		return 1
	case i*5%n < n/5:
		return .2
	}
	return 1.2
}

// relativeGap is a gap between two calls, of mean 1. Bursty ones have the zeros of the
// authors' workload, 27 in a hundred, and its coefficient of variation, 2.33: the others are of
// one of two exponential distributions with balanced means.
func (l sfsLoad) relativeGap(r *rand.Rand) float64 {
	if !l.bursty {
		return r.ExpFloat64()
	}
	const zeros, slow = .27, .1213
	if r.Float64() < zeros {
		return 0
	}
	if r.Float64() < slow {
		return r.ExpFloat64() / (1 - zeros) / (2 * slow)
	}
	return r.ExpFloat64() / (1 - zeros) / (2 * (1 - slow))
}

// Names of policies that findings are about.
const (
	sfsShares  = "CFS (sharing)"
	sfsFilter  = "SFS"
	sfsKnown   = "Windlass, known"
	sfsLearnt  = "Windlass, learnt"
	sfsAlike   = "Windlass, one function"
	sfsTickets = "SFS by tickets"
	sfsOracle  = "SRTF (oracle)"
)

// ticketFilter are SFS's rules with tickets and bands, without a real-time class.
func ticketFilter() node.Tickets {
	p := callorder.DefaultParams(sfsCores)
	p.Order, p.Preempt, p.Bypass, p.Slice, p.Outlived, p.OutlivedAge = callorder.FIFO, false, 3, callorder.Slice{Rule: callorder.SliceSFS}, 0, 0
	return node.Tickets{Params: p}
}

func sfsPolicies(calls []node.Call) []nodePolicy {
	ours := node.Tickets{Params: callorder.DefaultParams(sfsCores)}
	known := ours
	known.Known = knownWork(calls)
	return []nodePolicy{
		{sfsShares, node.Sharing{}}, {sfsFilter, node.PublishedFilter()}, {sfsTickets, ticketFilter()},
		{sfsKnown, known}, {sfsLearnt, ours}, {sfsAlike, ours}, {sfsOracle, node.Shortest{}},
	}
}

// sfsRun is a load with all policies.
type sfsRun struct {
	calls   []node.Call
	results map[string][]node.Result
}

func (l sfsLoad) run(o Options, seed uint64) sfsRun {
	r := sfsRun{calls: l.calls(o, seed), results: map[string][]node.Result{}}
	for _, p := range sfsPolicies(r.calls) {
		calls := r.calls
		if p.name == sfsAlike {
			alike := l
			alike.alike = true
			calls = alike.calls(o, seed)
		}
		r.results[p.name] = onNode(sfsCores, calls, p.Policy)
	}
	return r
}

func isShort(c node.Call) bool { return c.CPU() <= sfsShort }
func isLong(c node.Call) bool  { return !isShort(c) }

// faster is how many times faster calls are than with sharing, as a mean over the calls.
func (r sfsRun) faster(policy string, which func(node.Call) bool) float64 {
	return meanRatio(among(r.calls, r.results[sfsShares], which), among(r.calls, r.results[policy], which))
}

func (r sfsRun) slower(policy string, which func(node.Call) bool) float64 {
	return meanRatio(among(r.calls, r.results[policy], which), among(r.calls, r.results[sfsShares], which))
}

// meanRatio is the mean of the turnaround of each call over that with another policy.
func meanRatio(over, under []node.Result) float64 {
	sum := 0.0
	for i, r := range over {
		sum += float64(r.Turnaround()) / float64(under[i].Turnaround())
	}
	return sum / float64(len(over))
}

func shareUndisturbed(r []node.Result) float64 {
	return 100 * shareBy(r, func(r node.Result) bool { return r.RunTimeEffectiveness() >= .95 })
}

// sfsLoads are the loads: those up to 1 are the paper's.
func sfsLoads(sparse bool) []sfsLoad {
	values, kinds := []float64{.5, .65, .8, .9, 1, 1.1, 1.3, sfsOverload, 1.7}, []bool{false, true}
	if sparse {
		values, kinds = []float64{.8, 1, sfsOverload}, []bool{false}
	}
	var all []sfsLoad
	for _, bursty := range kinds {
		for _, load := range values {
			all = append(all, sfsLoad{bursty: bursty, load: load})
		}
	}
	return all
}

// sfsCell are the runs of a load, one for each seed.
type sfsCell struct {
	load sfsLoad
	runs []sfsRun
}

func (c sfsCell) mean(of func(sfsRun) float64) float64 { return statsOf(c.runs, of).mean }

func (c sfsCell) faster(policy string) float64 {
	return c.mean(func(r sfsRun) float64 { return r.faster(policy, isShort) })
}

func (c sfsCell) slower(policy string) float64 {
	return c.mean(func(r sfsRun) float64 { return r.slower(policy, isLong) })
}

// shortTail is the 99th percentile of the slowdowns of short calls. A mean over calls of how many times faster they are hides
// those that wait: it has nearly nothing for them.
func (c sfsCell) shortTail(policy string) float64 {
	return c.mean(func(r sfsRun) float64 {
		return quantileBy(among(r.calls, r.results[policy], isShort), .99, node.Result.Slowdown)
	})
}

func runSFS(o Options) (report.Report, error) {
	loads := sfsLoads(o.Sparse)
	runs := grid(o, len(loads), func(cell int, seed uint64) sfsRun { return loads[cell].run(o, seed) })
	var cells []sfsCell
	for i, l := range loads {
		cells = append(cells, sfsCell{l, runs[i]})
	}
	tables := []report.Table{sfsTable(cells)}
	for _, v := range sfsVariants() {
		tables = append(tables, v.variantTable(o))
	}
	return report.Report{
		Title:      "10,000 calls of 13 ms to 2.3 s on 16 cores: short and long calls beside ideal sharing, by true load",
		Parameters: sfsParameters(),
		Tables:     tables,
		Charts:     sfsCharts(o, cells),
		Findings:   sfsFindings(cells),
		Notes: []string{
			"The load is the work that comes in a second, over what the cores can compute. The paper's is of vCPUs, calibrated on an idle machine: two busy hyperthreads are fewer than two cores. Its speed-up of 49.6 at 100 % is one of overload: here it needs a true load of 1.5 to 1.7, and at a true load of 0.9 it is near 1. Its shares of undisturbed calls at 65 and 80 % are those of true loads of 0.8 to 0.95, so that no single factor explains both.",
			"That long calls become 1.29 times slower is not reproduced: in the model they do not reach 1.2.",
			"That polling for sleeping calls helps is not reproduced: a slice is longer than any sleep here (0.3 s or more against 0.1 s), and other calls compute on the core of a worker that waits. Nor is the gain by the bypass: in five spikes of 400 calls it changes the mean slowdown by a few percent. How fast the paper's calls came in its spikes, it does not say.",
			"A response ends when a call first gets a part of a core, or sleeps. With ideal sharing each gets one at once; with SFS a call that has no worker, and one that skipped the queue, gets one when the workers leave something.",
			"Sharing stands for CFS and EEVDF. It is ideal: its changes between calls cost nothing.",
			"Known: each of the 14 sizes is a function whose mean is known. Learnt: the same, but nothing is known at first. One function: all sizes are calls of a single function, so its mean says nothing about a call; this is the worst case for an order by expected sizes, and what SFS assumes.",
			"SFS by tickets has SFS's rules with core tickets and a low band instead of the real-time class. It samples each 5 ms, so its slices run longer by up to that.",
			"Long calls that come to a long overload are served by age in the end: with aging, 100 s of waiting count as much as 3 s of size, so short calls then wait for some long ones. One core in eight goes to the shortest, whatever has aged.",
			"Windlass looks at most each 5 ms, too, and each look is exact. What a look or a change costs is not modelled.",
		},
	}, nil
}

func sfsTable(cells []sfsCell) report.Table {
	t := report.Table{Name: "sfs", Caption: "short calls (at most 346 ms) and long ones (means over the seeds; ratios are means over calls)", Columns: []string{
		"arrivals", "load", "policy", "short: sharing/policy", "long: policy/sharing", "short: slowdown mean", "p99", "long: slowdown mean", "RTE >= 0.95 %", "turnaround p50 s", "p99.9 s",
	}}
	for _, c := range cells {
		for _, p := range sfsPolicies(nil) {
			of := func(figure func(r sfsRun, results []node.Result) float64) report.Cell {
				return report.Num(c.mean(func(r sfsRun) float64 { return figure(r, r.results[p.name]) }))
			}
			slowdown := func(which func(node.Call) bool) func(sfsRun, []node.Result) float64 {
				return func(r sfsRun, results []node.Result) float64 {
					return meanBy(among(r.calls, results, which), node.Result.Slowdown)
				}
			}
			t.Add(c.load.arrivals(), report.Num(c.load.load), p.name, report.Num(c.faster(p.name)), report.Num(c.slower(p.name)),
				of(slowdown(isShort)),
				of(func(r sfsRun, results []node.Result) float64 {
					return quantileBy(among(r.calls, results, isShort), .99, node.Result.Slowdown)
				}),
				of(slowdown(isLong)),
				of(func(_ sfsRun, results []node.Result) float64 { return shareUndisturbed(results) }),
				of(func(_ sfsRun, results []node.Result) float64 {
					return quantileBy(results, .5, seconds(node.Result.Turnaround))
				}),
				of(func(_ sfsRun, results []node.Result) float64 {
					return quantileBy(results, .999, seconds(node.Result.Turnaround))
				}))
		}
	}
	return t
}

// sfsVariant is a table about one rule of SFS.
type sfsVariant struct {
	name, caption string
	load          sfsLoad
	policies      []nodePolicy
}

func sfsVariants() []sfsVariant {
	fixed := func(ms int) nodePolicy {
		p := node.PublishedFilter()
		p.Slice, p.Window = time.Duration(ms)*time.Millisecond, 0
		return nodePolicy{fmt.Sprintf("SFS, S = %d ms", ms), p}
	}
	polling := func(ms int) nodePolicy {
		p := node.PublishedFilter()
		p.Poll = time.Duration(ms) * time.Millisecond
		if ms == 0 {
			return nodePolicy{"SFS, no polling", p}
		}
		return nodePolicy{fmt.Sprintf("SFS, polls each %d ms", ms), p}
	}
	patient := node.PublishedFilter()
	patient.Bypass = 0
	ours := node.Tickets{Params: callorder.DefaultParams(sfsCores)}
	attached := ours
	attached.Params.BlockedAfter = 0
	shares, published, windlass := nodePolicy{sfsShares, node.Sharing{}}, nodePolicy{sfsFilter, node.PublishedFilter()}, nodePolicy{sfsLearnt, ours}
	return []sfsVariant{
		{
			"slices", "fixed slices, bursty, load 1 (paper Fig. 9: adapting is better than 100 and 200 ms; 50 ms is better for the shortest 30 % and worse for the rest)",
			sfsLoad{bursty: true, load: 1}, []nodePolicy{shares, published, fixed(50), fixed(100), fixed(200), windlass},
		},
		{
			"io", "75 % of the calls sleep for 10 to 100 ms first; Poisson, load 1 (paper Fig. 11: polling helps, and how often does not matter)",
			sfsLoad{load: 1, sleeping: .75},
			[]nodePolicy{shares, polling(0), polling(1), polling(4), polling(8), windlass, {"Windlass, blocked calls keep their tickets", attached}},
		},
		{
			"overload", "five spikes of 400 calls five times as fast, Poisson, load 0.9 in all: without the bypass of calls that waited for three slices (paper Figs. 12 to 15: with it queueing delays are shorter, and half of the calls end sooner)",
			sfsLoad{load: .9, spikes: true}, []nodePolicy{shares, published, {"SFS, no bypass", patient}, windlass},
		},
	}
}

func (v sfsVariant) variantTable(o Options) report.Table {
	t := report.Table{Name: v.name, Caption: v.caption, Columns: []string{
		"policy", "slowdown mean", "p50", "p90", "p99", "short: mean", "long: mean", "turnaround p50 s", "response p99 s",
	}}
	runs := grid(o, len(v.policies), func(cell int, seed uint64) []float64 {
		calls := v.load.calls(o, seed)
		results := onNode(sfsCores, calls, v.policies[cell].Policy)
		slowdown := func(q float64) float64 { return quantileBy(results, q, node.Result.Slowdown) }
		return []float64{
			meanBy(results, node.Result.Slowdown), slowdown(.5), slowdown(.9), slowdown(.99),
			meanBy(among(calls, results, isShort), node.Result.Slowdown), meanBy(among(calls, results, isLong), node.Result.Slowdown),
			quantileBy(results, .5, seconds(node.Result.Turnaround)), quantileBy(results, .99, seconds(node.Result.Response)),
		}
	})
	for i, p := range v.policies {
		row := []report.Cell{p.name}
		for k := range runs[i][0] {
			row = append(row, report.Num(statsOf(runs[i], func(figures []float64) float64 { return figures[k] }).mean))
		}
		t.Add(row...)
	}
	return t
}

func sfsFindings(cells []sfsCell) []report.Finding {
	at := func(bursty bool, load float64) (sfsCell, bool) {
		i := slices.IndexFunc(cells, func(c sfsCell) bool { return c.load.bursty == bursty && c.load.load == load })
		if i < 0 {
			return sfsCell{}, false
		}
		return cells[i], true
	}
	over, _ := at(false, sfsOverload)
	full, _ := at(false, 1)
	calm, _ := at(false, .8)
	undisturbed := func(policy string) float64 {
		return calm.mean(func(r sfsRun) float64 { return shareUndisturbed(r.results[policy]) })
	}
	all := []report.Finding{
		report.Found("ours_shorts_at_1_5", over.faster(sfsKnown)).Least(sfsShorts).Compare("sharing/policy; paper, SFS at its 100 %%: 49.6"),
		report.Found("ours_longs_at_1_5", over.slower(sfsKnown)).Most(sfsLongs).Compare("policy/sharing; paper, SFS at its 100 %%: 1.29"),
		report.Found("learnt_shorts_at_1_5", over.faster(sfsLearnt)).Least(sfsShorts).Compare("nothing known at first"),
		report.Found("learnt_longs_at_1_5", over.slower(sfsLearnt)).Most(sfsLongs),
		report.Found("one_function_shorts_at_1_5", over.faster(sfsAlike)).Compare("sizes cannot be learnt"),
		report.Found("one_function_longs_at_1_5", over.slower(sfsAlike)),
		report.Found("sfs_shorts_at_1_5", over.faster(sfsFilter)).Compare("paper, at its 100 %%: 49.6"),
		report.Found("sfs_longs_at_1_5", over.slower(sfsFilter)).Compare("paper, at its 100 %%: 1.29"),
		report.Found("sfs_shorts_at_1", full.faster(sfsFilter)).Compare("paper: 49.6"),
		report.Found("sfs_longs_at_1", full.slower(sfsFilter)).Compare("paper: 1.29"),
		report.Found("ours_shorts_at_1", full.faster(sfsKnown)),
		report.Found("tickets_shorts_to_sfs_at_1_5", over.faster(sfsTickets)/over.faster(sfsFilter)).Compare("SFS's rules without a real-time class"),
		report.Found("tickets_shorts_slowdown_p99_to_sfs_at_1_5", over.shortTail(sfsTickets)/over.shortTail(sfsFilter)).Compare("the same, the slowest of a hundred"),
		report.Found("one_function_shorts_slowdown_p99_to_sharing_at_1_5", over.shortTail(sfsAlike)/over.shortTail(sfsShares)).Compare("sizes cannot be learnt, the slowest of a hundred"),
		report.Found("ours_shorts_slowdown_p99_to_sharing_at_1_5", over.shortTail(sfsKnown)/over.shortTail(sfsShares)),
		report.Found("sfs_undisturbed_percent_at_0_8", undisturbed(sfsFilter)).Compare("paper: 88"),
		report.Found("sharing_undisturbed_percent_at_0_8", undisturbed(sfsShares)).Compare("paper, CFS: 35"),
		report.Found("ours_undisturbed_percent_at_0_8", undisturbed(sfsKnown)),
	}
	if bursty, ok := at(true, sfsOverload); ok {
		all = append(all,
			report.Found("bursty_ours_shorts_at_1_5", bursty.faster(sfsKnown)).Least(sfsShorts),
			report.Found("bursty_ours_longs_at_1_5", bursty.slower(sfsKnown)).Most(sfsLongs))
	}
	return all
}

func sfsCharts(o Options, cells []sfsCell) []report.Chart {
	gain := report.Chart{
		Name: "sfs-shorts", Title: "Short calls beside ideal sharing, Poisson", Kind: report.Lines,
		X: report.Axis{Label: "true load"}, Y: report.Axis{Label: "turnaround with sharing / with the policy", Log: true},
	}
	cost := report.Chart{
		Name: "sfs-longs", Title: "Long calls beside ideal sharing, Poisson", Kind: report.Lines,
		X: report.Axis{Label: "true load"}, Y: report.Axis{Label: "turnaround with the policy / with sharing"},
	}
	for _, policy := range []string{sfsFilter, sfsKnown, sfsLearnt, sfsAlike} {
		short, long := report.Series{Name: policy}, report.Series{Name: policy}
		for _, c := range cells {
			if !c.load.bursty {
				short.Points = append(short.Points, report.Point{X: c.load.load, Y: c.faster(policy)})
				long.Points = append(long.Points, report.Point{X: c.load.load, Y: c.slower(policy)})
			}
		}
		gain.Series, cost.Series = append(gain.Series, short), append(cost.Series, long)
	}
	return []report.Chart{gain, cost, sfsTimeline(o)}
}

// sfsTimeline draws how SFS adapts its slice.
func sfsTimeline(o Options) report.Chart {
	line := report.Series{Name: "S", Points: []report.Point{{X: 0, Y: 20}}}
	p := node.PublishedFilter()
	p.Observe = func(now, slice time.Duration) {
		line.Points = append(line.Points, report.Point{X: now.Seconds(), Y: milliseconds(slice)})
	}
	onNode(sfsCores, sfsLoad{bursty: true, load: 1}.calls(o, o.Seed), p)
	return report.Chart{
		Name: "sfs-slice", Title: "SFS's slice, bursty, load 1 (paper Fig. 10)", Kind: report.Steps,
		X: report.Axis{Label: "s", FromZero: true}, Y: report.Axis{Label: "S, ms", FromZero: true}, Series: []report.Series{line},
	}
}

func sfsParameters() []report.Parameter {
	return []report.Parameter{
		{Name: "calls", Value: "10,000 of fib(20) to fib(35), 13 ms to 2,344 ms alone: 43 % up to 42 ms, 11 % 60 and 90 ms, 8 % 140 ms, 24 % 220 and 346 ms, 15 % 1.4 and 2.3 s", Source: "the authors' published workload; paper Table I says 40.6, 9.8, 6.8, 22.7 and 15.7 %"},
		{Name: "cores", Value: "16", Source: "paper: a VM of 16 vCPUs; its appendix says that 12 were used"},
		{Name: "bursty", Value: "27 % of the gaps are 0, coefficient of variation 2.33; gaps are independent", Source: "the authors' published workload; independent: assumed"},
		{Name: "SFS", Value: "window 100, O = 3, polls each 4 ms", Source: "paper"},
		{Name: "SFS: first slice, least slice", Value: "20 ms, 6 ms", Source: "the authors' code"},
		{Name: "Windlass", Value: "order serpt, aging 0.03, preemption for calls half as long, slice auto", Source: "pkg/nodeagent/callorder, defaults"},
		{Name: "instances", Value: "warm, one for each concurrent call", Source: "assumed"},
	}
}
