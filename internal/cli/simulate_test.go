package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func simulating(got *SimConfig) Programs {
	return Programs{
		Sim:         func(config SimConfig) error { *got = config; return nil },
		Experiments: []Experiment{{Name: "first", Summary: "one thing"}, {Name: "replay", Summary: "another", NeedsData: true}, {Name: "many", Summary: "a third", CountsGateways: true}},
	}
}

func TestSimListsTheExperiments(t *testing.T) {
	quiet(t).play(t, nil, simulating(nil), "sim").
		expect(t, exitOK, "out", "first    one thing", "replay   another", "many     a third", "all      all of them")
}

func TestSimHandsOverWhatItWasTold(t *testing.T) {
	data := t.TempDir()
	for _, tt := range []struct {
		args []string
		want SimConfig
	}{
		{[]string{"first"}, SimConfig{Experiments: []string{"first"}, Seed: 1, Output: "table"}},
		{[]string{"first", "--json", "--seed", "9", "--seeds", "3", "--scale", "0.5"},
			SimConfig{Experiments: []string{"first"}, Seed: 9, Seeds: 3, Scale: .5, Output: "json"}},
		{[]string{"replay", "--gateways", "3", "--data", data},
			SimConfig{Experiments: []string{"replay"}, Seed: 1, Gateways: 3, Output: "table", DataDir: data}},
		{[]string{"all", "--quick", "-o", "csv", "--data", data},
			SimConfig{Experiments: []string{"first", "replay", "many"}, Seed: 1, Quick: true, Output: "csv", DataDir: data}},
	} {
		var got SimConfig
		quiet(t).play(t, nil, simulating(&got), append([]string{"sim"}, tt.args...)...).expect(t, exitOK, "err")
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(SimConfig{}, "Out", "Err")); diff != "" {
			t.Error(diff)
		}
		if got.Out == nil || got.Err == nil {
			t.Error("there is nowhere to print")
		}
	}
}

func TestSimWithoutTracesLeavesOutWhatReplaysThem(t *testing.T) {
	var got SimConfig
	quiet(t).play(t, nil, simulating(&got), "sim", "all", "--data", "nowhere").
		expect(t, exitOK, "err", "replay is left out: it replays recorded traces")
	if diff := cmp.Diff([]string{"first", "many"}, got.Experiments); diff != "" {
		t.Error(diff)
	}
}

func TestSimWithGatewaysLeavesOutWhatCountsThem(t *testing.T) {
	var got SimConfig
	quiet(t).play(t, nil, simulating(&got), "sim", "all", "--gateways", "2", "--data", t.TempDir()).
		expect(t, exitOK, "err", "many is left out: it compares numbers of gateways itself")
	if diff := cmp.Diff([]string{"first", "replay"}, got.Experiments); diff != "" {
		t.Error(diff)
	}
}

func TestSimLeavesOutWhatReplaysAFileThatIsNotThere(t *testing.T) {
	folder := t.TempDir()
	var got SimConfig
	programs := simulating(&got)
	programs.Experiments = []Experiment{{Name: "one", NeedsData: true, NeedsFile: "one.csv"}}
	quiet(t).play(t, nil, programs, "sim", "one", "--data", folder).expect(t, exitUsage, "err", "has no one.csv, which one replays")
	quiet(t).play(t, nil, programs, "sim", "one", "--data", folder+"/nowhere").expect(t, exitUsage, "err", "name a folder with one.csv")
	if err := os.WriteFile(filepath.Join(folder, "one.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	quiet(t).play(t, nil, programs, "sim", "one", "--data", folder).expect(t, exitOK, "out")
	if diff := cmp.Diff([]string{"one"}, got.Experiments); diff != "" {
		t.Error(diff)
	}
}

func TestSimRefusesWhatItCannotRun(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"third"}, `there is no experiment "third"; it is one of first, replay, many, or all`},
		{[]string{"first", "replay"}, "name one experiment"},
		{[]string{"first", "--json", "--csv"}, "--json and --csv exclude each other"},
		{[]string{"first", "-o", "xml"}, "write -o and one of table, json, csv"},
		{[]string{"first", "--scale", "2"}, "--scale 2 must be more than 0 and at most 1"},
		{[]string{"first", "--scale", "NaN"}, "--scale NaN must be"},
		{[]string{"first", "--seeds", "0"}, "--seeds 0 must be at least 1"},
		{[]string{"first", "--quick", "--seeds", "3"}, "remove it, or --seeds and --scale"},
		{[]string{"first", "--gateways", "0"}, "--gateways 0 must be at least 1"},
		{[]string{"many", "--gateways", "3"}, "many compares numbers of gateways itself, or has none; remove --gateways"},
		{[]string{"replay", "--data", "nowhere"}, `--data "nowhere" is no folder`},
	} {
		var got SimConfig
		quiet(t).play(t, nil, simulating(&got), append([]string{"sim"}, tt.args...)...).expect(t, exitUsage, "err", tt.want)
		if got.Experiments != nil {
			t.Errorf("%v ran", tt.args)
		}
	}
}

func TestSimOfBrokenTracesIsMisuse(t *testing.T) {
	programs := simulating(nil)
	programs.Sim = func(SimConfig) error { return errors.New("the trace is broken") }
	quiet(t).play(t, nil, programs, "sim", "first").expect(t, exitUsage, "err", "the trace is broken")
}
