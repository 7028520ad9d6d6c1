package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Whatever clients, schedulers and instances do: no call runs twice, none that
// was answered "no" runs at all, and every one is answered.
func TestNoFaultMakesTheGatewayLie(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = 3 * time.Second })
	w.put("default", "short", time.Millisecond)
	c := &chaos{harness: w, seed: rand.Uint64(), ran: make(map[int]int)}
	t.Logf("seed %d", c.seed)
	ctx, stop := context.WithCancel(t.Context())
	var faults sync.WaitGroup
	faults.Go(func() { c.dispatch(ctx) })
	faults.Go(func() { c.restart(ctx) })

	const calls, clients = 3000, 192
	results := make([]result, calls)
	numbers := make(chan int)
	var calling sync.WaitGroup
	for range clients {
		calling.Go(func() {
			for n := range numbers {
				results[n] = c.call(n)
			}
		})
	}
	for n := range calls {
		numbers <- n
	}
	close(numbers)
	calling.Wait()
	until(t, "all attempts have ended", func() bool { return w.gateway.Entries() == 0 && w.gateway.Held() == 0 })
	stop()
	faults.Wait()
	c.classify(results)
}

// chaos plays clients, a scheduler and instances that do all they can do wrong.
type chaos struct {
	*harness
	seed uint64

	// byLoan counts calls that came by loans, and unseen those that never came.
	byLoan, unseen atomic.Int64

	mu  sync.Mutex
	ran map[int]int // executions by call
}

// dice are those of one decision: the same in every run with the seed.
func (c *chaos) dice(what string, n int) *rand.Rand {
	for _, b := range []byte(what) {
		n = n*31 + int(b)
	}
	return rand.New(rand.NewPCG(c.seed, uint64(n)))
}

// result is what a client knows in the end.
type result struct {
	answer
	left bool // the client gave up
}

// call makes a call by either protocol, with a body of either kind, and
// sometimes gives it up.
func (c *chaos) call(n int) result {
	dice := c.dice("client", n)
	client := c.http1
	if dice.IntN(2) == 0 {
		client = c.http2
	}
	name := "hello"
	if dice.IntN(50) == 0 {
		name = "short"
	}
	var body io.Reader
	switch dice.IntN(4) {
	case 0:
		body = strings.NewReader("small")
	case 1:
		body = chunked(bytes.NewReader(make([]byte, dice.IntN(200_000))))
	}
	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	leaves := dice.IntN(8) == 0
	if leaves {
		defer time.AfterFunc(time.Duration(dice.IntN(5000))*time.Microsecond, giveUp).Stop()
	}
	r := c.request("POST", fmt.Sprintf("/function/%s/%d", name, n), body).WithContext(ctx)
	return result{do(client, r), leaves}
}

// dispatch hands tickets to instances; it loses some, hands out others twice,
// late, or after it has refused them.
func (c *chaos) dispatch(ctx context.Context) {
	var instances sync.WaitGroup
	defer instances.Wait()
	free := make(chan struct{}, 64)
	var kept *agentwire.Ticket
	dice := c.dice("scheduler", 0)
	for {
		var ticket *agentwire.Ticket
		select {
		case <-ctx.Done():
			return
		case ticket = <-c.scheduler.offers:
		}
		hand := []*agentwire.Ticket{ticket}
		switch dice.IntN(12) {
		case 0:
			hand = nil
		case 1:
			hand = append(hand, ticket, ticket)
		case 2:
			hand, kept = []*agentwire.Ticket{kept}, ticket
		case 3:
			c.scheduler.tryRefuse(&controlwire.Refusal{InvocationId: ticket.GetInvocationId(), Reason: controlwire.Refusal_Reason(dice.IntN(6))})
		}
		for _, ticket := range hand {
			if ticket == nil {
				continue
			}
			seed := int(dice.Int32())
			free <- struct{}{}
			instances.Go(func() {
				defer func() { <-free }()
				c.instance(ticket, seed)
			})
		}
	}
}

// restart restarts the scheduler now and then.
func (c *chaos) restart(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(1200 * time.Millisecond):
			c.scheduler.stop()
			c.scheduler.start()
		}
	}
}

