package core

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

var start = time.Unix(1_000_000, 0)

func spec() Spec { return Spec{Admitted: start, MaxQueueTime: 30 * time.Second, Timeout: time.Minute} }

// queued is an invocation that waits under the token 1, and has sent its ticket.
func queued(s Spec) *Invocation {
	v := New(s)
	v.Queue(invocation.Token{1}, start)
	v.Ask(start)
	return v
}

// claimed is one that an instance has.
func claimed(t *testing.T, s Spec) *Invocation {
	t.Helper()
	v := queued(s)
	if _, err := v.Claim(start, invocation.Token{1}, "a"); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestM7ARetryHasADeadlineOfItsOwn(t *testing.T) {
	s := spec()
	s.MayRepeat = true
	v := claimed(t, s)
	late := start.Add(s.MaxQueueTime)
	if d := v.QueueTimeout(late); d != (Decision{}) {
		t.Errorf("the queue's deadline of one that is claimed: %+v", d)
	}
	lost := start.Add(time.Minute)
	if d, err := v.Lose(1, lost, invocation.Token{2}, "InstanceLost"); err != nil || !d.Wait || d.Offer {
		t.Fatalf("lost: %+v, %v", d, err)
	}
	if d := v.Ask(lost); !d.Offer {
		t.Fatalf("asked: %+v", d)
	}
	if d := v.Ask(lost); d != (Decision{}) {
		t.Fatalf("asked twice: %+v", d)
	}
	if ticket, waits := v.Ticket(lost); !waits || ticket.Remaining != s.MaxQueueTime || ticket.Token != (invocation.Token{2}) || ticket.Attempt != 2 {
		t.Errorf("the retry's ticket: %+v, waits %t", ticket, waits)
	}
	if d := v.QueueTimeout(lost.Add(s.MaxQueueTime - 1)); d.End {
		t.Error("the retry ended before its deadline")
	}
	d := v.QueueTimeout(lost.Add(s.MaxQueueTime))
	want := Failure{Executed: invocation.ExecutedMaybe, Lost: InstanceLost, Cause: CauseLate}
	if !d.End || !d.Fail || !d.CancelTicket || d.Failure != want {
		t.Errorf("at the retry's deadline: %+v", d)
	}
}

func TestARetryIsAnsweredOnceItsDeadlineHasComeHoweverLatelyItWasOffered(t *testing.T) {
	s := spec()
	s.MayRepeat = true
	v := claimed(t, s)
	lost := start.Add(time.Minute)
	if _, err := v.Lose(1, lost, invocation.Token{2}, "InstanceLost"); err != nil {
		t.Fatal(err)
	}
	v.Ask(lost)
	deadline := lost.Add(s.MaxQueueTime)
	if d := v.Audit(deadline.Add(-time.Millisecond), Observed{Moved: true}, invocation.Token{}); !d.Offer {
		t.Fatalf("before the deadline: %+v", d)
	}
	if d := v.Audit(deadline.Add(time.Millisecond), Observed{}, invocation.Token{}); !d.End || d.Failure.Cause != CauseLate {
		t.Errorf("after the deadline: %+v", d)
	}
}

// A ticket says that it is not the first only if a queue may have had an earlier one: a queue does
// not count such a ticket against the function's limits.
func TestATicketIsNotTheFirstOnlyIfAQueueMayHaveHadOne(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*Invocation)
		again  bool
	}{
		"no scheduler was sent one":         {func(*Invocation) {}, false},
		"one was sent":                      {(*Invocation).TicketSent, true},
		"the one that was sent came back":   {func(v *Invocation) { v.TicketSent(); v.NotQueued(false) }, false},
		"only the second came back":         {func(v *Invocation) { v.TicketSent(); v.TicketSent(); v.NotQueued(false) }, true},
		"one was admitted, and came back":   {func(v *Invocation) { v.TicketSent(); v.NotQueued(true) }, true},
		"so it was, and then one came back": {func(v *Invocation) { v.TicketSent(); v.NotQueued(true); v.TicketSent(); v.NotQueued(false) }, true},
		"one came back, then one was sent":  {func(v *Invocation) { v.NotQueued(false); v.TicketSent() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := queued(spec())
			tc.before(v)
			if d := v.Audit(start.Add(2*ReofferAfter), Observed{}, invocation.Token{}); !d.Offer {
				t.Fatalf("the audit decides %+v", d)
			}
			if ticket, _ := v.Ticket(start); ticket.Again != tc.again {
				t.Errorf("again %t, want %t", ticket.Again, tc.again)
			}
		})
	}
}

