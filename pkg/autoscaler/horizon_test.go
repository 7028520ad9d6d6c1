package autoscaler

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// follow lets horizon decide at each of some ticks on a function to which nothing else
// happens than what change does to it.
func follow(s Snapshot, ticks int, change func(tick int, s *Snapshot)) (Snapshot, []Decision) {
	var all []Decision
	for i := range ticks {
		if i > 0 {
			s.Elapsed = stale.Tick
		}
		change(i, &s)
		d := Horizon(s, stale)
		s.State, s.Creating = d.State, s.Creating+d.Create-d.Cancel
		all = append(all, d)
	}
	return s, all
}

func created(all []Decision) (n int) {
	for _, d := range all {
		n += d.Create
	}
	return n
}

func TestHorizonDecides(t *testing.T) {
	ms := time.Millisecond
	known := Snapshot{MeanExecution: 50 * ms, MeanStart: 3 * time.Second, Room: -1}
	with := func(change func(*Snapshot)) Snapshot {
		s := known
		change(&s)
		return s
	}
	cases := map[string]struct {
		s        Snapshot
		create   int
		required int
		why      Reason
	}{
		"a first call": {
			with(func(s *Snapshot) { s.Arrived = 1 }), 1, 1, ReasonFirst,
		},
		"a first call of which nothing is known": {
			Snapshot{Arrived: 1, Room: -1}, 1, 1, ReasonFirst,
		},
		"nothing at all": {
			with(func(s *Snapshot) { s.Arrived, s.Departed = 9, 9; s.State = horizonState{Arrived: 9} }), 0, 0, ReasonNoDemand,
		},
		"an instance on its way is enough for a call": {
			with(func(s *Snapshot) { s.Arrived, s.Creating = 1, 1 }), 0, 1, ReasonEnough,
		},
		"a start that failed is tried with one": {
			with(func(s *Snapshot) { s.Arrived, s.Failing = 500, true }), 1, 1, ReasonRetry,
		},
		"and not beside another": {
			with(func(s *Snapshot) { s.Arrived, s.Failing, s.Creating = 500, true, 1 }), 0, 1, ReasonEnough,
		},
		"nor beside another when one is there": {
			with(func(s *Snapshot) {
				s.Arrived, s.Departed, s.Failing, s.Created, s.Busy, s.Creating = 500, 1, true, 1, 1, 1
			}), 0, 2, ReasonEnough,
		},
		"but beside one that is there": {
			with(func(s *Snapshot) { s.Arrived, s.Departed, s.Failing, s.Created, s.Busy = 500, 1, true, 1, 1 }), 1, 2, ReasonRetry,
		},
		"and not if those that are there are enough": {
			with(func(s *Snapshot) { s.Arrived, s.Departed, s.Failing, s.Created, s.Busy = 3, 1, true, 5, 1 }), 0, 1, ReasonEnough,
		},
		"no room": {
			with(func(s *Snapshot) { s.Arrived, s.Room = 1, 0 }), 0, 1, ReasonNoRoom,
		},
		"room for some": {
			with(func(s *Snapshot) {
				s.Arrived, s.MeanExecution, s.Room = 20, time.Minute, 6
			}), 6, 20, ReasonNoRoom,
		},
		"an instance for each of some long calls": {
			with(func(s *Snapshot) { s.Arrived, s.MeanExecution = 20, time.Minute }), 20, 20, ReasonBacklog,
		},
		"the same for calls that run four at a time": {
			with(func(s *Snapshot) { s.Arrived, s.MeanExecution, s.Concurrency = 20, time.Minute, 4 }), 5, 5, ReasonBacklog,
		},
		"a backlog of short calls does not need an instance for each": {
			with(func(s *Snapshot) { s.Arrived, s.MeanStart = 100, 500*ms }), 19, 19, ReasonBacklog,
		},
		"the duration is unknown, and calls have waited for two quarters of a start": {
			Snapshot{Arrived: 100, Creating: 2, MeanStart: 2 * time.Second, OldestWait: time.Second, Room: -1}, 2, 4, ReasonRamp,
		},
		"the duration is unknown: no more than calls": {
			Snapshot{Arrived: 3, Creating: 2, MeanStart: 2 * time.Second, OldestWait: 10 * time.Second, Room: -1}, 1, 3, ReasonRamp,
		},
		"neither duration nor start is known": {
			Snapshot{Arrived: 100, Creating: 2, OldestWait: 500 * ms, Room: -1}, 2, 4, ReasonRamp,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Horizon(tc.s, stale)
			if d.Create != tc.create || d.Required != tc.required || d.Why != tc.why {
				t.Errorf("creates %d of %d because %s, want %d of %d because %s", d.Create, d.Required, d.Why, tc.create, tc.required, tc.why)
			}
		})
	}
}

