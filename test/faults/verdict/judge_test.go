package verdict_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// honest is a history in which every promise was kept: successes, a refusal, a
// maybe of each kind, and a broken connection.
func honest() ([]verdict.Call, []verdict.Run) {
	at := func(n int) int64 { return int64(n) * int64(time.Millisecond) }
	var calls []verdict.Call
	var runs []verdict.Run
	for i := range 10 {
		nonce := fmt.Sprint("n", i)
		calls = append(calls, verdict.Call{
			Nonce: nonce, Status: 200, Executed: verdict.Yes, Invocation: "i" + nonce, Echo: nonce, Whole: true, Began: at(i), Ended: at(i + 10),
		})
		runs = append(runs, verdict.Run{Nonce: nonce, Invocation: "i" + nonce, CID: "a", Began: at(i + 2), Ended: at(i + 8)})
	}
	calls = append(calls,
		verdict.Call{Nonce: "refused", Status: 503, Executed: verdict.No, Reason: "NoCapacity", Ended: at(5)},
		verdict.Call{Nonce: "late", Status: 502, Executed: verdict.Maybe, Reason: "InstanceLost", Ended: at(5)},
		verdict.Call{Nonce: "never", Status: 502, Executed: verdict.Maybe, Reason: "InstanceLost", Ended: at(5)},
		verdict.Call{Nonce: "broke", Outcome: verdict.Broken, Ended: at(5)},
		verdict.Call{Nonce: "left", Outcome: verdict.Left, Ended: at(5)},
		verdict.Call{Nonce: "twice", Status: 200, Executed: verdict.Yes, Echo: "twice", Whole: true, Repeatable: true, Ended: at(9)},
	)
	runs = append(runs,
		verdict.Run{Nonce: "late", Invocation: "ilate", CID: "b", Began: at(2)},
		verdict.Run{Nonce: "twice", Invocation: "itwice", CID: "b", Began: at(2)},
		verdict.Run{Nonce: "twice", Invocation: "itwice", CID: "c", Began: at(4), Ended: at(6)},
	)
	return calls, runs
}

func judge(calls []verdict.Call, runs []verdict.Run, allow verdict.Allowance) verdict.Report {
	return new(verdict.History).Judge(verdict.Row{Calls: calls, Runs: runs, Allow: allow})
}

func lenient() verdict.Allowance {
	return verdict.Allowance{Maybe: verdict.Any, No: verdict.Any, Broken: verdict.Any, Patience: time.Minute}
}

func TestAnHonestHistoryIsAcquitted(t *testing.T) {
	calls, runs := honest()
	report := judge(calls, runs, lenient())
	if !report.Kept() {
		t.Errorf("held against it: %v", report.Faults)
	}
	if report.Calls != 16 || report.Left != 1 || report.Succeeded != 11 || report.No != 1 || report.Maybe != 2 || report.Broken != 1 {
		t.Errorf("counted wrongly: %+v", report)
	}
}

