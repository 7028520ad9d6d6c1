package gateway_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// lender makes a call that an instance claims with a ticket, and whose place it keeps.
func (w *harness) lender(cid string) *agent {
	w.Helper()
	answers := w.call(w.get("/function/hello/lend"))
	i := w.takeBy(cid)
	i.keep(200, "")
	wrote(w.T, answers, 200, invocation.ExecutedYes)
	w.drop()
	return i.agent
}

// drop forgets the tickets that were offered so far.
func (w *harness) drop() {
	for len(w.scheduler.offers) > 0 {
		<-w.scheduler.offers
	}
}

// calls makes calls of default/hello, one after the other, which wait or run afterwards.
func (w *harness) calls(names ...string) (answers []<-chan answer) {
	w.Helper()
	for _, name := range names {
		answers = append(answers, w.call(w.get("/function/hello/"+name).WithContext(w.Context())))
		until(w.T, "the call "+name+" is here", func() bool { return w.gateway.Has("/" + name) })
	}
	return answers
}

// is checks which call came.
func (i *instance) is(name string) *instance {
	i.t.Helper()
	if got := i.granted.RequestURI; got != "/"+name {
		i.t.Fatalf("the call %s came, want /%s", got, name)
	}
	return i
}

// noTicket checks that no ticket of a call has been offered.
func (w *harness) noTicket(id invocation.ID) {
	w.Helper()
	for len(w.scheduler.offers) > 0 {
		if ticket := <-w.scheduler.offers; bytes.Equal(ticket.GetInvocationId(), id[:]) {
			w.Errorf("a ticket was offered: %v", ticket)
		}
	}
}

func TestTheSecondCallNeedsNoTicket(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	if !ticket.GetLent() {
		t.Error("the ticket does not say that the place stays")
	}
	i := w.claim(ticket)
	i.keep(200, "first")
	wrote(t, answers, 200, invocation.ExecutedYes)
	for n := range 20 {
		answers = w.call(w.get(fmt.Sprint("/function/hello/", n)))
		by := i.agent.byLoan().is(fmt.Sprint(n))
		if by.number != uint32(2*n+2) || by.granted.Attempt != 1 {
			t.Errorf("call %d came as number %d, attempt %d", n, by.number, by.granted.Attempt)
		}
		by.keep(200, fmt.Sprint("answer ", n))
		if a := wrote(t, answers, 200, invocation.ExecutedYes); a.body != fmt.Sprint("answer ", n) {
			t.Errorf("answered %q", a.body)
		}
		w.noTicket(by.granted.Invocation)
	}
	if w.guard.proven != 1 || w.guard.right != 1 || w.guard.wrong != 0 {
		t.Errorf("the agent was judged as %+v", w.guard)
	}
}

func TestCallsThatWaitGetPlacesInTheOrderOfTheirArrival(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	answers := w.calls("a", "b", "c", "d")
	for n, name := range []string{"a", "b", "c", "d"} {
		i := a.byLoan().is(name)
		if n%2 == 0 {
			i.keep(200, name)
		} else {
			i.head(200)
			i.body(name)
			i.sendEnd(callwire.End{Keeps: true})
		}
		if got := wrote(t, answers[n], 200, invocation.ExecutedYes); got.body != name {
			t.Errorf("the call %s was answered %q", name, got.body)
		}
	}
}

func TestTheInstanceWithTheLowestCIDGetsTheNextCall(t *testing.T) {
	w := newHarness(t)
	agents := make(map[string]*agent)
	answers := w.calls("x", "y", "z")
	cids := []string{"00000001-000002", "00000001-000001", "00000001-000003"}
	var first []*instance
	for _, cid := range cids {
		i := w.takeBy(cid)
		agents[cid] = i.agent
		first = append(first, i)
	}
	for _, i := range first {
		i.keep(200, "")
	}
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
	// That of a busy node comes last.
	busy := func(busy bool) {
		agents["00000001-000001"].write(func(b []byte) []byte { return callwire.AppendNode(b, busy) })
		agents["00000001-000001"].ping()
	}
	busy(true)
	w.calls("next")
	agents["00000001-000002"].byLoan().keep(200, "")
	busy(false)
	for _, cid := range []string{"00000001-000001", "00000001-000002", "00000001-000003"} {
		w.calls("next")
		agents[cid].byLoan()
	}
}