// The scheduler's refusal of the ticket before may come between an offer and its ticket.
func TestATicketCountsFromNow(t *testing.T) {
	v := queued(spec())
	now := start.Add(2 * ReofferAfter)
	v.Audit(now, Observed{}, invocation.Token{})
	v.NotQueued(false)
	ticket, _ := v.Ticket(now)
	if want := spec().MaxQueueTime - 2*ReofferAfter; ticket.Waited != 2*ReofferAfter || ticket.Remaining != want {
		t.Errorf("it has waited for %v and may wait for %v, want %v and %v", ticket.Waited, ticket.Remaining, 2*ReofferAfter, want)
	}
}

// What may be said of an invocation that is refused while it waits.
func TestExecutedIsNoOnlyIfNobodyHadTheRequest(t *testing.T) {
	repeatable := spec()
	repeatable.MayRepeat = true
	for name, tc := range map[string]struct {
		spec   Spec
		before func(*Invocation)
		want   invocation.Executed
	}{
		"that was never claimed": {spec(), func(*Invocation) {}, invocation.ExecutedNo},
		"that was offered three times": {spec(), func(v *Invocation) {
			v.NotQueued(false)
			v.Audit(start, Observed{}, invocation.Token{})
			v.Audit(start, Observed{Moved: true}, invocation.Token{})
		}, invocation.ExecutedNo},
		"that a loan's instance released": {spec(), func(v *Invocation) {
			_, _ = v.ClaimByLoan(start)
			_, _ = v.Release(1, start, invocation.Token{2}, true)
		}, invocation.ExecutedNo},
		"that a loan's instance lost": {repeatable, func(v *Invocation) {
			_, _ = v.ClaimByLoan(start)
			_, _ = v.Lose(1, start, invocation.Token{2}, "InstanceLost")
		}, invocation.ExecutedMaybe},
		"that was released": {spec(), func(v *Invocation) {
			_, _ = v.Claim(start, invocation.Token{1}, "a")
			_, _ = v.Release(1, start, invocation.Token{2}, true)
		}, invocation.ExecutedNo},
		"that was lost": {repeatable, func(v *Invocation) {
			_, _ = v.Claim(start, invocation.Token{1}, "a")
			_, _ = v.Lose(1, start, invocation.Token{2}, "InstanceLost")
		}, invocation.ExecutedMaybe},
	} {
		t.Run(name, func(t *testing.T) {
			v := queued(tc.spec)
			tc.before(v)
			if d := v.Refuse(); !d.Fail || d.Failure.Executed != tc.want {
				t.Errorf("refused: %+v, want executed %q", d, tc.want)
			}
		})
	}
}

// All that happens to an invocation that has ended changes nothing, and no claim of it
// is granted.
func TestNothingHappensToWhatHasEnded(t *testing.T) {
	later := start.Add(time.Hour)
	for name, event := range map[string]func(*Invocation) (Decision, error){
		"queue": func(v *Invocation) (Decision, error) { return v.Queue(invocation.Token{3}, later), nil },
		"claim": func(v *Invocation) (Decision, error) {
			_, err := v.Claim(later, invocation.Token{1}, "b")
			return Decision{Wait: err == nil}, err
		},
		"loan": func(v *Invocation) (Decision, error) {
			if _, err := v.ClaimByLoan(later); err == nil {
				return Decision{Wait: true}, nil
			}
			return Decision{}, nil
		},
		"ask":        func(v *Invocation) (Decision, error) { return v.Ask(later), nil },
		"begin":      func(v *Invocation) (Decision, error) { return v.Begin(1, true) },
		"finish":     func(v *Invocation) (Decision, error) { return v.Finish(1) },
		"fail":       func(v *Invocation) (Decision, error) { return v.Fail(1), nil },
		"lose":       func(v *Invocation) (Decision, error) { return v.Lose(1, later, invocation.Token{3}, "InstanceLost") },
		"release":    func(v *Invocation) (Decision, error) { return v.Release(1, later, invocation.Token{3}, true) },
		"run time":   func(v *Invocation) (Decision, error) { return v.RunTimeout(1, later), nil },
		"queue time": func(v *Invocation) (Decision, error) { return v.QueueTimeout(later), nil },
		"audit": func(v *Invocation) (Decision, error) {
			seen := Observed{Deleted: true, Moved: true, Ended: true}
			v.Audit(later, seen, invocation.Token{3})
			return v.Audit(later.Add(ReofferEvery), seen, invocation.Token{3}), nil
		},
		"move":        func(v *Invocation) (Decision, error) { return v.Move(invocation.Token{3}, time.Hour, later), nil },
		"refuse":      func(v *Invocation) (Decision, error) { return v.Refuse(), nil },
		"client left": func(v *Invocation) (Decision, error) { return v.ClientLeft(), nil },
		"abort":       func(v *Invocation) (Decision, error) { return v.Abort(true), nil },
	} {
		t.Run(name, func(t *testing.T) {
			v := claimed(t, spec())
			v.Fail(1)
			d, _ := event(v)
			if d != (Decision{}) || v.Phase() != Ended || v.Answer() != AnswerComplete {
				t.Errorf("%+v, phase %d, answer %d", d, v.Phase(), v.Answer())
			}
		})
	}
}

