package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

const (
	testTick       = 100 * time.Millisecond
	testEvictAfter = time.Second
	testPatience   = 5 * time.Second
)

func milli(cpu int64) placement.Amount { return placement.Amount{MilliCPU: cpu} }

// cluster is nodes with instances on them, as a scheduler sees them.
type cluster struct {
	*Planner
	now   time.Time
	nodes []placement.Node
	// instances are all that have not gone.
	instances map[Key]*instance
	evicted   map[Key]int
	last      int
}

type instance struct {
	Idle
	busy, leaving bool
}

func newCluster(nodes int, size int64) *cluster {
	c := &cluster{
		Planner: New(Config{Tick: testTick, EvictAfter: testEvictAfter, Patience: testPatience, Spares: true}),
		now:     time.Unix(1000, 0), instances: make(map[Key]*instance), evicted: make(map[Key]int),
	}
	for n := range nodes {
		c.nodes = append(c.nodes, placement.Node{Name: fmt.Sprint("n", n), Allocatable: milli(size)})
	}
	return c
}

// add puts an idle instance on a node.
func (c *cluster) add(uid, namespace, node string, cpu int64) *instance {
	c.last++
	in := &instance{Idle: Idle{
		Key: Key{uid, invocation.CID(fmt.Sprintf("c%03d", c.last))}, Node: node, Requests: milli(cpu),
		Namespace: namespace, Spare: namespace == "", Since: c.now,
	}}
	c.instances[in.Key] = in
	return in
}

// requested is what all instances request of a node, or those that stay.
func (c *cluster) requested(node string, staying bool) (sum placement.Amount) {
	for _, in := range c.instances {
		if in.Node == node && !(staying && in.leaving) {
			sum = sum.Plus(in.Requests)
		}
	}
	return sum
}

// begin begins a tick.
func (c *cluster) begin(elapsed time.Duration) {
	c.now = c.now.Add(elapsed)
	for _, key := range c.Leaving() {
		if c.instances[key] == nil {
			c.Left(key)
		}
	}
	c.BeginTick(c.now)
	nodes := slices.Clone(c.nodes)
	for i := range nodes {
		nodes[i].Requested = c.requested(nodes[i].Name, false).Plus(nodes[i].Fixed)
	}
	c.Observe("", placement.Candidates{Nodes: nodes})
	c.Observe("first", placement.Candidates{Nodes: slices.Clone(nodes[:min(1, len(nodes))])})
}

// gather hands in the usage of all.
func (c *cluster) gather() {
	if c.Gathered() {
		return
	}
	usages := make(map[string]Usage)
	for uid := range c.index.of {
		usages[uid] = Usage{}
	}
	for _, in := range c.instances {
		u := usages[in.FunctionUID]
		if in.leaving {
			u.Moving = append(u.Moving, in.Node)
		} else {
			u.Namespace = in.Namespace
			if !in.Spare {
				u.MilliCPU += in.Requests.MilliCPU
			}
			if !in.busy {
				u.Idle = append(u.Idle, in.Idle)
			}
		}
		usages[in.FunctionUID] = u
	}
	c.Update(usages)
	c.Gather(c.now)
}

// evict lets an instance go.
func (c *cluster) evict(e Evict) bool {
	c.instances[e.Key].leaving = true
	c.evicted[e.Key]++
	return true
}

// reserved is what is reserved on a node.
func (c *cluster) reserved(node string) (sum placement.Amount) {
	for h := range c.allHolders() {
		for _, r := range h.reserved {
			if r.node == node {
				sum = sum.Plus(r.amount)
			}
		}
	}
	return sum
}

// caller is a function that a test calls.
type caller struct {
	uid, namespace string
	shape          Shape
	// missing is how many instances it lacks in this tick.
	missing int
}

// pool tells whether it is a pool of spare instances, for which nothing is reserved.
func (f *caller) pool() bool { return f.namespace == "" }

// callers are some functions, of different shapes, and a pool.
func callers() []*caller {
	var all []*caller
	for i, cpu := range []int64{20, 30, 50, 60, 20} {
		all = append(all, &caller{uid: fmt.Sprint("f", i), namespace: fmt.Sprint("ns", i%2), shape: Shape{Requests: milli(cpu)}})
	}
	all[1].shape.Where, all[3].shape.Where = "first", "first"
	all[4].namespace = ""
	return all
}

