package callorder

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// FuzzStep plays any history, whose bytes say what happens next, and compares what the core
// does with what doc.go promises.
func FuzzStep(f *testing.F) {
	f.Add([]byte{}, byte(0))
	f.Add([]byte("\x00\x10\x20\x30\x40\x50\x60\x70\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0"), byte(5))
	f.Fuzz(func(t *testing.T, history []byte, variant byte) { play(t, history, variant) })
}

func TestPromisesHoldInManyHistories(t *testing.T) {
	var sum seen
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		history := make([]byte, r.IntN(900))
		for i := range history {
			history[i] = byte(r.Uint32())
		}
		s := play(t, history, byte(r.Uint32()))
		sum.grants += s.grants
		sum.lowered += s.lowered
		sum.waited += s.waited
		sum.unasked += s.unasked
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if sum.grants < 50_000 || sum.lowered < 10_000 || sum.waited < 4_500 || sum.unasked < 300 {
		t.Errorf("chance has left out too much: %+v", sum)
	}
}

// seen counts what happened, so that a test can see that it did.
type seen struct{ grants, lowered, waited, unasked int }

// twin knows what an observer of the node knows: who asked, who computes, and who is low.
type twin struct {
	joined, asked, computing, low map[InstanceID]bool
	usage                         map[InstanceID]time.Duration
	ask                           map[InstanceID]uint64
	// occupied is what the last Occupied said.
	occupied int
	seen     seen
}

// classOf gives every instance a class for good.
func classOf(id InstanceID) Class {
	return []Class{Standard, Standard, Standard, Standard, Standard, LatencyCritical, Batch}[id%7]
}

func paramsOf(variant byte) Params {
	p := DefaultParams(1 + int(variant)%3)
	p.Order = Orders()[int(variant/3)%len(Orders())]
	p.Slice = []Slice{{Rule: SliceOff}, {SliceFixed, 10 * ms}, {Rule: SliceSFS}, {Rule: SliceP95}, {Rule: SliceAuto}}[int(variant/21)%5]
	p.Preempt = variant%2 == 0
	p.Bypass = float64(variant % 4)
	p.Outlived = int(variant/5) % p.Cores
	p.OutlivedAge = time.Duration(variant%5) * 10 * ms
	p.Unasked.Start = p.Unasked.Burst
	return p
}

func play(t *testing.T, history []byte, variant byte) seen {
	core, err := New(paramsOf(variant))
	if err != nil {
		t.Fatal(err)
	}
	other, _ := New(paramsOf(variant))
	w := twin{map[InstanceID]bool{}, map[InstanceID]bool{}, map[InstanceID]bool{}, map[InstanceID]bool{}, map[InstanceID]time.Duration{}, map[InstanceID]uint64{}, 0, seen{}}
	now, busy := time.Duration(0), false
	for len(history) >= 2 {
		e := w.event(history[0], history[1], &busy)
		now += time.Duration(history[1]%8) * ms
		history = history[2:]
		effects := core.Step(now, e)
		if again := other.Step(now, e); !reflect.DeepEqual(effects, again) {
			t.Fatalf("%T%+v: %v, and with the same history %v", e, e, effects, again)
		}
		w.apply(t, effects)
		w.check(t, core, busy, e)
		if busy && len(core.lifted) == 0 && slices.ContainsFunc(core.demoted, func(i *instance) bool {
			return core.params.OutlivedAge > 0 && now-i.asked >= core.params.OutlivedAge
		}) {
			t.Error("an old call that has outlived its slice is low, and none of them computes")
		}
		if t.Failed() {
			t.Fatalf("after %T%+v: %v", e, e, effects)
		}
	}
	// When all have left, nothing is left behind.
	for id := range w.joined {
		w.forget(id)
		w.apply(t, core.Step(now, Left{Instance: id}))
	}
	core.Step(now+time.Hour, Joined{Instance: 99, Namespace: "new"})
	if got := core.Counts(); got != (Counts{GaveBack: got.GaveBack}) || len(w.low) > 0 || len(core.namespaces) != 1 {
		t.Errorf("left behind: %+v, low %v, namespaces %v", got, w.low, core.namespaces)
	}
	return w.seen
}

