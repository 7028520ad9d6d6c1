package node

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

const ms = time.Millisecond

// randomCalls come about as fast as the cores compute them, or faster.
func randomCalls(seed uint64, n, cores int, sleeps bool) []Call {
	r := rand.New(rand.NewPCG(seed, 1))
	var calls []Call
	at := time.Duration(0)
	load := .6 + r.Float64()
	for range n {
		class := r.IntN(4)
		work := time.Duration(float64(ms) * []float64{3, 10, 40, 200}[class] * (.5 + r.Float64()))
		at += time.Duration(r.ExpFloat64() * 63 * float64(ms) / float64(cores) / load)
		c := Computing(at, fmt.Sprint("f", class), work)
		c.Namespace = fmt.Sprint("n", r.IntN(2))
		if sleeps && r.IntN(2) == 0 {
			c.Phases = []Phase{{Sleep, time.Duration(r.IntN(50)) * ms}, {Compute, work}, {Share, 2 * ms}, {Compute, 5 * ms}}
		}
		calls = append(calls, c)
	}
	return calls
}

// conserving are the policies that let no core idle while a call could compute.
func conserving(cores int) map[string]Policy {
	all := map[string]Policy{
		"sharing": Sharing{}, "fifo": Queueing{}, "sept": Queueing{Key: Sizes(0, Call.CPU)}, "shortest": Shortest{},
		"filter":            PublishedFilter(),
		"tickets":           Tickets{Params: callorder.DefaultParams(cores)},
		"tickets, known":    Tickets{Params: callorder.DefaultParams(cores), Known: map[string]time.Duration{"f0": 3 * ms, "f3": 200 * ms}},
		"tickets, filter":   Tickets{Params: filterParams(cores)},
		"tickets, duration": Tickets{Params: callorder.DefaultParams(cores), ByDuration: true},
	}
	for _, order := range callorder.Orders() {
		p := callorder.DefaultParams(cores)
		p.Order, p.Preempt = order, false
		all["tickets, "+string(order)] = Tickets{Params: p}
	}
	return all
}

// filterParams are SFS's levers without a real-time class.
func filterParams(cores int) callorder.Params {
	p := callorder.DefaultParams(cores)
	p.Order, p.Preempt, p.Bypass = callorder.FIFO, false, 3
	p.Slice = callorder.Slice{Rule: callorder.SliceSFS}
	return p
}

func policies(cores int) map[string]Policy {
	all := conserving(cores)
	if cores > 1 {
		all["hybrid"] = Hybrid{FIFO: (cores + 1) / 2, Limit: 50 * ms}
		all["hybrid p75, rightsized"] = Hybrid{FIFO: (cores + 1) / 2, Limit: 50 * ms, Percentile: .75, Rightsize: time.Second, Threshold: .1}
	}
	return all
}

