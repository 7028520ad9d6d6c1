package experiments

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

var hybrid = Experiment{
	Name:           "hybrid",
	Summary:        "the hybrid FIFO and CFS paper on one node of 50 cores: what calls cost, and how long their callers wait",
	CountsGateways: true,
	NeedsData:      true,
	NeedsFile:      hybridFile,
	Full:           Size{Seeds: 5, Scale: 1},
	Quick:          Size{Seeds: 1, Scale: 1, Sparse: true},
	run:            runHybrid,
}

const (
	hybridCores = 50
	hybridFile  = "hybrid_azure_2min_12442.csv"
	// hybridLimit is the paper's fixed limit.
	hybridLimit = 1633 * time.Millisecond
	// hybridPrice is the price of a second of execution, in USD.
	hybridPrice = 8.119e-6
	// The goals: beside CFS.
	hybridCost, hybridMean, hybridTail = .05, .5, .85
)

// loadHybrid reads the paper's calls, or those of the first part of its two minutes.
func loadHybrid(data fs.FS, o Options) ([]node.Call, error) {
	if data == nil {
		return nil, errors.New("experiments: hybrid replays a recorded workload; name a folder with " + hybridFile)
	}
	file, err := data.Open(hybridFile)
	if err != nil {
		return nil, fmt.Errorf("experiments: hybrid replays a recorded workload: %w; name another folder", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("experiments: %s: %w", hybridFile, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("experiments: %s is empty", hybridFile)
	}
	at, class, work := slices.Index(rows[0], "observed_arrival_s"), slices.Index(rows[0], "fib_n"), slices.Index(rows[0], "cpu_ms_q1_of_14_runs")
	if min(at, class, work) < 0 {
		return nil, fmt.Errorf("experiments: %s lacks one of the columns observed_arrival_s, fib_n and cpu_ms_q1_of_14_runs", hybridFile)
	}
	var calls []node.Call
	for i, row := range rows[1:] {
		arrival, err := strconv.ParseFloat(row[at], 64)
		ms, err2 := strconv.ParseFloat(row[work], 64)
		if err = errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("experiments: %s, line %d: %w", hybridFile, i+2, err)
		}
		if o.Scale == 1 || arrival <= o.length(2*time.Minute).Seconds() {
			calls = append(calls, node.Computing(time.Duration(arrival*1e9), "fib"+row[class], time.Duration(ms*1e6)))
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("experiments: %s has no call", hybridFile)
	}
	return calls, nil
}

// varied are calls whose work varies within a function, log-normal around what it was.
func varied(calls []node.Call, sigma float64, seed uint64) []node.Call {
	r := rand.New(rand.NewPCG(seed, 7))
	all := slices.Clone(calls)
	for i, c := range all {
		work := c.CPU().Seconds() * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		all[i] = node.Computing(c.Arrival, c.Function, time.Duration(work*1e9))
	}
	return all
}

// agedTickets are tickets in the order of expected size and age; every call keeps its ticket to the end.
func agedTickets(aging float64, known map[string]time.Duration) node.Tickets {
	p := ticketParams(hybridCores, callorder.SERPT)
	p.Aging = aging
	return node.Tickets{Params: p, Known: known}
}

// published is the paper's scheduler with a number of cores for the queue.
func published(fifo int) node.Hybrid { return node.Hybrid{FIFO: fifo, Limit: hybridLimit} }

func limitedTo(percentile float64) node.Hybrid {
	h := published(hybridCores / 2)
	h.Percentile = percentile
	return h
}

// rightsized moves cores as the authors' code does.
func rightsized(h node.Hybrid) node.Hybrid {
	h.Rightsize, h.Threshold = time.Second, .1
	return h
}

// Names of policies that findings are about.
const (
	hybridCFS       = "CFS (sharing)"
	hybridPublished = "hybrid 25+25, 1633 ms"
	hybridOurs      = "Windlass, no preemption, learnt"
	hybridDefault   = "Windlass, default, learnt"
	hybridKnown     = "Windlass, default, known"
)

// hybridPolicies are what is compared; known is the mean work of each function.
func hybridPolicies(known map[string]time.Duration, sparse bool) []nodePolicy {
	windlass := node.Tickets{Params: callorder.DefaultParams(hybridCores)}
	windlassKnown := windlass
	windlassKnown.Known = known
	all := []nodePolicy{
		{hybridCFS, node.Sharing{}},
		{"FIFO tickets", node.Tickets{Params: ticketParams(hybridCores, callorder.FIFO)}},
		{hybridPublished, published(25)},
		{"hybrid, limit p95", limitedTo(.95)},
		{"hybrid, rightsized", rightsized(published(25))},
		{"SFS-like, 1633 ms", node.Filter{Slice: hybridLimit}},
		{"SEPT tickets, known", node.Tickets{Params: ticketParams(hybridCores, callorder.SEPT), Known: known}},
		{"aged SEPT 0.03, known", agedTickets(.03, known)},
		{hybridOurs, agedTickets(.03, nil)},
		{hybridDefault, windlass},
		{hybridKnown, windlassKnown},
	}
	if sparse {
		return all
	}
	for _, p := range []float64{.25, .5, .75, .9} {
		all = append(all, nodePolicy{fmt.Sprintf("hybrid, limit p%.0f", 100*p), limitedTo(p)})
	}
	return append(all,
		nodePolicy{"hybrid, limit p95, rightsized", rightsized(limitedTo(.95))},
		nodePolicy{"aged SEPT 0.1, known", agedTickets(.1, known)},
		nodePolicy{"aged SEPT 1 (EECT), known", agedTickets(1, known)},
		nodePolicy{"SRPT (oracle)", node.Shortest{}},
	)
}

// hybridFigures are the columns of the paper's Table I, and those that it lacks.
var hybridFigures = []struct {
	name string
	of   func([]node.Result) float64
}{
	{"response p99 s", func(r []node.Result) float64 { return quantileBy(r, .99, seconds(node.Result.Response)) }},
	{"execution p99 s", func(r []node.Result) float64 { return quantileBy(r, .99, seconds(node.Result.Execution)) }},
	{"turnaround mean s", hybridTurnaround},
	{"p50 s", func(r []node.Result) float64 { return quantileBy(r, .5, seconds(node.Result.Turnaround)) }},
	{"p99 s", hybridTurnaroundTail},
	{"cost USD", hybridBill},
	{"slowdown mean", func(r []node.Result) float64 { return meanBy(r, node.Result.Slowdown) }},
}

func hybridTurnaround(r []node.Result) float64 { return meanBy(r, seconds(node.Result.Turnaround)) }
func hybridTurnaroundTail(r []node.Result) float64 {
	return quantileBy(r, .99, seconds(node.Result.Turnaround))
}
func hybridBill(r []node.Result) float64 {
	return hybridPrice * float64(len(r)) * meanBy(r, seconds(node.Result.Execution))
}

// hybridPaper is what the paper says of its policies, and what follows from the authors' logs.
var hybridPaper = map[string]string{
	hybridCFS:                       "0.01 s, 233 s, mean 44.7, p99 233, 4.51 USD",
	"FIFO tickets":                  "272.6 s, 120 s, p99 274, 0.34 USD",
	hybridPublished:                 "163.5 s, 6.69 s, mean 84.8, p99 164.7, 0.11 USD",
	"hybrid, rightsized":            "3.02 USD (authors' logs)",
	"hybrid, limit p95, rightsized": "4.59 USD (authors' logs)",
}

func runHybrid(o Options) (report.Report, error) {
	calls, err := loadHybrid(o.Data, o)
	if err != nil {
		return report.Report{}, err
	}
	policies := hybridPolicies(knownWork(calls), o.Sparse)
	results := make([][]node.Result, len(policies))
	o.Each(len(policies), func(i int) { results[i] = onNode(hybridCores, calls, policies[i].Policy) })
	spread := spreadOver(o, calls)
	splits := splitOver(o, calls)
	grouped := groupsOver(o, calls)
	r := report.Report{
		Title:      fmt.Sprintf("%d calls of the Azure trace on 50 cores, two rushes a minute apart: the bill, and how long callers wait", len(calls)),
		Parameters: hybridParameters(calls),
		Tables:     []report.Table{hybridTable(policies, results), spread.spreadTable(), splits, grouped.groupsTable()},
		Charts:     hybridCharts(calls, policies, results),
		Findings:   append(append(hybridFindings(policies, results), spread.findings()...), grouped.findings()...),
		Notes: []string{
			"The paper reports p99 response, execution and turnaround, and the bill. By the authors' logs the mean turnaround with its scheduler is 84.8 s, and with CFS 44.7 s: callers wait twice as long for a bill that is 40 times smaller. The column turnaround mean has the same of the model.",
			"Seconds are not the paper's: it used 2.31 times what its cores could compute in two minutes, and these processor times are 1.84 times that. Its FIFO had executions of 120 s because the kernel's CFS ran over it (the paper says so); FIFO does not preempt, and here p99 execution is the longest call's own. ghOSt and Firecracker are not modelled.",
			"Response, execution and cost are where a call begins once and computes from then on. Windlass's default preempts: a call that has begun may stop for a much shorter one, and its stop is billed as execution. Who bills by duration switches preemption off.",
			"The default's slices and preemption need sizes. In a rush of functions that were never called nobody knows them, but a call that has not ended shows how long its function is at least; the calls of it that wait count as that long. Where work varies much within a function, calls beyond four times the mean wait in the low band, but for those that have an eighth of the cores. Without slices and preemption neither happens.",
			"With groups, calls without a ticket share cores of their own. A core moves by the paper's rule if the uses of both groups differ by 10 points: under overload both use all of theirs, so none moves, and the long group keeps its one core. By backlog one moves to the group with more expected work for each core, if the other has less than half of that.",
			"Known: each function's mean is learnt before the first call. Learnt: nothing is known, and a function that was never called counts as short.",
			"The aging of 0.03 was chosen from seven values on this same trace. It is not a free parameter of this experiment: it is the product's default.",
			"Cores move as the authors' code says, 10 points of difference between mean uses, towards the busier group; how long its window is, it does not say, and one second is assumed. In the model rightsizing costs other sums than in their logs; the direction is the point.",
		},
	}
	return r, nil
}

func hybridTable(policies []nodePolicy, results [][]node.Result) report.Table {
	t := report.Table{Name: "hybrid", Caption: "each policy, beside what the paper and the authors' logs say of it", Columns: []string{"policy"}}
	for _, f := range hybridFigures {
		t.Columns = append(t.Columns, f.name)
	}
	t.Columns = append(t.Columns, "paper: response p99, execution p99, turnaround, cost")
	for i, p := range policies {
		row := []report.Cell{p.name}
		for _, f := range hybridFigures {
			row = append(row, report.Num(f.of(results[i])))
		}
		t.Add(append(row, hybridPaper[p.name])...)
	}
	return t
}

func hybridFindings(policies []nodePolicy, results [][]node.Result) []report.Finding {
	of := func(name string) []node.Result {
		return results[slices.IndexFunc(policies, func(p nodePolicy) bool { return p.name == name })]
	}
	beside := func(name string, figure func([]node.Result) float64) float64 {
		return figure(of(name)) / figure(of(hybridCFS))
	}
	return []report.Finding{
		report.Found("ours_cost_to_cfs", beside(hybridOurs, hybridBill)).Most(hybridCost).Compare("paper, its own: 0.025"),
		report.Found("ours_turnaround_to_cfs", beside(hybridOurs, hybridTurnaround)).Most(hybridMean).Compare("paper, its own, by the authors' logs: 1.9"),
		report.Found("ours_turnaround_p99_to_cfs", beside(hybridOurs, hybridTurnaroundTail)).Most(hybridTail).Compare("paper, its own: 0.71"),
		report.Found("default_cost_to_cfs", beside(hybridDefault, hybridBill)).Compare("with preemption and slices"),
		report.Found("default_turnaround_to_cfs", beside(hybridDefault, hybridTurnaround)).Most(hybridMean),
		report.Found("default_turnaround_p99_to_cfs", beside(hybridDefault, hybridTurnaroundTail)).Most(hybridTail),
		report.Found("default_known_turnaround_to_cfs", beside(hybridKnown, hybridTurnaround)).Compare("sizes known before the first call"),
		report.Found("hybrid_cost_to_cfs", beside(hybridPublished, hybridBill)).Compare("paper: 0.025"),
		report.Found("hybrid_turnaround_to_cfs", beside(hybridPublished, hybridTurnaround)).Compare("authors' logs: 1.9"),
		report.Found("hybrid_turnaround_p99_to_cfs", beside(hybridPublished, hybridTurnaroundTail)).Compare("paper: 0.71"),
		report.Found("rightsized_cost_to_fixed", hybridBill(of("hybrid, rightsized"))/hybridBill(of(hybridPublished))).Compare("authors' logs: 26"),
	}
}

// spreads is what becomes of policies when the work varies within a function.
type spreads struct {
	sigmas   []float64
	policies []string
	results  [][][]node.Result // by sigma and policy, then by seed
}

func spreadOver(o Options, calls []node.Call) spreads {
	s := spreads{sigmas: []float64{.7, 1.2}}
	if o.Sparse {
		s.sigmas = s.sigmas[:1]
	}
	policies := func(known map[string]time.Duration) []nodePolicy {
		var some []nodePolicy
		for _, p := range hybridPolicies(known, true) {
			if slices.Contains([]string{hybridCFS, hybridPublished, hybridOurs, hybridDefault, hybridKnown}, p.name) {
				some = append(some, p)
			}
		}
		return some
	}
	for _, p := range policies(nil) {
		s.policies = append(s.policies, p.name)
	}
	s.results = grid(o, len(s.sigmas)*len(s.policies), func(cell int, seed uint64) []node.Result {
		these := varied(calls, s.sigmas[cell/len(s.policies)], seed)
		return onNode(hybridCores, these, policies(knownWork(calls))[cell%len(s.policies)].Policy)
	})
	return s
}

func (s spreads) meanOf(sigma, policy int, figure func([]node.Result) float64) float64 {
	return statsOf(s.results[sigma*len(s.policies)+policy], figure).mean
}

func (s spreads) spreadTable() report.Table {
	t := report.Table{Name: "spread", Caption: "work that varies within a function, log-normal with this sigma (means over the seeds)", Columns: []string{"sigma", "policy"}}
	for _, f := range hybridFigures {
		t.Columns = append(t.Columns, f.name)
	}
	for i, sigma := range s.sigmas {
		for j, name := range s.policies {
			row := []report.Cell{report.Num(sigma), name}
			for _, f := range hybridFigures {
				row = append(row, report.Num(s.meanOf(i, j, f.of)))
			}
			t.Add(row...)
		}
	}
	return t
}

func (s spreads) findings() []report.Finding {
	var all []report.Finding
	at := func(name string) int { return slices.Index(s.policies, name) }
	cfs, ours, preempting := at(hybridCFS), at(hybridOurs), at(hybridDefault)
	for i, sigma := range s.sigmas {
		name := "spread_" + strings.ReplaceAll(fmt.Sprint(sigma), ".", "_")
		all = append(all,
			report.Found(name+"_cost_to_cfs", s.meanOf(i, ours, hybridBill)/s.meanOf(i, cfs, hybridBill)),
			report.Found(name+"_turnaround_to_cfs", s.meanOf(i, ours, hybridTurnaround)/s.meanOf(i, cfs, hybridTurnaround)),
			report.Found(name+"_default_turnaround_to_cfs", s.meanOf(i, preempting, hybridTurnaround)/s.meanOf(i, cfs, hybridTurnaround)))
	}
	return all
}

// splitOver gives the queue other numbers of cores.
func splitOver(o Options, calls []node.Call) report.Table {
	t := report.Table{Name: "split", Caption: "the published scheduler with other numbers of FIFO cores (paper Fig. 11: half of them is best)", Columns: []string{"FIFO cores"}}
	for _, f := range hybridFigures {
		t.Columns = append(t.Columns, f.name)
	}
	fifo := []int{10, 20, 25, 30, 40}
	if o.Sparse {
		fifo = []int{10, 25, 40}
	}
	rows := make([][]report.Cell, len(fifo))
	o.Each(len(fifo), func(i int) {
		results := onNode(hybridCores, calls, published(fifo[i]))
		rows[i] = []report.Cell{report.Num(fifo[i])}
		for _, f := range hybridFigures {
			rows[i] = append(rows[i], report.Num(f.of(results)))
		}
	})
	t.Rows = rows
	return t
}

func hybridCharts(calls []node.Call, policies []nodePolicy, results [][]node.Result) []report.Chart {
	dots := report.Chart{
		Name: "hybrid-cost", Title: "The bill, by how long callers wait", Kind: report.Dots,
		X: report.Axis{Label: "mean turnaround, s", FromZero: true}, Y: report.Axis{Label: "cost, USD", Log: true},
	}
	for i, p := range policies {
		if slices.Contains([]string{hybridCFS, "FIFO tickets", hybridPublished, "SFS-like, 1633 ms", hybridOurs, hybridDefault}, p.name) {
			dots.Series = append(dots.Series, report.Series{Name: p.name, Points: []report.Point{{X: hybridTurnaround(results[i]), Y: hybridBill(results[i])}}})
		}
	}
	moved := report.Chart{
		Name: "hybrid-cores", Title: "Cores of the FIFO group as the published rightsizing moves them", Kind: report.Steps,
		X: report.Axis{Label: "s", FromZero: true}, Y: report.Axis{Label: "cores", FromZero: true},
	}
	line := report.Series{Name: "FIFO cores", Points: []report.Point{{X: 0, Y: hybridCores / 2}}}
	h := rightsized(published(hybridCores / 2))
	h.Observe = func(now time.Duration, _, _ float64, cores int) {
		if line.Points[len(line.Points)-1].Y != float64(cores) {
			line.Points = append(line.Points, report.Point{X: now.Seconds(), Y: float64(cores)})
		}
	}
	onNode(hybridCores, calls, h)
	moved.Series = []report.Series{line}
	return []report.Chart{dots, moved}
}

func hybridParameters(calls []node.Call) []report.Parameter {
	work := 0.0
	for _, c := range calls {
		work += c.CPU().Seconds()
	}
	return []report.Parameter{
		{Name: "calls", Value: fmt.Sprintf("%d of 18 functions, at their recorded times", len(calls)), Source: "the authors' published logs (ZhaoNeil/hybrid-scheduler)"},
		{Name: "work", Value: fmt.Sprintf("the first quartile of 14 recorded processor times; %.3g s in all, %.3g s a core", work, work/hybridCores), Source: "the authors' logs"},
		{Name: "cores", Value: "50", Source: "paper V"},
		{Name: "hybrid", Value: "25 cores with one queue, 25 that share; calls are dealt to these in turn; limit 1,633 ms, or a percentile of the last 100 calls", Source: "paper IV, VI"},
		{Name: "SFS-like", Value: "a worker for each core gives a call 1,633 ms of real-time priority, whatever comes; no call skips the queue, and none is looked at while it sleeps", Source: "assumed: the hybrid's limit in SFS's rules"},
		{Name: "rightsizing", Value: "one core towards the busier group if uses differ by 10 points, each second", Source: "10 points: the authors' code; each second: assumed"},
		{Name: "cost", Value: "8.119e-6 USD a second of execution", Source: "the paper's blend of memory sizes at Lambda's prices, by the authors' code"},
		{Name: "CFS", Value: "ideal sharing of all cores; no cost of switches", Source: "assumed; it is better than CFS"},
		{Name: "Windlass", Value: "order serpt, aging 0.03; default: preemption and slice auto; no preemption: no slice either", Source: "pkg/nodeagent/callorder"},
	}
}
