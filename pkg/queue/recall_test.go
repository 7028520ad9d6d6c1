package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// lending is a queue with instances whose places are all lent.
func lending(t *testing.T, loans map[invocation.CID][]Loan) *Queue {
	t.Helper()
	q := New(Limits{MaxWaiting: 100, ClaimGrace: time.Second, CoolDown: 2 * time.Second})
	for cid, lent := range loans {
		capacity := 0
		for _, l := range lent {
			capacity += l.Calls
		}
		if err := errors.Join(q.Join(cid, capacity), q.Pull(cid, Pull{Loans: lent}, start)); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// wait lets tickets of gateways wait from now on.
func wait(t *testing.T, q *Queue, now time.Time, gateways ...string) {
	t.Helper()
	for _, gateway := range gateways {
		id := invocation.ID{0: byte(q.Arrived()), 1: byte(q.Arrived() >> 8)}
		if err := q.Offer(invocation.Ticket{ID: id, Gateway: gateway, Arrived: now, Deadline: now.Add(time.Hour)}, now); err != nil {
			t.Fatal(err)
		}
	}
}

func recallsAt(q *Queue, now time.Time, idle map[string]int) (list []string) {
	q.Match(now, true, func(invocation.CID, *invocation.Ticket, bool) {})
	q.Recalls(now, func(gateway string) int { return idle[gateway] }, func(r Recall) {
		line := fmt.Sprintf("%s %s %d", r.CID, r.Gateway, r.Calls)
		if r.Term > 0 {
			line += fmt.Sprint(" in ", r.Term)
		}
		list = append(list, line)
	})
	return list
}

func TestRecalls(t *testing.T) {
	old := start.Add(LoanTerm)
	for name, tt := range map[string]struct {
		loans map[invocation.CID][]Loan
		waits []string
		idle  map[string]int
		at    time.Time
		want  []string
	}{
		"nothing waits":                          {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}}, at: old},
		"only the lender's own tickets wait":     {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}}, waits: []string{"A", "A"}, at: old},
		"a busy loan keeps its term":             {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}}, waits: []string{"B"}, at: old.Add(-1), want: []string{"a A 1 in 1ns"}},
		"a busy loan has had its term":           {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}}, waits: []string{"B"}, at: old, want: []string{"a A 1"}},
		"a report may be old":                    {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}}, waits: []string{"B"}, idle: map[string]int{"A": 1}, at: start, want: []string{"a A 1 in 100ms"}},
		"no more than wait":                      {loans: map[invocation.CID][]Loan{"a": {{"A", 8}}}, waits: []string{"B", "B"}, at: old, want: []string{"a A 2"}},
		"no more of a gateway than others' wait": {loans: map[invocation.CID][]Loan{"a": {{"A", 8}}}, waits: []string{"A", "A", "B"}, at: old, want: []string{"a A 1"}},
		"the idle ones are probably the last":    {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}, "b": {{"A", 1}}, "c": {{"A", 1}}}, waits: []string{"B", "B"}, idle: map[string]int{"A": 1}, at: old, want: []string{"c A 1", "a A 1"}},
		"the most idle gateway comes first":      {loans: map[invocation.CID][]Loan{"a": {{"A", 3}}, "c": {{"C", 2}}}, waits: []string{"B"}, idle: map[string]int{"A": 1, "C": 2}, at: old, want: []string{"c C 1"}},
		"then the one with the most loans":       {loans: map[invocation.CID][]Loan{"a": {{"A", 3}}, "c": {{"C", 2}}}, waits: []string{"B"}, at: old, want: []string{"a A 1"}},
		"each has what the other needs":          {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}, "b": {{"B", 1}}}, waits: []string{"A", "B"}, at: old, want: []string{"a A 1", "b B 1"}},
		"a report may be wrong":                  {loans: map[invocation.CID][]Loan{"a": {{"A", 1}}}, waits: []string{"B", "B"}, idle: map[string]int{"A": 50, "C": 3}, at: old, want: []string{"a A 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := lending(t, tt.loans)
			wait(t, q, start, tt.waits...)
			if diff := cmp.Diff(tt.want, recallsAt(q, tt.at, tt.idle)); diff != "" {
				t.Error(diff)
			}
			if again := recallsAt(q, tt.at, tt.idle); again != nil {
				t.Errorf("recalled twice: %q", again)
			}
		})
	}
}

func TestAnInstanceKnownToBeIdleGivesItsLoanBackFirst(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"a": {{"A", 1}}, "b": {{"A", 1}}})
	if err := q.Pull("a", Pull{Loans: []Loan{{"A", 1}}, Idle: time.Second}, start); err != nil {
		t.Fatal(err)
	}
	wait(t, q, start, "B")
	if got := recallsAt(q, start.Add(LoanTerm), map[string]int{"A": 1}); !cmp.Equal(got, []string{"a A 1"}) {
		t.Errorf("got %q", got)
	}
}