// Whatever functions and peers want, and whatever becomes of evictions: nobody has more
// reserved than is missing, nothing is evicted twice or for itself, and no node is promised
// to more than it can hold once all that were evicted have gone. So room that is reserved
// is given to nobody else.
func TestNoRoomIsPromisedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, functions := newCluster(rapid.IntRange(1, 4).Draw(t, "nodes"), 100), callers()
		for range rapid.IntRange(1, 12).Draw(t, "ticks") {
			c.live(t)
			c.begin(time.Duration(rapid.IntRange(1, 40).Draw(t, "elapsed")) * testTick)
			order := rapid.Permutation(functions).Draw(t, "order")
			for _, f := range order {
				f.missing = rapid.IntRange(0, 3).Draw(t, "wanted")
				for f.missing > 0 && c.place(t, f) {
					f.missing--
				}
			}
			for _, f := range order {
				if !f.pool() {
					c.makeRoom(t, f)
				}
			}
			c.lend(t, Loan{"peer", functions[0].shape})
			for range rapid.IntRange(0, 3).Draw(t, "kicks") {
				c.place(t, rapid.SampledFrom(functions).Draw(t, "kicked"))
			}
			c.check(t)
		}
	})
}

// live lets instances go that were evicted, and calls come and end.
func (c *cluster) live(t *rapid.T) {
	for _, key := range keysOf(c) {
		switch in := c.instances[key]; {
		case in.leaving && rapid.Bool().Draw(t, "gone"):
			delete(c.instances, key)
		case !in.leaving && !in.Spare && in.busy != rapid.Bool().Draw(t, "busy"):
			in.busy, in.Since = !in.busy, c.now
		}
	}
}

// place orders an instance.
func (c *cluster) place(t *rapid.T, f *caller) (ok bool) {
	uid := f.uid
	if f.pool() {
		uid = ""
	}
	node, ok := c.Place(uid, f.shape, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "lot") })
	if ok {
		c.add(f.uid, f.namespace, node, f.shape.Requests.MilliCPU)
	}
	return ok
}

// makeRoom makes room for what a function lacks.
func (c *cluster) makeRoom(t *rapid.T, f *caller) {
	c.Trim(f.uid, f.missing)
	if f.missing > 0 {
		c.gather()
		waited := time.Duration(rapid.IntRange(0, 20).Draw(t, "waited")) * testTick
		c.MakeRoom(Want{
			UID: f.uid, Namespace: f.namespace, Shape: f.shape, Missing: f.missing, Waiting: 1, OldestWait: waited,
			Starved: !slices.ContainsFunc(keysOf(c), func(key Key) bool { return key.FunctionUID == f.uid }),
		}, c.now, c.evictor(t, f.uid, waited))
	}
	if n := c.Reserved(f.uid); n > f.missing {
		t.Fatalf("%d are reserved for %s, which lacks %d", n, f.uid, f.missing)
	}
}

// lend lends room to a peer.
func (c *cluster) lend(t *rapid.T, of Loan) {
	n := rapid.IntRange(0, 2).Draw(t, "asked")
	if !c.TrimLoans(map[Loan]int{of: n}) {
		return
	}
	c.gather()
	granted := c.Lend(of, n, time.Second, c.now, c.evictor(t, "", time.Second))
	if granted.Instances > n || granted.Instances < n && !granted.Exhausted {
		t.Fatalf("a peer asks for %d and gets %+v", n, granted)
	}
}

// evictor evicts some of the instances that it is asked for, which must be such as may go.
func (c *cluster) evictor(t *rapid.T, uid string, waited time.Duration) Evictor {
	return func(e Evict) bool {
		if in := c.instances[e.Key]; e.FunctionUID == uid || in.leaving || in.busy {
			t.Fatalf("%+v is to be evicted for %s", in, uid)
		}
		if e.For < testEvictAfter && e.For >= waited {
			t.Fatalf("an instance that is idle for %v is to be evicted for one that waits for %v", e.For, waited)
		}
		return rapid.Bool().Draw(t, "evicted") && c.evict(e)
	}
}

// check finds what was evicted twice, and nodes that are promised to too many.
func (c *cluster) check(t *rapid.T) {
	for key, times := range c.evicted {
		if times > 1 {
			t.Fatalf("%v was evicted %d times", key, times)
		}
	}
	for _, node := range c.nodes {
		staying, reserved := c.requested(node.Name, true), c.reserved(node.Name)
		if staying.Plus(reserved).MilliCPU > node.Allocatable.MilliCPU {
			t.Fatalf("%s: %d are requested and %d reserved, of %d", node.Name, staying.MilliCPU, reserved.MilliCPU, node.Allocatable.MilliCPU)
		}
	}
}

func keysOf(c *cluster) []Key {
	keys := make([]Key, 0, len(c.instances))
	for key := range c.instances {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.CID, b.CID) })
	return keys
}

