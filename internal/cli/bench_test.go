package cli

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func benching(got *BenchConfig) Programs {
	return Programs{
		Bench: func(_ context.Context, config BenchConfig) error { *got = config; return nil },
		BenchSuites: []BenchSuite{
			{Name: "warm", Shows: "what it costs", Takes: 3 * time.Minute, Stores: true},
			{Name: "rates", Shows: "how long it takes", Takes: 20 * time.Second, Stores: true},
			{Name: "limits", Shows: "what runs", Takes: 10 * time.Second},
		},
	}
}

func TestBenchListsTheSuites(t *testing.T) {
	quiet(t).play(t, nil, benching(nil), "bench").
		expect(t, exitOK, "out", "warm     what it costs       3m0s", "rates    how long it takes   20s", "all      all of them         3m30s")
}

func TestBenchHandsOverWhatItWasTold(t *testing.T) {
	agent := fakeAgent(t)
	dir := write(t, map[string]string{"stored.json": "{}"})
	stored := filepath.Join(dir, "stored.json")
	for _, tt := range []struct {
		args []string
		want BenchConfig
	}{
		{[]string{"warm"}, BenchConfig{
			Suites: []string{"warm"}, Rounds: 5, Span: time.Second, Rates: []int{100, 500, 1000, 2000}, Command: "windlass bench warm",
		}},
		{[]string{"all", "--rounds", "2", "--span", "3s", "--rate", "7", "--rate", "8", "--json", "--store", "new.json", "--check", stored}, BenchConfig{
			Suites: []string{"all"}, Rounds: 2, Span: 3 * time.Second, Rates: []int{7, 8}, JSON: true, StoreFile: "new.json", CheckFile: stored,
			Command: "windlass bench all --rounds 2 --span 3s --rate 7,8",
		}},
	} {
		var got BenchConfig
		quiet(t).play(t, nil, benching(&got), append([]string{"bench", "--agent", agent}, tt.args...)...).expect(t, exitOK, "err")
		tt.want.AgentPath = agent
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(BenchConfig{}, "Out", "Err")); diff != "" {
			t.Error(diff)
		}
	}
}

func TestBenchRefusesWhatItCannotRun(t *testing.T) {
	agent := fakeAgent(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"cold"}, `there is no suite "cold"; it is one of warm, rates, limits, all`},
		{[]string{"warm", "--rounds", "0"}, "--rounds 0 must be 1 to 100"},
		{[]string{"warm", "--span", "2m"}, "--span 2m0s must be 10ms to 1m"},
		{[]string{"rates", "--rate", "0"}, "--rate 0 must be 1 to 1000000"},
		{[]string{"warm", "--check", "nowhere"}, "--check nowhere: there is no such file; write one with windlass bench warm --store FILE"},
		{[]string{"limits", "--store", "new.json"}, "--store and --check are about ratios, and limits measures none; add one of warm, rates, all"},
		{[]string{"limits", "--check", "nowhere"}, "limits measures none"},
		{[]string{"warm", "--agent", "nowhere"}, "the agent's program is not at"},
		{[]string{"warm", "--context", "c"}, "--context has no effect"},
	} {
		var got BenchConfig
		args := append([]string{"bench", "--agent", agent}, tt.args...)
		quiet(t).play(t, nil, benching(&got), args...).expect(t, exitUsage, "err", tt.want)
		if got.Suites != nil {
			t.Errorf("%v ran", tt.args)
		}
	}
}