// event makes an event that a correct node sends, and sometimes one that it does not.
func (w *twin) event(what, which byte, busy *bool) Event {
	id := InstanceID(which % 7)
	w.usage[id] += time.Duration(which/7) * ms / 4
	usage := w.usage[id]
	switch what % 14 {
	case 0, 1:
		w.joined[id] = true
		return Joined{
			Instance: id, Namespace: fmt.Sprint("n", id%2), Function: fmt.Sprint("f", id%3),
			Class: classOf(id), Slice: time.Duration(id%2) * 5 * ms, MustAsk: mustAsk(id),
		}
	case 2, 3, 4:
		if w.joined[id] {
			w.ask[id]++
			delete(w.computing, id)
			w.asked[id] = true
		}
		return Asked{Instance: id, Ask: w.ask[id], Waited: time.Duration(what) * ms, Usage: usage}
	case 5, 6, 7:
		delete(w.computing, id)
		delete(w.asked, id)
		return Ended{Instance: id, Usage: usage}
	case 8:
		w.forget(id)
		return Left{Instance: id}
	case 9:
		ask := w.ask[id] - uint64(what/12%2)
		if ask == w.ask[id] {
			delete(w.asked, id)
			delete(w.computing, id)
		}
		return GaveUp{Instance: id, Ask: ask, Usage: usage}
	case 10:
		if which > 200 {
			*busy = !*busy
		}
		if which < 30 {
			return CoresChanged{Cores: int(which % 4)}
		}
		w.occupied = 0
		return ModeChanged{Busy: *busy}
	case 11:
		if what > 230 {
			return Exempted{Instance: id}
		}
		w.occupied = int(which % 4)
		return Occupied{Cores: w.occupied}
	case 12:
		if w.joined[id] && classOf(id) == Standard && !w.asked[id] {
			w.computing[id] = true
		}
		return Running{Instance: id, For: time.Duration(what) * time.Second, Usage: usage}
	default:
		return Sampled{Instance: id, Usage: usage}
	}
}

// mustAsk says which instances must ask.
func mustAsk(id InstanceID) bool { return id%2 == 1 && classOf(id) == Standard }

func (w *twin) forget(id InstanceID) {
	delete(w.joined, id)
	delete(w.asked, id)
	delete(w.computing, id)
	delete(w.usage, id)
	delete(w.ask, id)
}

// apply notes effects, and says which ones nobody asked for.
func (w *twin) apply(t *testing.T, effects []Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case Grant:
			w.seen.grants++
			if e.Waited > 0 {
				w.seen.waited++
			}
			if !w.asked[e.Instance] || e.Ask != w.ask[e.Instance] || e.Waited < 0 {
				t.Errorf("nobody asked for %+v", e)
			}
			delete(w.asked, e.Instance)
			if classOf(e.Instance) == Standard {
				w.computing[e.Instance] = true
			} else if e.Waited > 0 {
				t.Errorf("a call of class %v waited: %+v", classOf(e.Instance), e)
			}
		case SetBand:
			if w.low[e.Instance] == e.Low {
				t.Errorf("%+v changes nothing", e)
			}
			delete(w.low, e.Instance)
			if e.Low {
				if classOf(e.Instance) == LatencyCritical {
					t.Errorf("%+v is latency-critical", e)
				}
				w.low[e.Instance] = true
				w.seen.lowered++
				if e.Why == WhyUnasked {
					w.seen.unasked++
					if w.computing[e.Instance] {
						t.Errorf("%d has a ticket, and is low for not asking", e.Instance)
					}
				}
			}
		}
	}
}

