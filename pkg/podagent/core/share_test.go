package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// forsaken is an agent that the gateways g:1 to g:n have called, and no scheduler answers any more.
type forsaken struct {
	core *Core
	now  time.Time
	wake time.Time
	// says are the frames about credits, as "+1" for a place that gateway 1 gets and "-1" for one that it loses.
	says []string
	// frames counts these frames, and declined the calls that came too late; pulls are what a scheduler gets.
	frames, declined int
	pulls            []Pull
}

func newForsaken(concurrency, gateways int, lent bool) *forsaken {
	w := newCalled(concurrency, gateways, lent)
	w.play(Lost{Session: 1})
	return w
}

// newCalled is the same while its scheduler is still there.
func newCalled(concurrency, gateways int, lent bool) *forsaken {
	w := &forsaken{now: time.Unix(1_000_000, 0)}
	w.core = New(Params{Concurrency: concurrency, BackoffAfter: time.Minute, IdleTimeout: time.Hour, Jitter: 1})
	for _, e := range []Event{Begin{}, Opened{1}, Received{1, Welcome{1}}, FunctionReady{}} {
		w.play(e)
	}
	for i := 1; i <= gateways; i++ {
		t := ticket(byte(i))
		t.Ticket.Gateway, t.Lent = fmt.Sprint("g:", i), lent
		for _, e := range []Event{
			Received{1, t}, ConnOpened{Conn(i)}, Granted{Attempt(i)}, CallEnded{Attempt: Attempt(i), Outcome: Complete},
			Received{1, Recall{Gateway: t.Ticket.Gateway, Calls: concurrency}},
		} {
			w.play(e)
		}
	}
	w.says = nil
	return w
}

func (w *forsaken) play(e Event) {
	for _, effect := range w.core.Step(w.now, e) {
		switch e := effect.(type) {
		case WakeAt:
			w.wake = e.Time
		case Send:
			if p, is := e.Message.(Pull); is {
				w.pulls = append(w.pulls, p)
			}
		case Decline:
			w.declined++
		case Lend:
			w.frames++
			w.says = append(w.says, slices.Repeat([]string{fmt.Sprint("+", e.Conn)}, e.Credits)...)
		case TakeBack:
			w.frames++
			w.says = append(w.says, slices.Repeat([]string{fmt.Sprint("-", e.Conn)}, e.Credits)...)
		}
	}
}

// played is what it says at an event.
func (w *forsaken) played(e Event) string {
	w.says, w.frames = nil, 0
	w.play(e)
	return fmt.Sprint(w.says)
}

// dialled is the session that it dials next, with nothing pulled so far.
func (w *forsaken) dialled() Session {
	for w.core.link.phase != linkDialing {
		w.said(time.Millisecond)
	}
	w.pulls = nil
	return w.core.link.session
}

// said is what it says in a time.
func (w *forsaken) said(d time.Duration) string {
	w.says = nil
	for until := w.now.Add(d); ; {
		if w.wake.IsZero() || w.wake.After(until) {
			w.now = until
			return fmt.Sprint(w.says)
		}
		w.now, w.wake = w.wake, time.Time{}
		w.play(Wake{})
	}
}

func TestWithoutASchedulerEachGatewayMayCallEachPlace(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		concurrency, gateways int
		limited               bool
		// shared is what it says when sharing begins.
		shared string
	}{
		{"one place", 1, 2, false, "[+1 +2]"},
		{"three gateways", 1, 3, false, "[+1 +2 +3]"},
		{"one gateway", 1, 1, false, "[+1]"},
		{"two places", 2, 2, false, "[+1 +1 +2 +2]"},
		{"a function with limits", 1, 2, true, "[]"},
		{"nobody who has called it", 1, 0, false, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newForsaken(tt.concurrency, tt.gateways, !tt.limited)
			if got := w.said(shareAfter - 1); got != "[]" {
				t.Errorf("before %v it says %s", shareAfter, got)
			}
			if got := w.said(1); got != tt.shared {
				t.Errorf("it says %s, want %s", got, tt.shared)
			}
			if got := w.said(time.Minute / 2); got != "[]" {
				t.Errorf("later it says %s", got)
			}
		})
	}
}

func TestAPlaceIsTakenBackFromOthersWhileItsCallRuns(t *testing.T) {
	w := newForsaken(1, 2, true)
	w.said(shareAfter)
	for n := Attempt(3); n < 50; n += 2 { // gateway 1 calls all the time, and gateway 2 between
		if got := w.played(Called{Conn: 1, Call: uint32(n)}); got != "[-2]" {
			t.Fatalf("when a call begins it says %s", got)
		}
		w.play(Called{Conn: 2, Call: uint32(n)}) // it has crossed the TakeBack
		if w.declined != 1 {
			t.Fatalf("it declines %d calls that come too late", w.declined)
		}
		if got := w.played(CallEnded{Attempt: n, Outcome: Complete}); got != "[+2]" {
			t.Fatalf("when it ends it says %s", got)
		}
		w.play(Called{Conn: 2, Call: uint32(n + 2)})
		w.play(CallEnded{Attempt: n + 1, Outcome: Complete})
		w.declined = 0
	}
}