// TestEveryLieIsCaught breaks the honest history in one place each, as a broken
// Windlass would.
func TestEveryLieIsCaught(t *testing.T) {
	lies := map[string]struct {
		want string
		lie  func(calls []verdict.Call, runs []verdict.Run) ([]verdict.Call, []verdict.Run)
	}{
		"executed twice on two instances": {"duplicated", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			again := r[3]
			again.CID = "b"
			return c, append(r, again)
		}},
		"executed twice by a transport that repeats": {"duplicated", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			return c, append(r, r[3])
		}},
		"maybe, and executed twice": {"duplicated", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			return c, append(r, verdict.Run{Nonce: "late", Invocation: "ilate", CID: "c", Began: 3})
		}},
		"a success that was not executed": {"lost", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			return c, r[1:]
		}},
		"an error of a function that was not executed": {"lost", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			c[0].Status = 500
			return c, r[1:]
		}},
		"no answer": {"lost", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			c[2].Outcome = verdict.Unanswered
			return c, r
		}},
		"an answer after the deadline": {"lost", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			c[2].Ended = c[2].Began + int64(2*time.Minute)
			return c, r
		}},
		"no, and executed": {"wrong no", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			c[4].Status, c[4].Executed = 503, verdict.No
			return c, r
		}},
		"no, and executed afterwards": {"wrong no", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			return c, append(r, verdict.Run{Nonce: "refused", Invocation: "irefused", CID: "a", Began: c[10].Ended + 1})
		}},
		"the answer of another call": {"crossed", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			c[5].Echo = c[6].Nonce
			return c, r
		}},
		"one invocation for two calls": {"crossed", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			r[5].Invocation = r[6].Invocation
			return c, r
		}},
		"an answer that is cut short": {"corrupt", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			c[5].Whole = false
			return c, r
		}},
		"an error that says nothing": {"unsaid", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			c[10].Executed = ""
			return c, r
		}},
		"executed after the answer was there": {"illegal", func(c []verdict.Call, r []verdict.Run) ([]verdict.Call, []verdict.Run) {
			// An answer cannot be older than what it answers.
			c[7].Ended = c[7].Began + 1
			r[7].Began = c[7].Began + 5
			c[7].Executed, c[7].Status = verdict.No, 503
			return c, r
		}},
	}
	for name, test := range lies {
		t.Run(name, func(t *testing.T) {
			calls, runs := test.lie(honest())
			report := judge(calls, runs, lenient())
			if !strings.Contains(strings.Join(report.Faults, "\n"), test.want) {
				t.Errorf("%q is not among what is held against it: %q", test.want, report.Faults)
			}
		})
	}
}

func TestAFaultMayCostNoMoreThanItIsAllowed(t *testing.T) {
	tests := map[string]func(a *verdict.Allowance){
		"maybe":  func(a *verdict.Allowance) { a.Maybe = 1 },
		"no":     func(a *verdict.Allowance) { a.No = 0 },
		"broken": func(a *verdict.Allowance) { a.Broken = 0 },
	}
	for what, restrict := range tests {
		calls, runs := honest()
		allow := lenient()
		restrict(&allow)
		if report := judge(calls, runs, allow); len(report.Faults) != 1 || !strings.HasPrefix(report.Faults[0], what+":") {
			t.Errorf("%s: held against it: %q", what, report.Faults)
		}
	}
}

func TestAFunctionMayFailOnlyWhereThatIsExpected(t *testing.T) {
	calls, runs := honest()
	calls[1].Status = 500
	if report := judge(calls, runs, lenient()); report.Kept() {
		t.Error("an error of the function went unnoticed")
	}
	allow := lenient()
	allow.Failures = true
	if report := judge(calls, runs, allow); !report.Kept() {
		t.Errorf("held against it: %q", report.Faults)
	}
}

func TestReportsAddUp(t *testing.T) {
	calls, runs := honest()
	calls[4].Status, calls[4].Executed = 503, verdict.No
	one := judge(calls, runs, lenient())
	var total verdict.Report
	total.Add(one)
	total.Add(one)
	if total.Calls != 2*one.Calls || total.WrongNo != 2 || total.No != 2*one.No || total.Maybe != 2*one.Maybe || total.Kept() {
		t.Errorf("twice %+v is %+v", one, total)
	}
}

func TestT2AnExecutionThatBeginsWhenNobodyMayRunTheCallIsHeldAgainstWindlass(t *testing.T) {
	runs := []verdict.Run{{Nonce: "waited", Began: 200}, {Nonce: "ran", Began: 90}, {Nonce: "other", Began: 500}}
	forbidden := map[string]int64{"waited": 100, "ran": 100, "never": 0}
	late := verdict.Late(runs, forbidden)
	if len(late) != 1 || !strings.Contains(late[0], "waited") {
		t.Errorf("late are %q, and it is the call that waited", late)
	}
	if verdict.Late(runs[1:], forbidden) != nil {
		t.Error("a call that was granted before, and one that is not forbidden, are held against Windlass")
	}
}
