package queue

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// play runs a tape of operations on a queue and on the slow model and fails at
// the first difference. Each operation is three bytes: what, which instance or
// ticket, and how much.
func play(t *testing.T, tape []byte) {
	limits := Limits{MaxWaiting: 6, ClaimGrace: 3 * time.Second, CoolDown: 5 * time.Second}
	q, w := New(limits), &model{limits: limits}
	now := time.Unix(1_000_000, 0)
	evict := EvictPolicy{Min: 1, IdleFor: 2 * time.Second}
	policy := LeavePolicy{Min: 1, IdleTimeout: 4 * time.Second, KeepLast: 9 * time.Second}

	idle := map[string]int{} // by the last reports

	for step := 0; len(tape) >= 3; step++ {
		op, which, much := tape[0]%17, tape[1]%12, tape[2]%8
		tape = tape[3:]
		cid := invocation.Term{Epoch: 1}.CID(uint64(which % 5))
		id := invocation.ID{which}
		var got, want any
		var pulled *Pull
		pull := func(p Pull) {
			pulled = &p
			got, want = q.Pull(cid, p, now) == nil, w.pull(cid, p, now)
		}
		switch op {
		case 0, 1:
			ticket := invocation.Ticket{
				ID:       id,
				Token:    invocation.Token{much / 6},
				Gateway:  string('A' + rune(which%3)),
				Arrived:  now.Add(-time.Duration(much%3) * time.Second),
				Deadline: now.Add(time.Duration(1+much) * time.Second),
			}
			got, want = q.Offer(ticket, now), w.offer(ticket, now)
		case 2:
			got, want = q.Cancel(id), w.cancel(id)
		case 3:
			got, want = q.Join(cid, 1+int(much%3)) == nil, w.join(cid, 1+int(much%3))
		case 4:
			want = w.calls(cid)
			w.leave(cid, now)
			got = q.Leave(cid, now)
		case 5:
			// It keeps its loans, as an agent does that has a credit back.
			p := Pull{Credits: int(much) - 1, Loans: loansOf(q, cid), NodeBusy: which%3 == 0, AwaitsCore: which%5 == 0}
			if p.AwaitsCore && much > 0 {
				p.Awaits = id
			}
			pull(p)
		case 6:
			q.Done(cid, id)
			w.done(cid, id)
		case 7:
			if much == 0 {
				got, want = q.Drain(cid), w.drain(cid)
			} else {
				idle := time.Duration(much) * 2 * time.Second
				answer, err := q.RequestLeave(cid, idle, policy)
				wantAnswer, known := w.requestLeave(cid, idle, policy)
				got, want = []any{answer, err == nil}, []any{wantAnswer, known}
			}
		case 8:
			now = now.Add(time.Duration(much) * time.Second)
		case 13:
			now = now.Add(time.Duration(much) * 30 * time.Millisecond)
		case 14:
			pull(Pull{
				Credits: int(which % 2), Loans: []Loan{{"A", int(much % 3)}, {"B", int(which % 3)}, {"A", int(which % 4)}, {"", 1}},
				Idle: time.Duration(which%2) * time.Duration(much) * time.Second,
			})
		case 15: // it keeps the place of a call that it has run
			if e := q.entries.held(cid, id); e != nil && e.lent {
				p := Pull{Loans: append(loansOf(q, cid), Loan{e.ticket.Gateway, 1})}
				q.Done(cid, id)
				w.done(cid, id)
				pull(p)
			}
		case 16: // one of its calls waits for a core, mostly of a busy node
			pull(Pull{Credits: int(much % 2), Loans: loansOf(q, cid), NodeBusy: much > 0, AwaitsCore: true, Awaits: w.heldBy(cid, int(which))})
		case 9:
			if much == 0 {
				var ids []invocation.ID
				for _, ticket := range q.Clear() {
					ids = append(ids, ticket.ID)
				}
				got, want = ids, w.clear()
			}
		case 11, 12:
			q.Requeue(cid, id, now)
			w.requeue(cid, id, now)
		case 10:
			got, want = q.Evict(cid, now, evict), w.evict(cid, now, evict)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" {
			t.Fatalf("step %d, operation %d: answer (-want +got):\n%s", step, op, diff)
		}

		var out []handed
		lend := which%5 > 0
		expired := q.Match(now, lend, func(cid invocation.CID, ticket *invocation.Ticket, lent bool) {
			out = append(out, handed{cid, ticket.ID, lent})
		})
		wantOut, wantExpired := w.match(now, lend)
		if diff := cmp.Diff(wantOut, out, cmp.AllowUnexported(handed{})); diff != "" {
			t.Fatalf("step %d, operation %d: match (-want +got):\n%s", step, op, diff)
		}
		if expired != wantExpired {
			t.Fatalf("step %d, operation %d: %d expired, want %d", step, op, expired, wantExpired)
		}
		idle[string('A'+rune(which%3))] = int(much % 3)
		recalls := recallsOf(q, now, idle, much == 7)
		if diff := cmp.Diff(w.recalls(now, idle, much == 7), recalls); diff != "" {
			t.Fatalf("step %d, operation %d: recalls (-want +got):\n%s", step, op, diff)
		}
		if pulled != nil {
			late, wantLate := bindLate(q, cid, *pulled, now, lend, idle), w.bindLate(cid, *pulled, now, lend, idle)
			if diff := cmp.Diff(wantLate, late, cmp.AllowUnexported(bound{}, handed{})); diff != "" {
				t.Fatalf("step %d, operation %d: late binding (-want +got):\n%s", step, op, diff)
			}
		}
		if diff := cmp.Diff(w.view(now), q.View(now)); diff != "" {
			t.Fatalf("step %d, operation %d: view (-want +got):\n%s", step, op, diff)
		}
		if diff := cmp.Diff(w.longestIdle(now, evict), q.LongestIdle(now, evict)); diff != "" {
			t.Fatalf("step %d, operation %d: idle instances (-want +got):\n%s", step, op, diff)
		}
		if got, want := q.Waiting(), len(w.waiting()); got != want {
			t.Fatalf("step %d, operation %d: %d wait, want %d", step, op, got, want)
		}
		checkInvariants(t, q)
	}
}

