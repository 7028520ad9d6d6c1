package gateway

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// trust is the guard of agents that may do everything.
type trust struct{}

func (trust) Prove()          {}
func (trust) CountToken(bool) {}

// pipedAgent is an agent at the other end of a pipe, which has no buffer: what the gateway writes to
// it waits until the agent reads.
type pipedAgent struct {
	*callwire.Conn
	t *testing.T
}

// dialled is an agent that has said hello.
func (g *Gateway) dialled(t *testing.T, cid string) pipedAgent {
	here, there := net.Pipe()
	go func() { _ = g.ServeAgent(callwire.Accept(here, time.Hour, nil), trust{}) }()
	a := pipedAgent{callwire.NewConn(there, nil), t}
	t.Cleanup(a.Close)
	a.Commit((&callwire.Hello{CID: cid, ProtocolMin: 1, ProtocolMax: 1}).Append(a.Begin()))
	a.came(callwire.KindWelcome)
	return a
}

// came reads a frame of a kind, and returns the number of the call that it is about.
func (a pipedAgent) came(kind callwire.Kind) uint32 {
	a.t.Helper()
	f, err := a.Read()
	if err != nil || f.Kind != kind {
		a.t.Fatalf("a frame of kind %d came, %v, want %d", f.Kind, err, kind)
	}
	return f.Call
}

// claims claims a call.
func (a pipedAgent) claims(c *call) {
	a.Commit(callwire.AppendClaim(a.Begin(), 1, callwire.Claim{Invocation: c.id, Token: invocation.Token{1}}))
	a.came(callwire.KindCall)
}

// answers answers the calls of some numbers, and keeps their places.
func (a pipedAgent) answers(numbers ...uint32) {
	for _, number := range numbers {
		a.CommitLater((&callwire.Head{Status: 200, Whole: true, Keeps: true}).Append(a.Begin(), number))
	}
	a.Flush()
	synctest.Wait()
}

// Only the goroutine of a call's own client may wait for the agent that gets the call.
func TestAnAgentThatDoesNotReadHoldsUpNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		passOn func(g *Gateway, a pipedAgent, declined *call)
		comes  callwire.Kind
	}{
		"an agent declines the call": {func(_ *Gateway, a pipedAgent, _ *call) {
			a.CommitLater((&callwire.Release{Reason: "busy"}).Append(a.Begin(), 2))
			a.answers(4)
		}, callwire.KindCall},
		"an audit finds the call lost": {func(g *Gateway, a pipedAgent, lost *call) {
			lost.currentAttempt().ended.Store(true)
			g.shell.audit(time.Now(), noneMoved)
			g.shell.audit(time.Now().Add(core.ReofferEvery), noneMoved)
			a.answers(4)
		}, callwire.KindCall},
		"the function has a limit now": {func(_ *Gateway, a pipedAgent, declined *call) {
			limited := *declined.to.unit
			limited.Spec.Calls.MaxInFlight = 1
			declined.to.unit = &limited
			a.CommitLater((&callwire.Release{Reason: "busy"}).Append(a.Begin(), 2))
			a.answers(4)
		}, callwire.KindReturn},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := unstarted(t)
				unit := &v1alpha1.Function{}
				unit.Spec.Template.Concurrency = 2
				admitted := func() *call {
					c := g.admitted(core.Spec{MayRepeat: true})
					c.to.unit = unit
					go g.shell.step(c, queue, problem{})
					synctest.Wait()
					return c
				}
				reads, deaf := g.dialled(t, "a"), g.dialled(t, "b")
				reads.claims(admitted())
				deaf.claims(admitted())
				reads.Commit(callwire.AppendCount(reads.Begin(), callwire.KindLend, 0, 1))
				reads.answers(1)
				deaf.answers(1)
				first, second := admitted(), admitted()
				reads.came(callwire.KindCall)
				reads.came(callwire.KindCall)
				begun := time.Now()
				test.passOn(g, reads, first)
				if answer, _ := second.answer(); time.Since(begun) > 0 || answer != core.AnswerBegun {
					t.Errorf("that took %v; the next call has the answer %d", time.Since(begun), answer)
				}
				deaf.came(test.comes)
			})
		})
	}
}

// A limited function's call takes a ticket, and agents that have lent to the function get their places back.
func TestACallDoesNotWaitForAgentsThatDoNotHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := unstarted(t)
		unit := &v1alpha1.Function{}
		unit.Spec.Template.Concurrency = 1
		deaf := g.dialled(t, "a")
		lent := g.admitted(core.Spec{})
		lent.to.unit = unit
		go g.shell.step(lent, queue, problem{})
		synctest.Wait()
		deaf.claims(lent)
		deaf.answers(1)
		limited := g.admitted(core.Spec{})
		limited.to.unit = new(*unit)
		limited.to.unit.Spec.Calls.MaxInFlight = 1
		limited.decide(queue, problem{})
		begun := time.Now()
		g.shell.enqueue(limited).flush(limited)
		if took := time.Since(begun); took > 0 {
			t.Errorf("the call waited for %v", took)
		}
		deaf.came(callwire.KindReturn)
	})
}