// What ends its instances would otherwise cost an instance after the other until its deadline. Places that
// are taken, and cores that are busy, say nothing about it.
func TestAnInvocationIsReleasedByABoundedNumberOfInstances(t *testing.T) {
	type end func(v *Invocation, attempt int) (Decision, error)
	release := func(v *Invocation, n int) (Decision, error) { return v.Release(n, start, invocation.Token{2}, true) }
	decline := func(v *Invocation, n int) (Decision, error) { return v.Decline(n, start, invocation.Token{2}, true) }
	giveUp := func(v *Invocation, n int) (Decision, error) { return v.GiveUp(n, start, invocation.Token{2}) }
	for name, tc := range map[string]struct {
		ends  []end
		tries int // 0 for no bound
	}{
		"released":                      {[]end{release}, MaxReleases},
		"released, and declined before": {[]end{decline, giveUp, release}, 3 * MaxReleases},
		"declined":                      {[]end{decline}, 0},
		"given up for a core":           {[]end{giveUp}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := New(spec())
			v.Queue(invocation.Token{1}, start)
			for n := 1; n <= 10*MaxReleases; n++ {
				g, err := v.ClaimByLoan(start)
				if err != nil {
					t.Fatal(err)
				}
				d, _ := tc.ends[(n-1)%len(tc.ends)](v, g.Attempt)
				switch {
				case n == tc.tries:
					if !d.End || !d.Fail || d.Failure.Executed != invocation.ExecutedNo {
						t.Errorf("after %d tries: %+v", n, d)
					}
					return
				case !d.Wait:
					t.Fatalf("after %d tries: %+v", n, d)
				}
			}
		})
	}
}