// An instance takes its place back: in the last frame of a call, or at any time.
func TestAPlaceThatTheInstanceTakesBackIsNotUsed(t *testing.T) {
	for name, takeBack := range map[string]func(a *agent, i *instance){
		"with its answer":    func(_ *agent, i *instance) { i.whole(200, "") },
		"after its answer":   func(a *agent, i *instance) { i.keep(200, ""); a.credits(callwire.KindTakeBack, 1) },
		"before its answer":  func(a *agent, i *instance) { a.credits(callwire.KindTakeBack, 1); i.keep(200, "") },
		"with its last part": func(_ *agent, i *instance) { i.head(200); i.sendEnd(callwire.End{}) },
		"with its life":      func(_ *agent, i *instance) { i.whole(200, ""); i.die() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			a := w.lender(firstCID)
			answers := w.calls("x")
			i := a.byLoan()
			takeBack(a, i)
			wrote(t, answers[0], 200, invocation.ExecutedYes)
			if name != "with its life" {
				a.ping()
			}
			w.drop()
			answers = w.calls("y")
			w.claim(w.scheduler.ticket()).is("y").whole(200, "")
			wrote(t, answers[0], 200, invocation.ExecutedYes)
			if len(a.lent) > 0 {
				t.Error("it came by the loan, too")
			}
		})
	}
}

func TestAnInstanceMayLendMore(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	answers := w.calls("a", "b")
	first := a.byLoan().is("a")
	a.credits(callwire.KindLend, 2)
	second := a.byLoan().is("b")
	answers = append(answers, w.calls("c")...)
	third := a.byLoan().is("c")
	for _, i := range []*instance{third, second, first} {
		i.keep(200, "")
	}
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
}

func TestAnInstanceLendsNoMoreThanItsConcurrency(t *testing.T) {
	w := newHarness(t)
	fn := newFunction("default", "hello", time.Minute)
	fn.Spec.Template.Concurrency = 2
	w.catalog.Put(rollout.Alone(fn))
	a := w.lender(firstCID)
	a.credits(callwire.KindLend, 1<<20)
	a.ping()
	answers := w.calls("a", "b")
	first, second := a.byLoan().is("a"), a.byLoan().is("b")
	a.credits(callwire.KindLend, 3) // both places are busy
	a.ping()
	answers = append(answers, w.calls("c")...)
	w.scheduler.ticket()
	first.keep(200, "")
	third := a.byLoan().is("c")
	second.keep(200, "")
	third.keep(200, "")
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
}

// A call crosses the frame by which the instance takes its place back. It costs a message.
func TestACallWithoutACreditRunsElsewhere(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	answers := w.calls("x")
	i := a.byLoan()
	a.credits(callwire.KindTakeBack, 1)
	i.sendRelease(callwire.Release{NoCredit: true})
	ticket := w.scheduler.ticket()
	for !bytes.Equal(ticket.GetInvocationId(), i.granted.Invocation[:]) {
		ticket = w.scheduler.ticket()
	}
	other := w.agentOf("00000001-000002").claim(ticket).is("x")
	if other.granted.Attempt != 2 {
		t.Errorf("granted %+v", other.granted)
	}
	other.whole(200, "")
	wrote(t, answers[0], 200, invocation.ExecutedYes)
	// The place is not counted twice.
	a.ping()
	w.drop()
	w.calls("y")
	w.scheduler.ticket()
	if len(a.lent) > 0 {
		t.Error("the instance was given a call without a credit")
	}
}

// A call that an instance gives back is before those that came later.
func TestACallThatIsGivenBackIsTheNext(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	answers := w.calls("a", "b", "c")
	a.byLoan().is("a").sendRelease(callwire.Release{Keeps: true})
	for n, name := range []string{"a", "b", "c"} {
		i := a.byLoan().is(name)
		if n == 0 && i.granted.Attempt != 2 {
			t.Errorf("granted %+v", i.granted)
		}
		i.keep(200, name)
		wrote(t, answers[n], 200, invocation.ExecutedYes)
	}
}

