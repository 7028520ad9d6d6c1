package cluster

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// A scheduler decides on a function once when it gets to know it, so the first call is
// not the first decision, and a decider sees how long nothing happened before it.
func TestAFunctionIsDecidedOnceBeforeItsFirstCall(t *testing.T) {
	var seen []autoscaler.Snapshot
	run(t, Config{
		Functions: []Function{{Work: Fixed(50 * ms), Start: Fixed(300 * ms)}},
		Loads:     []Load{Given{{At: 3 * time.Second, Work: OwnWork}}},
		Decider: func(s autoscaler.Snapshot, p autoscaler.Params) autoscaler.Decision {
			seen = append(seen, s)
			return FixedPool(1)(s, p)
		},
	})
	if len(seen) < 2 {
		t.Fatalf("%d decisions", len(seen))
	}
	if first := seen[0]; first.Waiting() != 0 || first.Elapsed != 0 {
		t.Errorf("the first decision saw %d calls wait, %v after another", first.Waiting(), first.Elapsed)
	}
	if second := seen[1]; second.Waiting() != 1 || second.Elapsed < 2*time.Second {
		t.Errorf("the second decision saw %d calls wait, %v after the first", second.Waiting(), second.Elapsed)
	}
}