// Whatever happens in whatever order: a client is answered once, at most one instance
// has the invocation, and "no" is only said of what nobody had.
func TestPromisesHoldInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spec()
		s.MayRepeat = rapid.Bool().Draw(t, "may repeat")
		s.CancelOnDisconnect = rapid.Bool().Draw(t, "cancel")
		v := New(s)
		w := &checker{T: t, v: v, now: start}
		t.Repeat(map[string]func(*rapid.T){
			"time":  func(t *rapid.T) { w.now = w.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "s")) * time.Second) },
			"queue": func(*rapid.T) { w.saw(v.Queue(w.token(), w.now)) },
			"ask":   func(*rapid.T) { w.saw(v.Ask(w.now)) },
			"loan": func(t *rapid.T) {
				waits := v.Phase() == Queued
				g, err := v.ClaimByLoan(w.now)
				if (err == nil) != waits {
					t.Fatalf("waits %t, and a loan gets %v", waits, err)
				}
				if err == nil {
					w.attempt = g.Attempt
				}
			},
			"claim": func(t *rapid.T) {
				waits := v.Phase() == Queued
				g, err := v.Claim(w.now, invocation.Token{rapid.ByteRange(0, w.tokens).Draw(t, "token")}, "a")
				if err == nil && !waits {
					t.Fatal("granted twice")
				}
				if err == nil {
					w.attempt = g.Attempt
				}
			},
			"begin": func(t *rapid.T) {
				before := v.Answer()
				w.ran()
				d, err := v.Begin(w.attempt, rapid.Bool().Draw(t, "whole"))
				if err == nil && before != AnswerNone {
					t.Fatal("a second answer")
				}
				w.saw(d)
			},
			"finish": func(*rapid.T) { d, _ := v.Finish(w.attempt); w.saw(d); w.saw(v.Wrote(true)) },
			"release": func(t *rapid.T) {
				d, _ := v.Release(w.attempt, w.now, w.token(), rapid.Bool().Draw(t, "kept"))
				w.saw(d)
			},
			"decline": func(t *rapid.T) {
				d, _ := v.Decline(w.attempt, w.now, w.token(), rapid.Bool().Draw(t, "kept"))
				w.saw(d)
			},
			"lose": func(*rapid.T) {
				w.ran()
				d, _ := v.Lose(w.attempt, w.now, w.token(), "InstanceLost")
				w.saw(d)
			},
			"fail":       func(*rapid.T) { w.saw(v.Fail(w.attempt)) },
			"untouched":  func(*rapid.T) { w.saw(v.FailUntouched(w.attempt)) },
			"run time":   func(*rapid.T) { w.saw(v.RunTimeout(w.attempt, w.now)) },
			"queue time": func(*rapid.T) { w.saw(v.QueueTimeout(w.now)) },
			"audit": func(t *rapid.T) {
				seen := Observed{Moved: rapid.Bool().Draw(t, "moved"), Deleted: rapid.Bool().Draw(t, "deleted"), Ended: rapid.Bool().Draw(t, "silent")}
				claimed := v.Phase() == Claimed
				d := v.Audit(w.now, seen, w.token())
				w.mayHaveRun = w.mayHaveRun || claimed && d.Wait // it is taken for lost
				w.saw(d)
			},
			"not queued":  func(t *rapid.T) { v.NotQueued(rapid.Bool().Draw(t, "admitted")) },
			"move":        func(*rapid.T) { w.saw(v.Move(w.token(), time.Minute, w.now)) },
			"refuse":      func(*rapid.T) { w.saw(v.Refuse()) },
			"left early":  func(*rapid.T) { w.saw(v.ClientLeftEarly()) },
			"client left": func(*rapid.T) { w.saw(v.ClientLeft()) },
			"abort":       func(t *rapid.T) { w.saw(v.Abort(rapid.Bool().Draw(t, "stop"))) },
			"":            func(*rapid.T) { w.check() },
		})
	})
}

// checker knows what really happened to an invocation.
type checker struct {
	*rapid.T
	v          *Invocation
	now        time.Time
	tokens     byte
	attempt    int
	answers    int
	ended      bool
	mayHaveRun bool
}

// token is a new one.
func (w *checker) token() invocation.Token {
	w.tokens++
	return invocation.Token{w.tokens}
}

// ran notes that the present attempt ran, if there is one.
func (w *checker) ran() { w.mayHaveRun = w.mayHaveRun || w.v.Phase() == Claimed }

func (w *checker) saw(d Decision) {
	if d.Fail {
		w.answers++
		if d.Failure.Executed == invocation.ExecutedNo && w.mayHaveRun {
			w.Fatalf("said no of what may have run: %+v", d)
		}
	}
	switch {
	case w.ended && d != (Decision{}):
		w.Fatalf("after the end: %+v", d)
	case d.Fail && d.Cut:
		w.Fatalf("a problem behind the head of an answer: %+v", d)
	case (d.Offer || d.Wait) && (w.v.Phase() != Queued || w.v.Answer() != AnswerNone):
		w.Fatalf("%+v in phase %d, with the answer %d", d, w.v.Phase(), w.v.Answer())
	case d.Offer && d.Wait:
		w.Fatal("offered before its pool has it")
	}
	w.ended = w.ended || d.End
}

func (w *checker) check() {
	switch {
	case w.answers > 1:
		w.Fatal("answered twice")
	case w.ended != (w.v.Phase() == Ended):
		w.Fatalf("phase %d, and an end was decided: %t", w.v.Phase(), w.ended)
	case w.v.Phase() == Queued && w.v.Answer() != AnswerNone:
		w.Fatalf("waits with the answer %d", w.v.Answer())
	case w.v.Phase() == Ended && w.v.Answer() == AnswerNone:
		w.Fatal("ended, and nobody is answered")
	}
}

func BenchmarkWarmCall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		v := New(spec())
		v.Queue(invocation.Token{1}, start)
		g, _ := v.ClaimByLoan(start)
		_, _ = v.Begin(g.Attempt, true)
		v.Wrote(true)
	}
}
