package core

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// forsaken is an agent that the gateways g:1 to g:n have called, and no scheduler answers any more.
type forsaken struct {
	core *Core
	now  time.Time
	wake time.Time
	// says are the frames about credits, as "+1" for a place that gateway 1 gets and "-1" for one that it loses.
	says []string
}

func newForsaken(concurrency, gateways int, lent bool) *forsaken {
	w := &forsaken{now: time.Unix(1_000_000, 0)}
	w.core = New(Params{Concurrency: concurrency, BackoffAfter: time.Minute, IdleTimeout: time.Hour, Jitter: 1})
	for _, e := range []Event{Begin{}, Opened{1}, Received{1, Welcome{1}}, FunctionReady{}} {
		w.play(e)
	}
	for i := 1; i <= gateways; i++ {
		t := ticket(byte(i))
		t.Ticket.Gateway, t.Lent = fmt.Sprint("g:", i), lent
		for _, e := range []Event{
			Received{1, t}, GatewayOpened{Gateway(i)}, Granted{Attempt(i)}, CallEnded{Attempt: Attempt(i), Outcome: Complete},
			Received{1, Recall{Gateway: t.Ticket.Gateway, Calls: concurrency}},
		} {
			w.play(e)
		}
	}
	w.says = nil
	w.play(Lost{Session: 1})
	return w
}

func (w *forsaken) play(e Event) {
	for _, effect := range w.core.Step(w.now, e) {
		switch e := effect.(type) {
		case WakeAt:
			w.wake = e.Time
		case Lend:
			w.says = append(w.says, slices.Repeat([]string{fmt.Sprint("+", e.Gateway)}, e.Credits)...)
		case TakeBack:
			w.says = append(w.says, slices.Repeat([]string{fmt.Sprint("-", e.Gateway)}, e.Credits)...)
		}
	}
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

func TestWithoutASchedulerGatewaysHavePlacesInTurn(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		concurrency, gateways int
		limited               bool
		// soon is what it says until passAfter, and later in each passAfter that follows.
		soon  string
		later []string
	}{
		{"one place", 1, 2, false, "[]", []string{"[+1]", "[-1 +2]", "[-2 +1]"}},
		{"three gateways", 1, 3, false, "[]", []string{"[+1]", "[-1 +2]", "[-2 +3]", "[-3 +1]"}},
		{"one gateway", 1, 1, false, "[]", []string{"[+1]", "[]", "[]"}},
		{"a place for each", 2, 2, false, "[]", []string{"[+1 +2]", "[]", "[]"}},
		{"many places", 7, 2, false, "[]", []string{"[+1 +1 +1 +1 +2 +2 +2]", "[]"}},
		{"a function with limits", 1, 2, true, "[]", []string{"[]", "[]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newForsaken(tt.concurrency, tt.gateways, !tt.limited)
			if got := w.said(passAfter - 1); got != tt.soon {
				t.Errorf("soon it says %s, want %s", got, tt.soon)
			}
			for i, want := range tt.later {
				if got := w.said(passAfter); got != want {
					t.Errorf("in round %d it says %s, want %s", i, got, want)
				}
			}
		})
	}
}

// A place stays where it is used, and goes to the others from where it is not.
func TestAPlaceStaysWithTheGatewayThatUsesIt(t *testing.T) {
	w := newForsaken(1, 2, true)
	w.said(2 * passAfter)
	if w.core.gateways.conns[2].idle != 1 {
		t.Fatal("the second gateway has no place")
	}
	for n := Attempt(3); n < 10; n++ {
		w.play(Called{Gateway: 2, Call: uint32(n)})
		if got := w.said(2 * passAfter); got != "[]" {
			t.Errorf("while it runs a call it says %s", got)
		}
		w.play(CallEnded{Attempt: n, Outcome: Complete})
		if got := w.said(passAfter / 2); got != "[]" {
			t.Errorf("soon after the call it says %s", got)
		}
	}
	if got := w.said(passAfter); got != "[-2 +1]" {
		t.Errorf("it says %s", got)
	}
}

// Nothing goes round once a scheduler answers.
func TestASchedulerThatAnswersHasThePlacesAgain(t *testing.T) {
	w := newForsaken(2, 2, true)
	w.said(3 * passAfter)
	w.play(Opened{w.core.link.session})
	w.play(Received{w.core.link.session, Welcome{2}})
	w.said(0)
	if got := w.said(4 * passAfter); got != "[]" {
		t.Errorf("it says %s", got)
	}
}

// A gateway was handed the place a moment before a scheduler answers and recalls it, so it may use it until the term ends.
// The instance has run nothing for long, but lends nothing that it could report as idle.
func TestARecalledPlaceIsNotReportedAsIdle(t *testing.T) {
	w := newForsaken(1, 2, true)
	w.said(2 * idleReportAfter)
	for w.said(time.Millisecond) == "[]" {
		continue
	}
	has := w.core.gateways.turn
	session := w.core.link.session
	for _, e := range []Event{
		Opened{session}, Received{session, Welcome{2}}, Received{session, Recall{Gateway: fmt.Sprint("g:", has), Calls: 1, Term: time.Second}},
	} {
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
