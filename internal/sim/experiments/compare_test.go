package experiments

import (
	"math"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
)

func TestMeanAndDeviationOfASample(t *testing.T) {
	same := func(f float64) float64 { return f }
	if s := statsOf([]float64{2, 4, 4, 4, 5, 5, 7, 9}, same); s.mean != 5 || math.Abs(s.deviation-math.Sqrt(32./7)) > 1e-12 {
		t.Errorf("%+v, want a mean of 5 and a deviation of the root of 32/7", s)
	}
	if s := statsOf([]float64{3}, same); s != (stats{mean: 3}) {
		t.Errorf("one result has %+v", s)
	}
}

func TestADifferenceMustBeMoreThanNoise(t *testing.T) {
	runs := func(values ...float64) (all []azureRun) {
		for _, v := range values {
			all = append(all, azureRun{p99: v})
		}
		return all
	}
	wait := axes[1]
	for _, tt := range []struct {
		name         string
		ours, others []azureRun
		want         comparison
	}{
		{"the same", runs(10, 20, 30), runs(10, 20, 30), same},
		{"less with every seed, though seeds differ by more", runs(9, 19, 29), runs(10, 20, 30), better},
		{"more with every seed", runs(11, 21, 31), runs(10, 20, 30), worse},
		{"less in the mean only", runs(1, 40, 10), runs(20, 20, 20), same},
		{"less by less than a hundredth", runs(99.5, 199.1, 299.2), runs(100, 200, 300), same},
		{"one seed", runs(10), runs(20), better},
	} {
		if got := compareOn(wait, tt.ours, tt.others); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestToDominateIsToBeBetterOnceAndNeverWorse(t *testing.T) {
	for _, tt := range []struct {
		verdicts []comparison
		want     bool
	}{
		{[]comparison{same, same}, false}, {[]comparison{same, better}, true}, {[]comparison{better, worse}, false}, {[]comparison{better, better}, true},
	} {
		if got := dominates(tt.verdicts); got != tt.want {
			t.Errorf("%v dominates: %v", tt.verdicts, got)
		}
	}
}

// Calls of 50 ms that come at most once in a while need one instance, and a wait that
// is as long as its start.
func TestNeededIsTheSmallestPoolThatIsGoodEnough(t *testing.T) {
	o := Options{Size: Size{Seeds: 1, Scale: 1}}
	for _, cell := range []burstCell{{50 * time.Millisecond, 200, 3 * time.Second}, {500 * time.Millisecond, 10, 500 * time.Millisecond}} {
		reference := cell.run(o, 3, decider("FPCSch"), true)
		target := time.Duration(waitSlack * float64(counted(reference.p99)))
		n := cell.needed(o, 3, reference)
		slow := 1
		for cell.run(o, 3, cluster.FixedPool(slow), true).p99 > target {
			slow++
		}
		if n != slow {
			t.Errorf("%+v: needed %d, but by trying one after the other %d", cell, n, slow)
		}
	}
}

// What an oracle needs is found by halving, among what is allowed: the same by trying one
// after the other.
func TestACellIsFeasibleIfTheOracleMeetsItsGoals(t *testing.T) {
	o := Options{Size: Size{Seeds: 1, Scale: .5}}
	cell := burstCell{50 * time.Millisecond, 200, 500 * time.Millisecond}
	reference := cell.run(o, o.Seed, decider("FPCSch"), true)
	result := burstResult{needed: cell.needed(o, o.Seed, reference), runs: map[string]burstRun{"FPCSch": reference}}
	slow := 1
	for cell.run(o, o.Seed, oracle(slow), true).waitBeside(reference) > waitSlack {
		slow++
	}
	if slow < result.needed {
		t.Errorf("the oracle needs %d, and a pool that is there sooner %d", slow, result.needed)
	}
	result.needed = slow
	if f := cell.explore(o, []burstResult{result}); f.oracle != slow || !f.feasible() {
		t.Errorf("the oracle needs %+v, but by trying one after the other %d", f, slow)
	}
	result.needed = slow / 2
	if f := cell.explore(o, []burstResult{result}); f.feasible() {
		t.Errorf("%+v is feasible, though %d are needed", f, slow)
	}
}

func TestACellIsMetOnlyIfAllGoalsAre(t *testing.T) {
	good := burstSummary{needed: 10, created: 13, toFPCSch: 1.2}
	for name, change := range map[string]func(*burstSummary){
		"created": func(s *burstSummary) { s.created = 14 }, "wait": func(s *burstSummary) { s.toFPCSch = 1.21 },
		"reversals": func(s *burstSummary) { s.reversals = .1 },
	} {
		s := good
		change(&s)
		if !good.met() || s.met() {
			t.Errorf("%s decides nothing", name)
		}
	}
}

func TestThroughputOfAStageIsThatOfItsSecondHalf(t *testing.T) {
	// Four stages of 10 s; in the second half of the i-th one 100 * (i+1) calls a
	// second are answered, and none in the first.
	r := cluster.Result{Length: 40 * time.Second}
	answered := 0
	for at := time.Duration(0); at <= r.Length; at += time.Second {
		r.Series = append(r.Series, cluster.Point{At: at, Answered: answered})
		if at%(10*time.Second) >= 5*time.Second {
			answered += 100 * (1 + int(at/(10*time.Second)))
		}
	}
	for stage := range fig6Stages {
		if got, want := stageThroughput(r, stage), float64(100*(stage+1)); got != want {
			t.Errorf("stage %d: %v calls a second, want %v", stage, got, want)
		}
	}
}

func TestSlug(t *testing.T) {
	for name, want := range map[string]string{"cold calls %": "cold_calls", "Horizon, 10 min": "horizon_10_min", "GB-hours": "gb_hours"} {
		if got := slug(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
