package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

func pods(n int64) placement.Amount { return placement.Amount{Pods: n} }

func at(times ...time.Duration) Given {
	var g Given
	for _, t := range times {
		g = append(g, Call{At: t, Work: OwnWork})
	}
	return g
}

// Two nodes with room for one instance each start one at a time each. Of three
// instances that are wanted, two are had.
func TestInstancesKeepWithinTheNodes(t *testing.T) {
	r := run(t, Config{
		Nodes:     []Nodes{{Count: 2, Allocatable: pods(1)}},
		Functions: []Function{{Requests: pods(1), Work: Fixed(time.Second), Start: Fixed(time.Second)}},
		Loads:     []Load{at(0, 0, 0)},
		Decider:   FixedPool(3),
	})
	if r.Total.Created != 2 || r.Nodes[0].Peak != 1 || r.Nodes[1].Peak != 1 {
		t.Errorf("created %d, nodes %+v", r.Total.Created, r.Nodes)
	}
	if r.LastAnswer != 3*time.Second {
		t.Errorf("the last answer came at %v, want 3s", r.LastAnswer)
	}
}

// Three instances that take a second each to start, one at a time.
func TestStartsTakeTurns(t *testing.T) {
	c := Config{
		Nodes:     []Nodes{{Count: 1, Allocatable: pods(3), Starts: 1}},
		Functions: []Function{{Requests: pods(1), Work: Fixed(5 * time.Second), Start: Fixed(time.Second)}},
		Loads:     []Load{at(0, 0, 0)},
		Decider:   FixedPool(3),
	}
	if r := run(t, c); r.LastAnswer != 8*time.Second || r.Total.Starting != 6*time.Second {
		t.Errorf("the last answer came at %v after %v of starting, want 8s and 6s", r.LastAnswer, r.Total.Starting)
	}
	c.Nodes[0].Starts = 2
	if r := run(t, c); r.LastAnswer != 7*time.Second {
		t.Errorf("the last answer came at %v, want 7s", r.LastAnswer)
	}
}

// An instance that is cancelled makes place for the one that waits to start.
func TestCancelledStartsLetOthersStart(t *testing.T) {
	ticks := 0
	decide := func(s autoscaler.Snapshot, _ autoscaler.Params) autoscaler.Decision {
		ticks++
		switch ticks {
		case 1:
			return autoscaler.Decision{Create: 3}
		case 2:
			return autoscaler.Decision{Cancel: 1}
		}
		return autoscaler.Decision{}
	}
	r := run(t, Config{
		Nodes:     []Nodes{{Count: 1, Allocatable: pods(3), Starts: 1}},
		Functions: []Function{{Requests: pods(1), Work: Fixed(5 * time.Second), Start: Fixed(time.Second)}},
		Loads:     []Load{at(0, 0, 0)},
		Decider:   decide,
	})
	// The youngest goes: two run three calls, from 1 s and 2 s on.
	if r.Total.Cancelled != 1 || r.LastAnswer != 11*time.Second {
		t.Errorf("cancelled %d, the last answer came at %v; want 1, 11s", r.Total.Cancelled, r.LastAnswer)
	}
}

// A node that joins later is used as soon as it has.
func TestNodesJoinLater(t *testing.T) {
	r := run(t, Config{
		Nodes:     []Nodes{{Count: 1, Allocatable: pods(1)}, {Count: 1, Allocatable: pods(1), From: 2 * time.Second}},
		Functions: []Function{{Requests: pods(1), Work: Fixed(10 * time.Second), Start: Fixed(time.Second)}},
		Loads:     []Load{at(0, 0)},
		Decider:   FixedPool(2),
	})
	if r.Nodes[1].Created != 1 || r.Nodes[1].Joined != 2*time.Second || r.LastAnswer != 13*time.Second {
		t.Errorf("nodes %+v, the last answer at %v, want 13s", r.Nodes, r.LastAnswer)
	}
}

// A full node makes room for a function without instances, by the longest idle one,
// but only after it was idle for long enough.
func TestFullNodesEvict(t *testing.T) {
	r := run(t, Config{
		Nodes: []Nodes{{Count: 1, Allocatable: pods(2)}},
		Functions: []Function{
			{Requests: pods(1), Work: Fixed(ms), Start: Fixed(100 * ms)},
			{Requests: pods(1), Work: Fixed(ms), Start: Fixed(100 * ms)},
			{Requests: pods(1), Work: Fixed(ms), Start: Fixed(100 * ms)},
		},
		Loads:   []Load{Given{{At: 0, Function: 0, Work: ms}, {At: time.Second, Function: 1, Work: ms}, {At: 1500 * ms, Function: 2, Work: ms}}},
		Decider: autoscaler.FPCSch,
	})
	got := []int{r.Functions[0].Evicted, r.Functions[1].Evicted, r.Functions[2].Evicted}
	if !slices.Equal(got, []int{1, 0, 0}) {
		t.Errorf("evicted %v, want the first function's", got)
	}
	// Idle since 101 ms, it may go at 2.101 s: the tick at 2.2 s evicts it, the one
	// at 2.3 s orders, and 100 ms later the call runs for 1 ms.
	if want := 2401 * ms; r.LastAnswer != want {
		t.Errorf("the last answer came at %v, want %v", r.LastAnswer, want)
	}
}

