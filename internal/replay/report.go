package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/internal/workload"
)

// AllFunctions is the key under which a map of Instances may tell about all
// functions together.
const AllFunctions = "*"

// Instances counts the instances of a function during a replay.
type Instances struct {
	// Created is how many came into being.
	Created int
	// Peak is how many there were at most at a time.
	Peak int
}

// Quantiles of times. N is how many there were; the others are 0 if none.
type Quantiles struct {
	N             int
	P50, P95, P99 time.Duration
}

// Row is what a report says about a function, or about all of them.
type Row struct {
	// Function is the target's name; AllFunctions for the total.
	Function string
	// Calls came due; the calls that were cut off are not among them.
	Calls int
	// Errors among the calls: Sample.Failed.
	Errors int
	// Lost among the errors: Sample.Lost.
	Lost int
	// NotSent among the errors.
	NotSent int
	// CutOff is how many calls the end of the replay broke off.
	CutOff int
	// ColdStarts among the calls.
	ColdStarts int
	// Unmeasured is how many good answers did not tell the function's own
	// time; they have no setup time.
	Unmeasured int
	// Setup and Total are times of calls that did not fail.
	Setup, Total Quantiles
	// Instances is nil if nothing is known of them.
	Instances *Instances
}

// ColdStartRatio is the share of calls that were cold starts, 0 to 1.
func (r Row) ColdStartRatio() float64 {
	if r.Calls == 0 {
		return 0
	}
	return float64(r.ColdStarts) / float64(r.Calls)
}

// Failure is a reason for errors and how many calls it hit.
type Failure struct {
	Reason string
	Calls  int
}

// Report is the result of a replay.
type Report struct {
	// Functions has a row for each function, by name.
	Functions []Row
	// Total is about all calls.
	Total Row
	// Failures says why calls failed, the most frequent reason first.
	Failures []Failure
	// SendLateP99 and SendLateMax say how much later than due the sender
	// got to a call. Large ones mean that the sender had too little CPU.
	SendLateP99, SendLateMax time.Duration
}

// Summarize makes a report of samples. Instances are by target name; the total
// is the entry AllFunctions, or without it the sum over functions, which for
// Peak is an upper bound. A nil map means that nothing is known. Quantiles are
// exact (nearest rank).
func Summarize(samples []Sample, instances map[string]Instances) Report {
	byFunction := make(map[string][]Sample)
	failures := make(map[string]int)
	var late []time.Duration
	for _, s := range samples {
		byFunction[s.Function] = append(byFunction[s.Function], s)
		late = append(late, s.Late)
		if s.Failed() {
			failures[s.Failure]++
		}
	}
	slices.Sort(late)
	r := Report{
		Total:       summarizeRow(AllFunctions, samples),
		SendLateP99: workload.Quantile(late, .99),
		SendLateMax: workload.Quantile(late, 1),
	}
	for name, s := range byFunction {
		row := summarizeRow(name, s)
		if n, ok := instances[name]; ok {
			row.Instances = &n
		}
		r.Functions = append(r.Functions, row)
	}
	slices.SortFunc(r.Functions, func(a, b Row) int { return cmp.Compare(a.Function, b.Function) })
	r.Total.Instances = allInstances(instances)
	for reason, n := range failures {
		r.Failures = append(r.Failures, Failure{Reason: reason, Calls: n})
	}
	slices.SortFunc(r.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Reason, b.Reason))
	})
	return r
}

func summarizeRow(function string, samples []Sample) Row {
	row := Row{Function: function}
	var setup, total []time.Duration
	for _, s := range samples {
		if s.Outcome == CutOff {
			row.CutOff++
			continue
		}
		row.Calls++
		row.ColdStarts += boolToInt(s.Cold)
		row.Lost += boolToInt(s.Lost())
		row.NotSent += boolToInt(s.Outcome == NotSent)
		if s.Failed() {
			row.Errors++
			continue
		}
		total = append(total, s.Total)
		if s.OwnKnown {
			setup = append(setup, s.Setup())
		} else {
			row.Unmeasured++
		}
	}
	row.Setup, row.Total = quantiles(setup), quantiles(total)
	return row
}

func allInstances(instances map[string]Instances) *Instances {
	if instances == nil {
		return nil
	}
	if all, ok := instances[AllFunctions]; ok {
		return &all
	}
	var sum Instances
	for _, n := range instances {
		sum.Created += n.Created
		sum.Peak += n.Peak
	}
	return &sum
}

// quantiles sorts its argument.
func quantiles(d []time.Duration) Quantiles {
	slices.Sort(d)
	return Quantiles{N: len(d), P50: workload.Quantile(d, .5), P95: workload.Quantile(d, .95), P99: workload.Quantile(d, .99)}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Bounds are what a replay must keep to besides having no error and no lost
// call.
type Bounds struct {
	// ColdStartRatio is what the share of cold starts must stay below, 0 to
	// 1; 0 means 0.05.
	ColdStartRatio float64
}

const defaultColdStartRatio = .05

// Violations are the bounds that a replay missed, one sentence each; nothing if it passed. A
// replay without calls, or with calls that were broken off, has failed too.
func Violations(r Report, b Bounds) []string {
	if b.ColdStartRatio == 0 {
		b.ColdStartRatio = defaultColdStartRatio
	}
	var failed []string
	if r.Total.Calls == 0 {
		failed = append(failed, "no call was made")
	}
	if n := r.Total.CutOff; n > 0 {
		failed = append(failed, fmt.Sprintf("the replay was stopped with %d calls under way", n))
	}
	if n := r.Total.Errors; n > 0 {
		failed = append(failed, fmt.Sprintf("%d of %d calls failed; none may", n, r.Total.Calls))
	}
	if n := r.Total.Lost; n > 0 {
		failed = append(failed, fmt.Sprintf("%d of %d calls were lost; none may be", n, r.Total.Calls))
	}
	if r.Total.ColdStartRatio() >= b.ColdStartRatio && r.Total.Calls > 0 {
		failed = append(failed, fmt.Sprintf("%d of %d calls were cold starts (%s); they must stay below %s",
			r.Total.ColdStarts, r.Total.Calls, percent(r.Total.ColdStartRatio()), percent(b.ColdStartRatio)))
	}
	return failed
}

func percent(ratio float64) string { return strconv.FormatFloat(100*ratio, 'f', 1, 64) + " %" }