func mustRun(t *testing.T, cores int, calls []Call, p Policy) []Result {
	t.Helper()
	results, err := Run(cores, calls, p)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestEveryCallEndsAndNoneBeforeItCould(t *testing.T) {
	for _, cores := range []int{1, 3, 8} {
		for seed := range uint64(4) {
			calls := randomCalls(seed, 400, cores, seed%2 == 1)
			for name, p := range policies(cores) {
				for i, r := range mustRun(t, cores, calls, p) {
					if r.Arrival != calls[i].Arrival || r.CPU != calls[i].CPU() {
						t.Fatalf("%s: result %d is %+v, which is not of call %+v", name, i, r, calls[i])
					}
					if r.Began < r.Arrival || r.Turnaround() < r.Alone-time.Microsecond {
						t.Fatalf("%s, %d cores, seed %d: call %d ended impossibly soon: %+v", name, cores, seed, i, r)
					}
				}
			}
		}
	}
}

func TestCoresServeWhatCallsCompute(t *testing.T) {
	for _, cores := range []int{1, 4} {
		for seed := range uint64(4) {
			calls := randomCalls(seed, 300, cores, true)
			want := 0.0
			for _, c := range calls {
				want += c.CPU().Seconds()
			}
			for name, p := range policies(cores) {
				served, last, rate := 0.0, 0.0, 0.0
				_, err := runWatched(cores, calls, p, func(w *world) {
					served += rate * (w.now - last)
					last, rate = w.now, computing(w)
				})
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(served-want) > 1e-6 {
					t.Errorf("%s, %d cores, seed %d: cores served %.3f s of %.3f s", name, cores, seed, served, want)
				}
			}
		}
	}
}

// computing is how many cores are in use.
func computing(w *world) float64 {
	sum := 0.0
	for _, g := range w.groups {
		if g == w.shared {
			continue
		}
		for _, b := range g.bands {
			sum += b.rate() * float64(len(b.jobs.items))
		}
	}
	return sum
}

func TestNoCoreIdlesWhileACallCouldCompute(t *testing.T) {
	for _, cores := range []int{1, 2, 7} {
		for seed := range uint64(5) {
			calls := randomCalls(seed, 300, cores, false)
			for name, p := range conserving(cores) {
				_, err := runWatched(cores, calls, p, func(w *world) {
					could := 0
					for _, j := range w.jobs {
						if j.there && !j.over && j.computes() {
							could++
						}
					}
					if want := min(float64(cores), float64(could)); math.Abs(computing(w)-want) > 1e-6 {
						t.Fatalf("%s, %d cores, seed %d, at %.3f s: %.3f cores compute; %d calls could", name, cores, seed, w.now, computing(w), could)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestHybridLeavesCoresIdle(t *testing.T) {
	// Two calls within the limit, and one core for them.
	calls := []Call{Computing(0, "f", 40*ms), Computing(0, "f", 40*ms)}
	got := mustRun(t, 2, calls, Hybrid{FIFO: 1, Limit: 50 * ms})
	if got[1].Ended != 80*ms {
		t.Errorf("the second call ended after %s; the core of the other group is not for it, so want 80ms", got[1].Ended)
	}
}

func TestSharingIsLikeByHand(t *testing.T) {
	for _, tt := range []struct {
		cores int
		calls []Call
		want  []time.Duration
	}{
		{1, []Call{Computing(0, "f", 30*ms)}, []time.Duration{30 * ms}},
		// Each gets half until the shorter one is over.
		{1, []Call{Computing(0, "f", 30*ms), Computing(0, "f", 10*ms)}, []time.Duration{40 * ms, 20 * ms}},
		// 10 ms alone, then three of them.
		{1, []Call{Computing(0, "f", 20*ms), Computing(10*ms, "f", 10*ms), Computing(10*ms, "f", 20*ms)}, []time.Duration{40 * ms, 40 * ms, 50 * ms}},
		// A call uses one core at most.
		{2, []Call{Computing(0, "f", 30*ms), Computing(0, "f", 30*ms)}, []time.Duration{30 * ms, 30 * ms}},
		// Three share two cores: 2/3 each.
		{2, []Call{Computing(0, "f", 20*ms), Computing(0, "f", 20*ms), Computing(0, "f", 40*ms)}, []time.Duration{30 * ms, 30 * ms, 50 * ms}},
	} {
		for i, r := range mustRun(t, tt.cores, tt.calls, Sharing{}) {
			if d := r.Ended - tt.want[i]; d.Abs() > time.Microsecond {
				t.Errorf("%d cores, %d calls: call %d ended at %s, want %s", tt.cores, len(tt.calls), i, r.Ended, tt.want[i])
			}
		}
	}
}

// TestSharingWithOneArrivalTime compares with the closed form: of calls that come together
// on one core, the k-th shortest ends at the sum of min(work, its own work) over all.
func TestSharingWithOneArrivalTime(t *testing.T) {
	for seed := range uint64(20) {
		calls := randomCalls(seed, 30, 1, false)
		for i := range calls {
			calls[i].Arrival = 0
		}
		for i, r := range mustRun(t, 1, calls, Sharing{}) {
			var want time.Duration
			for _, c := range calls {
				want += min(c.CPU(), calls[i].CPU())
			}
			if (r.Ended - want).Abs() > time.Microsecond {
				t.Fatalf("seed %d: call %d ended at %s, want %s", seed, i, r.Ended, want)
			}
		}
	}
}

func TestNobodyHasAShorterMeanTurnaroundThanTheOracle(t *testing.T) {
	mean := func(results []Result) (sum time.Duration) {
		for _, r := range results {
			sum += r.Turnaround()
		}
		return sum / time.Duration(len(results))
	}
	for seed := range uint64(30) {
		calls := randomCalls(seed, 200, 1, false)
		best := mean(mustRun(t, 1, calls, Shortest{}))
		for name, p := range policies(1) {
			if got := mean(mustRun(t, 1, calls, p)); got < best-time.Microsecond {
				t.Errorf("seed %d: %s has a mean turnaround of %s, and the oracle of %s", seed, name, got, best)
			}
		}
	}
}

func TestRunsAreTheSame(t *testing.T) {
	calls := randomCalls(3, 400, 4, true)
	for name, p := range policies(4) {
		if first := mustRun(t, 4, calls, p); !slices.Equal(first, mustRun(t, 4, calls, policies(4)[name])) {
			t.Errorf("%s: the same calls had other results", name)
		}
	}
}

func TestFilterIsThePapers(t *testing.T) {
	// One core, slices of 20 ms, no bypass.
	plain := Filter{Slice: 20 * ms}
	// The long call loses its priority after its slice, and goes on once the short ones are over.
	calls := []Call{Computing(0, "long", 50*ms), Computing(5*ms, "f", 10*ms), Computing(6*ms, "f", 10*ms)}
	ends(t, "slices", mustRun(t, 1, calls, plain), 70*ms, 30*ms, 40*ms)
	// With a bypass of half a slice both others wait too long, and share.
	bypassing := plain
	bypassing.Bypass = .5
	ends(t, "bypass", mustRun(t, 1, calls, bypassing), 70*ms, 50*ms, 50*ms)
	// A call that sleeps loses its worker at the next look and comes back with the rest of its slice.
	asleep := []Call{
		{Phases: []Phase{{Compute, 2 * ms}, {Sleep, 10 * ms}, {Compute, 10 * ms}}},
		Computing(0, "long", 40*ms),
	}
	polling := plain
	polling.Poll = 4 * ms
	ends(t, "polling", mustRun(t, 1, asleep, polling), 34*ms, 52*ms)
	ends(t, "not polling", mustRun(t, 1, asleep, plain), 44*ms, 52*ms)
}

func ends(t *testing.T, what string, results []Result, want ...time.Duration) {
	t.Helper()
	for i, r := range results {
		if (r.Ended - want[i]).Abs() > time.Microsecond {
			t.Errorf("%s: call %d ended at %s, want %s", what, i, r.Ended, want[i])
		}
	}
}

// A call's response ends when it first gets a part of a core, or sleeps, under every policy: not when its process is there, nor when
// a worker takes it once more.
func TestResponseIsUntilACallFirstGetsACore(t *testing.T) {
	responds := func(name string, results []Result, want ...time.Duration) {
		t.Helper()
		for i, r := range results {
			if d := r.Response() - want[i]; d.Abs() > time.Microsecond {
				t.Errorf("%s: call %d waited for %s, want %s", name, i, r.Response(), want[i])
			}
		}
	}
	crowd := []Call{Computing(0, "long", 50*ms), Computing(5*ms, "f", 10*ms), Computing(6*ms, "f", 10*ms)}
	responds("in a queue", mustRun(t, 1, crowd, Filter{Slice: 20 * ms}), 0, 15*ms, 24*ms)
	responds("past the queue", mustRun(t, 1, crowd, Filter{Slice: 20 * ms, Bypass: .5}), 0, 15*ms, 14*ms)
	responds("shares", mustRun(t, 1, crowd, Sharing{}), 0, 0, 0)
	responds("takes turns", mustRun(t, 1, []Call{Computing(0, "f", 10*ms), Computing(0, "f", 10*ms)}, Kernel{Slice: 3 * ms, Low: .01}), 0, 3*ms)
	asleep := []Call{{Phases: []Phase{{Sleep, 50 * ms}, {Compute, 10 * ms}}}}
	responds("asleep", mustRun(t, 1, asleep, Filter{Slice: 20 * ms, Poll: 4 * ms}), 0)
}

// What is known of a function is its size, not a call of the last minute, and not an earlier call.
func TestKnownFunctionsHadNoCall(t *testing.T) {
	calls := []Call{Computing(0, "short", 100*ms), Computing(10*ms, "short", 100*ms), Computing(20*ms, "long", 800*ms)}
	for _, order := range []callorder.Order{callorder.FairChoice, callorder.RECT} {
		p := callorder.DefaultParams(1)
		p.Order, p.Preempt, p.Slice, p.BlockedAfter = order, false, callorder.Slice{Rule: callorder.SliceOff}, 0
		known := map[string]time.Duration{"short": 100 * ms, "long": 800 * ms}
		ends(t, string(order)+": a first call goes before a second one",
			mustRun(t, 1, calls, Tickets{Params: p, Known: known, ByDuration: true}), 100*ms, 1000*ms, 900*ms)
	}
}

func TestFilterLearnsItsSlice(t *testing.T) {
	var calls []Call
	for i := range 250 {
		calls = append(calls, Computing(time.Duration(i)*10*ms, "f", ms))
	}
	var slicesSeen []time.Duration
	p := PublishedFilter()
	p.Observe = func(_, s time.Duration) { slicesSeen = append(slicesSeen, s.Round(time.Microsecond)) }
	mustRun(t, 4, calls, p)
	if want := []time.Duration{40 * ms, 40 * ms}; !slices.Equal(slicesSeen, want) {
		t.Errorf("slices were %v, want %v: mean gap times cores, twice", slicesSeen, want)
	}
}

func TestHybridAdaptsItsLimitAndItsCores(t *testing.T) {
	// 100 calls of 10 ms end, so the limit is 10 ms when the long call comes.
	var calls []Call
	for i := range 100 {
		calls = append(calls, Computing(time.Duration(i)*20*ms, "f", 10*ms))
	}
	calls = append(calls, Computing(3*time.Second, "long", 100*ms), Computing(3*time.Second, "f", 10*ms))
	got := mustRun(t, 2, calls, Hybrid{FIFO: 1, Limit: time.Second, Percentile: .95})
	ends(t, "limit", got[100:], 3100*ms, 3020*ms)

	// Nothing is ever beyond the limit: all cores but one move to the queue.
	calls = nil
	for i := range 1000 {
		calls = append(calls, Computing(time.Duration(i)*2*ms, "f", 10*ms))
	}
	cores := 0
	mustRun(t, 4, calls, Hybrid{FIFO: 1, Limit: time.Second, Rightsize: 100 * ms, Threshold: .1, Observe: func(_ time.Duration, _, _ float64, n int) { cores = n }})
	if cores != 3 {
		t.Errorf("the queue has %d cores in the end, want 3", cores)
	}
}

func TestBadRunsAreRefused(t *testing.T) {
	for name, run := range map[string]func() error{
		"no cores": func() error { _, err := Run(0, nil, Sharing{}); return err },
		"no work":  func() error { _, err := Run(1, []Call{{}}, Sharing{}); return err },
		"a negative work": func() error {
			_, err := Run(1, []Call{{Phases: []Phase{{Compute, ms * 9}, {Sleep, -ms}}}}, Sharing{})
			return err
		},
	} {
		if run() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTicketsFollowTheProduct(t *testing.T) {
	params := callorder.DefaultParams(1)
	params.Slice = callorder.Slice{Rule: callorder.SliceFixed, Length: 20 * ms}
	known := map[string]time.Duration{"long": 200 * ms, "short": 10 * ms}
	calls := []Call{Computing(0, "long", 200*ms), Computing(7*ms, "short", 10*ms), Computing(8*ms, "short", 10*ms)}
	// The short ones preempt the long one, one after the other.
	ends(t, "preemption", mustRun(t, 1, calls, Tickets{Params: params, Known: known}), 220*ms, 17*ms, 27*ms)
	// Nothing is known and nobody preempts: the long call loses its ticket at the sample that sees
	// its slice used up.
	params.Preempt, params.Order = false, callorder.FIFO
	ends(t, "slice", mustRun(t, 1, calls, Tickets{Params: params}), 220*ms, 30*ms, 40*ms)
	// With no slice and no preemption it is a queue.
	params.Slice = callorder.Slice{Rule: callorder.SliceOff}
	calls = randomCalls(5, 300, 3, false)
	for i := range calls {
		calls[i].Namespace = "" // they would share fairly
	}
	params.Cores = 3
	if got := mustRun(t, 3, calls, Tickets{Params: params}); !slices.Equal(got, mustRun(t, 3, calls, Queueing{})) {
		t.Error("FIFO tickets without slices are not a queue")
	}
}

func TestBlockedCallsGiveTheirTicketsToOthers(t *testing.T) {
	params := callorder.DefaultParams(1)
	params.Order, params.Preempt = callorder.FIFO, false
	calls := []Call{{Function: "sleeper", Phases: []Phase{{Compute, 2 * ms}, {Sleep, 100 * ms}, {Compute, 2 * ms}}}, Computing(ms, "f", 30*ms)}
	got := mustRun(t, 1, calls, Tickets{Params: params})
	if got[1].Ended > 50*ms {
		t.Errorf("the second call ended at %s: it waited for one that sleeps", got[1].Ended)
	}
	params.BlockedAfter = 0
	if got = mustRun(t, 1, calls, Tickets{Params: params}); got[1].Ended < 100*ms {
		t.Errorf("the second call ended at %s: tickets of blocked calls are not to be given away", got[1].Ended)
	}
}

func TestTicketsNeedTheirOwnCores(t *testing.T) {
	if _, err := Run(2, randomCalls(1, 3, 1, false), Tickets{Params: callorder.DefaultParams(1)}); err == nil {
		t.Error("params for one core on a node of two: no error")
	}
}
