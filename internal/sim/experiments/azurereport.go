package experiments

import (
	"errors"
	"fmt"
	"math"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// axis is one of those on which combinations are compared; less is better on all.
type axis struct {
	name string
	of   func(azureRun) float64
}

var axes = []axis{
	{"cold calls %", func(r azureRun) float64 { return 100 * r.cold / r.calls }},
	{"wait p99 ms", func(r azureRun) float64 { return r.p99 }},
	{"slowdown p99", func(r azureRun) float64 { return r.slow99 }},
	{"instance-hours", func(r azureRun) float64 { return r.instanceTime }},
	{"GB-hours", func(r azureRun) float64 { return r.gigabytes }},
}

// comparison is how a combination is beside another one on an axis.
type comparison int

const (
	worse comparison = iota - 1
	same
	better
)

func (v comparison) String() string { return [...]string{"worse", "same", "better"}[v+1] }

// sameWithin is the part by which figures may differ and be the same.
const sameWithin = .01

// compareOn compares two combinations over the same seeds. They differ if the mean of
// the differences is more than twice its standard error, and more than a hundredth.
func compareOn(a axis, ours, others []azureRun) comparison {
	differences := make([]float64, len(ours))
	var level float64
	for i := range ours {
		differences[i] = a.of(ours[i]) - a.of(others[i])
		level += a.of(others[i]) / float64(len(others))
	}
	s := statsOf(differences, func(d float64) float64 { return d })
	noise := max(2*s.deviation/math.Sqrt(float64(len(differences))), sameWithin*math.Abs(level))
	switch {
	case s.mean > noise:
		return worse
	case s.mean < -noise:
		return better
	}
	return same
}

// dominates tells whether something is better on one axis, and not worse on any.
func dominates(verdicts []comparison) bool {
	best := false
	for _, v := range verdicts {
		if v == worse {
			return false
		}
		best = best || v == better
	}
	return best
}

func runAzure(o Options) (report.Report, error) {
	found, err := samples(o.Data, o.Sparse)
	if err != nil {
		return report.Report{}, err
	}
	all := combinations()
	type cell struct {
		runs  []azureRun // by combination
		notes []string
		err   error
	}
	cells := grid(o, len(found), func(i int, seed uint64) cell {
		trace, err := loadSample(found[i], o, seed)
		c := cell{err: err}
		if err != nil {
			return c
		}
		c.notes = trace.Describe()
		for _, combination := range all {
			c.runs = append(c.runs, runTrace(o, trace, combination, seed))
		}
		return c
	})
	r := report.Report{
		Title:      "traces of Azure Functions on nodes without bounds, with each decider and each way to keep instances",
		Parameters: azureParameters(o),
	}
	runs := make([][][]azureRun, len(found)) // by sample, combination and seed
	for i, s := range found {
		runs[i] = make([][]azureRun, len(all))
		for _, c := range cells[i] {
			if c.err != nil {
				return r, errors.Join(c.err)
			}
			for j, run := range c.runs {
				runs[i][j] = append(runs[i][j], run)
			}
		}
		for _, note := range cells[i][0].notes {
			r.Notes = append(r.Notes, s.name+": "+note)
		}
	}
	r.Tables = []report.Table{azureTable(found, all, runs)}
	r.Charts = azureCharts(found, all, runs)
	table, wins := dominationTable(found, all, runs)
	r.Tables = append(r.Tables, table)
	r.Findings = azureFindings(found, all, runs, wins)
	r.Notes = append(r.Notes,
		"A combination dominates another one if it is better on one axis and worse on none; a difference counts if it is more than twice its standard error over the seeds, whose arrivals and durations are the same for both, and more than a hundredth.",
		"Whether instances of idle functions are kept longer or shorter is a choice between cold calls and memory, so a way to keep them dominates another one only where it knows something that the other does not. The day samples are light: of most functions there are a few dozen calls in a day, and a histogram has little to learn from.",
		"FPCSch has fewer cold calls because it lets calls wait for busy instances: it creates none while fewer wait than there are instances. A call that has waited for seconds behind another one is not cold, but its caller has waited all the same; the p99 wait shows it.")
	return r, nil
}

func azureTable(found []sample, all []combination, runs [][][]azureRun) report.Table {
	t := report.Table{Name: "azure", Caption: "means over the seeds; cold calls came before the instance that ran them was ready", Columns: []string{
		"sample", "decider", "keep-alive", "calls", "cold %", "sd", "created", "wait p50 ms", "p99 ms", "p99.9 ms",
		"slowdown p50", "p99", "instance-hours", "GB-hours",
	}}
	for i, s := range found {
		for j, c := range all {
			mean := func(of func(azureRun) float64) report.Cell { return report.Num(statsOf(runs[i][j], of).mean) }
			t.Add(s.name, c.decider, c.keep.name, mean(func(r azureRun) float64 { return r.calls }),
				mean(axes[0].of), report.Num(statsOf(runs[i][j], axes[0].of).deviation),
				mean(func(r azureRun) float64 { return r.created }), mean(func(r azureRun) float64 { return r.p50 }),
				mean(axes[1].of), mean(func(r azureRun) float64 { return r.p999 }),
				mean(func(r azureRun) float64 { return r.slow50 }), mean(axes[2].of), mean(axes[3].of), mean(axes[4].of))
		}
	}
	return t
}

// dominationTable compares ours, the first combination, with each other one, and
// counts on how many samples it dominates it.
func dominationTable(found []sample, all []combination, runs [][][]azureRun) (report.Table, []int) {
	t := report.Table{
		Name: "domination", Caption: all[0].name() + ", beside each other combination",
		Columns: []string{"sample", "beside", "dominates"},
	}
	for _, a := range axes {
		t.Columns = append(t.Columns, a.name)
	}
	wins := make([]int, len(all))
	for i, s := range found {
		for j, other := range all[1:] {
			var verdicts []comparison
			row := []report.Cell{s.name, other.name(), "no"}
			for _, a := range axes {
				v := compareOn(a, runs[i][0], runs[i][j+1])
				verdicts = append(verdicts, v)
				row = append(row, v.String())
			}
			if dominates(verdicts) {
				row[2] = "yes"
				wins[j+1]++
			}
			t.Add(row...)
		}
	}
	return t, wins
}

// azureFindings say of how many combinations ours dominates, and what it costs beside
// the paper's.
func azureFindings(found []sample, all []combination, runs [][][]azureRun, wins []int) []report.Finding {
	var findings []report.Finding
	if len(found) > 3 {
		dominated := 0
		for _, w := range wins[1:] {
			if w >= 3 {
				dominated++
			}
		}
		findings = append(findings, report.Found("dominated_on_3_samples", float64(dominated)).Least(float64(len(all)-1)).
			Compare("of %d other combinations, on %d samples", len(all)-1, len(found)))
	}
	of := map[string]int{}
	for j, c := range all {
		of[c.name()] = j
	}
	for _, beside := range []string{"FPCSch, paper", "Horizon, paper", "Horizon, 10 min"} {
		for _, a := range axes {
			if a.name == "wait p99 ms" || a.name == "instance-hours" {
				continue
			}
			product := 1.0
			for i := range found {
				product *= (statsOf(runs[i][0], a.of).mean + tiny) / (statsOf(runs[i][of[beside]], a.of).mean + tiny)
			}
			findings = append(findings, report.Found(slug(a.name)+"_to_"+slug(beside), math.Pow(product, 1/float64(len(found)))).
				Compare("geometric mean over the samples"))
		}
	}
	return findings
}

// tiny keeps ratios of nothing to nothing at 1.
const tiny = 1e-9

// slug is a name in lower case with underscores.
func slug(name string) string {
	out := make([]rune, 0, len(name))
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			out = append(out, c-'A'+'a')
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			out = append(out, c)
		case c == '%' || c == ',':
		default:
			out = append(out, '_')
		}
	}
	for len(out) > 0 && out[len(out)-1] == '_' {
		out = out[:len(out)-1]
	}
	return string(out)
}