// check holds the core's state against the promises.
func (w *twin) check(t *testing.T, c *Core, busy bool, e Event) {
	counts := c.Counts()
	for id := range w.joined {
		if classOf(id) == Batch && !w.low[id] {
			t.Errorf("%d is a batch instance and normal", id)
		}
	}
	if !busy && counts.Waiting > 0 {
		t.Errorf("%d wait on a calm node", counts.Waiting)
	}
	tickets := max(1, c.params.Cores-w.occupied)
	if busy && counts.Waiting > 0 && (counts.Holding < tickets-min(c.params.Outlived, counts.Demoted, tickets-1) || c.params.Order == None) {
		t.Errorf("%d wait beside a free ticket: %+v", counts.Waiting, counts)
	}
	if counts.Waiting != len(w.asked) {
		t.Errorf("%d wait, want %v", counts.Waiting, w.asked)
	}
	if got := counts.Holding + counts.Preempted + counts.Blocked + counts.Demoted; got != len(w.computing) {
		t.Errorf("%+v compute, want %v", counts, w.computing)
	}
	for id := range w.low {
		_, calmed := e.(ModeChanged)
		if classOf(id) == Standard && (!w.computing[id] && !busy || calmed && !busy) {
			t.Errorf("%d is low and computes nothing, or the node is calm", id)
		}
	}
	for _, id := range c.AppendWatched(nil) {
		if !w.computing[id] {
			t.Errorf("%d is watched and computes nothing", id)
		}
		if w.low[id] {
			t.Errorf("%d has a ticket or computes beside those who have, and is low", id)
		}
	}
	if got := c.AppendLow(nil); len(got) != len(w.low) {
		t.Errorf("low %v, want %v", got, w.low)
	}
	if got := c.AppendWaiting(nil); len(got) != counts.Waiting {
		t.Errorf("waiting %v, want %d", got, counts.Waiting)
	}
}

func TestNoMoreCallsHoldTicketsThanThereAreCores(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := paramsOf(byte(r.Uint32()))
		if p.Order == None {
			continue
		}
		core, _ := New(p)
		core.Step(0, ModeChanged{Busy: true})
		w := twin{map[InstanceID]bool{}, map[InstanceID]bool{}, map[InstanceID]bool{}, map[InstanceID]bool{}, map[InstanceID]time.Duration{}, map[InstanceID]uint64{}, 0, seen{}}
		busy := true
		for k := range 300 {
			what := byte(r.IntN(256))
			// An order that does not preempt interrupts no call that runs already, though it has no ticket.
			if what%14 == 10 || what%14 == 12 && !p.preempts() {
				continue
			}
			core.Step(time.Duration(k)*ms, w.event(what, byte(r.IntN(256)), &busy))
			if counts := core.Counts(); counts.Holding > p.Cores {
				t.Fatalf("seed %d: %+v with %d cores", seed, counts, p.Cores)
			}
		}
	}
}

// waitingCall is a call in the full queue of TestOneHeadPerFunctionIsEnough.
type waitingCall struct {
	function int
	arrived  time.Duration
	key      float64
	number   int
}

// TestOneHeadPerFunctionIsEnough lets calls wait at their functions' schedulers, which show the
// node only the oldest call of each function, and compares the sequence in which calls begin
// with one queue of all calls. Sizes are known and exact. Fair-Choice is left out: it counts
// arrivals at the node, and so counts later arrivals later.
func TestOneHeadPerFunctionIsEnough(t *testing.T) {
	for _, order := range []Order{FIFO, SEPT, EECT, SERPT} {
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 11))
			sizes := make([]time.Duration, 2+r.IntN(6))
			for i := range sizes {
				sizes[i] = time.Duration(1+r.IntN(50)) * ms
			}
			calls := make([]waitingCall, 60)
			at := time.Duration(0)
			for k := range calls {
				at += time.Duration(r.IntN(20_000)) * time.Microsecond
				calls[k] = waitingCall{function: r.IntN(len(sizes)), arrived: at, number: k}
			}
			if heads, all := byHeads(t, order, sizes, calls), byFullQueue(order, sizes, calls); !slices.Equal(heads, all) {
				t.Fatalf("%s, seed %d: heads %v, all %v", order, seed, heads, all)
			}
		}
	}
}

func byFullQueue(order Order, sizes []time.Duration, calls []waitingCall) []int {
	var line []waitingCall
	var began []int
	now := time.Duration(0)
	for len(calls) > 0 || len(line) > 0 {
		if len(line) == 0 {
			now = max(now, calls[0].arrived)
		}
		for len(calls) > 0 && calls[0].arrived <= now {
			x := calls[0]
			size, arrived := float64(sizes[x.function]), float64(x.arrived)
			x.key = map[Order]float64{FIFO: arrived, SEPT: size, EECT: arrived + size, SERPT: size + 0.03*arrived}[order]
			line = append(line, x)
			calls = calls[1:]
		}
		first := 0
		for k, x := range line {
			if f := line[first]; x.key < f.key || x.key == f.key && x.number < f.number {
				first = k
			}
		}
		x := line[first]
		line = slices.Delete(line, first, first+1)
		began = append(began, x.number)
		now += sizes[x.function]
	}
	return began
}

