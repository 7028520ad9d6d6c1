package cluster

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// One controller, one worker of one slot: the second function's container takes the
// place of the first one's, and the third call waits for the second.
func TestPushedCallsEvict(t *testing.T) {
	r := run(t, Config{
		Nodes:     []Nodes{{Count: 1}},
		Functions: []Function{{Work: Fixed(10 * ms), Start: Fixed(100 * ms)}, {Work: Fixed(10 * ms), Start: Fixed(100 * ms)}},
		Loads: []Load{Given{
			{At: 0, Function: 0, Work: OwnWork}, {At: 200 * ms, Function: 0, Work: OwnWork},
			{At: 300 * ms, Function: 1, Work: OwnWork}, {At: 300 * ms, Function: 1, Work: OwnWork},
		}},
		Hash: &Hash{Controllers: 1, Slots: 1, Remove: 50 * ms},
	})
	if a, b := r.Functions[0], r.Functions[1]; a.Created != 1 || a.Cold != 1 || a.Evicted != 1 || b.Created != 1 || b.Cold != 2 {
		t.Errorf("got %+v and %+v", a, b)
	}
	// 300 ms + 50 ms until the old one is gone + 100 ms + twice 10 ms.
	if want := 470 * ms; r.LastAnswer != want {
		t.Errorf("the last answer came at %v, want %v", r.LastAnswer, want)
	}
	if got := r.Functions[1].Setup.Max(); (got - 160*ms).Abs() > 2*ms {
		t.Errorf("the longest set-up took %v, want 160ms", got)
	}
}

// Containers that nothing came to for long are removed.
func TestPushedContainersLeave(t *testing.T) {
	r := run(t, Config{
		Length:    time.Hour,
		Nodes:     []Nodes{{Count: 3}},
		Functions: []Function{{Work: Fixed(10 * ms), Start: Fixed(100 * ms)}},
		Loads:     []Load{at(0, 30*time.Minute)},
		Hash:      &Hash{Controllers: 3, Slots: 4},
	})
	if r.Total.Created != 2 || r.Total.Left != 2 {
		t.Errorf("created %d, left %d; want 2 and 2", r.Total.Created, r.Total.Left)
	}
}

// More calls at a time than all shares have: they are forced on workers, and wait
// there, and all are answered.
func TestPushedOverloadIsWorkedOff(t *testing.T) {
	r := run(t, Config{
		Nodes:     []Nodes{{Count: 2, Allocatable: placement.Amount{}}},
		Functions: []Function{{Copies: 8, Work: Fixed(10 * ms), Start: Fixed(100 * ms)}},
		Clients:   []Clients{{Count: 50, Functions: 8, Calls: 2000}},
		Hash:      &Hash{Controllers: 3, Slots: 4},
	})
	if r.Total.Answered != 2000 || r.Total.Evicted == 0 || r.Nodes[0].Peak > 4 || r.Nodes[1].Peak > 4 {
		t.Errorf("answered %d, evicted %d, nodes %+v", r.Total.Answered, r.Total.Evicted, r.Nodes)
	}
}