func azureCharts(found []sample, all []combination, runs [][][]azureRun) []report.Chart {
	var charts []report.Chart
	for i, s := range found {
		c := report.Chart{
			Name: "azure-" + s.name, Title: "Cold calls and memory, sample " + s.name, Kind: report.Dots,
			X: report.Axis{Label: "GB-hours of instances"}, Y: report.Axis{Label: "cold calls, %", FromZero: true},
		}
		for j, combination := range all {
			c.Series = append(c.Series, report.Series{Name: combination.name(), Family: combination.decider, Kin: combination.keep.name, Points: []report.Point{{
				X: statsOf(runs[i][j], axes[4].of).mean, Y: statsOf(runs[i][j], axes[0].of).mean,
			}}})
		}
		charts = append(charts, c)
	}
	return charts
}

func azureParameters(o Options) []report.Parameter {
	part := "all of each trace"
	if o.Scale < 1 {
		part = fmt.Sprintf("the first %g of each trace", o.Scale)
	}
	return []report.Parameter{
		{Name: "traces", Value: part, Source: "Azure Functions 2019 (Shahrad et al., ATC 2020), as sampled by invitro; not scaled up"},
		{Name: "arrivals within a minute", Value: "uniformly at random, each call for itself", Source: "assumed: only counts are recorded"},
		{Name: "work of a call", Value: "from the function's percentiles, linear between them", Source: "the data"},
		{Name: "memory of an instance", Value: "its app's average, 128 MB where there is none", Source: "the data"},
		{Name: "start of an instance", Value: "log-normal, median 1 s, p99 3 s", Source: "assumed: a pod whose image is there"},
		{Name: "keep-alive histogram", Value: "scaling.scaleDown.policy Learned: windows learnt from idle times, else as paper", Source: "Shahrad et al., section 4"},
		{Name: "keep-alive paper", Value: "10 s + 10 min, the last instance 1 h", Source: "paper IV-C, V-A"},
		{Name: "keep-alive 10 min", Value: "10 s + 10 min, the last instance 10 min", Source: "what public clouds do (Shahrad et al.)"},
		{Name: "nodes", Value: "without bounds", Source: "assumed, so that keeping is paid for in memory and not by others"},
	}
}