func byHeads(t *testing.T, order Order, sizes []time.Duration, calls []waitingCall) []int {
	p := DefaultParams(1)
	p.Order, p.Preempt, p.Slice = order, false, Slice{Rule: SliceOff}
	core, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	// Each function has two instances: while one computes, the other shows the next call.
	for f, size := range sizes {
		for side := range InstanceID(2) {
			core.Step(0, Joined{Instance: InstanceID(2*f) + side, Function: fmt.Sprint(f)})
		}
		core.Step(0, Asked{Instance: InstanceID(2 * f)})
		core.Step(0, Ended{Instance: InstanceID(2 * f), Usage: size})
	}
	core.Step(0, ModeChanged{Busy: true})
	queues := make([][]waitingCall, len(sizes))
	usage := make([]time.Duration, 2*len(sizes))
	for f, size := range sizes {
		usage[2*f] = size
	}
	shown := map[InstanceID]waitingCall{}
	computing := -1
	var began []int
	granted := func(effects []Effect) {
		for _, e := range effects {
			if g, ok := e.(Grant); ok {
				began = append(began, shown[g.Instance].number)
				computing = int(g.Instance)
			}
		}
	}
	show := func(now time.Duration, f int) {
		for side := range InstanceID(2) {
			id := InstanceID(2*f) + side
			if int(id) == computing {
				continue
			}
			if _, waits := shown[id]; waits || len(queues[f]) == 0 {
				return
			}
			shown[id] = queues[f][0]
			queues[f] = queues[f][1:]
			granted(core.Step(now, Asked{Instance: id, Waited: now - shown[id].arrived, Usage: usage[id]}))
			return
		}
	}
	now := time.Duration(0)
	for total := len(calls); len(began) < total || computing >= 0; {
		var next time.Duration
		if computing >= 0 {
			next = now + sizes[computing/2]
		}
		for len(calls) > 0 && (computing < 0 || calls[0].arrived <= next) {
			x := calls[0]
			calls = calls[1:]
			queues[x.function] = append(queues[x.function], x)
			wasIdle := computing < 0
			show(x.arrived, x.function)
			if wasIdle {
				next = x.arrived + sizes[computing/2]
			}
		}
		now = next
		id := InstanceID(computing)
		usage[id] += sizes[id/2]
		delete(shown, id)
		computing = -1
		granted(core.Step(now, Ended{Instance: id, Usage: usage[id]}))
		for f := range queues {
			show(now, f)
		}
	}
	return began
}

func TestAgingBoundsTheWaitOfALongCall(t *testing.T) {
	p := DefaultParams(1)
	p.Preempt, p.Slice = false, Slice{Rule: SliceOff}
	core, _ := New(p)
	const long, short = time.Second, 10 * ms
	core.Step(0, Joined{Instance: 1, Function: "long"})
	core.Step(0, Joined{Instance: 2, Function: "short"})
	core.Step(0, Joined{Instance: 3, Function: "short"})
	core.Step(0, Asked{Instance: 1})
	core.Step(0, Ended{Instance: 1, Usage: long})
	usage := map[InstanceID]time.Duration{1: long}
	core.Step(0, ModeChanged{Busy: true})
	core.Step(0, Asked{Instance: 2})
	core.Step(0, Asked{Instance: 1, Usage: long})
	// Short calls keep the core busy for ever: one of them always waits.
	now, turn := time.Duration(0), InstanceID(2)
	for now < 100*time.Second {
		core.Step(now, Asked{Instance: 5 - turn, Usage: usage[5-turn]})
		now += short
		usage[turn] += short
		for _, e := range core.Step(now, Ended{Instance: turn, Usage: usage[turn]}) {
			if g, ok := e.(Grant); ok && g.Instance == 1 {
				if bound := time.Duration(float64(long) / p.Aging); now > bound {
					t.Fatalf("began after %s, beyond E/aging = %s", now, bound)
				}
				return
			}
		}
		turn = 5 - turn
	}
	t.Fatal("the long call never began")
}