func TestAGatewayThatDrainsGivesItsLoansBack(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	a.credits(callwire.KindLend, 2)
	a.ping()
	answers := w.calls("x", "y")
	x, y := a.byLoan(), a.byLoan()
	w.gateway.Drain()
	if n := receive(t, a.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back, want the one that is unused", n)
	}
	x.keep(200, "")
	if n := receive(t, a.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back after a call", n)
	}
	y.head(200)
	y.sendEnd(callwire.End{Keeps: true})
	if n := receive(t, a.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back after a call in parts", n)
	}
	a.credits(callwire.KindLend, 4)
	if n := receive(t, a.returned, "credits"); n != 4 {
		t.Errorf("%d credits came back of 4 that were lent too late", n)
	}
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
}

// limit gives default/hello a limit, or takes it away.
func (w *harness) limit(maxInFlight int32) {
	fn := newFunction("default", "hello", time.Minute)
	fn.Spec.Calls.MaxInFlight = maxInFlight
	w.catalog.Put(rollout.Alone(fn))
}

func TestAGatewayThatReturnsItsLoansStillTakesCalls(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	w.gateway.ReturnLoans()
	if n := receive(t, a.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back", n)
	}
	answers := w.calls("x")
	a.claim(w.scheduler.ticket()).is("x").keep(200, "")
	if n := receive(t, a.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back after a call", n)
	}
	wrote(t, answers[0], 200, invocation.ExecutedYes)
}

func TestALoanThatRunsWhileAFunctionGetsALimitIsTheLast(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	first := w.calls("x")[0]
	x := a.byLoan().is("x")
	w.limit(5)
	second := w.calls("y")[0]
	x.keep(200, "")
	wrote(t, first, 200, invocation.ExecutedYes)
	if n := receive(t, a.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back", n)
	}
	a.credits(callwire.KindLend, 2)
	if n := receive(t, a.returned, "two credits"); n != 2 {
		t.Errorf("%d credits came back", n)
	}
	if len(a.lent) > 0 {
		t.Error("the next call came by the loan, too")
	}
	w.claim(w.scheduler.ticket()).is("y").whole(200, "")
	wrote(t, second, 200, invocation.ExecutedYes)
}

// The owner of a function with a limit counts each of its calls.
func TestEachCallOfAFunctionWithALimitHasATicket(t *testing.T) {
	for name, put := range map[string]func(w *harness){
		"in flight": func(w *harness) { w.limit(5) },
		"in time": func(w *harness) {
			fn := newFunction("default", "hello", time.Minute)
			fn.Spec.Calls.Rate = v1alpha1.Rate{Requests: 5}
			w.catalog.Put(rollout.Alone(fn))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			put(w)
			for range 3 {
				answers := w.calls("x")
				ticket := w.scheduler.ticket()
				if ticket.GetLent() {
					t.Error("the ticket says that the place stays")
				}
				i := w.claim(ticket)
				i.keep(200, "") // it should not
				if n := receive(t, i.agent.returned, "a credit"); n != 1 {
					t.Errorf("%d credits came back", n)
				}
				wrote(t, answers[0], 200, invocation.ExecutedYes)
			}
			w.calls("a", "b", "c")
			for range 3 {
				w.scheduler.ticket()
			}
		})
	}
}

func TestAFunctionThatGetsALimitLosesItsLoans(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	w.limit(5)
	answers := w.calls("x")
	if n := receive(t, a.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back", n)
	}
	w.claim(w.scheduler.ticket()).is("x").whole(200, "")
	wrote(t, answers[0], 200, invocation.ExecutedYes)
	if len(a.lent) > 0 {
		t.Error("it came by the loan, too")
	}
}

