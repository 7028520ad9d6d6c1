package core

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// traffic is what the functions of one scheduler go through: a call each 10 µs, for one
// function after the other, each of which has an instance that pulls, and a tick each
// 100 ms.
type traffic struct {
	functions []*Function
	cid       invocation.CID
	now       time.Time
	offers    uint64
	handedOut int
	// The events are used again, as the scheduler does.
	offered   Offered
	pulled    Pulled
	done      [1]Done
	ticked    Ticked
	concluded Applied
}

const (
	trafficFunctions = 1_000
	trafficPace      = 10 * time.Microsecond
)

func newTraffic() *traffic {
	tr := &traffic{cid: "1-1", now: start}
	config := &Config{Tick: 100 * time.Millisecond, MaxQueued: 1_000, ClaimGrace: 2 * time.Second, Executions: 10}
	for range trafficFunctions {
		f := New(config, testSpec(func(s *Spec) { s.Decide = autoscaler.Horizon }))
		f.Step(tr.now, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
		f.Step(tr.now, Joined{CID: tr.cid, Capacity: 1})
		f.Step(tr.now, &Pulled{CID: tr.cid, Wants: true, Credits: 1})
		tr.functions = append(tr.functions, f)
	}
	return tr
}

// step is not inlined, so that events are passed as the scheduler passes them.
//
//go:noinline
func (tr *traffic) step(f *Function, e Event) []Effect { return f.Step(tr.now, e) }

// offer is one call from its offer to the pull after it, and the ticks that are due.
func (tr *traffic) offer() {
	f := tr.functions[tr.offers%trafficFunctions]
	tr.offers++
	tr.now = tr.now.Add(trafficPace)
	t := invocation.Ticket{Gateway: "gateway-0:8443", Arrived: tr.now, Deadline: tr.now.Add(time.Minute)}
	binary.BigEndian.PutUint64(t.ID[:], tr.offers)
	tr.offered.Ticket = t
	for _, e := range tr.step(f, &tr.offered) {
		if e, is := e.(*HandOut); is && e.Ticket.ID == t.ID {
			tr.handedOut++
		}
	}
	tr.done[0] = Done{ID: t.ID, Execution: 5 * time.Millisecond}
	tr.pulled = Pulled{CID: tr.cid, Wants: true, Credits: 1, Done: tr.done[:]}
	tr.step(f, &tr.pulled)
	if tr.offers%uint64(100*time.Millisecond/trafficPace) == 0 {
		tr.tick()
	}
}

func (tr *traffic) tick() {
	tr.ticked.Observed = Observed{Created: 1, Room: -1}
	for _, f := range tr.functions {
		if d, decided := AnswerOf[*Decided](tr.step(f, &tr.ticked)); decided {
			tr.concluded.Decided = d
			tr.step(f, &tr.concluded)
		}
	}
}

// BenchmarkOffersOfAThousandFunctions is how many offers a second go through the cores of
// one scheduler. It prints offers_per_second= and allocations_per_offer=.
func BenchmarkOffersOfAThousandFunctions(b *testing.B) {
	tr := newTraffic()
	b.ReportAllocs()
	for b.Loop() {
		tr.offer()
	}
	if tr.handedOut != b.N {
		b.Errorf("%d of %d calls were handed out", tr.handedOut, b.N)
	}
	perSecond := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(perSecond, "offers/s")
	b.Logf("offers_per_second=%.0f", perSecond)
	b.Logf("allocations_per_offer=%.0f", testing.AllocsPerRun(trafficFunctions, tr.offer))
}

// What an offer allocates: the ticket's entry in the queue, and now and then links between
// entries. Events and hand-outs are used again.
func TestAnOfferAllocatesOneValue(t *testing.T) {
	tr := newTraffic()
	for range 15 * trafficFunctions { // what grows has its size
		tr.offer()
	}
	const most = 1
	if got := testing.AllocsPerRun(5*trafficFunctions, tr.offer); got > most {
		t.Errorf("an offer makes %.0f allocations, want at most %d", got, most)
	}
}