func TestABusyLoanWithTheShortestTermComesFirst(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"b": {{"A", 1}}})
	later := start.Add(LoanTerm / 2)
	if err := errors.Join(q.Join("a", 1), q.Pull("a", Pull{Loans: []Loan{{"A", 1}}}, later)); err != nil {
		t.Fatal(err)
	}
	wait(t, q, later, "B")
	if got := recallsAt(q, later, nil); !cmp.Equal(got, []string{"b A 1 in 50ms"}) {
		t.Errorf("got %q", got)
	}
}

// Its call may take hours.
func TestAfterASecondAnotherInstanceIsAsked(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"a": {{"A", 2}}, "b": {{"A", 1}}})
	wait(t, q, start, "B")
	at := start.Add(LoanTerm)
	for _, want := range []string{"a A 1", "b A 1", "a A 1"} {
		if got := recallsAt(q, at, nil); !cmp.Equal(got, []string{want}) {
			t.Errorf("got %q, want %s", got, want)
		}
		at = at.Add(time.Second)
	}
}

// As long as a recalled place runs a long call, others are recalled first.
func TestALoanWhoseLongCallHasEndedIsRecalledLikeOthers(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"a": {{"A", 2}}, "b": {{"A", 2}}})
	at := start.Add(LoanTerm)
	for _, left := range []int{1, 0} {
		wait(t, q, at, "B")
		if got := recallsAt(q, at, nil); !cmp.Equal(got, []string{"a A 1"}) {
			t.Fatalf("got %q", got)
		}
		// The call ends when nobody expects it any more.
		at = at.Add(recallPatience)
		if err := q.Pull("a", Pull{Loans: []Loan{{"A", left}}, Credits: 1}, at); err != nil {
			t.Fatal(err)
		}
		if got := recallsAt(q, at, nil); got != nil {
			t.Fatalf("recalled %q, although the place polls", got)
		}
	}
}

func TestARecalledPlaceIsExpectedUntilItPolls(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"a": {{"A", 2}}})
	wait(t, q, start, "B", "B")
	at := start.Add(LoanTerm)
	if got := recallsAt(q, at, nil); !cmp.Equal(got, []string{"a A 2"}) {
		t.Fatalf("got %q", got)
	}
	// Then it lends one less, which still runs a call, and then it polls there.
	for _, p := range []Pull{{Loans: []Loan{{"A", 2}}}, {Loans: []Loan{{"A", 1}}}, {Loans: []Loan{{"A", 1}}, Credits: 1}} {
		if err := q.Pull("a", p, at); err != nil {
			t.Fatal(err)
		}
		if got := recallsAt(q, at, nil); got != nil {
			t.Errorf("%+v: recalled %q", p, got)
		}
	}
	if v := q.View(at); v.Waiting != 1 || v.Out != 1 || v.Lent != 1 {
		t.Errorf("%+v", v)
	}
}

func TestNoRecallForATicketThatTheInstanceIsNotHanded(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"a": {{"A", 1}}})
	if err := errors.Join(q.Join("b", 1), q.Pull("b", Pull{Credits: 1}, start)); err != nil {
		t.Fatal(err)
	}
	wait(t, q, start, "B")
	unreached := func(cid invocation.CID) {
		var id invocation.ID
		q.Match(start, true, func(_ invocation.CID, t *invocation.Ticket, _ bool) { id = t.ID })
		q.Requeue(cid, id, start)
	}
	unreached("b")
	if got := recallsAt(q, start, map[string]int{"A": 1}); !cmp.Equal(got, []string{"a A 1 in 100ms"}) {
		t.Fatalf("another instance may reach it: %q", got)
	}
	if err := q.Pull("a", Pull{Credits: 1}, start); err != nil {
		t.Fatal(err)
	}
	unreached("a")
	if err := q.Pull("a", Pull{Loans: []Loan{{"A", 1}}}, start); err != nil {
		t.Fatal(err)
	}
	if got := recallsAt(q, start, map[string]int{"A": 1}); got != nil {
		t.Errorf("it could not reach the gateway, and is asked for its place: %q", got)
	}
}

func TestLoansAreWithinTheCapacity(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	if err := errors.Join(q.Join("a", 3), q.Pull("a", Pull{Credits: 1, Loans: []Loan{{"A", 1 << 40}, {"B", -7}, {"", 1}, {"C", 1}}}, start)); err != nil {
		t.Fatal(err)
	}
	if v := q.View(start); v.Lent != 3 || v.Credits != 0 || q.LentTo("A") != 3 {
		t.Errorf("%+v", v)
	}
	q.Drain("a")
	if err := q.Pull("a", Pull{Loans: []Loan{{"A", 1}}}, start); err != nil {
		t.Fatal(err)
	}
	if v := q.View(start); v.Lent != 0 || len(loansOf(q, "a")) > 0 {
		t.Errorf("it drains: %+v", v)
	}
}

