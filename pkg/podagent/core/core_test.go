package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// script plays events to a Core and compares what it does.
type script struct {
	t    *testing.T
	core *Core
	now  time.Time
	wake time.Time
	done []string
	// byHand leaves the connections to gateways to the test. Otherwise each opens and closes
	// at once, and nothing is said about that.
	byHand bool
}

func params() Params {
	return Params{Concurrency: 2, BackoffAfter: 10 * time.Second, IdleTimeout: 10 * time.Minute, Jitter: 1}
}

func newScript(t *testing.T, p Params) *script {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, core: New(p), now: time.Unix(1_000_000, 0)}
	s.on(Begin{})
	return s
}

// ready is a script whose agent is welcome in session 1 and waits for calls.
func ready(t *testing.T, p Params) *script {
	t.Helper()
	s := newScript(t, p)
	s.on(Opened{1}, Received{1, Welcome{7}}, FunctionReady{})
	s.done = nil
	return s
}

// on plays events, one after the other at the same time.
func (s *script) on(events ...Event) {
	s.t.Helper()
	for len(events) > 0 {
		var answers []Event
		for _, effect := range s.core.Step(s.now, events[0]) {
			switch e := effect.(type) {
			case WakeAt:
				s.wake = e.Time
				continue
			case RunAudit: // what is seen is for stories to say
				continue
			case Connect:
				if !s.byHand {
					answers = append(answers, ConnOpened{e.Conn})
					continue
				}
			case Disconnect:
				if !s.byHand {
					answers = append(answers, ConnLost(e))
					continue
				}
			}
			s.done = append(s.done, effectText(effect))
		}
		events = append(answers, events[1:]...)
	}
}

// pass lets time pass, with the wakes that were asked for.
func (s *script) pass(d time.Duration) {
	s.t.Helper()
	until := s.now.Add(d)
	for !s.wake.IsZero() && !s.wake.After(until) {
		if s.wake.Before(s.now) {
			s.t.Fatalf("asked to be woken %v ago", s.now.Sub(s.wake))
		}
		s.now, s.wake = s.wake, time.Time{}
		s.on(Wake{})
		if s.wake.Equal(s.now) {
			s.t.Fatal("asked to be woken at once: it would spin")
		}
	}
	s.now = until
}

// expect compares what was done since the last expect.
func (s *script) expect(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.done, cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("effects (-want +got):\n%s", diff)
	}
	s.done = nil
}

// answered lets time pass in which a scheduler answers every ping.
func (s *script) answered(session Session, d time.Duration) {
	s.t.Helper()
	for until := s.now.Add(d); s.now.Before(until); {
		s.pass(min(100*time.Millisecond, until.Sub(s.now)))
		if slices.ContainsFunc(s.done, func(d string) bool { return strings.Contains(d, "ping") }) {
			s.on(Received{session, Pong{}})
			s.done = slices.DeleteFunc(s.done, func(d string) bool { return strings.Contains(d, "ping") })
		}
	}
}

func effectText(e Effect) string {
	switch e := e.(type) {
	case Dial:
		return fmt.Sprintf("dial %d %s", e.Session, max(e.Addr, "any"))
	case Send:
		return fmt.Sprintf("send %d %s", e.Session, messageText(e.Message))
	case Claim:
		return fmt.Sprintf("claim %d of %c", e.Attempt, e.Ticket.ID[0])
	case Accept:
		return fmt.Sprintf("accept %d for %d/%d", e.Attempt, e.Conn, e.Call)
	case Start:
		return fmt.Sprintf("start %d", e.Attempt)
	case EndCore:
		if e.Refused {
			return "endcore refused"
		}
		return "endcore"
	case Deliver:
		text := fmt.Sprintf("deliver %d", e.Attempt)
		if e.Late {
			text += " late"
		}
		if e.Keeps {
			text += " keeps"
		}
		return text
	case Decline:
		return fmt.Sprintf("decline %d/%d", e.Conn, e.Call)
	case Draining:
		return fmt.Sprintf("draining %d: %s", e.Reason, e.Detail)
	}
	name := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "core."))
	return strings.TrimSpace(name + " " + strings.Trim(fmt.Sprint(e), "{}"))
}

