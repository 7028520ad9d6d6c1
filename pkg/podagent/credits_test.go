package podagent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// creditModel plays a scheduler that keeps account of the credits of one agent, and
// a gateway and a function that do what chance says.
type creditModel struct {
	*harness
	rand    *rand.Rand
	pulls   *pulls // nil while there is no stream
	credits int
	tickets int
	claims  []*claimed          // not answered yet
	running map[string]*claimed // by the id that the function sees
	calls   []*called

	sessions, called int // so far
}

// TestCreditsAndCallsAreAlwaysTheConcurrency breaks streams, refuses and loses
// claims, breaks calls off and hands out tickets in any order. Whenever all is
// still, what the agent asked for and what it runs must be its concurrency: less
// is an instance that idles while calls wait, and more is one that is overrun.
func TestCreditsAndCallsAreAlwaysTheConcurrency(t *testing.T) {
	const concurrency = 3
	sessions, calls := 0, 0
	for seed := range uint64(200) {
		withHarness(t, func(c *agentenv.Config) { c.Concurrency = concurrency }, func(w *harness) {
			acc := &creditModel{harness: w, rand: rand.New(rand.NewPCG(seed, 1)), running: map[string]*claimed{}}
			w.run()
			w.adapter.ready <- nil
			acc.look()
			for step := range 100 {
				acc.step(acc.rand.IntN(10))
				acc.look()
				held := w.agent.config.Concurrency - acc.credits
				if acc.pulls != nil && held != len(acc.claims)+len(acc.calls) {
					t.Fatalf("seed %d, step %d: %d credits with %d claims and %d calls", seed, step, acc.credits, len(acc.claims), len(acc.calls))
				}
			}
			acc.settle()
			sessions, calls = sessions+acc.sessions, calls+acc.called
			if most := w.adapter.most.Load(); most > concurrency {
				t.Errorf("seed %d: %d calls at a time", seed, most)
			}
		})
	}
	if sessions < 500 || calls < 500 {
		t.Errorf("only %d sessions and %d calls: chance has left out too much", sessions, calls)
	}
}

// step does one thing that can happen.
func (a *creditModel) step(what int) {
	switch what {
	case 0, 1, 2:
		if a.pulls != nil && a.credits > 0 {
			a.credits--
			a.tickets++
			a.pulls.ticket(fmt.Sprint(a.tickets))
		}
	case 3, 4:
		if c := take(a.rand, &a.claims); c != nil {
			c.grant(&agentwire.Granted{Method: "POST", ContentLength: -1})
			a.running[fmt.Sprintf("%x", c.claim.GetInvocationId())] = c
		}
	case 5:
		if c := take(a.rand, &a.claims); c != nil {
			c.refuse()
		}
	case 6:
		if c := take(a.rand, &a.claims); c != nil {
			c.end <- errGone
		}
	case 7:
		a.endCall()
	case 8:
		if a.pulls != nil {
			a.pulls.lose()
			a.pulls = nil
		}
	case 9:
		time.Sleep(longestPause)
	}
}

// endCall ends a call well, or in a way that says nothing against the instance.
func (a *creditModel) endCall() {
	call := take(a.rand, &a.calls)
	if call == nil {
		return
	}
	gateway := a.running[call.ID]
	switch a.rand.IntN(3) {
	case 0:
		call.hello()
		<-gateway.said
	case 1:
		gateway.end <- errGone
		synctest.Wait()
		call.end <- adapter.ErrNotStarted
		return
	case 2:
		gateway.end <- errGone
		synctest.Wait()
		call.hello()
		return
	}
	gateway.end <- nil
}

// look waits until all is still and takes note of what the agent did.
func (a *creditModel) look() {
	synctest.Wait()
	for more := true; more; {
		select {
		case p := <-a.scheduler.streams:
			p.t = a.t
			a.pulls, a.credits = p, 0
			a.sessions++
			p.hear(helloText)
		case c := <-a.gateway.claims:
			c.t = a.t
			a.claims = append(a.claims, c)
		case call := <-a.adapter.calls:
			a.calls = append(a.calls, call)
			a.called++
		default:
			more = false
		}
	}
	// Claims that waited for too long.
	a.claims = slices.DeleteFunc(a.claims, (*claimed).released)
	for a.pulls != nil && len(a.pulls.said) > 0 {
		var n int
		said := <-a.pulls.said
		if _, err := fmt.Sscanf(said, "pull %d", &n); err != nil {
			a.t.Fatalf("the agent said %q", said)
		}
		a.credits += n
	}
}

// settle ends everything.
func (a *creditModel) settle() {
	a.signal(errSignal)
	for len(a.claims) > 0 {
		a.step(5)
	}
	for len(a.calls) > 0 {
		a.endCall()
	}
	a.ended(nil)
}

// take takes one of many.
func take[T any](r *rand.Rand, from *[]*T) *T {
	if len(*from) == 0 {
		return nil
	}
	i := r.IntN(len(*from))
	it := (*from)[i]
	*from = append((*from)[:i], (*from)[i+1:]...)
	return it
}