func TestAnInstanceWithLoansIsIdleWhenItsAgentSaysSo(t *testing.T) {
	loans := []Loan{{"A", 2}}
	policy := EvictPolicy{IdleFor: time.Second}
	q := lending(t, map[invocation.CID][]Loan{"a": loans})
	at := start.Add(time.Hour)
	if idle := q.LongestIdle(at, policy); len(idle) > 0 || q.Evict("a", at, policy) {
		t.Fatalf("it may run calls: %v", idle)
	}
	if err := q.Pull("a", Pull{Loans: loans, Idle: time.Minute}, at); err != nil {
		t.Fatal(err)
	}
	if idle := q.LongestIdle(at, policy); len(idle) != 1 || idle[0].Idle != time.Minute {
		t.Fatalf("it runs nothing: %v", idle)
	}
	// It takes its loans back, and stays idle.
	if err := q.Pull("a", Pull{Credits: 2}, at); err != nil {
		t.Fatal(err)
	}
	if idle := q.LongestIdle(at, policy); len(idle) != 1 || idle[0].Idle != time.Minute {
		t.Fatalf("it runs nothing and polls: %v", idle)
	}
	if err := errors.Join(q.Join("b", 2), q.Pull("b", Pull{Loans: loans, Idle: time.Minute}, at), q.Pull("b", Pull{Loans: loans}, at)); err != nil {
		t.Fatal(err)
	}
	if q.Evict("b", at, policy) {
		t.Error("it runs a call again, and was evicted")
	}
	if err := q.Pull("b", Pull{Loans: loans, Idle: time.Minute}, at); err != nil {
		t.Fatal(err)
	}
	if !q.Evict("b", at, policy) || q.LentTo("A") != 0 {
		t.Errorf("it is idle; %d calls are lent", q.LentTo("A"))
	}
}

func TestALostInstanceHadTheCallsOfItsLoans(t *testing.T) {
	loans := []Loan{{"A", 2}}
	q := lending(t, map[invocation.CID][]Loan{"a": loans, "b": loans})
	if err := q.Pull("b", Pull{Loans: loans, Idle: time.Second}, start); err != nil {
		t.Fatal(err)
	}
	if n := q.Leave("a", start); n != 2 {
		t.Errorf("the busy one had %d calls, want 2", n)
	}
	if n := q.Leave("b", start); n != 0 {
		t.Errorf("the idle one had %d calls, want none", n)
	}
	if v := q.View(start); v.Lent != 0 {
		t.Errorf("%+v", v)
	}
}

func TestAnIdleInstanceWithLoansMayLeave(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"a": {{"A", 1}}})
	answer, err := q.RequestLeave("a", time.Minute, LeavePolicy{IdleTimeout: time.Minute})
	if err != nil || !answer.Granted || q.LentTo("A") != 0 {
		t.Errorf("%+v %v", answer, err)
	}
}

func TestRecallAllOncePerSecond(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"b": {{"B", 1}, {"A", 2}}, "a": {{"A", 1}}})
	all := func(now time.Time) (list []string) {
		q.RecallAll(now, func(r Recall) { list = append(list, fmt.Sprintf("%s %s %d", r.CID, r.Gateway, r.Calls)) })
		return list
	}
	want := []string{"a A 1", "b A 2", "b B 1"}
	if diff := cmp.Diff(want, all(start)); diff != "" {
		t.Error(diff)
	}
	if got := all(start.Add(time.Second - 1)); got != nil {
		t.Errorf("recalled twice: %q", got)
	}
	if diff := cmp.Diff(want, all(start.Add(time.Second))); diff != "" {
		t.Errorf("none has come back: %s", diff)
	}
}

func TestDecisionsAboutManyLoansAreApart(t *testing.T) {
	q := lending(t, map[invocation.CID][]Loan{"a": {{"A", 600}}})
	idle := map[string]int{"A": 600}
	for _, tt := range []struct {
		after time.Duration
		want  []string
	}{{0, []string{"a A 1"}}, {6*time.Millisecond - 1, nil}, {6 * time.Millisecond, []string{"a A 2"}}} {
		wait(t, q, start, "B")
		if got := recallsAt(q, start.Add(LoanTerm+tt.after), idle); !cmp.Equal(got, tt.want) {
			t.Errorf("after %v: %q, want %q", tt.after, got, tt.want)
		}
	}
}

