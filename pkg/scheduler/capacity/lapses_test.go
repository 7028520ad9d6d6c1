package capacity

import (
	"fmt"
	"testing"
	"time"
)

// Pending pods of others take the room of every instance that is evicted. One call must not drain the
// cluster for them.
func TestRoomThatOthersTakeIsNotMadeAgainAndAgain(t *testing.T) {
	shape := Shape{Requests: milli(100)}
	loan := Loan{"peer", shape}
	for name, makeRoom := range map[string]func(c *cluster, waited time.Duration) (refused bool){
		"for a function": func(c *cluster, waited time.Duration) bool {
			want := Want{UID: "f", Namespace: "ns", Shape: shape, Missing: 1, Starved: true, Waiting: 1, OldestWait: waited}
			return c.MakeRoom(want, c.now, c.evict)
		},
		"for a peer": func(c *cluster, waited time.Duration) bool {
			if c.TrimLoans(map[Loan]int{loan: 1}) {
				c.Lend(loan, 1, waited, c.now, c.evict)
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			const nodes = 20
			c := newCluster(nodes, 100)
			for n := range nodes {
				c.add(fmt.Sprint("warm", n), "x", fmt.Sprint("n", n), 100)
			}
			begun := c.now.Add(time.Hour)
			c.begin(time.Hour)
			for c.now.Sub(begun) < time.Minute {
				for _, key := range keysOf(c) {
					if in := c.instances[key]; in.leaving {
						delete(c.instances, key)
						c.add("outside", "y", in.Node, 100).busy = true
					}
				}
				c.begin(testTick)
				if node, ok := c.Place("f", shape, func(int) int { return 0 }); ok {
					t.Fatalf("it has room on %s, which others have taken", node)
				}
				c.gather()
				if makeRoom(c, c.now.Sub(begun)) {
					t.Fatalf("refused after %v, while other instances could go", c.now.Sub(begun))
				}
			}
			if n := len(c.evicted); n < 3 || n > 4 {
				t.Errorf("%d instances were evicted in a minute, want 3 or 4", n)
			}
		})
	}
}

// A function that got its room has it made at once the next time.
func TestALapseIsForgottenOnceThereIsRoom(t *testing.T) {
	of, now := Beneficiary{Function: "f"}, time.Unix(1000, 0)
	c := newCluster(1, 100)
	c.now = now
	c.begin(0)
	lapse := func() {
		c.lapses.record(of, c.now)
		if c.lapses.mayEvict(of, c.now) || !c.HeldBack(of, c.now) {
			t.Fatal("an instance is evicted at once after a lapse")
		}
	}
	lapse()
	c.Place("f", Shape{Requests: milli(100)}, func(int) int { return 0 })
	if c.HeldBack(of, now) || len(c.lapses) != 0 {
		t.Errorf("evictions are held back for a function that has got room: %v", c.lapses)
	}
	lapse()
	c.begin(firstRoomWait + 2*maxRoomWait)
	if len(c.lapses) != 0 {
		t.Errorf("a function that has long given up is kept: %v", c.lapses)
	}
}

// Room that lapsed because nobody used it in time is no reason to wait: it is still there.
func TestRoomThatNobodyTookHoldsNothingBack(t *testing.T) {
	c := newCluster(2, 100)
	c.add("warm", "x", "n1", 100)
	c.begin(time.Minute)
	c.gather()
	loan := Loan{"peer", Shape{Requests: milli(100)}}
	lapsed := Beneficiary{Loan: loan}
	c.lapses.record(lapsed, c.now)
	if got := c.Lend(loan, 2, time.Second, c.now, c.evict); got.Instances != 2 || c.HeldBack(lapsed, c.now) {
		t.Errorf("granted %+v, want two: one is free, and one may be evicted", got)
	}
}