func TestWhoIsEvictedForWhom(t *testing.T) {
	type idle struct {
		uid, namespace string
		cpu            int64
		idle           time.Duration
	}
	const long = time.Minute
	starved := Want{UID: "f", Namespace: "ns", Shape: Shape{Requests: milli(100)}, Missing: 1, Starved: true, Waiting: 1, OldestWait: time.Second / 2}
	slow := starved
	slow.Starved = false
	kept := starved
	kept.Waiting, kept.OldestWait = 0, 0
	greedy := slow
	greedy.Missing = 3
	tests := map[string]struct {
		want Want
		// idle are instances on one node, which is full of them.
		idle []idle
		busy map[string]bool
		// evicted are the functions whose instances are.
		evicted  []string
		reserved int
	}{
		"the longest idle":                   {starved, []idle{{"a", "x", 100, 2 * time.Second}, {"b", "y", 100, 3 * time.Second}}, nil, []string{"b"}, 1},
		"one that became idle after":         {starved, []idle{{"a", "x", 100, time.Second / 4}}, nil, []string{"a"}, 1},
		"none that had just become idle":     {starved, []idle{{"a", "x", 100, time.Second * 3 / 4}}, nil, nil, 0},
		"another one, if it is busy by now":  {starved, []idle{{"a", "x", 100, long}, {"b", "x", 100, 2 * time.Second}}, map[string]bool{"a": true}, []string{"b"}, 1},
		"none of its own":                    {starved, []idle{{"f", "ns", 100, long}}, nil, nil, 0},
		"as many as a large one needs":       {starved, []idle{{"a", "x", 60, long}, {"b", "x", 60, long}}, nil, []string{"a", "b"}, 1},
		"spare ones before all others":       {starved, []idle{{"a", "x", 100, long}, {"pool", "", 100, 0}}, nil, []string{"pool"}, 1},
		"spare ones as many as are missing":  {greedy, []idle{{"pool", "", 100, 0}, {"pool", "", 100, 0}, {"pool", "", 100, 0}, {"pool", "", 100, 0}}, nil, []string{"pool", "pool", "pool"}, 3},
		"others for one instance at a time":  {greedy, []idle{{"a", "ns", 100, 2 * long}, {"b", "ns", 100, long}}, nil, []string{"a"}, 1},
		"of two equals that of lower rank":   {starved, []idle{{"a", "x", 100, long}, {"b", "x", 100, long}}, nil, []string{"b"}, 1},
		"of its namespace, if it has some":   {slow, []idle{{"a", "x", 100, 2 * long}, {"b", "ns", 100, long}}, nil, []string{"b"}, 1},
		"of others, if its share is less":    {slow, []idle{{"a", "x", 100, long}, {"a", "x", 100, long}, {"f", "ns", 100, 0}, {"a", "x", 100, long}}, nil, []string{"a"}, 1},
		"a first one, if its share is less":  {kept, []idle{{"a", "x", 100, long}, {"a", "x", 100, long}}, nil, []string{"a"}, 1},
		"no first one beyond that":           {kept, []idle{{"a", "x", 100, long}, {"g", "ns", 100, 0}}, nil, nil, 0},
		"a first one of its namespace":       {kept, []idle{{"a", "x", 100, 2 * long}, {"b", "ns", 100, long}}, nil, []string{"b"}, 1},
		"of nobody, if it has an even share": {slow, []idle{{"a", "x", 100, long}, {"f", "ns", 100, 0}}, nil, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var size int64
			for _, in := range tt.idle {
				size += in.cpu
			}
			c := newCluster(1, size)
			for _, in := range tt.idle {
				c.add(in.uid, in.namespace, "n0", in.cpu).Since = c.now.Add(-in.idle)
			}
			c.begin(0)
			c.gather()
			var evicted []string
			c.MakeRoom(tt.want, c.now, func(e Evict) bool {
				if tt.busy[e.FunctionUID] {
					return false
				}
				evicted = append(evicted, e.FunctionUID)
				return c.evict(e)
			})
			slices.Sort(evicted)
			if !slices.Equal(evicted, tt.evicted) || c.Reserved("f") != tt.reserved {
				t.Errorf("evicted %v and reserved %d, want %v and %d", evicted, c.Reserved("f"), tt.evicted, tt.reserved)
			}
		})
	}
}

