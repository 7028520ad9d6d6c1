package podagent

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// What the core decides about time, for tests that see it from outside.
const (
	claimPatience = 500 * time.Millisecond
	silence       = 2 * time.Second // of a scheduler that is given up
)

func TestSilentSchedulerIsReplacedAndItsCallGoesOn(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		p.deaf.Store(true)
		fell := time.Now()
		next := w.stream()
		if took := time.Since(fell); took > silence+100*time.Millisecond {
			t.Errorf("left after %v", took)
		}
		next.hear(helloText, "pull 1")
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		next.hear("pull 1 done a")
		next.retire("enough")
		w.ended(nil)
	})
}

func TestPingsAreFewAndFewerWhenQuiet(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		time.Sleep(10*time.Second - time.Millisecond)
		synctest.Wait()
		if n := p.pings.Load(); n < 18 || n > 20 {
			t.Errorf("%d pings in 10 s of waiting", n)
		}
		time.Sleep(time.Second)
		before := p.pings.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := p.pings.Load() - before; n != 12 {
			t.Errorf("%d pings in a minute of being quiet", n)
		}
		p.retire("enough")
		w.ended(nil)
	})
}

func TestClaimThatIsNotAnsweredIsReleased(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.ticket("a")
		c := w.claim()
		begun := time.Now()
		p.hear("pull 1 done a after 0s unclaimed")
		if took := time.Since(begun); took != claimPatience {
			t.Errorf("gave up after %v, want %v", took, claimPatience)
		}
		c.grant(callwire.Call{Whole: true}) // both were on their way
		c.hear("release")
		w.runs()
		if len(w.adapter.calls) != 0 {
			t.Error("called after the release")
		}
		c.hearEnd()
		p.retire("enough")
		w.ended(nil)
	})
}

func TestGatewayThatCannotBeReachedIsToldToTheScheduler(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.gateway.takeDown()
		p := w.begin()
		begun := time.Now()
		p.ticket("a")
		p.hear("pull 1 done a after 0s unclaimed")
		if took := time.Since(begun); took != claimPatience {
			t.Errorf("gave up after %v, want %v", took, claimPatience)
		}
		w.gateway.putUp()
		w.runs()
		if len(w.gateway.claims) != 0 {
			t.Error("claimed after it was given back")
		}
		p.retire("enough")
		w.ended(nil)
	})
}

func TestCallOfALostGatewayRunsToItsEndAndTheInstanceStays(t *testing.T) {
	for name, answer := range map[string]func(*called){
		"small": (*called).hello,
		"large": func(c *called) {
			c.answer(adapter.Head{Status: 200, ContentLength: -1}, strings.Repeat("x", 5*callwire.WholeBody), "end")
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, nil, func(w *harness) {
				p := w.begin()
				claim, call := w.call(p, "a")
				claim.lose()
				time.Sleep(10 * time.Second)
				if call.ctx.Err() != nil {
					t.Error("the call was broken off")
				}
				answer(call)
				p.hear("pull 1 done a after 10s")
				p.retire("enough")
				w.ended(nil)
			})
		})
	}
}

func TestGatewayThatIsLostDuringTheAnswerCostsNoInstance(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		if err := call.w.WriteHead(adapter.Head{Status: 200, ContentLength: -1}); err != nil {
			t.Error(err)
		}
		claim.hear("head 200 cold")
		claim.lose()
		synctest.Wait()
		if _, err := io.WriteString(call.w, "nobody hears this"); err != nil {
			t.Error(err)
		}
		call.end <- nil
		p.hear("pull 1 done a")
		p.retire("enough")
		w.ended(nil)
	})
}

func TestTicketWithoutAnIDEndsTheSession(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: &agentwire.Ticket{InvocationId: []byte("short")}}})
		next := w.stream()
		next.hear(helloText, "pull 2")
		next.retire("enough")
		w.ended(nil)
	})
}

func TestOwnerThatDoesNotConnectIsGivenUp(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.Owner = "owner:1" }, func(w *harness) {
		away := newMemoryConn(w.scheduler)
		away.takeDown()
		w.agent.dialScheduler = func(addr string) (conn, error) {
			if addr == "owner:1" {
				return away, nil
			}
			return w.conn, nil
		}
		begun := time.Now()
		p := w.begin()
		if took := time.Since(begun); took != time.Second+10*time.Millisecond {
			t.Errorf("turned away after %v", took)
		}
		p.retire("enough")
		w.ended(nil)
	})
}

func TestAgentWithASettingThatIsWrongDoesNotRun(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.Concurrency = 0 }, func(w *harness) {
		if err := w.agent.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Concurrency") {
			t.Errorf("error %v", err)
		}
	})
}

// An agent that ends does not wait for a gateway that reads nothing.
func TestGatewayThatTakesNoAnswersHoldsUpNothingForLong(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "a")
		defer claim.deafen()()
		call.hello()
		p.hear("pull 1 done a")
		synctest.Wait()
		begun := time.Now()
		p.retire("enough")
		w.ended(nil)
		if took := time.Since(begun); took != closeTimeout {
			t.Errorf("ended after %v, want %v", took, closeTimeout)
		}
	})
}