// The pool of a revision that is not in use any more is dropped. If the revision comes back, another pool
// has its calls, so that a place lent to the first one would wait for nobody.
func TestAPlaceLentForADroppedRevisionComesBack(t *testing.T) {
	w := newHarness(t)
	w.route(part{"", 1, 100})
	answers := w.call(w.get("/function/hello/"))
	i := w.takeBy(firstCID)
	i.whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	w.route(part{"", 2, 100})
	until(t, "the pool is dropped", func() bool { w.gateway.Sweep(); return w.gateway.Pools() == 0 })
	i.agent.credits(callwire.KindLend, 1)
	if n := receive(t, i.agent.returned, "a credit"); n != 1 {
		t.Errorf("%d credits came back", n)
	}
}

// ticketOf waits for the ticket of a call that no ticket was offered of.
func (w *harness) ticketOf(known map[string]bool) *agentwire.Ticket {
	w.Helper()
	for {
		if ticket := w.scheduler.ticket(); !known[string(ticket.GetInvocationId())] {
			known[string(ticket.GetInvocationId())] = true
			return ticket
		}
	}
}

// The scheduler does not answer. One call asks whether there is another instance, and the
// others send tickets once they have waited for long.
func TestCallsThatWaitForLongSendTickets(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	answers := w.calls("a")
	busy := a.byLoan()
	known := map[string]bool{string(busy.granted.Invocation[:]): true}
	answers = append(answers, w.calls("b", "c", "d")...)
	probe := w.ticketOf(known)
	for range 2 {
		if ticket := w.ticketOf(known); time.Duration(ticket.GetWaitedNs()) < 100*time.Millisecond {
			t.Errorf("a ticket was sent after %v, beside a probe", time.Duration(ticket.GetWaitedNs()))
		}
	}
	// They still get the place once it is free, and what waits in a queue is cancelled.
	busy.keep(200, "")
	a.byLoan().is("b").keep(200, "")
	w.scheduler.cancelled(probe)
	a.byLoan().is("c").keep(200, "")
	a.byLoan().is("d").keep(200, "")
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
	if n := w.metric("windlass_gateway_tickets_overtaken_total"); n != 3 {
		t.Errorf("%v tickets were overtaken, want 3", n)
	}
}

func TestAnInstanceThatTakesAProbeLetsTheOthersSendTickets(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	answers := w.calls("a")
	busy := a.byLoan()
	known := map[string]bool{string(busy.granted.Invocation[:]): true}
	answers = append(answers, w.calls("b", "c", "d")...)
	w.agentOf("00000001-000002").claim(w.ticketOf(known)).is("b").whole(200, "")
	for range 2 {
		w.agentOf("00000001-000003").claim(w.ticketOf(known)).whole(200, "")
	}
	busy.whole(200, "")
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
}

// reported waits for a report on default/hello.
func (s *fakeScheduler) reported(what string, is func(r *controlwire.LoanReport) bool) {
	s.t.Helper()
	var before *controlwire.LoanReport
	for {
		r := receive(s.t, s.reports, "a report of "+what)
		switch {
		case r.GetFunctionUid() != "uid-of-default-hello":
			s.t.Fatalf("a report on %s", r.GetFunctionUid())
		case before != nil && (r.GetServed() < before.GetServed() || r.GetExecutions() < before.GetExecutions() || r.GetExecutedNs() < before.GetExecutedNs()):
			s.t.Fatalf("a report of %v after %v", r, before)
		case is(r):
			return
		}
		before = r
	}
}