func TestHorizonPlansForTheStart(t *testing.T) {
	for start, want := range map[time.Duration]time.Duration{0: time.Second, 30 * time.Millisecond: stale.Tick, 3 * time.Second: 3 * time.Second} {
		if got := Horizon(Snapshot{Arrived: 1, MeanStart: start, Room: -1}, stale).Horizon; got != want {
			t.Errorf("a start of %v: planned for %v, want %v", start, got, want)
		}
	}
}

// 200 calls a second of 50 ms need ten instances and head-room, and some that work off
// what has come during the start.
func TestHorizonSettlesAtASteadyRate(t *testing.T) {
	s := Snapshot{MeanExecution: 50 * time.Millisecond, MeanStart: 500 * time.Millisecond, Room: -1}
	orders := map[int]int{}
	s, all := follow(s, 600, func(tick int, s *Snapshot) {
		s.Created, s.Creating = s.Created+orders[tick], s.Creating-orders[tick]
		s.Arrived += 20
		if tick == 0 {
			s.Arrived = 1
		}
		run := min(uint64(s.Created)*2, uint64(s.Waiting())) //nolint:gosec // Both are small.
		s.Departed, s.Busy = s.Departed+run, int(run+1)/2
		s.OldestWait = time.Duration(s.Waiting()) * time.Second / 200
		orders[tick+5] = s.Creating - sum(orders, tick+1, tick+4)
	})
	if total := s.Created + s.Creating; total < 12 || total > 34 {
		t.Errorf("%d instances", total)
	}
	for i, d := range all[100:] {
		if d.Create != 0 || d.Cancel != 0 {
			t.Errorf("tick %d: creates %d and cancels %d", 100+i, d.Create, d.Cancel)
		}
	}
}

func sum(orders map[int]int, from, to int) (n int) {
	for i := from; i <= to; i++ {
		n += orders[i]
	}
	return n
}

// Calls that came at once and are not followed by others are no rate.
func TestHorizonOrdersNoMoreForABatchThanItsCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := rapid.Uint64Range(1, 2000).Draw(t, "calls")
		s := Snapshot{
			MeanExecution: time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "execution")),
			MeanStart:     time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Second)).Draw(t, "start")),
			Room:          -1,
		}
		_, all := follow(s, 30, func(tick int, s *Snapshot) {
			s.Arrived = calls
			if tick == 0 {
				s.Arrived = 1
			}
			s.OldestWait = time.Duration(tick) * stale.Tick
		})
		if n := created(all); uint64(n) > calls { //nolint:gosec // Not negative.
			t.Fatalf("%d instances for %d calls", n, calls)
		}
	})
}

func TestHorizonCancelsWhatIsNotWantedAnyMore(t *testing.T) {
	s := Snapshot{Arrived: 900, Departed: 900, Created: 1, Creating: 20, MeanExecution: 5 * time.Millisecond, MeanStart: 3 * time.Second, Room: -1}
	s.State = horizonState{Arrived: 900, Rates: Rates{Known: true, Departed: 900}}
	s, all := follow(s, 20, func(_ int, s *Snapshot) { s.Elapsed = stale.Tick })
	for i, d := range all {
		if (d.Cancel > 0) != (i == surplusTicks-1) || d.Cancel > 0 && d.Why != ReasonSurplus {
			t.Errorf("tick %d: cancels %d because %s", i, d.Cancel, d.Why)
		}
	}
	if total := s.Created + s.Creating; total < 1 || total > 2 {
		t.Errorf("%d instances are left", total)
	}
}

func TestHorizonCancelsNothingWhileCallsWait(t *testing.T) {
	s := Snapshot{Arrived: 1, Creating: 20, MeanExecution: 5 * time.Millisecond, MeanStart: 3 * time.Second, Room: -1}
	_, all := follow(s, 20, func(int, *Snapshot) {})
	for i, d := range all {
		if d.Cancel > 0 {
			t.Errorf("tick %d: cancels %d", i, d.Cancel)
		}
	}
}