// loansOf are the loans of a joined instance, in order of the gateways' addresses.
func loansOf(q *Queue, cid invocation.CID) (loans []Loan) {
	if in := q.instances.joined[cid]; in != nil {
		for _, l := range in.loans {
			if l.calls > 0 {
				loans = append(loans, Loan{Gateway: l.gateway, Calls: l.calls})
			}
		}
	}
	return loans
}

// recallsOf are the recalls that a queue decides on, or those of all loans, place by place.
func recallsOf(q *Queue, now time.Time, idle map[string]int, all bool) (recalls []Recall) {
	if all {
		q.RecallAll(now, placesTo(&recalls))
	} else {
		q.Recalls(now, func(gateway string) int { return idle[gateway] }, placesTo(&recalls))
	}
	return recalls
}

// placesTo appends recalls place by place.
func placesTo(recalls *[]Recall) func(Recall) {
	return func(r Recall) {
		for range r.Calls {
			*recalls = append(*recalls, Recall{CID: r.CID, Gateway: r.Gateway, Calls: 1, Term: r.Term})
		}
	}
}

// bindLate is what follows a pull: which tickets are handed out once more, and which places recalled.
func bindLate(q *Queue, cid invocation.CID, p Pull, now time.Time, lend bool, idle map[string]int) (b bound) {
	deliver := func(cid invocation.CID, ticket *invocation.Ticket, lent bool) {
		b.out = append(b.out, handed{cid, ticket.ID, lent})
	}
	q.BindLate(cid, p, now, lend, deliver, func(gateway string) int { return idle[gateway] }, placesTo(&b.recalls))
	return b
}

// checkInvariants checks what the package promises of any queue after Match.
func checkInvariants(t *testing.T, q *Queue) {
	t.Helper()
	waiting := checkList(t, &q.backlog.main)
	for _, l := range q.backlog.perGateway {
		waiting += checkList(t, &l.ticketList)
		for e := q.backlog.main.first; e != nil; e = e.next {
			if e.ticket.Gateway == l.gateway {
				t.Fatal("a ticket of a gateway with a cool-down waits among the others")
			}
		}
	}
	each := 0
	q.EachWaiting(func(invocation.Ticket) { each++ })
	if each != waiting {
		t.Fatalf("%d tickets wait, %d were seen", waiting, each)
	}
	if uint64(waiting) != q.backlog.arrived-q.backlog.departed {
		t.Fatalf("%d tickets wait, the counters say %d", waiting, q.backlog.arrived-q.backlog.departed)
	}
	if q.backlog.main.len > 0 && len(q.instances.pollers) > 0 {
		t.Fatal("a ticket that every instance may be handed waits while one polls")
	}
	var all totals
	lent, waits := gatewayCounts{}, gatewayCounts{}
	q.EachWaiting(func(t invocation.Ticket) { waits.add(t.Gateway, 1) })
	for cid, in := range q.instances.joined {
		if !in.draining {
			all.adjust(in, 1)
			all.credits += in.credits
			all.lent += in.lent
		}
		sum, handed := 0, 0
		for _, l := range in.loans {
			sum += l.calls
			handed += l.tickets
			lent.add(l.gateway, l.calls)
			if l.calls < 0 || l.tickets < 0 || l.recalled < 0 || l.recalled > l.calls || l.returning < 0 {
				t.Fatalf("%s has the loan %+v", cid, l)
			}
		}
		for _, e := range in.out {
			if e.lent {
				handed--
			}
		}
		if sum != in.lent || handed != 0 {
			t.Fatalf("%s lends %d, and its loans come to %d; it has %d more hand-outs than its loans say", cid, in.lent, sum, -handed)
		}
		if (in.index >= 0) != (in.credits > 0) {
			t.Fatalf("%s polls for %d and has heap index %d", cid, in.credits, in.index)
		}
		if in.credits+len(in.out)+in.lent > in.capacity {
			t.Fatalf("%s polls for %d, holds %d and lends %d of %d", cid, in.credits, len(in.out), in.lent, in.capacity)
		}
		if full := in.credits+in.lent == in.capacity; !in.idleSince.IsZero() && !full || in.idleSince.IsZero() && full && in.lent == 0 {
			t.Fatalf("%s polls for %d and lends %d of %d, and is idle since %v", cid, in.credits, in.lent, in.capacity, in.idleSince)
		}
		if in.draining && in.credits+in.lent > 0 {
			t.Fatalf("%s is draining and polls or lends", cid)
		}
		for place, e := range in.out {
			if q.entries[e.ticket.ID] != e || e.holder != in || e.outIndex != place {
				t.Fatalf("%s holds a ticket that the queue does not know as its own", cid)
			}
		}
	}
	if all != q.instances.totals {
		t.Fatalf("the instances come to %+v, the queue says %+v", all, q.instances.totals)
	}
	if !lent.equal(q.instances.lent) || !waits.equal(q.backlog.byGateway) {
		t.Fatalf("by gateway: %v lent, the queue says %v; %v wait, the queue says %v", lent, q.instances.lent, waits, q.backlog.byGateway)
	}
}

