package cluster

import (
	"reflect"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
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
	if min, max := got.Wait.Quantile(0), got.Wait.Max(); min != 0 || (max-346*ms).Abs() > ms {
		t.Errorf("waits from %v to %v, want 0 to 346ms", min, max)
	}
	if want := 2013 * ms; r.LastAnswer != want {
		t.Errorf("the last answer came at %v, want %v", r.LastAnswer, want)
	}
	if got.Starting != 300*ms || got.Busy != (56+56+12)*ms {
		t.Errorf("starting for %v, busy for %v", got.Starting, got.Busy)
	}
}

func burst(seed uint64, decider fpcs.Decider) Config {
	return Config{
		Seed: seed, Length: time.Minute,
		Functions:  []Function{{Work: Fixed(50 * ms), Start: Fixed(3 * time.Second), KnownWork: 50 * ms, KnownStart: 3 * time.Second}},
		Loads:      []Load{Poisson{Rate: 200}},
		Decider:    decider,
		Resolution: time.Second,
	}
}

func TestSameSeedSameResult(t *testing.T) {
	a, b := run(t, burst(1, fpcs.Listing1)), run(t, burst(1, fpcs.Listing1))
	if !reflect.DeepEqual(a, b) {
		t.Error("the same Config had different results")
	}
	if c := run(t, burst(2, fpcs.Listing1)); reflect.DeepEqual(a, c) {
		t.Error("another seed had the same result")
	}
	t.Logf("created %d, p50 %v, p99 %v, busy %v, idle %v", a.Total.Created, a.Total.Wait.Quantile(.5), a.Total.Wait.Quantile(.99), a.Total.Busy, a.Total.Idle)
}

func BenchmarkCalls(b *testing.B) {
	calls := 0
	for b.Loop() {
		calls += run(b, burst(1, FixedPool(14))).Total.Calls
	}
	b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "calls/s")
}