// A function waits for nothing once nothing has moved for as long as patience lasts, neither
// before that nor if it has an instance, or has some room reserved.
func TestAShortageIsUnplaceableOnceNothingHasMoved(t *testing.T) {
	c := newCluster(1, 100)
	busy := c.add("a", "x", "n0", 100)
	busy.busy = true
	want := Want{UID: "f", Namespace: "ns", Shape: Shape{Requests: milli(100)}, Missing: 1, Starved: true, Waiting: 1}
	begun := c.now
	unplaceable := func(w Want) bool {
		c.begin(testTick)
		c.gather()
		w.OldestWait = c.now.Sub(begun)
		return c.MakeRoom(w, c.now, c.evict)
	}
	for c.now.Sub(begun) < testPatience-testTick {
		if unplaceable(want) {
			t.Fatalf("no hope after %v", c.now.Sub(begun))
		}
	}
	if !unplaceable(want) {
		t.Fatal("it hopes for ever")
	}
	if shortages := c.Shortages(); len(shortages) != 1 || shortages[0].UID != "f" || shortages[0].Instances != 1 {
		t.Errorf("lacked: %+v", shortages)
	}
	slow := want
	slow.Starved = false
	if unplaceable(slow) || len(c.Shortages()) > 0 {
		t.Error("a function that is only slow has no hope")
	}
	busy.busy, busy.Since = false, c.now
	if unplaceable(want) || c.Reserved("f") != 1 {
		t.Error("room is coming free, and it has no hope")
	}
}

// Where only DaemonSets leave too little room, no eviction helps, and nothing that moves there gives
// hope.
func TestWhatFitsOnlyWithoutDaemonSetsCouldBeHeldNowhere(t *testing.T) {
	for name, tt := range map[string]struct {
		fixed     int64
		couldHold bool
	}{
		"beside them":       {50, true},
		"only without them": {51, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1, 100)
			c.nodes[0].Fixed = milli(tt.fixed)
			want := Want{UID: "f", Namespace: "ns", Shape: Shape{Requests: milli(50)}, Missing: 1, Starved: true, Waiting: 1, OldestWait: testPatience}
			unplaceable := false
			for tick := range int64(testPatience/testTick + 1) {
				busy := c.add("a", "x", "n0", 10+tick%2) // each tick moves something
				busy.busy = true
				c.begin(testTick)
				c.gather()
				unplaceable = c.MakeRoom(want, c.now, c.evict)
				delete(c.instances, busy.Key)
				want.Missing = 1 - c.Reserved("f")
			}
			if got := c.CouldHold(want.Shape); got != tt.couldHold || unplaceable == tt.couldHold {
				t.Errorf("a node could hold it: %v, and it is unplaceable: %v; want %v and %v", got, unplaceable, tt.couldHold, !tt.couldHold)
			}
		})
	}
}

// Room that is coming free, and whose beneficiary needs it no longer, is given to the next
// one that lacks some: nothing more is evicted.
func TestRoomThatIsNotNeededGoesToTheNext(t *testing.T) {
	c := newCluster(2, 100)
	c.add("a", "x", "n0", 100)
	c.add("b", "x", "n1", 100)
	for _, uid := range []string{"f", "g"} {
		c.begin(5 * time.Second)
		c.gather()
		c.MakeRoom(Want{UID: uid, Shape: Shape{Requests: milli(100)}, Missing: 1, Starved: true, Waiting: 1}, c.now, c.evict)
		if len(c.evicted) != 1 || c.Reserved(uid) != 1 {
			t.Fatalf("for %s: %d were evicted and %d reserved", uid, len(c.evicted), c.Reserved(uid))
		}
		c.Trim(uid, 0)
	}
}

// A reservation lasts until the room has come free, and some time more; it ends early if
// the function needs it no longer.
func TestAReservationLapses(t *testing.T) {
	c := newCluster(1, 100)
	in := c.add("a", "x", "n0", 100)
	c.begin(time.Minute)
	c.gather()
	c.MakeRoom(Want{UID: "f", Shape: Shape{Requests: milli(100)}, Missing: 1, Starved: true, Waiting: 1}, c.now, c.evict)
	expect := func(when string, want int) {
		t.Helper()
		if got := c.Reserved("f"); got != want {
			t.Errorf("%s: %d are reserved, want %d", when, got, want)
		}
	}
	c.begin(leaveTimeout)
	expect("it has not gone yet", 1)
	delete(c.instances, in.Key)
	c.begin(testTick)
	c.begin(reservationGrace)
	expect("it has gone", 1)
	if _, ok := c.Place("g", Shape{Requests: milli(100)}, func(int) int { return 0 }); ok {
		t.Error("another function gets the room")
	}
	c.begin(testTick)
	expect("nobody has used it", 0)
}
