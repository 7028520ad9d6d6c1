package main

import (
	"slices"
	"testing"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

func TestABurstThatRefusesNobodyShowsNothing(t *testing.T) {
	var s faultEnv
	if s.refusedSome([]verdict.Call{{Status: 200}, {Executed: verdict.No, Reason: "NoInstanceInTime"}}); len(s.broken) != 1 {
		t.Errorf("held against Windlass: %q; want one, since no call was refused by the limit", s.broken)
	}
	s = faultEnv{}
	if s.refusedSome([]verdict.Call{{Status: 200}, {Executed: verdict.No, Reason: "ConcurrencyLimited"}}); len(s.broken) != 0 {
		t.Errorf("held against Windlass: %q", s.broken)
	}
}

func TestAnInstanceThatRunsACallIsFoundByItsRun(t *testing.T) {
	cids := []string{"a", "b", "c"}
	for name, test := range map[string]struct {
		runs  []verdict.Run
		nonce string
	}{
		"none":                     {nil, ""},
		"one that has ended":       {[]verdict.Run{{Nonce: "n1", CID: "a", Began: 90, Ended: 95}}, ""},
		"one that is about to end": {[]verdict.Run{{Nonce: "n1", CID: "a", Began: 40}}, ""},
		"of a pod that is gone":    {[]verdict.Run{{Nonce: "n1", CID: "gone", Began: 90}}, ""},
		"the youngest": {[]verdict.Run{
			{Nonce: "n1", CID: "a", Began: 60}, {Nonce: "n2", CID: "b", Began: 80}, {Nonce: "n3", CID: "c", Began: 70},
		}, "n2"},
	} {
		t.Run(name, func(t *testing.T) {
			if run, found := youngest(test.runs, cids, 50); run.Nonce != test.nonce || found != (test.nonce != "") {
				t.Errorf("found %+v, %t; want %q", run, found, test.nonce)
			}
		})
	}
}

func TestACallIsHitIfItFailsOrRunsAgain(t *testing.T) {
	calls := []verdict.Call{
		{Nonce: "well", Status: 200}, {Nonce: "maybe", Status: 502, Executed: verdict.Maybe},
		{Nonce: "broken", Outcome: verdict.Broken}, {Nonce: "again", Status: 200}, {Nonce: "bystander", Status: 502},
	}
	runs := []verdict.Run{{Nonce: "well", CID: "a"}, {Nonce: "again", CID: "a"}, {Nonce: "again", CID: "b"}}
	if got := hits([]string{"well", "maybe", "broken", "again"}, calls, runs); !slices.Equal(got, []string{"maybe", "broken", "again"}) {
		t.Errorf("hit were %q", got)
	}
}