func TestSchedulersLearnWhatWasDoneWithLoans(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	w.scheduler.reported("a loan", func(r *controlwire.LoanReport) bool {
		return r.GetLent() == 1 && r.GetRunning() == 0 && r.GetServed() == 0
	})
	answers := w.calls("a", "b", "c")
	busy := a.byLoan()
	w.scheduler.reported("one that runs and one that waits", func(r *controlwire.LoanReport) bool {
		return r.GetLent() == 1 && r.GetRunning() == 1 && r.GetServed() == 1 && r.GetWaiting() <= 1
	})
	for range 3 {
		busy.sendHead(callwire.Head{Status: 200, Whole: true, Exec: time.Second, Keeps: true})
		if len(answers) > 1 {
			busy = a.byLoan()
		}
		wrote(t, answers[0], 200, invocation.ExecutedYes)
		answers = answers[1:]
	}
	w.scheduler.reported("three executions", func(r *controlwire.LoanReport) bool {
		return r.GetLent() == 1 && r.GetRunning() == 0 && r.GetExecutions() == 3 && r.GetExecutedNs() == int64(3*time.Second)
	})
	// Another stream begins at 0, and hears what is lent at once.
	w.scheduler.stop()
	w.scheduler.start()
	w.scheduler.reported("the same, again", func(r *controlwire.LoanReport) bool {
		if r.GetServed() != 0 || r.GetExecutions() != 0 || r.GetExecutedNs() != 0 {
			t.Errorf("a new stream begins with %v", r)
		}
		return r.GetLent() == 1
	})
	answers = w.calls("d")
	a.byLoan().sendHead(callwire.Head{Status: 200, Whole: true, Exec: time.Second})
	wrote(t, answers[0], 200, invocation.ExecutedYes)
	w.scheduler.reported("the end of the loan", func(r *controlwire.LoanReport) bool {
		return r.GetLent() == 0 && r.GetRunning() == 0 && r.GetServed() == 1 && r.GetExecutions() == 1 && r.GetExecutedNs() == int64(time.Second)
	})
	// The pool is not used for a while. The numbers go on.
	w.gateway.Sweep()
	w.gateway.Sweep()
	b := w.lender(firstCID)
	answers = w.calls("e")
	b.byLoan().keep(200, "")
	wrote(t, answers[0], 200, invocation.ExecutedYes)
	w.scheduler.reported("another call", func(r *controlwire.LoanReport) bool { return r.GetServed() == 2 && r.GetLent() == 1 })
}

// twoOnTheirWay are two calls by loans. A test says that the instance has seen the first only.
func (w *harness) twoOnTheirWay() (a *agent, first *instance, answers []<-chan answer) {
	a = w.lender(firstCID)
	a.credits(callwire.KindLend, 1)
	a.ping()
	answers = w.calls("seen", "unseen")
	first = a.byLoan().is("seen")
	a.byLoan().is("unseen")
	return a, first, answers
}

// back is the agent's next connection, which says what came by the last one.
func (a *agent) back(w *harness, cid string, seen uint32) *agent {
	return w.hello(callwire.Hello{CID: cid, ProtocolMin: 1, ProtocolMax: 1, Resume: a.welcome.Resume, Seen: seen})
}

func TestACallThatNeverCameToItsInstanceRunsElsewhere(t *testing.T) {
	for name, broken := range map[string]bool{"the gateway knows that the connection is broken": true, "the agent is the first to notice": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			a, first, answers := w.twoOnTheirWay()
			w.drop()
			if broken {
				a.conn.Close()
			}
			a.back(w, firstCID, first.number)
			a.broken()
			problem(t, wrote(t, answers[0], 502, invocation.ExecutedMaybe), "InstanceLost")
			i := w.agentOf("00000001-000002").claim(w.scheduler.ticket()).is("unseen")
			if i.granted.Attempt != 2 {
				t.Errorf("granted %+v", i.granted)
			}
			i.whole(200, "")
			wrote(t, answers[1], 200, invocation.ExecutedYes)
		})
	}
}

func TestACallThatNeverCameIsNotSaidToHaveRun(t *testing.T) {
	w := newHarness(t)
	a, first, answers := w.twoOnTheirWay()
	w.drop()
	a.conn.Close()
	a.back(w, firstCID, first.number)
	ticket := w.scheduler.ticket()
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: ticket.GetInvocationId(), Reason: controlwire.Refusal_REASON_QUEUE_FULL})
	wrote(t, answers[1], 429, invocation.ExecutedNo)
	wrote(t, answers[0], 502, invocation.ExecutedMaybe)
}