func messageText(m Message) string {
	switch m := m.(type) {
	case Hello:
		if m.Spare {
			return "hello spare"
		}
		return "hello"
	case Pull:
		text := fmt.Sprintf("pull %d", m.Credits)
		for _, d := range m.Done {
			text += fmt.Sprintf(" done %c %v", d.ID[0], d.Exec)
			if d.CoreWait > 0 {
				text += fmt.Sprintf(" after %v without a core", d.CoreWait)
			}
			if d.Unclaimed {
				text += " unclaimed"
			}
		}
		for _, l := range m.Loans {
			text += fmt.Sprintf(" lent %s %d", l.Gateway, l.Calls)
		}
		if m.Idle > 0 {
			text += fmt.Sprintf(" idle %v", m.Idle)
		}
		if m.NodeBusy {
			text += " busy"
		}
		if m.Low {
			text += " low"
		}
		switch w := m.LongWait; {
		case w.ByLoan:
			text += fmt.Sprintf(" a call by a loan has waited %v", w.Waited)
		case w.Waited > 0:
			text += fmt.Sprintf(" %c has waited %v", w.ID[0], w.Waited)
		}
		return text
	case Ping:
		return fmt.Sprintf("ping %v", m.Every)
	case LeaveRequest:
		return fmt.Sprintf("leave? %v", m.Idle)
	case Goodbye:
		return fmt.Sprintf("goodbye %d", m.Reason)
	}
	return "?"
}

// ticket is a ticket of an invocation with a name of one letter.
func ticket(name byte) Ticket {
	return Ticket{Ticket: invocation.Ticket{ID: invocation.ID{name}, Gateway: "g"}}
}

// lent is a ticket whose place stays with the gateway.
func lent(name byte) Ticket {
	t := ticket(name)
	t.Lent = true
	return t
}

