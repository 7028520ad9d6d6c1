package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestScenariosHaveNamesOfTheirOwn(t *testing.T) {
	for _, suite := range Suites([]int{100, 200}) {
		for _, group := range suite.Groups {
			seen := map[string]string{}
			for _, s := range group {
				if other := seen[s.Name()]; other != "" {
					t.Errorf("%s: %q is both %q and %q", suite.Name, s.Name(), other, s)
				}
				seen[s.Name()] = s.String()
			}
		}
	}
	for s, want := range map[*Scenario]string{
		{Deployment: Deployment{1, 8, 1}, Connections: 32, Answer: smallAnswer}:               "8x1_c32: 8 instances of concurrency 1, 32 connections",
		{Deployment: Deployment{64, 1, 1}, Connections: 1, Answer: smallAnswer}:               "64f_1x1_c1: 64 functions, 1 instance of concurrency 1 each, 1 connection",
		{Deployment: Deployment{1, 1, 64}, Connections: 4, Answer: 100 << 20}:                 "1x64_c4_down100Mi: 1 instance of concurrency 64, 4 connections, answers of 100MiB",
		{Deployment: Deployment{1, 1, 64}, Connections: 4, Request: 1000, Answer: 10}:         "1x64_c4_up1000: 1 instance of concurrency 64, 4 connections, requests of 1000B",
		{Deployment: Deployment{1, 8, 1}, Connections: 256, Rate: 500, Answer: smallAnswer}:   "8x1_c256_r500: 8 instances of concurrency 1, 256 connections, 500 calls a second",
		{Deployment: Deployment{1, 2, 4}, Connections: 32, Answer: smallAnswer, HangUp: true}: "2x4_c32_hangup: 2 instances of concurrency 4, 32 connections, every other client hangs up",
	} {
		if got := s.Name() + ": " + s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRoundsMeasureEveryPathOfAScenarioOneAfterTheOther(t *testing.T) {
	all := []Path{Proxy, Local, Separate}
	plan, err := NewPlan([]Suite{{Name: "s", Groups: [][]Scenario{closedLoops(all, Deployment{1, 8, 1}, 1, 32)}}}, 2, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range plan.Steps(0) {
		got = append(got, strings.Join([]string{string(rune('0' + step.Round)), step.Scenario.Name(), string(step.Path)}, " "))
	}
	want := []string{
		"0 8x1_c1 proxy", "0 8x1_c1 windlass", "0 8x1_c1 windlass-tls", "0 8x1_c32 proxy", "0 8x1_c32 windlass", "0 8x1_c32 windlass-tls",
		"1 8x1_c1 windlass", "1 8x1_c1 windlass-tls", "1 8x1_c1 proxy", "1 8x1_c32 windlass", "1 8x1_c32 windlass-tls", "1 8x1_c32 proxy",
		"2 8x1_c1 windlass-tls", "2 8x1_c1 proxy", "2 8x1_c1 windlass", "2 8x1_c32 windlass-tls", "2 8x1_c32 proxy", "2 8x1_c32 windlass",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the steps are\n%s", strings.Join(got, "\n"))
	}
	if servers := plan.Groups[0].Servers(); len(servers) != 3 {
		t.Errorf("the servers are %v", servers)
	}
	if plan.Instances() != 16 || plan.Takes() < 20*time.Second || plan.Takes() > 40*time.Second {
		t.Errorf("%d instances, %v", plan.Instances(), plan.Takes())
	}
}

// A machine with 8 GiB must be enough, and an evening for everything.
func TestAllSuitesAreBounded(t *testing.T) {
	suites, err := FindSuites(Suites([]int{100, 500, 1000, 2000}), []string{AllSuites})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(suites, 5, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Instances() > 256 || plan.Takes() > time.Hour {
		t.Errorf("all suites take %v and %d instances", plan.Takes(), plan.Instances())
	}
}

// A figure has the name of its scenario, so it has one value only if that is measured once.
func TestAPlanMeasuresEachScenarioOnAPathOnce(t *testing.T) {
	for _, names := range [][]string{{AllSuites}, {"warm", "connections"}, {"instances", "connections"}} {
		suites, err := FindSuites(Suites([]int{100, 500}), names)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := NewPlan(suites, 5, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		planned := map[string]bool{}
		for _, group := range plan.Groups {
			if len(group.Scenarios) == 0 {
				t.Errorf("%s has a group in which nothing is measured", group.Suite)
			}
			for _, s := range group.Scenarios {
				for _, path := range s.Paths {
					what := s.Name() + " on " + string(path)
					if planned[what] {
						t.Errorf("%v: %s measures %s once more", names, group.Suite, what)
					}
					planned[what] = true
				}
			}
		}
		for _, suite := range suites {
			for _, s := range slices.Concat(suite.Groups...) {
				for _, path := range s.Paths {
					if what := s.Name() + " on " + string(path); !planned[what] {
						t.Errorf("%v: nobody measures %s of %s", names, what, suite.Name)
					}
				}
			}
		}
	}
}

func TestPlansAreRefusedThatMeasureNothingOrForever(t *testing.T) {
	for _, c := range []struct {
		rounds int
		span   time.Duration
	}{{0, time.Second}, {MostRounds + 1, time.Second}, {1, 0}, {1, MostSpan + 1}} {
		if _, err := NewPlan(nil, c.rounds, c.span); err == nil {
			t.Errorf("%d rounds of %v are a plan", c.rounds, c.span)
		}
	}
	if _, err := FindSuites(Suites(nil), []string{"warm", "cold"}); err == nil || !strings.Contains(err.Error(), `no suite "cold"; it is one of warm, scale`) {
		t.Errorf("cold is a suite: %v", err)
	}
	if found, err := FindSuites(Suites(nil), []string{"scale", "warm"}); err != nil || len(found) != 2 || found[0].Name != "warm" {
		t.Errorf("found %v, %v", found, err)
	}
}
