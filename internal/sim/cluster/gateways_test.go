package cluster

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	gateway "github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// drawLending draws a small world in which gateways compete for few instances that have enough to
// do, or a little more.
func drawLending(t *rapid.T) Config {
	within := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	instances := within("instances", 1, 8)
	f := Function{
		Copies: within("copies", 1, 2), Concurrency: within("concurrency", 1, 3), Limits: minOf(instances),
		Work: Uniform(0, longestWork), Patience: rapid.SampledFrom([]time.Duration{0, 50 * ms, time.Second}).Draw(t, "patience"),
		BackoffAfter: time.Duration(within("backoff", 1, 10)) * time.Second, IdleTimeout: time.Second,
	}
	busy := float64(within("percent busy", 10, 110)) / 100
	places := float64(f.Copies * f.Concurrency * instances)
	c := Config{
		Seed: rapid.Uint64().Draw(t, "seed"), Length: 20 * time.Second, Decider: FixedPool(instances), Functions: []Function{f},
		Loads:    []Load{Poisson{Functions: f.Copies, Rate: busy * places / (longestWork / 2).Seconds()}},
		Gateways: within("gateways", 1, 4), Overheads: Overheads{Admit: ms, Pull: time.Duration(within("pull", 0, 3)) * ms},
		MessageDelay: rapid.SampledFrom([]time.Duration{0, 100 * time.Microsecond, ms, 20 * ms}).Draw(t, "delay"),
	}
	if rapid.Bool().Draw(t, "gateways are busy") {
		c.GatewayWork = ms
	}
	return c
}

// longestWork bounds the executions of drawLending.
const longestWork = 300 * ms

// idleBound is for how long a call may wait beside an idle instance of its function: until it
// sends a ticket, until the term of the loan that is recalled ends, and a tick.
const idleBound = gateway.AskAfter + DefaultReportEvery + queue.LoanTerm + core.DefaultTick

// watcher looks at a world after each of its events.
type watcher struct {
	*rapid.T
	*world
	// calls are those that have not got an instance, in the order in which they came.
	calls []*call
}

// saw takes note of an event before it happens.
func (c *watcher) saw(act action) {
	if admitted, is := act.(*callAdmitted); is {
		c.calls = append(c.calls, (*call)(admitted))
	}
}

// look checks what must hold after each event.
func (c *watcher) look() {
	waiting := c.calls[:0]
	oldest := map[*pool]*call{}
	for _, one := range c.calls {
		switch {
		case one.over:
		case one.instance == nil:
			waiting = append(waiting, one)
			if one.place != nil && oldest[one.place.pool] == nil {
				oldest[one.place.pool] = one
			}
		case one.place.byLoan && oldest[one.place.pool] != nil:
			if first := oldest[one.place.pool]; first.place.Since.Before(one.place.Since) {
				c.Fatalf("at %v, the call of %v got a loan before that of %v", c.now, one.place.Since, first.place.Since)
			}
		}
	}
	c.calls = waiting
	for _, f := range c.populated {
		for _, in := range f.instances {
			if in.held > f.class.Concurrency {
				c.Fatalf("an instance holds %d calls of %d", in.held, f.class.Concurrency)
			}
			c.waitsBeside(in)
		}
	}
}

// waitsBeside looks for a call that waits although an instance of its function is idle.
func (c *watcher) waitsBeside(in *instance) {
	if in.phase != idle || in.agent.draining || c.scheduler.lending.underWay > 0 {
		return
	}
	for _, one := range c.calls {
		if one.function != in.function || one.place == nil {
			continue
		}
		if both := c.now - max(in.since, one.place.Since.Sub(epoch)); both > idleBound {
			c.Fatalf("at %v, a call waits beside an idle instance for %v", c.now, both)
		}
	}
}

// runWatched is Run with a look after each event.
func runWatched(t *rapid.T, config Config) Result {
	w := build(config)
	watch := &watcher{T: t, world: w}
	for {
		at, ok := w.agenda.next()
		if !ok || at > w.config.Length {
			break
		}
		e := w.agenda.pop()
		w.now = e.at
		w.result.Events++
		watch.saw(e.act)
		e.act.run(w)
		watch.look()
	}
	w.now = max(w.now, w.config.Length)
	return w.finish()
}

func TestGatewaysKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawLending(t)
		r := runWatched(t, c)
		checkTotals(t, c, r)
		if again, err := Run(c); err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("the same Config had another Result, or the error %v", err)
		}
	})
}

// pool20 is a pool of fixed size that is busy, and there before its first call.
func pool20(gateways int) Config {
	return Config{
		Seed: 7, Gateways: gateways, Decider: FixedPool(20),
		Functions: []Function{{Work: Exponential(100 * ms), Limits: minOf(20)}},
		Loads:     []Load{Poisson{Rate: 170, From: time.Second, Until: 10 * time.Minute}},
	}
}