func TestParamsNameWhatIsWrong(t *testing.T) {
	for field, change := range map[string]func(*Params){
		"Concurrency":  func(p *Params) { p.Concurrency = 0 },
		"BackoffAfter": func(p *Params) { p.BackoffAfter = 0 },
		"IdleTimeout":  func(p *Params) { p.IdleTimeout = -1 },
		"Jitter":       func(p *Params) { p.Jitter = 0.5 },
		"Owner":        func(p *Params) { p.Spare = true },
	} {
		p := params()
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestOneCall(t *testing.T) {
	s := newScript(t, params())
	s.expect("dial 1 any")
	s.on(Opened{1})
	s.expect("send 1 hello")
	s.on(Received{1, Welcome{7}}, FunctionReady{})
	s.expect("send 1 pull 2")
	s.on(Received{1, ticket('a')})
	s.expect("claim 1 of a")
	s.on(Granted{1})
	s.expect("start 1")
	s.on(CallEnded{Attempt: 1, Outcome: Complete, Exec: time.Second})
	s.expect("deliver 1", "send 1 pull 1 done a 1s")
	s.byHand = true
	s.on(Received{1, Drain{Detail: "changed"}})
	s.expect("draining 0: changed", "send 1 goodbye 0", "drained", "disconnect 1") // the result is on its way
	s.on(ConnLost{1})
	s.expect("hangup 1")
	s.on(Lost{Session: 1, Cause: CauseClosed})
	s.expect("end")
	s.on(Received{1, ticket('b')}, Wake{}, Begin{})
	s.expect()
}

func TestTicketsThatAreNotTaken(t *testing.T) {
	s := newScript(t, params())
	s.on(Opened{1}, Received{1, Welcome{7}})
	s.done = nil
	s.on(Received{1, ticket('a')})
	s.expect() // nothing was asked for
	s.on(FunctionReady{}, Received{1, ticket('a')}, Received{1, ticket('b')}, Received{1, ticket('c')})
	s.expect("send 1 pull 2", "claim 1 of a", "claim 2 of b")
	s.on(Stop{"told"}, Refused{1}, Received{1, ticket('d')})
	s.expect("draining 5: told", "send 1 goodbye 5")
}

// An agent gets the core of a call that has little time left. The function would have to break the call
// off before it is done, which would cost the instance.
func TestACoreThatComesTooLate(t *testing.T) {
	p := params()
	p.Concurrency = 1
	s := ready(t, p)
	s.on(NodeMode{Busy: true, Ask: true}, Received{1, lent('a')}, NodeGranted{1}, Granted{1}, CallEnded{Attempt: 1, Outcome: Complete})
	called := 0
	for _, late := range []func(Attempt) Event{
		func(n Attempt) Event { return NodeGranted{n} },
		func(Attempt) Event { return NodeLost{} },
	} {
		for after, begins := range map[time.Duration]bool{874 * time.Millisecond: true, 875 * time.Millisecond: false, time.Second: false} {
			called++
			n := Attempt(called + 1)
			s.on(NodeMode{Busy: true, Ask: true}, Called{Conn: 1, Call: uint32(2 * called), Remaining: time.Second})
			s.done = nil
			s.now = s.now.Add(after)
			e := late(n)
			s.on(e)
			if got := slices.Contains(s.done, fmt.Sprintf("start %d", n)); got != begins {
				t.Errorf("%T after %v: %q", e, after, s.done)
			}
			if got := slices.Contains(s.done, fmt.Sprintf("deliver %d late keeps", n)); got == begins {
				t.Errorf("%T after %v: %q", e, after, s.done)
			}
			s.on(CallEnded{Attempt: n, Outcome: Complete})
		}
	}
}

func TestClaimsThatAreNotGranted(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Refused{1})
	s.expect("claim 1 of a", "send 1 pull 1 done a 0s")
	s.on(Received{1, ticket('b')}, ConnLost{1})
	s.expect("claim 2 of b", "send 1 pull 1 done b 0s unclaimed")
	s.on(Received{1, ticket('c')})
	s.pass(499 * time.Millisecond)
	s.expect("claim 3 of c")
	s.pass(time.Millisecond)
	s.expect("release 3", "send 1 pull 1 done c 0s unclaimed", "send 1 ping 500ms")
	s.on(Granted{3}) // too late: the release is on its way
	s.expect()
	s.on(Stop{"told"})
	s.expect("draining 5: told", "send 1 goodbye 5", "drained", "hangup 1")
}

func TestClaimsThatAreNotAnsweredAreWaitedForLonger(t *testing.T) {
	s := ready(t, params())
	var waited []time.Duration
	wait := func(name byte) {
		begun := s.now
		s.on(Received{1, ticket(name)})
		for s.core.calls.held() > 0 {
			s.answered(1, 100*time.Millisecond)
		}
		waited = append(waited, s.now.Sub(begun))
	}
	for range 5 {
		wait('a')
	}
	s.on(Received{1, ticket('b')}, Refused{6})
	wait('c')
	want := []time.Duration{claimTimeout, 2 * claimTimeout, 4 * claimTimeout, 8 * claimTimeout, 8 * claimTimeout, claimTimeout}
	if diff := cmp.Diff(want, waited); diff != "" {
		t.Error(diff)
	}
}

// An answer of one gateway shortens the times of later claims, and so one may end before an older one.
func TestAClaimIsNotWaitedForLongerThanItsOwnTime(t *testing.T) {
	p := params()
	p.Concurrency = 4
	s := ready(t, p)
	for range claimDoublings {
		s.on(Received{1, ticket('x')})
		for s.core.calls.held() > 0 {
			s.answered(1, 100*time.Millisecond)
		}
	}
	s.on(Received{1, ticket('a')}, Received{1, ticket('b')}, Refused{5}, Received{1, ticket('c')})
	s.done = nil
	s.answered(1, claimTimeout)
	s.expect("release 6", "send 1 pull 1 done c 0s unclaimed")
	s.answered(1, claimTimeout<<claimDoublings-claimTimeout)
	s.expect("release 4", "send 1 pull 1 done a 0s unclaimed")
}

func TestWhatBecomesOfTheInstance(t *testing.T) {
	reused := []string{"deliver 1", "send 1 pull 1 done a 1s"}
	freed := []string{"deliver 1", "send 1 pull 1 done a 0s"}
	broken := []string{"draining 4: oh", "send 1 goodbye 4", "deliver 1", "drained", "hangup 1"}
	ended := []string{"draining 3: oh", "send 1 goodbye 3", "deliver 1", "drained", "hangup 1"}
	cases := map[string]struct {
		before  Event
		outcome Outcome
		want    []string
	}{
		"complete":                         {Wake{}, Complete, reused},
		"broken":                           {Wake{}, Broken, broken},
		"not started":                      {Wake{}, NotStarted, ended},
		"no room for it":                   {Wake{}, Untouched, freed},
		"gateway lost, complete":           {ConnLost{1}, Complete, reused},
		"gateway lost, broken":             {ConnLost{1}, Broken, broken},
		"gateway lost, not started":        {ConnLost{1}, NotStarted, freed},
		"cancelled, complete":              {Cancelled{1}, Complete, append([]string{"cancel 1"}, reused...)},
		"cancelled, broken":                {Cancelled{1}, Broken, append([]string{"cancel 1"}, broken...)},
		"cancelled, not started":           {Cancelled{1}, NotStarted, append([]string{"cancel 1"}, freed...)},
		"client broke off, not started":    {BodyCut{1}, NotStarted, freed},
		"client broke off, and it is done": {BodyCut{1}, Complete, reused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ready(t, params())
			s.on(Received{1, ticket('a')}, Granted{1})
			s.on(tc.before)
			s.done = slices.DeleteFunc(s.done, func(d string) bool { return !strings.HasPrefix(d, "cancel") })
			s.on(CallEnded{Attempt: 1, Outcome: tc.outcome, Exec: time.Second, Detail: "oh"})
			s.expect(tc.want...)
		})
	}
}