// Clients that wait for their answers do not call faster than they are answered, so
// that the rate of their calls never shows that more could be.
func TestHorizonDoesNotLeaveAQueueStanding(t *testing.T) {
	const clients = 30
	s := Snapshot{Created: 5, MeanExecution: 50 * time.Millisecond, MeanStart: 3 * time.Second, Room: -1}
	standing, orders := false, map[int]int{}
	s, all := follow(s, 1200, func(tick int, s *Snapshot) {
		s.Created, s.Creating = s.Created+orders[tick], s.Creating-orders[tick]
		orders[tick+30] = s.Creating - sum(orders, tick+1, tick+29)
		s.Busy = min(clients, s.Created)
		s.Departed += uint64(2 * s.Busy) //nolint:gosec // Not negative.
		s.Arrived = s.Departed + uint64(clients-s.Busy)
		s.OldestWait = 50 * time.Millisecond * time.Duration(clients-s.Busy) / time.Duration(s.Busy)
	})
	for _, d := range all {
		standing = standing || d.Why == ReasonStanding
	}
	if total := s.Created + s.Creating; total != clients || !standing {
		t.Errorf("%d instances for %d clients; a standing queue was noticed: %v", total, clients, standing)
	}
}

func TestHorizonLearnsForHowLongACallHoldsAnInstance(t *testing.T) {
	s := Snapshot{Created: 10, Busy: 10, MeanExecution: 2 * time.Millisecond, MeanStart: time.Second, Room: -1}
	s, _ = follow(s, 300, func(_ int, s *Snapshot) {
		s.Arrived, s.Departed = s.Arrived+50, s.Departed+50
	})
	// Ten instances ran 500 calls a second: 20 ms each.
	if hold := stateOf[horizonState](s).Rates.Hold; hold < .017 || hold > .02 {
		t.Errorf("%v s, want nearly 20 ms", hold)
	}
}

func TestHorizonDoesNotFollowCallsThatAreSlowBecauseInstancesStart(t *testing.T) {
	s := Snapshot{Created: 5, Busy: 5, Creating: 20, MeanExecution: 50 * time.Millisecond, MeanStart: 3 * time.Second, Room: -1}
	s, _ = follow(s, 20, func(tick int, s *Snapshot) {
		s.Arrived, s.Departed = s.Arrived+1000, s.Departed+1000
		if tick > 10 {
			s.MeanExecution = time.Minute
		}
	})
	if hold := stateOf[horizonState](s).Rates.Hold; hold > .1 {
		t.Errorf("a call was taken to hold an instance for %v s within a third of a start", hold)
	}
}

func TestRates(t *testing.T) {
	p := stale
	tick := func(r Rates, arrived *uint64, came uint64, elapsed time.Duration) Rates {
		before := *arrived
		*arrived += came
		return r.advance(Snapshot{Arrived: *arrived, Departed: *arrived, Elapsed: elapsed}, p, before)
	}
	var r Rates
	var arrived uint64
	r = tick(r, &arrived, 7, 0)
	if r.Slow.rate() != 0 || r.lowRate(0) != 0 || r.likelyRate(0) != 0 {
		t.Errorf("calls that were there from the beginning are a rate of %v", r.Slow.rate())
	}
	for range 600 {
		r = tick(r, &arrived, 5, p.Tick)
	}
	if rate := r.Slow.rate(); rate < 49 || rate > 51 {
		t.Errorf("rate %v, want 50", rate)
	}
	if c, b := r.lowRate(0), r.likelyRate(0); c < 45 || c > 50 || b < 49 || b > 51 {
		t.Errorf("cautiously %v, boldly %v, want a little less than 50 and 50", c, b)
	}
	r = tick(r, &arrived, 60, p.Tick)
	if rate := r.Slow.rate(); rate < 500 {
		t.Errorf("a sudden burst of 600 a second is a rate of %v", rate)
	}
	r = tick(r, &arrived, 0, p.Tick)
	if b := r.likelyRate(0); b != 0 {
		t.Errorf("a burst that nothing followed is a rate of %v", b)
	}
	r = tick(r, &arrived, 1, time.Minute)
	if rate := r.Slow.rate(); rate != 0 {
		t.Errorf("after a minute of silence, one call is a rate of %v", rate)
	}
}

// An instance that hands its ticket back has not finished a call.
func TestRatesCountATicketThatCameBackOnlyOnce(t *testing.T) {
	for _, before := range []float64{50, 0.5} {
		r := Rates{Known: true, Departed: 10, Runs: before}
		r = r.advance(Snapshot{Arrived: 12, Departed: 9, Created: 1, Busy: 1, Elapsed: stale.Tick}, stale, 12)
		if r.Runs < 0 || r.Runs > before || r.Departed != 9 {
			t.Errorf("%v departures after one of %v came back, %d in all, want 9", r.Runs, before, r.Departed)
		}
	}
}

