package verdict_test

import (
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// good is a call that was answered well, and ran its execution.
func good(nonce string) (verdict.Call, verdict.Run) {
	return verdict.Call{Nonce: nonce, Status: 200, Executed: verdict.Yes, Echo: nonce, Whole: true, Began: 1, Ended: 9},
		verdict.Run{Nonce: nonce, Invocation: "i" + nonce, CID: "a", Began: 2, Ended: 8}
}

func TestAnExecutionThatComesAfterTheVerdictIsHeldAgainstTheNextRow(t *testing.T) {
	answered, run := good("F1.1")
	repeatable, its := good("F1.2")
	repeatable.Repeatable = true
	refused := verdict.Call{Nonce: "F1.3", Status: 503, Executed: verdict.No, Ended: 9}
	unsure := verdict.Call{Nonce: "F1.4", Status: 502, Executed: verdict.Maybe, Ended: 9}
	for name, test := range map[string]struct {
		late []verdict.Run
		want string
	}{
		"a second one":                   {[]verdict.Run{run}, "duplicated: F1.1"},
		"a second one that may be":       {[]verdict.Run{its}, ""},
		"one of a call that was refused": {[]verdict.Run{{Nonce: "F1.3", Invocation: "i3"}}, "wrong no: F1.3"},
		"the first one of a maybe":       {[]verdict.Run{{Nonce: "F1.4", Invocation: "i4"}}, ""},
		"two of a maybe":                 {[]verdict.Run{{Nonce: "F1.4", Invocation: "i4"}, {Nonce: "F1.4", Invocation: "i4"}}, "duplicated: F1.4"},
		"one that is forbidden":          {[]verdict.Run{{Nonce: "F1.5", Invocation: "i5", Began: 20}}, "late: F1.5"},
		"one of another's invocation":    {[]verdict.Run{{Nonce: "F1.4", Invocation: "iF1.1"}}, "crossed: invocation iF1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			var history verdict.History
			first := history.Judge(verdict.Row{
				Calls: []verdict.Call{answered, repeatable, refused, unsure}, Runs: []verdict.Run{run, its},
				Forbidden: map[string]int64{"F1.5": 10}, Allow: lenient(),
			})
			if !first.Kept() {
				t.Fatalf("held against the first row: %q", first.Faults)
			}
			next := history.Judge(verdict.Row{Runs: test.late, Allow: lenient()})
			got := strings.Join(next.Faults, "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("held against the next row: %q, want %q", got, test.want)
			}
			if counted := next.Duplicated + next.WrongNo; strings.HasPrefix(test.want, "duplicated") != (next.Duplicated == 1) || counted > 1 {
				t.Errorf("counted %+v", next.Counts)
			}
		})
	}
}

func TestCallsOfARecoveryAreJudgedAndNotCounted(t *testing.T) {
	call, run := good("F2.r1-1")
	var history verdict.History
	report := history.Judge(verdict.Row{Recovery: []verdict.Call{call}, Runs: []verdict.Run{run, run}})
	if report.Duplicated != 1 || report.Kept() || report.Calls != 0 || report.Succeeded != 0 {
		t.Errorf("a call that was executed twice comes to %+v", report)
	}
	failed := []verdict.Call{{Nonce: "F2.r2-1", Status: 503, Executed: verdict.No}, {Nonce: "F2.r3-1", Outcome: verdict.Broken}}
	if report := history.Judge(verdict.Row{Recovery: failed}); !report.Kept() || report.No != 0 {
		t.Errorf("calls that fail before all is well again come to %+v", report)
	}
	if report := history.Judge(verdict.Row{Runs: []verdict.Run{{Nonce: "F2.r2-1", Invocation: "i"}}}); report.WrongNo != 1 {
		t.Errorf("one of them that is executed later comes to %+v", report)
	}
}