func TestClaimThatIsGrantedToASpentInstanceIsReleased(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Granted{1}, Received{1, ticket('b')})
	s.on(CallEnded{Attempt: 1, Detail: "oh"})
	s.done = nil
	s.on(Granted{2})
	s.expect("release 2", "drained", "hangup 1")
}

func TestA3CallsOfAFunctionThatEndedAreCut(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Granted{1}, Received{1, ticket('b')})
	s.done = nil
	s.on(FunctionEnded{"exited"})
	s.expect("draining 3: exited", "send 1 goodbye 3", "cut 1")
	s.on(Granted{2})
	s.expect("release 2")
	s.on(CallEnded{Attempt: 1, Detail: "exited"})
	s.expect("deliver 1", "drained", "hangup 1")
}

func TestA3ARetiredInstanceDoesNotWaitForAFunctionThatEnded(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Granted{1}, Received{1, Drain{Detail: "changed"}})
	s.done = nil
	s.on(FunctionEnded{"exited"})
	s.expect("cut 1")
}

func TestAFunctionThatEndsBeforeItIsReadyIsLeftToOthersToTell(t *testing.T) {
	s := newScript(t, params())
	s.on(Opened{1}, Received{1, Welcome{7}})
	s.done = nil
	s.on(FunctionEnded{"exited"})
	s.expect("draining 3: exited", "drained", "hangup 1")
}

func TestClaimThatIsGrantedToALeavingInstanceRuns(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Stop{"told"})
	s.done = nil
	s.on(Granted{1})
	s.expect("start 1")
}

func TestIdleInstanceGoesQuietAndThenAsksToLeave(t *testing.T) {
	s := ready(t, params())
	s.answered(1, 10*time.Second-1)
	s.expect()
	s.pass(1)
	s.expect("quiet", "send 1 ping 5s")
	s.on(Received{1, Pong{}})
	s.answered(1, 10*time.Minute)
	s.expect("send 1 leave? 10m10s")
	s.on(Received{1, LeaveAnswer{AskAgain: time.Hour}})
	s.answered(1, time.Hour)
	s.expect("send 1 leave? 1h10m10s")
	s.on(Received{1, LeaveAnswer{}})
	s.answered(1, time.Second) // not in a frenzy
	s.expect("send 1 leave? 1h10m11s")
	s.on(Received{1, LeaveAnswer{Granted: true}})
	s.expect("draining 7: no call for its idle timeout", "drained", "hangup 1")
	s.on(Lost{Session: 1, Cause: CauseBroken}) // without a goodbye there is nothing to say again
	s.expect("end")
}

func TestInstanceThatWokeLateAsksAtOnce(t *testing.T) {
	s := ready(t, params())
	s.now = s.now.Add(time.Hour)
	s.on(Received{1, Pong{}})
	s.expect("send 1 leave? 1h0m0s", "send 1 ping 500ms") // a report is due as well
}

func TestStopOfAnInstanceThatIsNotReadySaysNothing(t *testing.T) {
	s := newScript(t, params())
	s.on(Stop{"told"})
	s.expect("dial 1 any", "draining 5: told", "drained", "drop 1", "end")
}

func TestFunctionThatIsNotReady(t *testing.T) {
	for timedOut, want := range map[bool]string{false: "1", true: "2"} {
		s := newScript(t, params())
		s.on(FunctionFailed{timedOut, "oh"}, Opened{1})
		s.expect("dial 1 any", "draining "+want+": oh", "drained", "send 1 hello", "send 1 goodbye "+want, "hangup 1")
		s.on(Lost{Session: 1, Cause: CauseBroken})
		s.pass(minPause)
		s.expect("dial 2 any") // it was not heard
		s.pass(goodbyeTimeout)
		s.expect("drop 2", "dial 3 any", "drop 3", "end") // nor did anybody answer
	}
}

func TestUnknownInstanceEndsWithItsCalls(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Granted{1}, Lost{Session: 1, Cause: CauseUnknown, Detail: "who"})
	s.expect("claim 1 of a", "start 1", "draining 0: who")
	s.pass(time.Hour)
	s.expect() // it looks for nobody
	s.on(CallEnded{Attempt: 1, Outcome: Complete})
	s.expect("deliver 1", "drained", "end")
}