func (c gatewayCounts) equal(other gatewayCounts) bool {
	for _, one := range c {
		if other.of(one.gateway) != one.n {
			return false
		}
	}
	return len(c) == len(other)
}

// checkList checks one list of tickets that wait, and counts them.
func checkList(t *testing.T, l *ticketList) (waiting int) {
	t.Helper()
	var on [maxAbove + 1]int // how many are on each level
	for e := l.first; e != nil; e = e.next {
		waiting++
		if e.holder != nil {
			t.Fatal("a waiting ticket has a holder")
		}
		for level := range len(e.above) + 1 {
			on[level]++
		}
	}
	for level := range len(l.above) + 1 {
		n := 0
		for e := l.level(level).first; e != nil; e = e.linkAt(level).next {
			n++
			next := e.linkAt(level).next
			if next != nil && (next.before(e) || next.linkAt(level).prev != e) {
				t.Fatalf("tickets are out of order on level %d", level)
			}
			if next == nil && l.level(level).last != e {
				t.Fatalf("level %d ends elsewhere", level)
			}
		}
		if n != on[level] {
			t.Fatalf("level %d has %d tickets, want %d", level, n, on[level])
		}
	}
	if waiting != l.len {
		t.Fatalf("%d tickets wait, the list says %d", waiting, l.len)
	}
	return waiting
}

func FuzzQueueAgainstModel(f *testing.F) {
	f.Add([]byte{3, 0, 0, 5, 0, 3, 0, 1, 2, 0, 2, 2, 6, 0, 0, 4, 0, 0, 8, 0, 5, 0, 1, 0})
	f.Fuzz(play)
}

func TestRandomTapesAgreeWithModel(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 17))
		tape := make([]byte, 600)
		for i := range tape {
			tape[i] = byte(r.UintN(256))
		}
		play(t, tape)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// busyOps are operations of a queue that is under load and whose instances lose
// sight of gateways.
var busyOps = []byte{9, 0, 0, 0, 0, 0, 0, 3, 3, 5, 5, 5, 5, 11, 11, 11, 6, 8, 8, 4, 2}

// lendingOps are operations of a queue whose instances have loans.
var lendingOps = []byte{0, 0, 0, 0, 0, 0, 3, 3, 5, 5, 5, 6, 13, 13, 13, 14, 15, 15, 15, 15, 8, 4, 7, 10, 11}

// lateOps are operations of a queue whose instances wait for cores.
var lateOps = []byte{0, 0, 0, 0, 0, 3, 3, 5, 5, 5, 5, 5, 14, 14, 15, 15, 16, 16, 16, 16, 16, 6, 13, 13, 8, 11, 2}

func TestTapesOfAQueueOnBusyNodesAgreeWithModel(t *testing.T) { playTapes(t, lateOps, 20) }

func TestTapesOfABusyQueueAgreeWithModel(t *testing.T) { playTapes(t, busyOps, 18) }

func TestTapesOfAQueueWithLoansAgreeWithModel(t *testing.T) { playTapes(t, lendingOps, 19) }

// playTapes plays 400 tapes of some operations.
func playTapes(t *testing.T, ops []byte, stream uint64) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, stream))
		tape := make([]byte, 0, 900)
		for range 300 {
			tape = append(tape, ops[r.UintN(uint(len(ops)))], byte(r.UintN(12)), byte(r.UintN(8)))
		}
		play(t, tape)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
