package queue

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// reoffered are tickets as a new owner is offered them: in no order at all.
func reoffered(n int) []invocation.Ticket {
	tickets := make([]invocation.Ticket, n)
	for i := range tickets {
		tickets[i] = invocation.Ticket{Arrived: start.Add(time.Duration(i) * time.Millisecond), Deadline: start.Add(time.Hour)}
		binary.BigEndian.PutUint32(tickets[i].ID[:], uint32(i))
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(n, func(i, j int) { tickets[i], tickets[j] = tickets[j], tickets[i] })
	return tickets
}

func queueOf(tb testing.TB, tickets []invocation.Ticket) *Queue {
	q := New(Limits{MaxWaiting: len(tickets), ClaimGrace: time.Second})
	for _, t := range tickets {
		if err := q.Offer(t, start); err != nil {
			tb.Fatal(err)
		}
	}
	return q
}

// A search goes at most along one gap of each level. So no gap may be long, and no
// more than one gap may be left on the highest level.
func TestM5APlaceIsFoundInAFewStepsAmongTenThousandTickets(t *testing.T) {
	const longest = 128
	q := queueOf(t, reoffered(10_000))
	checkInvariants(t, q)
	l := &q.backlog.main
	for level := range len(l.above) + 1 {
		gap := 0
		for e := l.level(level).first; e != nil; e = e.linkAt(level).next {
			if gap++; level < len(e.above) {
				gap = 0
			}
			if gap > longest {
				t.Fatalf("level %d has a gap of more than %d tickets", level, longest)
			}
		}
	}
	if waiting := q.Clear(); !slices.IsSortedFunc(waiting, func(a, b invocation.Ticket) int { return a.Arrived.Compare(b.Arrived) }) {
		t.Error("the tickets are not in order of arrival")
	}
}

// A ticket that comes back finds its place on each level.
func TestTicketsOfALongQueueComeAndGoInAnyOrder(t *testing.T) {
	tickets := reoffered(500)
	q := queueOf(t, tickets)
	r := rand.New(rand.NewPCG(3, 4))
	for range 2_000 {
		one := tickets[r.IntN(len(tickets))]
		if !q.Cancel(one.ID) {
			_ = q.Offer(one, start)
		}
	}
	checkInvariants(t, q)
}

// BenchmarkReofferInAnyOrder is how long it takes until 10,000 tickets that are
// offered in no order are in theirs.
func BenchmarkReofferInAnyOrder(b *testing.B) {
	tickets := reoffered(10_000)
	b.ReportAllocs()
	for b.Loop() {
		queueOf(b, tickets)
	}
}