func TestCallsOfAnInstanceThatDoesNotComeBackAreLost(t *testing.T) {
	for name, back := range map[string]func(w *harness, a *agent){
		"nobody comes":                   func(*harness, *agent) {},
		"a new agent comes":              func(w *harness, _ *agent) { w.agentOf(firstCID) },
		"another instance says it is it": func(w *harness, a *agent) { a.back(w, "00000001-000002", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			a, _, answers := w.twoOnTheirWay()
			a.conn.Close()
			back(w, a)
			for _, a := range answers {
				problem(t, wrote(t, a, 502, invocation.ExecutedMaybe), "InstanceLost")
			}
			until(t, "nothing is left", func() bool { return w.gateway.Entries() == 0 })
		})
	}
}

// A call that its instance has begun to answer is not given to another, whatever the agent says.
func TestACallThatWasAnsweredInPartIsLostWithItsInstance(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	answers := w.calls("x")
	i := a.byLoan()
	i.sendHead(callwire.Head{Status: 103})
	a.ping()
	w.drop()
	a.conn.Close()
	a.back(w, firstCID, 0)
	problem(t, wrote(t, answers[0], 502, invocation.ExecutedMaybe), "InstanceLost")
	w.noTicket(i.granted.Invocation)
}

// A call that waits moves to another revision. The place that becomes free belongs to the old.
func TestACallThatMovedIsNotRunByTheOldRevision(t *testing.T) {
	w := newHarness(t)
	w.route(part{"", 1, 100})
	a := w.lender(firstCID)
	answers := w.calls("a")
	busy := a.byLoan()
	answers = append(answers, w.calls("b")...)
	probe := w.nextFor("r-1")
	w.route(part{"", 2, 100})
	w.unknown(probe)
	ticket := w.nextFor("r-2")
	busy.keep(200, "")
	wrote(t, answers[0], 200, invocation.ExecutedYes)
	a.ping()
	if len(a.lent) > 0 {
		t.Fatal("the old revision got the call")
	}
	// Neither does its agent get it by a ticket: by that of its own revision it comes too late, and it cannot have
	// that of the other one from a scheduler.
	if late := a.claim(probe); late.refused != callwire.RefusedNotWaiting {
		t.Errorf("the old revision's instance claims with its ticket: %+v", late)
	}
	if late := a.claim(ticket); late.refused != callwire.RefusedBadToken {
		t.Errorf("the old revision's instance claims: %+v", late)
	}
	w.claim(ticket).is("b").whole(200, "")
	a2 := wrote(t, answers[1], 200, invocation.ExecutedYes)
	if got := a2.header.Get(invocation.HeaderRevision); got != "hello-00002" {
		t.Errorf("of the revision %q", got)
	}
}

// A client that hangs up while its call waits for a loan makes room for the next.
func TestACallWhoseClientLeftGetsNoPlace(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = time.Minute })
	a := w.lender(firstCID)
	answers := w.calls("a")
	busy := a.byLoan()
	r := w.dial()
	r.send("GET /function/hello/left HTTP/1.1\r\nHost: h\r\n\r\n")
	until(t, "it waits", func() bool { return w.gateway.Entries() == 2 })
	answers = append(answers, w.calls("b")...)
	r.conn.Close()
	until(t, "it has left", func() bool { return w.gateway.Entries() == 2 })
	busy.keep(200, "")
	a.byLoan().is("b").keep(200, "")
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
}

// TestACallWaitsForAnotherConnectionWhenNumbersEnd: the calls that run by the first one go on.
func TestACallWaitsForAnotherConnectionWhenNumbersEnd(t *testing.T) {
	w := newHarness(t)
	a := w.lender(firstCID)
	w.gateway.CountCallsFrom(gateway.LastNumber - 2)
	answers := w.calls("a", "b")
	last := a.byLoan().is("a")
	if last.number != gateway.LastNumber {
		t.Errorf("the last call came as number %d", last.number)
	}
	last.keep(200, "a")
	w.takeBy(firstCID).is("b").keep(200, "b") // by a ticket, at another connection
	for n, want := range []string{"a", "b"} {
		if got := wrote(t, answers[n], 200, invocation.ExecutedYes); got.body != want {
			t.Errorf("the call %s was answered %q", want, got.body)
		}
	}
}
