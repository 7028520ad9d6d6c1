package podagent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
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
	conn    *gatewayEnd         // the latest
	claims  []*claimed          // not answered yet
	running map[string]*claimed // by the id that the function sees
	calls   []*called
	loaned  int // calls by loans so far

	sessions, called int // so far
}

// TestPullsLoansAndCallsAreAlwaysTheConcurrency breaks streams and connections, refuses and
// loses claims, breaks calls off, hands out tickets, calls by loans and recalls them in any order.
// Whenever all is still, what the agent has asked for, what it has lent and what it runs must be
// its concurrency: less is an instance that idles while calls wait, and more is one that is
// overrun.
func TestPullsLoansAndCallsAreAlwaysTheConcurrency(t *testing.T) {
	const concurrency = 3
	sessions, calls, loaned := 0, 0, 0
	for seed := range uint64(200) {
		withHarness(t, func(c *agentenv.Config) { c.Concurrency = concurrency }, func(w *harness) {
			acc := &creditModel{harness: w, rand: rand.New(rand.NewPCG(seed, 1)), running: map[string]*claimed{}}
			w.run()
			w.adapter.ready <- nil
			acc.look()
			for step := range 100 {
				acc.step(acc.rand.IntN(19))
				acc.look()
				lent := acc.lent()
				if acc.pulls != nil && acc.credits+lent+len(acc.claims)+len(acc.calls) != concurrency {
					t.Fatalf("seed %d, step %d: %d pulls and %d loans with %d claims and %d calls",
						seed, step, acc.credits, lent, len(acc.claims), len(acc.calls))
				}
			}
			acc.settle()
			sessions, calls, loaned = sessions+acc.sessions, calls+acc.called, loaned+acc.loaned
			if most := w.adapter.most.Load(); most > concurrency {
				t.Errorf("seed %d: %d calls at a time", seed, most)
			}
		})
	}
	if sessions < 500 || calls < 1000 || loaned < 300 {
		t.Errorf("only %d sessions, %d calls and %d by loans: chance has left out too much", sessions, calls, loaned)
	}
}

// lent is how many credits the gateway has.
func (a *creditModel) lent() int {
	if a.conn == nil {
		return 0
	}
	return a.conn.lend(0)
}

// step does one thing that can happen.
func (a *creditModel) step(what int) {
	switch what {
	case 0, 1, 2:
		if a.pulls != nil && a.credits > 0 {
			a.credits--
			a.tickets++
			hand := a.pulls.lent
			if a.rand.IntN(3) == 0 {
				hand = func(id string) { a.pulls.ticket(id) }
			}
			hand(fmt.Sprint(a.tickets))
		}
	case 3, 4, 14:
		if c := take(a.rand, &a.claims); c != nil {
			c.grant(callwire.Call{Method: "POST", ContentLength: -1})
			a.running[c.claim.Invocation.String()] = c
		}
	case 5:
		if c := take(a.rand, &a.claims); c != nil {
			c.refuse()
		}
	case 6:
		if a.rand.IntN(3) == 0 {
			a.loseGateway()
		}
	case 7, 10, 15:
		a.endCall()
	case 8:
		if a.pulls != nil && a.rand.IntN(2) == 0 {
			a.pulls.lose()
			a.pulls = nil
		}
	case 9:
		time.Sleep(longestPause)
	case 11, 12, 16, 17:
		if a.lent() > 0 {
			a.loaned++
			a.tickets++
			var id [16]byte
			copy(id[:], fmt.Sprint(a.tickets))
			c := a.conn.call(callwire.Call{Invocation: id, Method: "POST", ContentLength: -1})
			a.running[fmt.Sprintf("%x", id)] = c
		}
	case 13:
		a.takeBack()
	}
}

// takeBack takes loans back, in one of two ways.
func (a *creditModel) takeBack() {
	if n := a.lent(); n > 0 && a.rand.IntN(2) == 0 {
		a.conn.giveBack(uint32(1 + a.rand.IntN(n)))
	} else if a.pulls != nil {
		a.pulls.recall(uint32(a.rand.IntN(3)))
	}
}

func (a *creditModel) loseGateway() {
	if a.conn != nil {
		a.conn.lose()
		a.conn, a.claims = nil, nil
	}
}

// endCall ends a call well, or in a way that says nothing against the instance.
func (a *creditModel) endCall() {
	call := take(a.rand, &a.calls)
	if call == nil {
		return
	}
	switch a.rand.IntN(6) {
	case 0:
		a.loseGateway()
		call.hello()
	case 1:
		a.running[call.ID].cancel()
		synctest.Wait()
		call.end <- adapter.ErrNotStarted
	default:
		call.hello()
	}
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
		case a.conn = <-a.gateway.conns:
			a.conn.t = a.t
		case c := <-a.gateway.claims:
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