// What is between half of the places and all costs no frame.
func TestManyPlacesAreNotToldOfWithEachCall(t *testing.T) {
	const places = 100
	w := newForsaken(places, 2, true)
	w.said(shareAfter)
	frames := 0
	for n := Attempt(3); n < 3+places; n++ {
		if w.core.conns.all[2].idle == 0 {
			t.Fatalf("the other gateway has no credit while %d places are free", places-int(n-3))
		}
		w.played(Called{Conn: 1, Call: uint32(n)})
		frames += w.frames
	}
	if got := w.core.conns.all[2].idle; got != 0 {
		t.Errorf("it has %d credits beside %d calls", got, places)
	}
	if frames < 5 || frames > 20 {
		t.Errorf("%d frames for %d calls", frames, places)
	}
}

func TestASchedulerThatAnswersEndsTheSharing(t *testing.T) {
	w := newForsaken(5, 2, true)
	w.said(shareAfter)
	w.play(Called{Conn: 1, Call: 2})
	w.dialled()
	w.play(Opened{w.core.link.session})
	if len(w.pulls) > 0 {
		t.Errorf("it pulls before the scheduler answers: %+v", w.pulls)
	}
	w.play(Received{w.core.link.session, Welcome{2}})
	want := []Pull{{Credits: 0, Loans: []Loan{{"g:1", 3}, {"g:2", 2}}}}
	if diff := cmp.Diff(want, w.pulls); diff != "" {
		t.Errorf("it pulls (-want +got):\n%s", diff)
	}
	if got := w.said(time.Second); got != "[]" {
		t.Errorf("afterwards it says %s", got)
	}
}

// A gateway that has given its places back has no part in the division.
func TestTheEndOfTheSharingTakesNothingForAGatewayWithoutAPlace(t *testing.T) {
	w := newForsaken(2, 2, true)
	w.said(shareAfter)
	w.play(Returned{Conn: 2, Credits: 2})
	session := w.dialled()
	w.play(Opened{session})
	if got := w.played(Received{session, Welcome{2}}); got != "[]" {
		t.Errorf("it says %s", got)
	}
	if diff := cmp.Diff([]Pull{{Loans: []Loan{{"g:1", 2}}}}, w.pulls); diff != "" {
		t.Errorf("it pulls (-want +got):\n%s", diff)
	}
}

// On a busy node a ticket whose place is not lent does not say that the function has limits.
func TestAnInstanceOfABusyNodeSharesItsPlace(t *testing.T) {
	w := newCalled(1, 2, true)
	unlent := ticket('x')
	unlent.Ticket.Gateway = "g:1"
	for _, e := range []Event{
		NodeMode{Busy: true, Ask: true}, Received{1, unlent}, NodeGranted{3}, Granted{3}, CallEnded{Attempt: 3, Outcome: Complete}, Lost{Session: 1},
	} {
		w.play(e)
	}
	if got := w.said(shareAfter); got != "[+1 +2]" {
		t.Errorf("it says %s", got)
	}
}

// It drains, or the function has limits now, which a scheduler must count.
func TestAGatewayThatGivesAPlaceBackGetsNoOther(t *testing.T) {
	w := newForsaken(1, 2, true)
	w.said(shareAfter)
	w.play(Returned{Conn: 2, Credits: 1})
	w.play(Called{Conn: 1, Call: 2})
	if got := w.played(CallEnded{Attempt: 3, Outcome: Complete}); got != "[]" {
		t.Errorf("it says %s", got)
	}
	if got := w.said(time.Second); got != "[]" {
		t.Errorf("later it says %s", got)
	}
}

func TestAGatewayWhosePlaceWasTakenWhileItGaveItBackGetsNoOther(t *testing.T) {
	w := newForsaken(1, 2, true)
	w.said(shareAfter)
	if got := w.played(Called{Conn: 1, Call: 2}); got != "[-2]" {
		t.Fatalf("when a call begins it says %s", got)
	}
	w.play(Returned{Conn: 2, Credits: 1}) // it has crossed the TakeBack
	if got := w.played(CallEnded{Attempt: 3, Outcome: Complete}); got != "[]" {
		t.Errorf("when it ends it says %s", got)
	}
}

// Nobody could name the gateway to the agent again.
func TestWithoutASchedulerConnectionsStay(t *testing.T) {
	w := newForsaken(1, 2, true)
	w.said(shareAfter)
	w.play(Called{Conn: 1, Call: 2})
	w.said(3 * unusedFor)
	if got := w.played(CallEnded{Attempt: 3, Outcome: Complete}); got != "[+2]" {
		t.Errorf("it says %s", got)
	}
}

// A gateway gets a place a moment before a scheduler answers and recalls it, and may use it for another moment. The
// instance has run nothing for long, but lends nothing that it could report as idle.
func TestARecalledPlaceIsNotReportedAsIdle(t *testing.T) {
	w := newCalled(1, 2, true)
	w.now = w.now.Add(2 * idleReportAfter)
	w.play(Lost{Session: 1})
	w.said(shareAfter)
	session := w.dialled()
	for _, e := range []Event{Opened{session}, Received{session, Welcome{2}}, Received{session, Recall{"g:1", 1, time.Second}}} {
		w.play(e)
	}
	wakes := 0
	for until := w.now.Add(time.Second); !w.wake.IsZero() && !w.wake.After(until); wakes++ {
		if wakes == 20 {
			t.Fatalf("it wakes up again and again at %s, and no call comes", w.now)
		}
		w.now, w.wake = w.wake, time.Time{}
		w.play(Wake{})
	}
}
