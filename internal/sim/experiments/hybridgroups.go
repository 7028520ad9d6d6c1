package experiments

import (
	"fmt"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// groupedLoad is calls that are tried with groups of cores and without.
type groupedLoad struct {
	name  string
	cores int
	calls func(seed uint64) []node.Call
}

// groupedLoads are the hybrid paper's calls, as they are and with work that varies within a function, and
// the SFS paper's as calls of many functions and of one.
func groupedLoads(o Options, calls []node.Call) []groupedLoad {
	loads := []groupedLoad{{"hybrid", hybridCores, func(uint64) []node.Call { return calls }}}
	for _, sigma := range []float64{.7, 1.2} {
		loads = append(loads, groupedLoad{fmt.Sprintf("hybrid, sigma %g", sigma), hybridCores, func(seed uint64) []node.Call {
			return varied(calls, sigma, seed)
		}})
	}
	for _, l := range []sfsLoad{{load: .9}, {load: 1.1}, {load: .9, alike: true}, {load: 1.1, alike: true}} {
		name := fmt.Sprintf("SFS, load %g", l.load)
		if l.alike {
			name += ", one function"
		}
		loads = append(loads, groupedLoad{name, sfsCores, func(seed uint64) []node.Call { return l.calls(o, seed) }})
	}
	if o.Sparse {
		return []groupedLoad{loads[0], loads[1], loads[len(loads)-1]}
	}
	return loads
}

// groupRules are no groups, the hybrid paper's rule and ours.
var groupRules = []struct {
	name string
	rule node.CoreRule
}{{"none", ""}, {"use (the paper's)", node.ByUse}, {"backlog", node.ByBacklog}}

// groupedRun is what became of a load, and how often a core moved.
type groupedRun struct {
	results []node.Result
	moves   int
}

func (l groupedLoad) run(seed uint64, rule node.CoreRule) groupedRun {
	policy := node.Tickets{Params: callorder.DefaultParams(l.cores)}
	var r groupedRun
	if rule != "" {
		groups := node.DefaultCoreGroups(l.cores)
		groups.Rule = rule
		// Calls that outlived their slice have cores of their own already.
		policy.Groups, policy.Params.Outlived, policy.Params.OutlivedAge = &groups, 0, 0
		policy.Moved = func() { r.moves++ }
	}
	r.results = onNode(l.cores, l.calls(seed), policy)
	return r
}

// groupedRuns are the runs of all loads with all rules, over the seeds.
type groupedRuns struct {
	loads []groupedLoad
	runs  [][]groupedRun
}

func groupsOver(o Options, calls []node.Call) groupedRuns {
	loads := groupedLoads(o, calls)
	return groupedRuns{loads, grid(o, len(loads)*len(groupRules), func(i int, seed uint64) groupedRun {
		return loads[i/len(groupRules)].run(seed, groupRules[i%len(groupRules)].rule)
	})}
}

func (g groupedRuns) figureOf(load, rule int, of func([]node.Result) float64) float64 {
	return statsOf(g.runs[load*len(groupRules)+rule], func(r groupedRun) float64 { return of(r.results) }).mean
}

func (g groupedRuns) groupsTable() report.Table {
	t := report.Table{
		Name:    "groups",
		Caption: "Windlass's default, and the same with cores of their own for calls that have outlived their slice or were interrupted, one at first (means over the seeds)",
		Columns: []string{"calls", "a core moves by", "turnaround mean s", "p99 s", "cost USD", "slowdown mean", "moves"},
	}
	for i, l := range g.loads {
		for k, rule := range groupRules {
			t.Add(l.name, rule.name, report.Num(g.figureOf(i, k, hybridTurnaround)), report.Num(g.figureOf(i, k, hybridTurnaroundTail)),
				report.Num(g.figureOf(i, k, hybridBill)), report.Num(g.figureOf(i, k, func(r []node.Result) float64 { return meanBy(r, node.Result.Slowdown) })),
				report.Num(statsOf(g.runs[i*len(groupRules)+k], func(r groupedRun) float64 { return float64(r.moves) }).mean))
		}
	}
	return t
}

func (g groupedRuns) findings() []report.Finding {
	last := len(g.loads) - 1
	slowdown := func(r []node.Result) float64 { return meanBy(r, node.Result.Slowdown) }
	beside := func(load, rule int, of func([]node.Result) float64) float64 {
		return g.figureOf(load, rule, of) / g.figureOf(load, 0, of)
	}
	return []report.Finding{
		report.Found("groups_use_turnaround", beside(0, 1, hybridTurnaround)).Compare("the recorded calls, to no groups; p99 %.3g", beside(0, 1, hybridTurnaroundTail)),
		report.Found("groups_backlog_turnaround", beside(0, 2, hybridTurnaround)).Compare("the recorded calls, to no groups; p99 %.3g", beside(0, 2, hybridTurnaroundTail)),
		report.Found("groups_use_varied_turnaround", beside(1, 1, hybridTurnaround)).Compare("sigma 0.7, to no groups; p99 %.3g", beside(1, 1, hybridTurnaroundTail)),
		report.Found("groups_backlog_varied_turnaround", beside(1, 2, hybridTurnaround)).Compare("sigma 0.7, to no groups; p99 %.3g", beside(1, 2, hybridTurnaroundTail)),
		report.Found("groups_use_one_function_slowdown", beside(last, 1, slowdown)).Compare("SFS's calls as one function, load 1.1"),
		report.Found("groups_backlog_one_function_slowdown", beside(last, 2, slowdown)).Compare("SFS's calls as one function, load 1.1"),
	}
}
