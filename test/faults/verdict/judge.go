package verdict

import (
	"fmt"
	"slices"
	"time"
)

// Allowance is what a fault may cost. What is not allowed here is held against
// Windlass.
type Allowance struct {
	// Maybe bounds the answers "executed: maybe", No those that say "no", and
	// Broken the calls whose connection broke; -1 means any number.
	Maybe, No, Broken int
	// Failures lets the function itself answer with errors.
	Failures bool
	// Patience is the longest that any call may take.
	Patience time.Duration
}

// Any is an allowance of any number.
const Any = -1

// Counts say how many calls ended how.
type Counts struct {
	Calls     int `json:"calls"`
	Succeeded int `json:"succeeded"`
	// No, Maybe, Broken, Left and Failed are the other ways in which calls ended.
	No     int `json:"no,omitempty"`
	Maybe  int `json:"maybe,omitempty"`
	Broken int `json:"broken,omitempty"`
	Left   int `json:"left,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Lost are successes without an execution and calls without an answer.
	Lost int `json:"lost,omitempty"`
	// Duplicated are calls that were executed more than once and must not be.
	Duplicated int `json:"duplicated,omitempty"`
	// WrongNo are calls of which "no" was said and which were executed.
	WrongNo int `json:"wrongNo,omitempty"`
}

// Plus adds others.
func (c Counts) Plus(o Counts) Counts {
	return Counts{
		Calls: c.Calls + o.Calls, Succeeded: c.Succeeded + o.Succeeded,
		No: c.No + o.No, Maybe: c.Maybe + o.Maybe, Broken: c.Broken + o.Broken, Left: c.Left + o.Left, Failed: c.Failed + o.Failed,
		Lost: c.Lost + o.Lost, Duplicated: c.Duplicated + o.Duplicated, WrongNo: c.WrongNo + o.WrongNo,
	}
}

// MaybeRate is the share of calls of which the caller does not know whether they
// were executed.
func (c Counts) MaybeRate() float64 {
	return float64(c.Maybe+c.Broken) / float64(max(1, c.Calls))
}

// Report is the verdict on one run of the lab.
type Report struct {
	Counts
	// Crossed are answers of another call, Corrupt those that are not whole,
	// and Unsaid errors that do not say whether the function ran.
	Crossed, Corrupt, Unsaid int
	// Illegal are histories that porcupine refused.
	Illegal int
	// Reasons counts the errors by what they said.
	Reasons map[string]int
	// Slowest is the longest that any call took.
	Slowest time.Duration
	// Faults are what is held against Windlass, the first few of each kind.
	Faults []string
}

// Kept says whether every promise was kept.
func (r Report) Kept() bool { return len(r.Faults) == 0 }

// Add adds the counts of another report, and its faults.
func (r *Report) Add(o Report) {
	r.Counts = r.Counts.Plus(o.Counts)
	r.Crossed += o.Crossed
	r.Corrupt += o.Corrupt
	r.Unsaid += o.Unsaid
	r.Illegal += o.Illegal
	r.Slowest = max(r.Slowest, o.Slowest)
	r.Faults = append(r.Faults, o.Faults...)
}

// examples is how many calls of each kind of fault are named.
const examples = 3

// judge collects a report.
type judge struct {
	report Report
	shown  map[string]int
	allow  Allowance
}

func newJudge(allow Allowance) *judge {
	return &judge{report: Report{Reasons: make(map[string]int)}, shown: make(map[string]int), allow: allow}
}

// calls judges calls by their executions.
func (j *judge) calls(calls []Call, byNonce map[string][]Run) {
	for i := range calls {
		j.call(calls[i], byNonce[calls[i].Nonce])
	}
	j.report.Illegal = illegalClaims(calls, byNonce)
	if j.report.Illegal > 0 {
		j.fault("illegal", fmt.Sprintf("%d histories of claims and answers that cannot be", j.report.Illegal))
	}
}

// bounds checks what the fault may cost.
func (j *judge) bounds() {
	j.bound("maybe", j.report.Maybe, j.allow.Maybe)
	j.bound("no", j.report.No, j.allow.No)
	j.bound("broken", j.report.Broken, j.allow.Broken)
	if !j.allow.Failures {
		j.bound("failed", j.report.Failed, 0)
	}
}

// call judges one call by its executions.
func (j *judge) call(c Call, runs []Run) {
	r := &j.report
	r.Calls++
	r.Slowest = max(r.Slowest, c.Latency())
	if len(runs) > 1 && !c.Repeatable {
		r.Duplicated++
		j.fault("duplicated", fmt.Sprintf("%s was executed %d times", c.Nonce, len(runs)))
	}
	switch {
	case c.Outcome == Left:
		r.Left++
	case c.Outcome == Unanswered || j.allow.Patience > 0 && c.Latency() > j.allow.Patience:
		r.Lost++
		j.fault("lost", fmt.Sprintf("%s was not answered within %v", c.Nonce, c.Latency()))
	case c.Outcome == Broken:
		r.Broken++
		r.Reasons["connection broke: "+c.Error]++
	case c.Succeeded():
		j.success(c, runs)
	default:
		j.problem(c, runs)
	}
}

func (j *judge) success(c Call, runs []Run) {
	r := &j.report
	r.Succeeded++
	if len(runs) == 0 {
		r.Lost++
		j.fault("lost", fmt.Sprintf("%s succeeded and was not executed", c.Nonce))
	}
	if c.Echo != c.Nonce {
		r.Crossed++
		j.fault("crossed", fmt.Sprintf("%s was given the answer of %q", c.Nonce, c.Echo))
	} else if !c.Whole {
		r.Corrupt++
		j.fault("corrupt", fmt.Sprintf("the answer to %s is not what the function said", c.Nonce))
	}
}

func (j *judge) problem(c Call, runs []Run) {
	r := &j.report
	r.Reasons[fmt.Sprintf("%d %s %s", c.Status, c.Executed, c.Reason)]++
	switch c.Executed {
	case No:
		r.No++
		if len(runs) > 0 {
			r.WrongNo++
			j.fault("wrong no", fmt.Sprintf("%s was executed, and its caller told %d %s no", c.Nonce, c.Status, c.Reason))
		}
	case Maybe:
		r.Maybe++
	case Yes:
		r.Failed++
		if len(runs) == 0 {
			r.Lost++
			j.fault("lost", fmt.Sprintf("%s was said to be executed, and was not", c.Nonce))
		}
	default:
		r.Unsaid++
		j.fault("unsaid", fmt.Sprintf("%s failed with %d and no word about its execution", c.Nonce, c.Status))
	}
}

// Late names the executions that began although nobody may run their calls any
// more. The forbidden calls are named by nonce, each with the moment from which on no
// execution of it may begin.
func Late(runs []Run, forbidden map[string]int64) []string {
	var late []string
	for _, run := range runs {
		from, is := forbidden[run.Nonce]
		if is && run.Began >= from {
			late = append(late, fmt.Sprintf("late: %s began %v after the moment from which on it must not run",
				run.Nonce, time.Duration(run.Began-from)))
		}
	}
	if n := len(late); n > examples {
		late = append(late[:examples], fmt.Sprintf("late: %d executions in all", n))
	}
	return late
}

// invocations checks that an invocation belongs to one call, however often it was
// executed, and notes to which.
func (j *judge) invocations(runs []Run, nonces map[string]string) {
	for _, run := range runs {
		if before, known := nonces[run.Invocation]; known && before != run.Nonce {
			j.report.Crossed++
			j.fault("crossed", fmt.Sprintf("invocation %s was executed for %s and for %s", run.Invocation, before, run.Nonce))
		}
		nonces[run.Invocation] = run.Nonce
	}
}

// bound checks a count that the fault may only raise so far.
func (j *judge) bound(what string, got, most int) {
	if most != Any && got > most {
		j.fault(what, fmt.Sprintf("%d calls ended with %q, and at most %d may: %s", got, what, most, j.reasons()))
	}
}

func (j *judge) reasons() string {
	var all []string
	for reason, n := range j.report.Reasons {
		all = append(all, fmt.Sprintf("%s x%d", reason, n))
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

func (j *judge) fault(kind, text string) {
	if j.shown[kind]++; j.shown[kind] <= examples {
		j.report.Faults = append(j.report.Faults, kind+": "+text)
	}
}