// instance claims a ticket and does something with the call, and with those that come by the
// place that it keeps.
func (c *chaos) instance(ticket *agentwire.Ticket, seed int) {
	dice := c.dice("instance", seed)
	a := c.agentOf(strconv.Itoa(seed))
	defer a.conn.Close()
	i := a.claimLater(ticket)
	if dice.IntN(20) == 0 {
		return // dead before it knows whether it may start
	}
	if !i.answered() {
		c.Error("a claim was not answered")
		return
	}
	if i.granted == nil {
		return
	}
	seen := uint32(0)
	for more := true; more; {
		if callwire.ByGateway(i.number) {
			c.byLoan.Add(1)
			seen = i.number
		}
		if dice.IntN(5) == 0 {
			i.sendRelease(callwire.Release{Keeps: dice.IntN(2) == 0})
		} else {
			c.run(i, dice)
		}
		if dice.IntN(8) == 0 {
			a.credits(callwire.KindTakeBack, 1)
		}
		select {
		case i = <-a.lent:
		case <-a.gone:
			more = false
		case <-time.After(time.Duration(dice.IntN(20)) * time.Millisecond):
			more = false
		}
	}
	if dice.IntN(2) == 0 { // it comes back, and has not seen what it has not run
		a.conn.Close()
		for range len(a.lent) {
			c.unseen.Add(1)
		}
		b := c.hello(callwire.Hello{CID: strconv.Itoa(seed), ProtocolMin: 1, ProtocolMax: 1, Resume: a.welcome.Resume, Seen: seen})
		b.conn.Close()
	}
}

// run is an execution, and its end.
func (c *chaos) run(i *instance, dice *rand.Rand) {
	n, err := strconv.Atoi(strings.TrimPrefix(i.granted.RequestURI, "/"))
	if err != nil {
		c.Error(err)
		return
	}
	c.mu.Lock()
	c.ran[n]++
	c.mu.Unlock()
	if !i.granted.Whole && dice.IntN(2) == 0 {
		i.read(bodyEnded)
	}
	if i.granted.Remaining == time.Millisecond {
		i.cancelled()
	}
	say := strconv.Itoa(n)
	switch dice.IntN(8) {
	case 0: // dies
	case 1: // dies after the head
		i.head(200)
		i.body(say)
	case 2:
		i.fail(callwire.FailureKind(dice.IntN(4)), "")
	case 3:
		i.head(200)
		i.body(say)
		i.fail(callwire.FailureFunctionLost, "")
	case 4:
		i.head(200)
		i.body(say)
		i.sendEnd(callwire.End{Keeps: true, Exec: time.Millisecond})
	case 5: // makes no sense
		i.head(200)
		i.whole(200, say)
	case 6:
		i.whole(200, say)
	default:
		i.keep(200, say)
	}
}

// classify compares what clients were told with what ran.
func (c *chaos) classify(results []result) {
	told := make(map[string]int)
	for n, r := range results {
		ran := c.ran[n]
		if ran > 1 {
			c.Errorf("call %d ran %d times", n, ran)
		}
		executed := invocation.Executed(r.header.Get(invocation.HeaderExecuted))
		switch {
		case r.err != nil && r.left:
			told["left"]++
			continue
		case r.err != nil && r.status == http.StatusOK:
			// Its body breaks off.
		case r.err != nil:
			c.Errorf("call %d was not answered: %v", n, r.err)
		case executed == invocation.ExecutedNo && ran != 0:
			c.Errorf("call %d was told no and ran: %d, %s", n, r.status, r.body)
		case executed == invocation.ExecutedYes && (ran != 1 || r.status != http.StatusOK || r.body != strconv.Itoa(n)):
			c.Errorf("call %d was told yes, ran %d times and was answered %d, %s", n, ran, r.status, r.body)
		case executed == "" || executed != invocation.ExecutedYes && r.status < 400:
			c.Errorf("call %d was told %q and answered %d, %s", n, executed, r.status, r.body)
		}
		told[fmt.Sprintf("%s %d", executed, r.status)]++
	}
	c.Logf("%d calls were told: %v; %d came by loans, %d never came", len(results), told, c.byLoan.Load(), c.unseen.Load())
	if c.byLoan.Load() == 0 {
		c.Error("no call came by a loan: this tests nothing")
	}
	for _, kind := range []string{"left", "yes 200", "maybe 502", "maybe 504", "no 503"} {
		if told[kind] == 0 {
			c.Errorf("no call was told %q: this tests nothing", kind)
		}
	}
}
