package main

import (
	"testing"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

func TestConnectionsMayBreakAtOneGatewayOnly(t *testing.T) {
	here := verdict.Call{Gateway: "a", Outcome: verdict.Broken}
	there := verdict.Call{Gateway: "b", Outcome: verdict.Broken}
	for name, test := range map[string]struct {
		calls []verdict.Call
		want  int
	}{
		"at the one that was killed": {[]verdict.Call{here, {Gateway: "b"}}, 0},
		"at the other":               {[]verdict.Call{here, there, there}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var s faultEnv
			if s.brokenOnlyAt(test.calls, "a"); len(s.broken) != test.want {
				t.Errorf("held against Windlass: %q", s.broken)
			}
		})
	}
}

func TestKilledAgentsCostNoMoreThanTheirCalls(t *testing.T) {
	calls := []verdict.Call{{Status: 200}, {Status: 502, Executed: verdict.Maybe}, {Status: 502, Executed: verdict.Maybe}}
	for kills, want := range map[int]int{0: 1, 1: 1, 2: 0, 3: 0} {
		var s faultEnv
		if s.maybesWithin(calls, kills); len(s.broken) != want {
			t.Errorf("two maybes after %d kills: held against Windlass: %q", kills, s.broken)
		}
	}
}

func TestAMisbehavingFunctionHasAnErrorOfItsOwn(t *testing.T) {
	maybe := func(status int) verdict.Call { return verdict.Call{Status: status, Executed: verdict.Maybe} }
	slow := maybe(502)
	slow.Ended = int64(soon)
	for name, test := range map[string]struct {
		failed func(verdict.Call) bool
		call   verdict.Call
		want   bool
	}{
		"502":                         {maybeWith(502), maybe(502), true},
		"504 instead":                 {maybeWith(502), maybe(504), false},
		"502 instead":                 {maybeWith(504), maybe(502), false},
		"late":                        {maybeWith(502), slow, false},
		"no instead":                  {maybeWith(502), verdict.Call{Status: 502, Executed: verdict.No}, false},
		"cut off":                     {cutOff, verdict.Call{Status: 200, Outcome: verdict.Broken}, true},
		"a clean end":                 {cutOff, verdict.Call{Status: 200}, false},
		"a bad answer that breaks":    {badAnswer, verdict.Call{Status: 200, Outcome: verdict.Broken}, true},
		"a bad answer, refused":       {badAnswer, maybe(502), true},
		"a bad answer, given up":      {badAnswer, maybe(504), false},
		"a bad answer, its good part": {badAnswer, verdict.Call{Status: 200}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inTime(test.failed)(test.call); got != test.want {
				t.Errorf("%+v is as it should be: %t", test.call, got)
			}
		})
	}
}
