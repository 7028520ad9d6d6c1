package node

import (
	"math"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// linux is the kernel of two cores, with its weight of idle groups.
var linux = Kernel{Slice: 1400 * time.Microsecond, Low: 3. / 1024}

// onKernel are the policies on one core of it.
func onKernel() map[string]Policy {
	filter := PublishedFilter()
	filter.Kernel = &linux
	return map[string]Policy{
		"alone": linux, "filter": filter,
		"tickets": Tickets{Params: callorder.DefaultParams(1), Kernel: &linux},
		"exempt":  Tickets{Params: callorder.DefaultParams(1), Kernel: &linux, ExemptBelow: 20 * ms},
	}
}

func TestTheKernelGivesAllOfTheCoreAndNoMore(t *testing.T) {
	for seed := range uint64(6) {
		calls := randomCalls(seed, 300, 1, seed%2 == 1)
		want := 0.0
		for i := range calls {
			calls[i].Rest = time.Duration(i%3) * 100 * time.Microsecond
			want += (calls[i].CPU() + calls[i].Rest).Seconds()
		}
		for name, p := range onKernel() {
			served, last, rate := 0.0, 0.0, 0.0
			_, err := runWatched(1, calls, p, func(w *world) {
				served += rate * (w.now - last)
				last, rate = w.now, computing(w)
				could := 0
				for _, j := range w.jobs {
					if j.there && !j.over && j.computes() && j.launched >= 0 {
						could++
					}
				}
				if rate > 1 || could > 0 && rate != 1 {
					t.Fatalf("%s, seed %d, at %.3f s: %.3f cores compute for %d calls", name, seed, w.now, rate, could)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if served > want+1e-6 || served < want-1e-3 { // what is after the last answer is not awaited
				t.Errorf("%s, seed %d: the core served %.3f s of %.3f s", name, seed, served, want)
			}
		}
	}
}

func TestCallsShareTheKernelEvenly(t *testing.T) {
	got := mustRun(t, 1, []Call{Computing(0, "f", 500*ms), Computing(0, "f", 500*ms), Computing(0, "f", time.Hour)}, linux)
	if apart := got[0].Ended - got[1].Ended; apart.Abs() > 2*linux.Slice {
		t.Errorf("two calls that are alike ended %s apart", apart)
	}
	if end := got[1].Ended; (end - 1500*ms).Abs() > 3*linux.Slice {
		t.Errorf("they ended after %s, and a third of the core for each makes it 1.5s", end)
	}
}

// TestTheKernelIsSharingInTheLongRun compares with ideal sharing calls that are long beside slices.
func TestTheKernelIsSharingInTheLongRun(t *testing.T) {
	for seed := range uint64(10) {
		calls := randomCalls(seed, 100, 1, false)
		for i := range calls {
			calls[i].Phases[0].Length *= 20
			calls[i].Arrival *= 20
		}
		ideal, got := mustRun(t, 1, calls, Sharing{}), mustRun(t, 1, calls, linux)
		sum, want := 0.0, 0.0
		for i := range calls {
			sum += got[i].Turnaround().Seconds()
			want += ideal[i].Turnaround().Seconds()
		}
		if math.Abs(sum/want-1) > .01 {
			t.Errorf("seed %d: the mean turnaround is %.3f of ideal sharing's", seed, sum/want)
		}
	}
}

func TestAShortCallOnTheKernelIsLikeByHand(t *testing.T) {
	// Beside one long call it waits for the rest of a slice.
	short := Computing(100*ms+300*time.Microsecond, "short", ms)
	got := mustRun(t, 1, []Call{Computing(0, "long", time.Second), short}, linux)
	if want := 72*linux.Slice - short.Arrival + ms; (got[1].Turnaround() - want).Abs() > time.Microsecond {
		t.Errorf("beside one call it took %s, want %s", got[1].Turnaround(), want)
	}
	// Calls that have had less than their share come before it: of n, half on average, a slice each.
	const n, rounds = 6, 100
	sum := time.Duration(0)
	for i := range rounds {
		calls := []Call{Computing(200*ms+time.Duration(i)*730*time.Microsecond, "short", ms)}
		for range n {
			calls = append(calls, Computing(0, "long", time.Second))
		}
		took := mustRun(t, 1, calls, linux)[0].Turnaround()
		if took > n*linux.Slice+ms {
			t.Errorf("a call that needs less than a slice waited for more than one slice of each other: it took %s", took)
		}
		sum += took / rounds
	}
	if want := n*linux.Slice/2 + ms; sum < want/2 || sum > want*3/2 {
		t.Errorf("beside %d calls it took %s on average, want about %s", n, sum, want)
	}
}

func TestTheLowBandOfTheKernelHasItsWeight(t *testing.T) {
	// It is alone for a millisecond, and has 1/300 of the core then.
	calls := []Call{Computing(0, "low", 100*ms), Computing(ms, "normal", time.Minute)}
	low := mustRun(t, 1, calls, lowFirst{Kernel{Slice: linux.Slice, Low: 1. / 299}})[0].Ended
	if want := 99 * 300 * ms; (low - want).Abs() > 600*ms {
		t.Errorf("a low call with 1/300 of the core ended after %s, want about %s", low, want)
	}
	// A normal call takes the core at once, and keeps it for a slice at least.
	got := mustRun(t, 1, []Call{Computing(0, "low", 100*ms), Computing(ms/2, "normal", ms)}, lowFirst{linux})
	ends(t, "low", got, 101*ms, ms/2+ms)
}

// lowFirst has the first call in the low band.
type lowFirst struct{ Kernel }

type lowFirstStarted struct{ *kernel }

func (p lowFirst) start(w *world, cores int) (decisions, error) {
	k, err := p.core(w, cores)
	return lowFirstStarted{k}, err
}

func (s lowFirstStarted) add(j *job) {
	if j.number == 0 {
		s.w.launch(j, s.low)
		return
	}
	s.w.launch(j, s.normal)
}

func TestOthersWaitForWhatAProcessDoesAfterItsAnswer(t *testing.T) {
	calls := []Call{Computing(0, "f", 10*ms), Computing(ms, "f", 10*ms)}
	calls[0].Rest = 3 * ms
	ends(t, "sharing", mustRun(t, 1, calls, Sharing{}), 19*ms, 21*ms)
	ends(t, "tickets", mustRun(t, 1, calls, Tickets{Params: filterParams(1)}), 10*ms, 23*ms)
}

func TestFunctionsWithShortCallsCeaseToAsk(t *testing.T) {
	p := filterParams(1)
	calls := []Call{Computing(0, "short", ms), Computing(10*ms, "long", 15*ms), Computing(12*ms, "short", ms)}
	// It waits for a ticket, or shares the core at once.
	ends(t, "all ask", mustRun(t, 1, calls, Tickets{Params: p}), ms, 25*ms, 26*ms)
	ends(t, "exempt", mustRun(t, 1, calls, Tickets{Params: p, ExemptBelow: 2 * ms}), ms, 26*ms, 14*ms)
	ends(t, "not short", mustRun(t, 1, calls, Tickets{Params: p, ExemptBelow: ms}), ms, 25*ms, 26*ms)
}

func TestTheKernelHasOneCore(t *testing.T) {
	for name, p := range map[string]Policy{
		"kernel": linux, "slice": Kernel{Low: 1}, "weight": Kernel{Slice: ms}, "tickets": Tickets{Params: callorder.DefaultParams(2), Kernel: &linux},
	} {
		cores := 1
		if name == "kernel" || name == "tickets" {
			cores = 2
		}
		if _, err := Run(cores, []Call{Computing(0, "f", ms)}, p); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}
