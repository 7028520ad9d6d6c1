package verdict

import (
	"fmt"
	"maps"
)

// Row is what happened from one verdict to the next.
type Row struct {
	// Calls are those that met the fault, which Allow is for.
	Calls []Call
	Allow Allowance
	// Recovery are calls that were made until all was well again. Each may fail.
	Recovery []Call
	// Runs are the executions that began, of these calls and of earlier ones.
	Runs []Run
	// Forbidden are calls that nobody may begin to execute from a moment on, by nonce.
	Forbidden map[string]int64
}

// History is what is known of the calls of all rows so far: an execution may come after the
// verdict on its call. No two of its calls have the same nonce.
type History struct {
	calls map[string]*pastCall
	// nonces are those of the calls that invocations belong to.
	nonces    map[string]string
	forbidden map[string]int64
}

// pastCall is a call that was judged.
type pastCall struct {
	repeatable, refused bool
	runs                int
}

// Judge compares calls with executions. Executions of calls of earlier rows count for this one.
func (h *History) Judge(s Row) Report {
	if h.calls == nil {
		h.calls, h.nonces, h.forbidden = make(map[string]*pastCall), make(map[string]string), make(map[string]int64)
	}
	byNonce := make(map[string][]Run, len(s.Runs))
	for _, run := range s.Runs {
		byNonce[run.Nonce] = append(byNonce[run.Nonce], run)
	}
	j := newJudge(s.Allow)
	j.calls(s.Calls, byNonce)
	j.bounds()
	j.invocations(s.Runs, h.nonces)
	again := newJudge(Allowance{Failures: true, Maybe: Any, No: Any, Broken: Any})
	again.calls(s.Recovery, byNonce)
	again.late(h.calls, byNonce)
	j.report.addBroken(again.report)
	maps.Copy(h.forbidden, s.Forbidden)
	j.report.Faults = append(j.report.Faults, Late(s.Runs, h.forbidden)...)
	h.remember(s, byNonce)
	return j.report
}

// late judges executions of calls of earlier rows.
func (j *judge) late(past map[string]*pastCall, byNonce map[string][]Run) {
	for nonce, runs := range byNonce {
		call, known := past[nonce]
		switch {
		case !known:
		case call.refused:
			j.report.WrongNo++
			j.fault("wrong no", nonce+" was executed after the verdict on it, and its caller told no")
		case call.runs+len(runs) > 1 && !call.repeatable:
			j.report.Duplicated++
			j.fault("duplicated", fmt.Sprintf("%s was executed %d times, and %d of them after the verdict on it", nonce, call.runs+len(runs), len(runs)))
		}
	}
}

// remember keeps what the verdict on later executions takes.
func (h *History) remember(s Row, byNonce map[string][]Run) {
	for _, calls := range [][]Call{s.Calls, s.Recovery} {
		for i := range calls {
			c := &calls[i]
			h.calls[c.Nonce] = &pastCall{repeatable: c.Repeatable, refused: c.Outcome == Answered && c.Executed == No}
		}
	}
	for nonce, runs := range byNonce {
		if h.calls[nonce] == nil {
			h.calls[nonce] = new(pastCall)
		}
		h.calls[nonce].runs += len(runs)
	}
}

// addBroken adds the promises that another report says were broken, and not its calls.
func (r *Report) addBroken(o Report) {
	o.Counts = Counts{Lost: o.Lost, Duplicated: o.Duplicated, WrongNo: o.WrongNo}
	o.Slowest = 0
	r.Add(o)
}
