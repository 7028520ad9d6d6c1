package admission

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

var start = time.Unix(1_000_000, 0)

func reason(r *invocation.Refusal) invocation.RefusalReason {
	if r == nil {
		return ""
	}
	return r.Reason
}

func TestConcurrencyCountsWhatWaitsAndWhatRuns(t *testing.T) {
	for _, c := range []struct {
		waiting, out int
		want         invocation.RefusalReason
	}{
		{0, 0, ""}, {2, 2, ""}, {5, 0, invocation.RefusedConcurrency}, {0, 5, invocation.RefusedConcurrency}, {3, 2, invocation.RefusedConcurrency},
	} {
		got := new(Limiter).Admit(Call{Now: start, Remaining: time.Minute, Waiting: c.waiting, Out: c.out}, Limits{Concurrency: 5}, BacklogEstimate{})
		if reason(got) != c.want {
			t.Errorf("%d wait and %d are out: %+v, want %q", c.waiting, c.out, got, c.want)
		}
	}
}

// They differ once somebody has lowered the limit.
func TestARefusalSaysWhatTheLimitIs(t *testing.T) {
	got := new(Limiter).Admit(Call{Now: start, Remaining: time.Minute, Waiting: 3, Out: 4}, Limits{Concurrency: 5}, BacklogEstimate{})
	if got == nil || !strings.HasPrefix(got.Detail, "7 calls of this function wait or run, and its limit is 5;") {
		t.Errorf("refused with %+v", got)
	}
}

func TestWaitIsPredictedOnlyFromWhatIsKnown(t *testing.T) {
	call := Call{Now: start, Remaining: 10 * time.Second, Waiting: 100, Jitter: 0.5}
	for name, c := range map[string]struct {
		backlog BacklogEstimate
		want    invocation.RefusalReason
		after   time.Duration
	}{
		"too long":        {BacklogEstimate{Parallel: 5, Mean: time.Second, AtCapacity: true}, invocation.RefusedWait, 20 * time.Second},
		"just in time":    {BacklogEstimate{Parallel: 10, Mean: time.Second, AtCapacity: true}, "", 0},
		"may grow":        {BacklogEstimate{Parallel: 1, Mean: time.Second}, "", 0},
		"no mean":         {BacklogEstimate{Parallel: 1, AtCapacity: true}, "", 0},
		"no instance":     {BacklogEstimate{Mean: time.Second, AtCapacity: true}, "", 0},
		"nearly for ever": {BacklogEstimate{Parallel: 1, Mean: math.MaxInt64, AtCapacity: true}, invocation.RefusedWait, 25 * time.Second},
	} {
		got := new(Limiter).Admit(call, Limits{}, c.backlog)
		if reason(got) != c.want || got != nil && got.RetryAfter.Round(time.Millisecond) != c.after {
			t.Errorf("%s: %+v, want %q after %v", name, got, c.want, c.after)
		}
	}
}

func TestRateOfAMinute(t *testing.T) {
	var in Limiter
	taken := func(from time.Time) (n int) {
		for i := range 6000 {
			call := Call{Now: from.Add(time.Duration(i) * 10 * time.Millisecond), Term: invocation.Term{Epoch: 1}, Remaining: time.Minute}
			if got := in.Admit(call, Limits{Rate: 10, Burst: 20}, BacklogEstimate{}); got == nil {
				n++
			} else if got.Reason != invocation.RefusedRate || got.RetryAfter < 800*time.Millisecond {
				t.Fatalf("refused with %+v", got)
			}
		}
		return n
	}
	// Half of the burst, and 10 in each second.
	if n := taken(start); n < 605 || n > 612 {
		t.Errorf("%d calls were taken in the first minute, want about 610", n)
	}
	if n := taken(start.Add(2 * time.Minute)); n < 615 || n > 622 {
		t.Errorf("%d calls were taken after a rest, want about 620", n)
	}
}