// shared is a pool of instances that gateways share, all with calls without end. Each place
// runs one call after the other, of the gateway that it is lent to.
type shared struct {
	*rapid.T
	q      *Queue
	now    time.Time
	exec   time.Duration
	places map[invocation.CID]*place
	offers map[invocation.ID]beside // by the waiting tickets
}

// beside says since when other gateways have had places, and how few they were.
type beside struct {
	since  time.Time
	places int
}

type place struct {
	gateway  string // that it runs a call of, or could; "" if it polls
	ticket   invocation.ID
	until    time.Time // when its call ends
	recalled bool
	termEnds time.Time // of a recalled loan
}

// step lets 10 ms pass, and lets the agents and the gateway without loans do what they do.
func (s *shared) step() {
	s.now = s.now.Add(10 * time.Millisecond)
	for cid, p := range s.places {
		if p.gateway == "" || p.until.After(s.now) {
			continue
		}
		if p.ticket != (invocation.ID{}) {
			s.q.Done(cid, p.ticket)
			p.ticket = invocation.ID{}
		}
		pull := Pull{Loans: []Loan{{p.gateway, 1}}}
		if p.recalled && !s.now.Before(p.termEnds) {
			*p = place{}
			pull = Pull{Credits: 1}
		} else {
			p.until = s.now.Add(s.exec)
			if p.recalled {
				pull = Pull{}
			}
		}
		if err := s.q.Pull(cid, pull, s.now); err != nil {
			s.Fatal(err)
		}
	}
	s.q.Match(s.now, true, func(cid invocation.CID, t *invocation.Ticket, _ bool) {
		delete(s.offers, t.ID)
		s.places[cid] = &place{gateway: t.Gateway, ticket: t.ID, until: s.now.Add(s.exec)}
	})
	var recalled []Recall
	s.q.Recalls(s.now, func(string) int { return 0 }, func(r Recall) { recalled = append(recalled, r) })
	for _, r := range recalled { // its agent answers at once, and polls when the call has ended that ends the term
		p := s.places[r.CID]
		p.recalled, p.termEnds = true, s.now.Add(r.Term)
		if err := s.q.Pull(r.CID, Pull{}, s.now); err != nil {
			s.Fatal(err)
		}
	}
}

// All places are busy without end. Each time that they change hands, a ticket waits for LoanTerm,
// or for an execution if that is longer, and for another execution.
func TestNoTicketWaitsBesideALoanForLongerThanItsTermAndAnExecution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &shared{T: t, now: start, places: map[invocation.CID]*place{}, offers: map[invocation.ID]beside{}}
		s.q = New(Limits{MaxWaiting: 100, ClaimGrace: time.Second})
		s.exec = time.Duration(rapid.IntRange(1, 30).Draw(t, "execution, 10 ms")) * 10 * time.Millisecond
		instances := rapid.IntRange(1, 6).Draw(t, "instances")
		for i := range instances {
			cid := invocation.Term{Epoch: 1}.CID(uint64(i))
			s.places[cid] = &place{gateway: "A", until: start.Add(s.exec)}
			if err := errors.Join(s.q.Join(cid, 1), s.q.Pull(cid, Pull{Loans: []Loan{{"A", 1}}}, start)); err != nil {
				t.Fatal(err)
			}
		}
		next := byte(1)
		for range 300 {
			if rapid.IntRange(0, 20).Draw(t, "comes") == 0 && len(s.offers) < 2*instances {
				gateway := rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "gateway")
				id := invocation.ID{next}
				next++
				s.offers[id] = beside{s.now, instances}
				if err := s.q.Offer(invocation.Ticket{ID: id, Gateway: gateway, Arrived: s.now, Deadline: s.now.Add(time.Hour)}, s.now); err != nil {
					t.Fatal(err)
				}
			}
			s.step()
			for id, of := range s.offers {
				gateway, places := s.q.entries[id].ticket.Gateway, 0
				for _, p := range s.places {
					if p.gateway != gateway {
						places++
					}
				}
				if places == 0 {
					s.offers[id] = beside{s.now, instances} // its gateway has all
					continue
				}
				// Two tickets at most wait for each instance. A turn of a place is the call of
				// its ticket, during which the loan ages, and the call that follows before the
				// agent has the recall. Each message takes a step.
				of.places = min(of.places, places)
				s.offers[id] = of
				turns := time.Duration((2*instances + of.places - 1) / of.places)
				if waited := s.now.Sub(of.since); waited > turns*(max(LoanTerm, s.exec)+s.exec+50*time.Millisecond)+s.exec {
					t.Fatalf("a ticket of %s has waited for %v beside %d places of others; a call takes %v", gateway, waited, places, s.exec)
				}
			}
		}
	})
}