// A rate that doubles shows within a few seconds, not within the time over which
// arrivals are counted.
func TestRatesShowAChange(t *testing.T) {
	var r Rates
	var arrived uint64
	for i := range 1000 {
		before := arrived
		arrived += 10
		if i > 900 {
			arrived += 15
		}
		r = r.advance(Snapshot{Arrived: arrived, Elapsed: stale.Tick}, stale, before)
		if i == 930 {
			break
		}
	}
	if rate := r.Slow.rate(); rate < 180 {
		t.Errorf("rate %v three seconds after it went from 100 to 250", rate)
	}
}

// Calls that were held up on their way and come together are no other rate.
func TestRatesDoNotFollowAHiccup(t *testing.T) {
	for _, held := range []int{2, 5, 8} {
		counts := slices.Repeat([]uint64{15}, 12)
		counts = append(counts, slices.Repeat([]uint64{1}, held)...)
		counts = append(counts, uint64(15+14*held), 15) //nolint:gosec // Few ticks.
		if rate := rateOf(counts); rate > 160 {
			t.Errorf("rate %v where 150 calls a second come, but for %d ticks that held them up", rate, held)
		}
	}
}

// A rate that steps up is followed at once, also after a moment without calls.
func TestRatesFollowAStep(t *testing.T) {
	for _, before := range [][]uint64{slices.Repeat([]uint64{1}, 100), append(slices.Repeat([]uint64{5}, 100), 0, 0, 0)} {
		if rate := rateOf(append(before, 100, 100)); rate < 900 {
			t.Errorf("rate %v two ticks after it went to 1000", rate)
		}
	}
}

// rateOf is what is known of a rate after ticks that brought so many calls.
func rateOf(counts []uint64) float64 {
	var r Rates
	var arrived uint64
	for _, came := range counts {
		before := arrived
		arrived += came
		r = r.advance(Snapshot{Arrived: arrived, Elapsed: stale.Tick}, stale, before)
	}
	return r.Slow.rate()
}

// While nothing is there, calls bring looks before the next tick: the later the rarer,
// so that few are needed however many calls come.
func TestHorizonAsksForEarlyLooksUntilAnInstanceIsThere(t *testing.T) {
	s := Snapshot{Arrived: 1, MeanStart: 3 * time.Second, MeanExecution: 50 * time.Millisecond, Room: -1}
	looks := 0
	for s.OldestWait < s.MeanStart {
		d := Horizon(s, stale)
		if d.RedecideAfter < stale.Tick/10 {
			t.Fatalf("after %v, it wants to see a call that comes within %v", s.OldestWait, d.RedecideAfter)
		}
		looks++
		s.State, s.Creating = d.State, s.Creating+d.Create-d.Cancel
		s.Arrived += uint64(d.RedecideAfter / time.Millisecond)
		s.OldestWait, s.Elapsed = s.OldestWait+d.RedecideAfter, d.RedecideAfter
	}
	if looks < 8 || looks > 16 {
		t.Errorf("%d looks within a start of 3 s", looks)
	}
	s.Created, s.Creating = s.Creating, 0
	if d := Horizon(s, stale); d.RedecideAfter != 0 {
		t.Errorf("with instances, it wants to see a call that comes within %v", d.RedecideAfter)
	}
}

// Clients that wait for their answers call as fast as there are instances: what busy
// instances show of how long calls hold them is certain at once, and so is that they
// are too few.
func TestHorizonGrowsQuicklyWhereAllAreBusyAndCallsWait(t *testing.T) {
	const clients = 100
	s := Snapshot{
		MeanExecution: 2 * time.Millisecond, MeanStart: 300 * time.Millisecond, Room: -1,
		Arrived: clients, Created: 2, Busy: 2,
	}
	launched := map[int]int{}
	s, _ = follow(s, 40, func(tick int, s *Snapshot) {
		s.Created, s.Creating = s.Created+launched[tick], s.Creating-launched[tick]
		if tick > 0 {
			answered := uint64(min(s.Created*4, s.Waiting())) //nolint:gosec // Both are small.
			s.Arrived, s.Departed = s.Arrived+answered, s.Departed+answered
		}
		s.Busy = min(s.Created, clients)
		launched[tick+3] = s.Creating - sum(launched, tick+1, tick+2)
	})
	if total := s.Created + s.Creating; total < 40 || total > clients {
		t.Errorf("%d instances after 4 s, for %d clients whose calls of 2 ms hold an instance for 25 ms", total, clients)
	}
}