// With one gateway, its order of arrival is that of all calls.
func TestOneGatewayWaitsAsOneQueue(t *testing.T) {
	queue, gateway := run(t, pool20(0)).Total, run(t, pool20(1)).Total
	if !reflect.DeepEqual(queue.Wait, gateway.Wait) || queue.Answered != gateway.Answered || queue.Busy != gateway.Busy {
		t.Errorf("one gateway: %d answered, waits of %v; a queue: %d, %v", gateway.Answered, gateway.Wait.Mean(), queue.Answered, queue.Wait.Mean())
	}
}

// The same calls come, with the same work, however many gateways there are.
func TestGatewaysChangeNothingAboutCalls(t *testing.T) {
	queue := run(t, pool20(0)).Total
	for _, n := range []int{1, 3, 10} {
		r := run(t, pool20(n))
		if r.Total.Calls != queue.Calls || r.Total.Busy != queue.Busy {
			t.Errorf("%d gateways: %d calls and %v of work, want %d and %v", n, r.Total.Calls, r.Total.Busy, queue.Calls, queue.Busy)
		}
		if got := r.Gateways; got.ByLoan < r.Total.Calls/2 || n > 1 && got.Recalled == 0 || n == 1 && got.Recalled > 0 {
			t.Errorf("%d gateways: %+v of %d calls", n, got, r.Total.Calls)
		}
	}
}

// A gateway's processor takes one call after the other: 10 at once are done after 10, 20, ... ms.
func TestGatewaysAreBusyWithEachCall(t *testing.T) {
	r := run(t, Config{
		Gateways: 1, GatewayWork: 10 * ms, Decider: FixedPool(10),
		Functions: []Function{{Work: Fixed(5 * ms), Limits: minOf(10)}},
		Clients:   []Clients{{Count: 10, Calls: 10, From: time.Second}},
	})
	if want := time.Second + 105*ms; r.LastAnswer != want || (r.Total.Wait.Mean()-55*ms).Abs() > ms {
		t.Errorf("the last answer came at %v and waits were %v in the mean, want %v and 55ms", r.LastAnswer, r.Total.Wait.Mean(), want)
	}
}

// One call after the other comes to the gateway that has the loan, by no ticket but the first. A
// message takes 1 ms: the ticket's way to the instance, the claim and the grant take four, with
// the handshake of the connection six, and a call by a loan one.
func TestMessagesTakeTime(t *testing.T) {
	r := run(t, Config{
		Gateways: 1, MessageDelay: ms, Decider: FixedPool(1),
		Functions: []Function{{Work: Fixed(5 * ms), Limits: minOf(1)}},
		Loads:     []Load{at(time.Second, 2*time.Second, 3*time.Second)},
	})
	if least, most := r.Total.Wait.Quantile(0), r.Total.Wait.Max(); (least-ms).Abs() > 100*time.Microsecond || (most-6*ms).Abs() > 100*time.Microsecond {
		t.Errorf("waits from %v to %v, want 1ms to 6ms", least, most)
	}
	if r.Gateways != (GatewayResult{ByLoan: 2, Tickets: 1}) {
		t.Errorf("%+v, want 2 calls by loan and 1 ticket", r.Gateways)
	}
}

// The central queue is what it was before there were gateways. The figures do not depend on a
// decider, which may get better.
func TestACentralQueueIsAsBefore(t *testing.T) {
	r := run(t, Config{
		Seed: 3, Nodes: []Nodes{{Count: 2, Allocatable: pods(3), Starts: 1}}, Decider: FixedPool(4),
		Functions: []Function{
			{Work: Exponential(40 * ms), Start: Uniform(100*ms, 300*ms), Requests: pods(1), Patience: 200 * ms},
			{Work: LogNormal(20*ms, 90*ms), Start: Fixed(50 * ms), Requests: pods(1), Concurrency: 2},
		},
		Loads:     []Load{Poisson{Functions: 2, Rate: 150, Until: 30 * time.Second}},
		Clients:   []Clients{{Count: 5, First: 1, Calls: 300, Think: Exponential(30 * ms)}},
		Overheads: Overheads{Admit: ms, Claim: ms, Answer: ms, Pull: 2 * ms},
	})
	sum := [...]any{r.Total.Calls, r.Total.Answered, r.Total.Expired, r.Total.Created, r.Events, r.LastAnswer, r.Total.Busy, r.Total.Wait.Mean()}
	if want := [...]any{4739, 4414, 116, 7, 29415, time.Duration(30151358022), time.Duration(127402096839), time.Duration(34428209)}; sum != want {
		t.Errorf("got %#v, want %#v", sum, want)
	}
	if r.Gateways != (GatewayResult{}) {
		t.Errorf("without gateways: %+v", r.Gateways)
	}
}