// An instance that has become idle after the call came makes room for a function without
// any, however short it has been idle.
func TestWhatBecomesIdleMakesRoomForACallThatWaits(t *testing.T) {
	r := run(t, Config{
		Nodes: []Nodes{{Count: 1, Allocatable: pods(1)}},
		Functions: []Function{
			{Requests: pods(1), Start: Fixed(100 * ms)},
			{Requests: pods(1), Start: Fixed(100 * ms)},
		},
		Loads:   []Load{Given{{At: 0, Function: 0, Work: 3 * time.Second}, {At: time.Second, Function: 1, Work: ms}}},
		Decider: autoscaler.FPCSch,
	})
	if got := r.Functions[0].Evicted; got != 1 {
		t.Errorf("evicted %d, want 1", got)
	}
	// Idle since 3.1 s, it is evicted by the tick at 3.2 s at the latest, and the next one
	// orders.
	if got := r.LastAnswer; got < 3201*ms || got > 3401*ms {
		t.Errorf("the last answer came at %v, want 3.201s to 3.401s", got)
	}
}

// Room that comes free is for the function that it was made for, and for none that is
// called meanwhile.
func TestRoomIsForTheFunctionThatItWasMadeFor(t *testing.T) {
	r := run(t, Config{
		Nodes:     []Nodes{{Count: 1, Allocatable: pods(1)}},
		Functions: []Function{{Copies: 3, Requests: pods(1), Start: Fixed(100 * ms)}},
		Loads: []Load{Given{
			{At: 0, Function: 0, Work: ms},
			{At: 3010 * ms, Function: 1, Work: 3 * time.Second},
			{At: 3110 * ms, Function: 2, Work: ms},
		}},
		Decider: autoscaler.FPCSch,
	})
	// The tick at 3.1 s evicts for the second function, and the one at 3.2 s orders. The
	// third one's call, which comes in between, waits for the three seconds.
	if got := r.Total; got.Evicted != 2 || got.Answered != 3 || r.LastAnswer < 6*time.Second {
		t.Errorf("evicted %d, answered %d, the last at %v; want 2, 3, after 6s", got.Evicted, got.Answered, r.LastAnswer)
	}
}

// Nobody is idle for long enough: the call is refused after 5 s.
func TestCallsWithoutRoomAreRefused(t *testing.T) {
	r := run(t, Config{
		Nodes:     []Nodes{{Count: 1, Allocatable: pods(1)}},
		Functions: []Function{{Requests: pods(1), Work: Fixed(time.Minute)}, {Requests: pods(1), Work: Fixed(ms)}},
		Loads:     []Load{Given{{At: 0, Function: 0, Work: OwnWork}, {At: time.Second, Function: 1, Work: ms}}},
		Decider:   autoscaler.FPCSch,
	})
	if got := r.Functions[1]; got.Refused != 1 || got.Answered != 0 {
		t.Errorf("got %+v", got)
	}
}

// Two calls share a node of one core, and a third one needs none of it. The first has
// run for 1 s alone when the second comes: it has 1 s left, which takes 2 s. Then the
// second, with 1 s done of 2 s, runs alone.
func TestCallsShareAMachine(t *testing.T) {
	c := Config{
		Nodes: []Nodes{{Count: 1, Allocatable: pods(9), Capacity: Demand{CPU: 1}}},
		Functions: []Function{
			{Requests: pods(1), Work: Fixed(2 * time.Second), Demand: Demand{CPU: 1}},
			{Requests: pods(1), Work: Fixed(2 * time.Second), Demand: Demand{IO: 1}},
		},
		Loads: []Load{Given{
			{At: 0, Function: 0, Work: OwnWork}, {At: time.Second, Function: 0, Work: OwnWork}, {At: time.Second, Function: 1, Work: OwnWork},
		}},
		Decider: FixedPool(2),
	}
	r := run(t, c)
	if got := r.Functions[0].Execution; got.Count() != 2 || (got.Mean()-3*time.Second).Abs() > 30*ms {
		t.Errorf("CPU: %d took %v on average, want 3s", got.Count(), got.Mean())
	}
	if got := r.Functions[1].Execution; (got.Mean() - 2*time.Second).Abs() > 20*ms {
		t.Errorf("IO: it took %v, want 2s", got.Mean())
	}
	if r.LastAnswer != 4*time.Second {
		t.Errorf("the last answer came at %v, want 4s", r.LastAnswer)
	}
	c.Nodes[0].Capacity.CPU = 2
	if r := run(t, c); r.LastAnswer != 3*time.Second {
		t.Errorf("with two cores the last answer came at %v, want 3s", r.LastAnswer)
	}
}
