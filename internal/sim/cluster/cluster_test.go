package cluster

import (
	"reflect"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

const ms = time.Millisecond

func run(t testing.TB, c Config) Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Three calls come while the first instance starts: it runs them one by one.
func TestPoolOfOneRunsCallsOneByOne(t *testing.T) {
	r := run(t, Config{
		Functions: []Function{{Work: Fixed(50 * ms), Start: Fixed(300 * ms)}},
		Loads:     []Load{Given{{At: 10 * ms, Work: OwnWork}, {At: 20 * ms, Work: OwnWork}, {At: 2000 * ms, Work: 7 * ms}}},
		Decider:   FixedPool(1),
		Overheads: Overheads{Admit: 1 * ms, Claim: 2 * ms, Answer: 3 * ms, Pull: 4 * ms},
	})
	got := r.Functions[0]
	// Ready at 10+1+300 = 311. The first begins at 313, ends at 363, and the
	// instance asks again at 367; the second begins at 369.
	if got.Created != 1 || got.Answered != 3 || got.Cold != 2 || got.Open != 0 {
		t.Errorf("got %+v", got)
	}
	if least, most := got.Wait.Quantile(0), got.Wait.Max(); least != 0 || (most-346*ms).Abs() > ms {
		t.Errorf("waits from %v to %v, want 0 to 346ms", least, most)
	}
	if want := 2013 * ms; r.LastAnswer != want {
		t.Errorf("the last answer came at %v, want %v", r.LastAnswer, want)
	}
	if got.Starting != 300*ms || got.Busy != (56+56+12)*ms {
		t.Errorf("starting for %v, busy for %v", got.Starting, got.Busy)
	}
}

func burst(seed uint64, decider autoscaler.Decider) Config {
	return Config{
		Seed: seed, Length: time.Minute,
		Functions:  []Function{{Work: Fixed(50 * ms), Start: Fixed(3 * time.Second), KnownWork: 50 * ms, KnownStart: 3 * time.Second}},
		Loads:      []Load{Poisson{Rate: 200}},
		Decider:    decider,
		Resolution: time.Second,
	}
}

func TestSameSeedSameResult(t *testing.T) {
	a, b := run(t, burst(1, autoscaler.FPCSch)), run(t, burst(1, autoscaler.FPCSch))
	if !reflect.DeepEqual(a, b) {
		t.Error("the same Config had different results")
	}
	if c := run(t, burst(2, autoscaler.FPCSch)); reflect.DeepEqual(a, c) {
		t.Error("another seed had the same result")
	}
}