// A few calls that wait for others get an instance each, unless those there are done
// with them before another one has started.
func TestHorizonCreatesForEachOfFewCalls(t *testing.T) {
	for _, c := range []struct {
		name         string
		busy         int
		waiting      uint64
		waited, hold time.Duration
		create       int
	}{
		{"one behind another", 1, 1, 100 * time.Millisecond, time.Second, 1},
		{"five behind another", 1, 5, 100 * time.Millisecond, time.Second, 5},
		{"for less than a tick", 1, 1, 90 * time.Millisecond, time.Second, 0},
		{"short ones", 1, 1, 100 * time.Millisecond, 150 * time.Millisecond, 0},
		{"many", 20, 1, 100 * time.Millisecond, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			running := uint64(c.busy) //nolint:gosec // A few.
			rates := Rates{
				Known: true, Departed: running, Execution: c.hold, Hold: c.hold.Seconds(), Busy: c.busy, Peak: float64(running + c.waiting),
				Slow: Window{Calls: 1, Span: 20 * time.Second}, Fast: Window{Calls: 1, Span: 2 * time.Second},
			}
			d := Horizon(Snapshot{
				Elapsed: stale.Tick, MeanExecution: c.hold, MeanStart: time.Second, OldestWait: c.waited, Room: -1,
				Arrived: running + c.waiting, Departed: running, Created: c.busy, Busy: c.busy,
				State: horizonState{Arrived: running + c.waiting, Rates: rates},
			}, stale)
			if d.Create != c.create {
				t.Errorf("%d are created (%s), and %d should be", d.Create, d.Why, c.create)
			}
		})
	}
}

// What half a minute remembers lags behind clients whose rate grows with the instances;
// where some instance rests, the last moments may be chance.
func TestHorizonPlansWithTheLastMomentsWhereAllAreBusyAndCallsWait(t *testing.T) {
	r := Rates{
		Slow:  Window{Calls: 3000, Span: 30 * time.Second},
		Fast:  Window{Calls: 300, Span: 2 * time.Second},
		Brief: Window{Calls: 60, Span: 300 * time.Millisecond},
	}
	if resting := r.lowRate(0); resting > 100 {
		t.Errorf("with an instance that rests, it plans for %.0f calls a second", resting)
	}
	r.Full = true
	if pressed := r.lowRate(0); pressed < 110 || pressed > 150 {
		t.Errorf("with all busy, it plans for %.0f calls a second where 200 came of late, and 150 of two seconds", pressed)
	}
}

// Four calls within a tenth of a second are not forty a second for the seconds of a start.
func TestHorizonOrdersLittleMoreThanThereAreCallsForAFew(t *testing.T) {
	s := Snapshot{MeanStart: 3 * time.Second, MeanExecution: 2 * time.Second, Room: -1, Arrived: 1}
	for range 4 {
		d := Horizon(s, stale)
		s.State, s.Creating = d.State, s.Creating+d.Create-d.Cancel
		s.Arrived, s.OldestWait, s.Elapsed = s.Arrived+1, s.OldestWait+d.RedecideAfter, d.RedecideAfter
	}
	if s.Creating > 8 {
		t.Errorf("%d instances for %d calls", s.Creating, s.Arrived-1)
	}
}

// What is on its way works the longer until a new instance is there the sooner it was
// launched, and a start that is nearly over counts for nearly as much as an instance.
func TestHorizonCountsWhatIsOnItsWayFromWhenItWasOrdered(t *testing.T) {
	r := Rates{Creating: 3, Aged: 2.7}
	s := Snapshot{Creating: 3, MeanStart: time.Second, Elapsed: 100 * time.Millisecond}
	if got := r.aged(s); math.Abs(got-3) > 1e-9 {
		t.Errorf("three that were launched 1 s ago are %v s old together", got)
	}
	s.Creating = 1
	if got := r.aged(s); math.Abs(got-1) > 1e-9 {
		t.Errorf("the one that is left, launched 1 s ago, is %v s old", got)
	}
	o := forecast{start: 1, hold: 0.1, each: 1, waiting: 100, creating: 3}
	if young, old := o.backlog(0), (forecast{start: 1, hold: 0.1, each: 1, waiting: 100, creating: 3, aged: 2.5}).backlog(0); young != 100 || math.Abs(old-75) > 1e-9 {
		t.Errorf("a backlog of %v and %v, want 100 and 75", young, old)
	}
}