func TestNewTermStartsWithHalfABurst(t *testing.T) {
	var in Limiter
	limits := Limits{Rate: 1, Burst: 10}
	taken := func(epoch uint64, limits Limits) (n int) {
		for in.Admit(Call{Now: start, Term: invocation.Term{Epoch: epoch}}, limits, BacklogEstimate{}) == nil {
			n++
		}
		return n
	}
	if n := taken(1, limits); n != 5 {
		t.Errorf("%d calls were taken at first, want 5", n)
	}
	if n := taken(2, limits); n != 5 {
		t.Errorf("%d calls were taken after a take-over, want 5", n)
	}
	if n := taken(2, Limits{Rate: 5, Burst: 100}); n != 0 {
		t.Errorf("%d calls were taken at once when the limit was raised, want those of the time since", n)
	}
	if n := taken(3, Limits{Rate: 1, Burst: 1}); n != 1 {
		t.Errorf("%d calls were taken of a burst of 1, want 1", n)
	}
}

// A call that is refused for another reason must not be counted against the rate.
func TestRefusedCallsCostNoRate(t *testing.T) {
	var in Limiter
	limits := Limits{Rate: 1, Burst: 2, Concurrency: 1}
	for range 10 {
		if got := in.Admit(Call{Now: start, Waiting: 1}, limits, BacklogEstimate{}); reason(got) != invocation.RefusedConcurrency {
			t.Fatalf("got %+v", got)
		}
	}
	if got := in.Admit(Call{Now: start}, limits, BacklogEstimate{}); got != nil {
		t.Errorf("the first call that fits: %+v", got)
	}
}

func TestRetryAfterIsSpreadAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gone := time.Duration(rapid.Int64().Draw(t, "gone"))
		got := RetryAfter(gone, rapid.Float64Range(0, 1).Draw(t, "chance"))
		if got < 800*time.Millisecond || got > 30*time.Second {
			t.Fatalf("%v", got)
		}
		if gone > 2*time.Second && gone < 20*time.Second && (float64(got) < 0.8*float64(gone)-1 || float64(got) > 1.2*float64(gone)+1) {
			t.Fatalf("%v for %v", got, gone)
		}
		if first, last := RetryAfter(gone, 0), RetryAfter(gone, 0.999); last-first < first/3 {
			t.Fatalf("%v to %v for %v", first, last, gone)
		}
	})
}

// A call that the instances reach in time is not refused for its wait.
func TestWaitIsNeverRefusedWrongly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parallel, waiting := rapid.IntRange(1, 1000).Draw(t, "parallel"), rapid.IntRange(0, 10_000).Draw(t, "waiting")
		mean := time.Duration(rapid.IntRange(1, 60_000).Draw(t, "mean, ms")) * time.Millisecond
		remaining := time.Duration(rapid.IntRange(0, 60_000).Draw(t, "remaining, ms")) * time.Millisecond
		// The slow way: all instances take a call each, again and again.
		turn := time.Duration(waiting/parallel) * mean
		got := new(Limiter).Admit(Call{Now: start, Remaining: remaining, Waiting: waiting}, Limits{}, BacklogEstimate{Parallel: parallel, Mean: mean, AtCapacity: true})
		if got != nil && turn+mean <= remaining {
			t.Fatalf("its turn comes after %v: %+v", turn, got)
		}
	})
}

func TestCallsOfAnEarlierOwnerAreLetIn(t *testing.T) {
	call := Call{Now: start, Reoffered: true, Remaining: time.Second, Waiting: 100}
	limits, backlog := Limits{Concurrency: 1, Rate: 1, Burst: 1}, BacklogEstimate{Parallel: 1, Mean: time.Minute, AtCapacity: true}
	var in Limiter
	for range 10 {
		if got := in.Admit(call, limits, backlog); got != nil {
			t.Fatalf("refused: %+v", got)
		}
	}
	if got := in.Admit(Call{Now: start}, limits, backlog); got != nil {
		t.Errorf("they were counted: a new call is refused with %+v", got)
	}
}
