package core

import (
	"testing"
	"time"
	"unsafe"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

var start = time.Unix(10_000, 0)

// testSpec is a function of the paper's times.
func testSpec(changes ...func(*Spec)) Spec {
	listing1, _ := autoscaler.ByName("FPCSch")
	s := Spec{
		Concurrency: 1, Timeout: time.Minute, StartupTimeout: 10 * time.Second, Decide: listing1,
		BackoffAfter: 10 * time.Second, IdleTimeout: 10 * time.Minute, KeepLast: time.Hour,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func newTestFunction(changes ...func(*Spec)) *Function {
	config := &Config{Tick: 100 * time.Millisecond, MaxQueued: 10, ClaimGrace: 2 * time.Second, Executions: 10}
	return New(config, testSpec(changes...))
}

// ticketOf is the ticket of a call that came now and is wanted for a minute.
func ticketOf(n byte, now time.Time) invocation.Ticket {
	return invocation.Ticket{ID: invocation.ID{15: n}, Gateway: "g:1", Arrived: now, Deadline: now.Add(time.Minute)}
}

// decide is what a tick decides, if it decides.
func decide(f *Function, now time.Time, o Observed) (*Decided, bool) {
	o.Room = -1
	return AnswerOf[*Decided](f.Step(now, &Ticked{Observed: o}))
}

func TestTheMaximumWinsOverEveryFloor(t *testing.T) {
	f := newTestFunction(func(s *Spec) { s.Min, s.Max = 2, 4 })
	for name, tt := range map[string]struct {
		kept floor.Floor
		want int
	}{
		"the spec's minimum":    {floor.Floor{}, 2},
		"a window's":            {floor.Floor{Scheduled: 3}, 3},
		"an awaited call's":     {floor.Floor{Awaited: 1}, 2},
		"more than the maximum": {floor.Floor{Scheduled: 9}, 4},
	} {
		if got := f.spec.limits(tt.kept); got.Min != tt.want || got.Max != 4 {
			t.Errorf("%s: %+v, want a minimum of %d", name, got, tt.want)
		}
	}
}

func TestAnInstanceMayLeaveByTheFixedTimes(t *testing.T) {
	f := newTestFunction()
	want := queue.LeavePolicy{IdleTimeout: 10*time.Minute + 10*time.Second, KeepLast: time.Hour}
	if got := f.spec.leavePolicy(f.floor(start, 0), 20*time.Minute, start); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestADegradedFunctionMayHaveAFifthMore(t *testing.T) {
	for _, tt := range []struct {
		limits  autoscaler.Limits
		settled int
		want    autoscaler.Limits
	}{
		{autoscaler.Limits{}, 0, autoscaler.Limits{Max: 1}},
		{autoscaler.Limits{}, 1, autoscaler.Limits{Max: 2}},
		{autoscaler.Limits{}, 10, autoscaler.Limits{Max: 12}},
		{autoscaler.Limits{Max: 5}, 10, autoscaler.Limits{Max: 5}},
		{autoscaler.Limits{Min: 8, Max: 20}, 4, autoscaler.Limits{Min: 5, Max: 5}},
	} {
		var d degradedMode
		bound := func(o Observed) autoscaler.Limits {
			d.recordDoubt(o)
			return d.bound(tt.limits)
		}
		if got := bound(Observed{Created: tt.settled, Unconfirmed: true}); got != tt.want {
			t.Errorf("%+v with %d: %+v, want %+v", tt.limits, tt.settled, got, tt.want)
		}
		// More that came meanwhile do not raise the bound, and it ends with the doubt.
		if got := bound(Observed{Created: 100, Unconfirmed: true}); got != tt.want {
			t.Errorf("%+v with %d, later: %+v, want %+v", tt.limits, tt.settled, got, tt.want)
		}
		if got := bound(Observed{Created: 100}); got != tt.limits {
			t.Errorf("%+v, confirmed: %+v", tt.limits, got)
		}
	}
}

// stepped is a time as it is read after the wall clock was set, by whole seconds: the
// monotonic clock goes on as if nothing had happened. Nothing but the clock itself
// makes such times, so this one changes the seconds of the wall clock where time.Time
// has them.
func stepped(t *testing.T, at time.Time, by time.Duration) time.Time {
	before := at
	*(*uint64)(unsafe.Pointer(&at)) += uint64(by/time.Second) << 30
	if at.Sub(before) != 0 || at.Round(0).Sub(before.Round(0)) != by {
		t.Fatalf("the clock was not set: %v and %v", before, at)
	}
	return at
}

func TestL9AStepOfTheClockDistortsNoDecision(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		again := func(autoscaler.Snapshot, autoscaler.Params) autoscaler.Decision {
			return autoscaler.Decision{Required: 3, RedecideAfter: 2 * time.Second}
		}
		f, now := newTestFunction(func(s *Spec) { s.Decide = again }), time.Now()
		f.Step(now, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
		if _, decided := decide(f, now, Observed{}); !decided {
			t.Fatal("nothing was decided")
		}
		now = stepped(t, now.Add(time.Second), step)
		if _, decided := decide(f, now, Observed{Awaited: 1}); decided {
			t.Errorf("step %v: instances have no time to say hello any more", step)
		}
		if f.last.runsOnCall(now) {
			t.Errorf("step %v: the decider is asked early", step)
		}
		if d, _ := decide(f, now, Observed{}); d.Snapshot.Elapsed != time.Second {
			t.Errorf("step %v: %v since the last decision, want 1s", step, d.Snapshot.Elapsed)
		}
		now = now.Add(HelloTime)
		if _, decided := decide(f, now, Observed{Awaited: 1}); !decided {
			t.Errorf("step %v: time has stopped", step)
		}
		if !f.last.runsOnCall(now.Add(2 * time.Second)) {
			t.Errorf("step %v: the decider is not asked early", step)
		}
	}
}

func TestAStandbyLeavesTheMinimumToAnOwnerThatIsStarting(t *testing.T) {
	minimum := func(autoscaler.Snapshot, autoscaler.Params) autoscaler.Decision { return autoscaler.Decision{} }
	for name, c := range map[string]struct {
		term    invocation.Term
		calls   bool
		decided bool
	}{
		"the owner":                  {invocation.Term{Epoch: 1}, false, true},
		"a standby":                  {invocation.Term{Epoch: 1, Standby: "s"}, false, false},
		"a standby with a call more": {invocation.Term{Epoch: 1, Standby: "s"}, true, true},
	} {
		f, now := newTestFunction(func(s *Spec) { s.Decide, s.Min = minimum, 2 }), time.Now()
		f.Step(now, OwnershipChanged{Term: c.term})
		if c.calls {
			f.Step(now, &Offered{Ticket: ticketOf(1, now)})
		}
		if _, decided := decide(f, now.Add(standbyTime-1), Observed{}); decided != c.decided {
			t.Errorf("%s: decided is %v, want %v", name, decided, c.decided)
		}
		if d, decided := decide(f, now.Add(standbyTime), Observed{}); !decided || d.Wanted() != 2 {
			t.Errorf("%s: %+v in the end", name, d)
		}
	}
}

// What happens between a tick's look and its conclusions is for the next tick.
func TestFunctionIsAwakeIfSomethingHappensAsItFallsAsleep(t *testing.T) {
	for name, happen := range map[string]Event{
		"nothing":              nil,
		"a call came and went": &Offered{Ticket: ticketOf(1, start)},
		"an instance is gone":  InstanceEnded{},
		"it was changed":       SpecChanged{Spec: testSpec()},
	} {
		f := newTestFunction()
		f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
		d, _ := decide(f, start, Observed{})
		if happen != nil {
			f.Step(start, happen)
		}
		_, rests := AnswerOf[Park](f.Step(start, &Applied{Decided: d}))
		if rests != (happen == nil) {
			t.Errorf("%s: it rests: %t", name, rests)
		}
		if !rests {
			continue
		}
		if _, wakes := AnswerOf[Wake](f.Step(start, Woken{})); !wakes {
			t.Errorf("%s: it rests and cannot be woken", name)
		}
	}
}

func TestInstancesBeyondTheMaximumAreReleased(t *testing.T) {
	f := newTestFunction(func(s *Spec) { s.Max = 1 })
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	for _, cid := range []invocation.CID{"1", "2", "3"} {
		f.Step(start, Joined{CID: cid, Capacity: 1})
		f.Step(start, &Pulled{CID: cid, Wants: true, Credits: 1})
	}
	now := start.Add(time.Second)
	d, _ := decide(f, now, Observed{Created: 3})
	var released []invocation.CID
	for _, e := range f.Step(now, &Applied{Decided: d}) {
		if e, is := e.(Terminate); is {
			if e.Why != BecauseTooMany {
				t.Errorf("%s is let go because %s", e.CID, e.Why)
			}
			released = append(released, e.CID)
		}
	}
	if len(released) != 2 || released[0] != "3" || released[1] != "2" {
		t.Errorf("released %v, want those of lowest rank", released)
	}
}

func TestALostInstanceIsReplacedUnlessTheSchedulerWasPaused(t *testing.T) {
	for _, paused := range []bool{false, true} {
		f := newTestFunction()
		f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
		f.Step(start, Joined{CID: "1", Capacity: 1})
		f.Step(start, &Pulled{CID: "1", Wants: true, Credits: 1})
		f.Step(start, &Offered{Ticket: ticketOf(1, start)})
		later := start.Add(3 * time.Second) // it has claimed it by then
		f.Step(later, Left{CID: "1", Involuntary: true})
		if paused {
			f.Step(later, Paused{})
		}
		d, _ := decide(f, later, Observed{})
		if replaced := d.Decision.Create == 1; replaced == paused {
			t.Errorf("paused %t: %+v", paused, d.Decision)
		}
	}
}

func TestAFailedAssignmentIsReplacedIfACallStillWaits(t *testing.T) {
	for _, waits := range []bool{true, false} {
		f := newTestFunction()
		f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
		f.Step(start, &Offered{Ticket: ticketOf(1, start)})
		if d, _ := decide(f, start, Observed{}); d.Decision.Create != 1 {
			t.Fatalf("first %+v", d.Decision)
		}
		if !waits {
			f.Step(start, &CallCancelled{ID: invocation.ID{15: 1}})
		}
		f.Step(start, AssignFailed{CID: "1"})
		d, decided := decide(f, start.Add(100*time.Millisecond), Observed{})
		if replaced := decided && d.Decision.Create == 1; replaced != waits {
			t.Errorf("a call waits is %t, and another one is launched %t", waits, replaced)
		}
	}
}

// An agent that opens another stream ends the one before.
func TestAnInstanceThatComesBackIsNotReplaced(t *testing.T) {
	f := newTestFunction()
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	for n, cid := range []invocation.CID{"1", "2"} {
		f.Step(start, Joined{CID: cid, Capacity: 1})
		f.Step(start, &Pulled{CID: cid, Wants: true, Credits: 1})
		f.Step(start, &Offered{Ticket: ticketOf(byte(n), start)})
	}
	later := start.Add(3 * time.Second) // they have claimed by then
	f.Step(later, Left{CID: "1", Involuntary: true})
	f.Step(later, Left{CID: "2", Involuntary: true})
	f.Step(later, Joined{CID: "2", Capacity: 1})
	f.Step(later, &Pulled{CID: "2", Wants: true})
	if d, _ := decide(f, later, Observed{Created: 1}); d.Snapshot.Lost != 1 {
		t.Errorf("%d are lost, want the one that has not come back", d.Snapshot.Lost)
	}
}

func TestRunningCallsWithoutATicketHereCountInFlight(t *testing.T) {
	for name, before := range map[string][]Event{
		"an earlier scheduler": {},
		"this one, before the agent's stream broke": {
			Joined{CID: "1", Capacity: 1}, &Pulled{CID: "1", Wants: true, Credits: 1}, &Offered{Ticket: ticketOf(1, start)}, Left{CID: "1", Involuntary: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFunction(func(s *Spec) { s.Calls.Concurrency, s.Limited = 1, true })
			f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
			now := start
			for _, e := range before {
				f.Step(now, e)
				now = now.Add(3 * time.Second)
			}
			f.Step(now, Joined{CID: "1", Capacity: 1})
			f.Step(now, &Pulled{CID: "1", Wants: true})
			offer := func(n byte) bool {
				_, refused := AnswerOf[OfferRefused](f.Step(now, &Offered{Ticket: ticketOf(n, now)}))
				return !refused
			}
			if offer(2) {
				t.Error("a call is admitted while one runs, where the limit is one")
			}
			f.Step(now, &Pulled{CID: "1", Wants: true, Credits: 1})
			if !offer(3) {
				t.Error("a call is refused although none runs")
			}
		})
	}
}

// Calls get in, or a reason why they do not.
func TestWhatIsRefusedSaysWhy(t *testing.T) {
	barred := invocation.Refusal{Reason: invocation.RefusedCannotStart, Detail: "no such image"}
	for name, tt := range map[string]struct {
		before []Event
		offer  *Offered
		want   invocation.RefusalReason
	}{
		"not served":        {nil, &Offered{}, invocation.RefusedNotOwner},
		"served":            {[]Event{OwnershipChanged{Term: invocation.Term{Epoch: 1}}}, &Offered{}, ""},
		"closed":            {[]Event{OwnershipChanged{Term: invocation.Term{Epoch: 1}}, Closed{}}, &Offered{}, invocation.RefusedNotOwner},
		"nothing can start": {[]Event{OwnershipChanged{Term: invocation.Term{Epoch: 1}}}, &Offered{StartBlocked: &barred}, invocation.RefusedCannotStart},
		"left": {
			[]Event{OwnershipChanged{Term: invocation.Term{Epoch: 1}}, OwnershipChanged{Term: Unserved}}, &Offered{}, invocation.RefusedNotOwner,
		},
	} {
		f := newTestFunction()
		for _, e := range tt.before {
			f.Step(start, e)
		}
		tt.offer.Ticket = ticketOf(1, start)
		refused, is := AnswerOf[OfferRefused](f.Step(start, tt.offer))
		if is != (tt.want != "") || is && refused.Why.Reason != tt.want {
			t.Errorf("%s: %+v, want %q", name, refused.Why, tt.want)
		}
	}
}

// While a queue is full, clients that try again do not use the rate up.
func TestACallForAFullQueueCostsNoRate(t *testing.T) {
	f := newTestFunction(func(s *Spec) { s.Calls = admission.Limits{Rate: 0.001, Burst: 4} }) // two at first
	f.queue = queue.New(queue.Limits{MaxWaiting: 1})
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	offer := func(n byte, want invocation.RefusalReason) {
		t.Helper()
		var got invocation.RefusalReason
		if refused, is := AnswerOf[OfferRefused](f.Step(start, &Offered{Ticket: ticketOf(n, start)})); is {
			got = refused.Why.Reason
		}
		if got != want {
			t.Errorf("call %d: refused %q, want %q", n, got, want)
		}
	}
	offer(1, "")
	offer(2, invocation.RefusedQueueFull)
	offer(1, "")
	f.Step(start, &CallCancelled{ID: ticketOf(1, start).ID})
	offer(3, "")
	f.Step(start, &CallCancelled{ID: ticketOf(3, start).ID})
	offer(4, invocation.RefusedRate)
}

// Gateways offer each call again that waits, and take a refusal for its end.
func TestATicketThatWaitsIsNotRefusedBecauseNothingCanStart(t *testing.T) {
	f := newTestFunction()
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	f.Step(start, &Offered{Ticket: ticketOf(1, start)})
	barred := invocation.Refusal{Reason: invocation.RefusedCannotStart}
	if refused, is := AnswerOf[OfferRefused](f.Step(start, &Offered{Ticket: ticketOf(1, start), StartBlocked: &barred})); is || f.Waiting() != 1 {
		t.Errorf("refused with %+v, and %d wait", refused.Why, f.Waiting())
	}
}

func TestAFunctionThatLacksRoomLooksForSomeNowAndThen(t *testing.T) {
	f := newTestFunction()
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	for lacks, want := range map[bool]time.Time{true: start.Add(RoomRetry), false: {}} {
		d, _ := decide(f, start, Observed{})
		if rest, rests := AnswerOf[Park](f.Step(start, &Applied{Decided: d, LacksRoom: lacks})); !rests || rest.Until != want {
			t.Errorf("lacks room %t: rests %t until %v", lacks, rests, rest.Until)
		}
	}
}

func TestATicketThatComesBackToAFunctionAtRestWakesIt(t *testing.T) {
	f := newTestFunction()
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	f.Step(start, Joined{CID: "a", Capacity: 1})
	f.Step(start, &Pulled{CID: "a", Wants: true, Credits: 1})
	call := ticketOf(1, start)
	f.Step(start, &Offered{Ticket: call})
	d, _ := decide(f, start, Observed{Created: 1})
	if _, rests := AnswerOf[Park](f.Step(start, &Applied{Decided: d})); !rests {
		t.Fatal("a function whose calls all run does not rest")
	}
	// The only instance could not reach the gateway, and is not handed the call again.
	effects := f.Step(start, &Pulled{CID: "a", Wants: true, Credits: 1, Done: []Done{{ID: call.ID, Unclaimed: true}}})
	if _, woken := AnswerOf[Wake](effects); !woken || f.Waiting() != 1 {
		t.Errorf("%d calls wait, woken %v", f.Waiting(), woken)
	}
}

// After a takeover, instances may run calls for hours that this scheduler does not know, such as
// WebSockets. Other calls must not wait for them.
func TestInstancesThatRunCallsOfAnEarlierSchedulerCountAsBusy(t *testing.T) {
	horizon, _ := autoscaler.ByName("Horizon")
	f := newTestFunction(func(s *Spec) { s.Decide = horizon })
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	for _, cid := range []invocation.CID{"1", "2"} {
		f.Step(start, Joined{CID: cid, Capacity: 1})
		f.Step(start, &Pulled{CID: cid, Wants: true})
	}
	f.Step(start, &Offered{Ticket: ticketOf(1, start)})
	for now := start; now.Before(start.Add(3 * time.Second)); now = now.Add(100 * time.Millisecond) {
		d, _ := decide(f, now, Observed{Created: 2})
		if d.Snapshot.Busy != 2 {
			t.Fatalf("%d of 2 instances are busy", d.Snapshot.Busy)
		}
		if d.Decision.Create > 0 {
			return
		}
		f.Step(now, &Applied{Decided: d})
	}
	t.Error("a call waits, and no instance is created")
}

// Go's maps do not shrink, and most functions are unused.
func TestAFunctionAtRestKeepsNoMapOfItsInstances(t *testing.T) {
	f := newTestFunction()
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	f.Step(start, Joined{CID: "a", Capacity: 1})
	f.Step(start, &Pulled{CID: "a", Wants: true, Credits: 1})
	if d, _ := decide(f, start, Observed{Created: 1}); d != nil {
		f.Step(start, &Applied{Decided: d})
	}
	if !f.IsParked() || f.instances == nil {
		t.Fatalf("parked %v with %d instances, want a function that is parked with one", f.IsParked(), len(f.instances))
	}
	later := start.Add(2 * time.Hour)
	answer, _ := AnswerOf[LeaveAnswered](f.Step(later, LeaveRequested{CID: "a", Idle: 2 * time.Hour}))
	if !answer.Granted || f.instances != nil {
		t.Errorf("granted %v, and the map of instances is %v, want none", answer.Granted, f.instances)
	}
}

// Its last instance is kept for the next call, until calls by loans run: then the spec alone says how many stay.
func TestAReportMayChangeWhatCanBeEvicted(t *testing.T) {
	f, now := newTestFunction(func(s *Spec) { s.Learns, s.KeepLast = true, time.Minute }), start
	for range 12 {
		f.floorPolicy.CalledAfter(30*time.Minute + 30*time.Second)
	}
	f.Step(now, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	f.Step(now, Joined{CID: "1", Capacity: 1})
	f.Step(now, &Pulled{CID: "1", Wants: true, Credits: 1})
	f.Step(now, &Reported{Gateway: "g:1", Report: LoanReport{Served: 1}})
	now = now.Add(28 * time.Minute)
	for _, e := range []Event{
		&Reported{Gateway: "g:1", Report: LoanReport{Served: 2, Running: 1}},
		GatewaysAudited{Connected: func(string) bool { return false }},
		GatewaysAudited{Connected: func(string) bool { return false }},
	} {
		idle, _ := f.Evictable(now, time.Second)
		before := f.Demand()
		changed := ChangesUsage(e, f.Step(now, e), before, f.Demand())
		if after, _ := f.Evictable(now, time.Second); len(after) != len(idle) && !changed {
			t.Errorf("%T: %v could be evicted, and without notice %v can", e, idle, after)
		}
	}
}

// Whether a function was called while another scheduler served it is unknown, and so is how long it took since then.
func TestAFunctionThatComesBackHasNotBeenIdle(t *testing.T) {
	f, now := newTestFunction(), start
	serve := func(epoch uint64) {
		f.Step(now, OwnershipChanged{Term: invocation.Term{Epoch: epoch}})
		f.Step(now, Joined{CID: "a", Capacity: 1})
	}
	call := func(id byte) {
		f.Step(now, &Offered{Ticket: ticketOf(id, now)})
		f.Step(now, &Pulled{CID: "a", Credits: 1, Wants: true})
		f.Step(now, &Pulled{CID: "a", Done: []Done{{ID: ticketOf(id, now).ID, Execution: time.Millisecond}}})
	}
	serve(1)
	call(1)
	if f.idleSince != now {
		t.Fatalf("idle since %v after its call has ended", f.idleSince)
	}
	f.Step(now, OwnershipChanged{Term: Unserved})
	for _, e := range []Event{&Ticked{}, GatewaysAudited{}, &Pulled{CID: "a", Wants: true}} {
		if f.Step(now, e); !f.idleSince.IsZero() {
			t.Errorf("%T: idle since %v, though another scheduler serves it", e, f.idleSince)
		}
	}
	now = now.Add(5 * time.Hour)
	serve(2)
	if f.Step(now, &Ticked{}); !f.idleSince.IsZero() {
		t.Errorf("back, and idle since %v", f.idleSince)
	}
	call(2)
	if f.idleSince != now {
		t.Errorf("idle since %v after the first call since it is back", f.idleSince)
	}
}

func TestALateExecutionDoesNotReplaceTheNextOwnersMean(t *testing.T) {
	f := newTestFunction()
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	f.Step(start, Joined{CID: "a", Capacity: 1})
	f.Step(start, OwnershipChanged{Term: Unserved})
	f.Step(start, &Pulled{CID: "a", Done: []Done{{Execution: 30 * time.Second, CoreWait: time.Second}}})
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 2}, Restored: estimate.Means{Execution: 50 * time.Millisecond}})
	if got := f.Means().Execution; got != 50*time.Millisecond || f.coreWaited != 0 {
		t.Errorf("the mean is %v, and calls have waited %v for cores", got, f.coreWaited)
	}
}
