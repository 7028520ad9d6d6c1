package queue

import (
	"container/heap"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// overload is a queue in virtual time whose instances each run a call for as long
// as execution, and whose callers give up after patience, whatever has become of
// their calls by then.
type overload struct {
	q                   *Queue
	now                 time.Time
	execution, patience time.Duration
	inOrder             bool // the queue must not change its order

	offered int
	ends    endHeap
	good    int // ended before the caller gave up
	wasted  int // ended after that
	expired int
	handed  []int // numbers of the tickets, in the order of their hand-out

	// tries is how often a caller calls who gives up each time; 0 means once.
	tries   int
	callers []caller // by the time at which they give up
	ended   map[invocation.ID]bool
}

// caller waits for one call.
type caller struct {
	id    invocation.ID
	until time.Time
	tries int // that are left
}

// end is the end of one execution.
type end struct {
	at       time.Time
	cid      invocation.CID
	id       invocation.ID
	deadline time.Time
}

type endHeap []end

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(end)) }
func (h *endHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newOverload(instances int, execution, patience time.Duration) *overload {
	o := &overload{
		q:   New(Limits{MaxWaiting: 100_000, ClaimGrace: time.Minute, CoolDown: time.Second}),
		now: start, execution: execution, patience: patience, ended: make(map[invocation.ID]bool),
	}
	for n := range instances {
		cid := invocation.Term{Epoch: 1}.CID(uint64(n))
		_ = o.q.Join(cid, 1)
		_ = o.q.Pull(cid, Pull{Credits: 1}, start)
	}
	return o
}

func (o *overload) offer() { o.try(o.tries - 1) }

func (o *overload) try(rest int) {
	var id invocation.ID
	binary.BigEndian.PutUint64(id[:], uint64(o.offered))
	_ = o.q.Offer(invocation.Ticket{ID: id, Arrived: o.now, Deadline: o.now.Add(o.patience)}, o.now)
	if rest > 0 {
		o.callers = append(o.callers, caller{id, o.now.Add(o.patience), rest})
	}
	o.offered++
	o.match()
}

// tryAgain lets callers who have given up call again at once.
func (o *overload) tryAgain() {
	for len(o.callers) > 0 && !o.callers[0].until.After(o.now) {
		c := o.callers[0]
		o.callers = o.callers[1:]
		if !o.ended[c.id] {
			o.try(c.tries - 1)
		}
	}
}

func (o *overload) match() {
	if o.inOrder {
		o.q.backlog.order = order{}
	}
	o.expired += o.q.Match(o.now, false, func(cid invocation.CID, t *invocation.Ticket, _ bool) {
		o.handed = append(o.handed, int(binary.BigEndian.Uint64(t.ID[:])))
		heap.Push(&o.ends, end{o.now.Add(o.execution), cid, t.ID, t.Deadline})
	})
}

// runTo lets time pass, in which instances end their calls and ask for more.
func (o *overload) runTo(until time.Time) {
	for len(o.ends) > 0 && !o.ends[0].at.After(until) {
		e := heap.Pop(&o.ends).(end)
		o.now = e.at
		if e.at.After(e.deadline) {
			o.wasted++
		} else {
			o.good++
			o.ended[e.id] = true
		}
		o.q.Done(e.cid, e.id)
		_ = o.q.Pull(e.cid, Pull{Credits: 1}, o.now)
		o.match()
	}
	o.now = until
	o.match()
}

// load offers calls evenly, for a time.
func (o *overload) load(perSecond int, length time.Duration) {
	begun, n := o.now, int(length.Seconds()*float64(perSecond))
	for i := range n {
		o.runTo(begun.Add(time.Duration(i) * length / time.Duration(n)))
		o.tryAgain()
		o.offer()
	}
	o.runTo(begun.Add(length))
}

// Callers that wait as long as their deadline says get nothing from a queue in
// order of arrival: it serves each of them just before the end, and every
// execution is for nobody.
func TestGoodputUnderOverload(t *testing.T) {
	const instances, capacity = 20, 200 // calls in a second
	for _, factor := range []int{2, 10} {
		goodput := func(inOrder bool) float64 {
			o := newOverload(instances, 100*time.Millisecond, 10*time.Second)
			o.inOrder = inOrder
			o.load(factor*capacity, 60*time.Second)
			before := o.good
			o.load(factor*capacity, 60*time.Second)
			return float64(o.good-before) / (60 * capacity)
		}
		ours, fifo := goodput(false), goodput(true)
		t.Logf("load=%dx goodput_newest_first=%.3f goodput_fifo=%.3f of capacity", factor, ours, fifo)
		if ours < 0.9 {
			t.Errorf("at %d times its capacity, %.0f %% of the capacity served callers in time, want 90 %%", factor, 100*ours)
		}
		if fifo > 0.1 {
			t.Errorf("at %d times its capacity, order of arrival serves %.0f %%: the comparison shows nothing", factor, 100*fifo)
		}
	}
}

// The whole run counts, with the time until the queue notices.
func TestGoodputFromTheBeginningOfAnOverload(t *testing.T) {
	o := newOverload(20, 100*time.Millisecond, 10*time.Second)
	o.load(400, 60*time.Second)
	share := float64(o.good) / (200 * 60)
	t.Logf("load=2x goodput_from_start=%.3f wasted=%d", share, o.wasted)
	if share < 0.9 {
		t.Errorf("%.0f %% of the capacity served callers in time, want 90 %%", 100*share)
	}
}

// A short burst sets off calls that are repeated three times each. Served in order of
// arrival they feed on themselves, though the load is long below the capacity again.
func TestRetryStormEnds(t *testing.T) {
	const capacity = 200
	goodput := func(inOrder bool) float64 {
		o := newOverload(20, 100*time.Millisecond, 5*time.Second)
		o.inOrder, o.tries = inOrder, 4
		o.load(capacity*9/10, 10*time.Second)
		o.load(capacity*10, 5*time.Second)
		o.load(capacity*9/10, 90*time.Second)
		before := o.good
		o.load(capacity*9/10, 30*time.Second)
		return float64(o.good-before) / (30 * capacity * 0.9)
	}
	ours, fifo := goodput(false), goodput(true)
	t.Logf("retries=3 goodput_newest_first=%.3f goodput_fifo=%.3f of the load, 90 s after the burst", ours, fifo)
	if ours < 0.99 {
		t.Errorf("90 s after the burst %.0f %% of the load are served in time, want all", 100*ours)
	}
	if fifo > 0.5 {
		t.Errorf("order of arrival serves %.0f %% of the load: the comparison shows nothing", 100*fifo)
	}
}

func TestNoTicketIsLostAndOrderReturns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instances := rapid.IntRange(1, 8).Draw(t, "instances")
		execution := time.Duration(rapid.IntRange(20, 500).Draw(t, "execution, ms")) * time.Millisecond
		patience := time.Duration(rapid.IntRange(2, 10).Draw(t, "patience, s")) * time.Second
		o := newOverload(instances, execution, patience)
		capacity := float64(instances) / execution.Seconds()
		for range rapid.IntRange(1, 3).Draw(t, "phases") {
			factor := rapid.Float64Range(0.2, 8).Draw(t, "load")
			o.load(max(1, int(factor*capacity)), 8*time.Second)
		}
		v := o.q.View(o.now)
		if len(o.handed)+o.expired+v.Waiting != o.offered || o.good+o.wasted+v.Out != len(o.handed) {
			t.Fatalf("%d were offered: %d handed out (%d ended), %d expired, %d wait, %d are out",
				o.offered, len(o.handed), o.good+o.wasted, o.expired, v.Waiting, v.Out)
		}
		// Every ticket of the overload is served or expires within patience.
		o.runTo(o.now.Add(patience + time.Second))
		if o.q.View(o.now).NewestFirst {
			t.Fatal("an empty queue is overloaded")
		}
		served := len(o.handed)
		o.load(max(1, int(capacity/2)), 3*time.Second)
		o.runTo(o.now.Add(patience))
		if !slices.IsSorted(o.handed[served:]) {
			t.Fatal("tickets of a queue that is short are not handed out in order of arrival")
		}
	})
}

func TestABurstDuringAColdStartIsServedInOrder(t *testing.T) {
	o := newOverload(0, 50*time.Millisecond, time.Minute)
	for range 200 {
		o.offer()
	}
	o.runTo(start.Add(40 * time.Second)) // two thirds of the patience
	for n := range 2 {
		cid := invocation.Term{Epoch: 1}.CID(uint64(n))
		_ = o.q.Join(cid, 1)
		_ = o.q.Pull(cid, Pull{Credits: 1}, o.now)
	}
	o.match()
	o.load(10, 10*time.Second)
	if !slices.IsSorted(o.handed) || len(o.handed) < 200 || o.wasted > 0 {
		t.Errorf("%d were handed out, in order: %v, %d too late", len(o.handed), slices.IsSorted(o.handed), o.wasted)
	}
}
