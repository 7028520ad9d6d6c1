package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// lateBinding is a queue with instances, some on busy nodes.
type lateBinding struct {
	*Queue
	t    *testing.T
	now  time.Time
	said []string
}

func newLateBinding(t *testing.T, busy ...bool) *lateBinding {
	l := &lateBinding{Queue: New(Limits{MaxWaiting: 9, ClaimGrace: 2 * time.Second, CoolDown: time.Second}), t: t, now: time.Unix(1000, 0)}
	for i, b := range busy {
		cid := invocation.CID(fmt.Sprint(i))
		if err := l.Join(cid, 1); err != nil {
			t.Fatal(err)
		}
		l.pull(cid, Pull{NodeBusy: b})
	}
	return l
}

func (l *lateBinding) pass(d time.Duration) { l.now = l.now.Add(d) }

func (l *lateBinding) pull(cid invocation.CID, p Pull) {
	l.t.Helper()
	if err := l.Pull(cid, p, l.now); err != nil {
		l.t.Fatal(err)
	}
	l.Match(l.now, true, l.deliver)
}

func (l *lateBinding) offer(id byte, token byte) {
	l.t.Helper()
	ticket := invocation.Ticket{ID: invocation.ID{id}, Token: invocation.Token{token}, Gateway: "g", Arrived: l.now, Deadline: l.now.Add(time.Minute)}
	if err := l.Offer(ticket, l.now); err != nil {
		l.t.Fatal(err)
	}
	l.Match(l.now, true, l.deliver)
}

// bindLate is what follows when an instance says which of its calls waits for a core: that of a ticket, or
// with id 0 one by a loan. Each gateway has some idle places.
func (l *lateBinding) bindLate(cid invocation.CID, id byte, idle int) (recalled []Recall) {
	p := Pull{AwaitsCore: true}
	if id > 0 {
		p.Awaits = invocation.ID{id}
	}
	l.BindLate(cid, p, l.now, true, l.deliver, func(string) int { return idle }, func(r Recall) { recalled = append(recalled, r) })
	return recalled
}

func (l *lateBinding) rebind(cid invocation.CID, id byte) { l.bindLate(cid, id, 0) }

func (l *lateBinding) deliver(to invocation.CID, t *invocation.Ticket, _ bool) {
	l.said = append(l.said, fmt.Sprintf("%s gets %d", to, t.ID[0]))
}

// expect looks at what was handed out since the last time.
func (l *lateBinding) expect(want ...string) {
	l.t.Helper()
	if !slices.Equal(l.said, want) {
		l.t.Errorf("%q, want %q", l.said, want)
	}
	l.said = nil
}

func TestATicketThatWaitsForACoreGoesToOneCalmNodeToo(t *testing.T) {
	l := newLateBinding(t, true, true, false, false)
	l.pull("0", Pull{Credits: 1, NodeBusy: true})
	l.offer(1, 1)
	l.expect("0 gets 1")
	l.rebind("0", 1)
	l.expect() // no other instance polls
	l.pull("1", Pull{Credits: 1, NodeBusy: true})
	l.rebind("0", 1)
	l.expect() // nor on a calm node
	l.pull("2", Pull{Credits: 1})
	l.pull("3", Pull{Credits: 1})
	l.rebind("1", 1)
	l.expect() // it does not hold the ticket
	l.rebind("0", 1)
	l.expect("2 gets 1")
	l.rebind("0", 1)
	l.rebind("2", 1)
	l.expect() // no third one
	if v := l.View(l.now); v.Out != 1 || v.Waiting != 0 || v.Busy != 1 {
		t.Errorf("there is one ticket, and the queue has %+v", v)
	}
	// The first one has a core sooner, and the claim of the second is refused.
	l.Done("0", invocation.ID{1})
	if v := l.View(l.now); v.Out != 1 {
		t.Errorf("what the first holder says counts: %+v", v)
	}
	l.Done("2", invocation.ID{1})
	if v := l.View(l.now); v.Out != 0 || v.Waiting != 0 {
		t.Errorf("the ticket is still there: %+v", v)
	}
}

func TestAReleasedTicketMayBeCopiedAgain(t *testing.T) {
	l := newLateBinding(t, true, false, false)
	l.pull("0", Pull{Credits: 1, NodeBusy: true})
	l.offer(1, 1)
	l.pull("1", Pull{Credits: 1})
	l.rebind("0", 1)
	l.expect("0 gets 1", "1 gets 1")
	l.pull("2", Pull{Credits: 1})
	l.offer(1, 2) // with another token
	l.expect("2 gets 1")
	l.pull("2", Pull{NodeBusy: true})
	l.pull("1", Pull{})
	l.Done("1", invocation.ID{1}) // of the old token
	l.pull("1", Pull{Credits: 1})
	l.rebind("2", 1)
	l.expect("1 gets 1")
}

// A gateway offers a ticket again each second until it is claimed. While its holder waits for a core, it
// is one call at one instance, or at two, and no more.
func TestATicketThatWaitsLongForACoreIsNotHandedOutAgain(t *testing.T) {
	awaits := Pull{NodeBusy: true, AwaitsCore: true, Awaits: invocation.ID{1}}
	l := newLateBinding(t, true, true, false)
	l.pull("0", Pull{Credits: 1, NodeBusy: true})
	l.offer(1, 1)
	l.pull("0", awaits)
	l.expect("0 gets 1")
	l.pull("1", Pull{Credits: 1, NodeBusy: true})
	l.pass(3 * time.Second)
	l.offer(1, 1)
	l.expect()
	if v := l.View(l.now); v.Waiting != 0 || v.Out != 1 {
		t.Errorf("there is one call, and the queue has %+v", v)
	}
	// The second holder waits, too.
	l.pull("2", Pull{Credits: 1})
	l.rebind("0", 1)
	l.expect("2 gets 1")
	l.pull("2", awaits)
	l.pass(3 * time.Second)
	l.offer(1, 1)
	l.expect()
	// It has a core, and its claim is on its way when the gateway offers the ticket again.
	l.pull("2", Pull{})
	l.offer(1, 1)
	l.expect()
	l.pass(2 * time.Second) // its claim is lost
	l.offer(1, 1)
	l.expect("1 gets 1")
}

// What waits for a core is not claimed, so the next instance gets it at once when its holder leaves.
func TestAHolderLeavesWhoseTicketWaitsForACore(t *testing.T) {
	l := newLateBinding(t, true, true)
	l.pull("0", Pull{Credits: 1, NodeBusy: true})
	l.offer(1, 1)
	l.pull("0", Pull{NodeBusy: true, AwaitsCore: true, Awaits: invocation.ID{1}})
	l.pull("1", Pull{Credits: 1, NodeBusy: true})
	l.pass(3 * time.Second)
	l.Leave("0", l.now)
	l.Match(l.now, true, l.deliver)
	l.expect("0 gets 1", "1 gets 1")
}

func TestCancelledAndExpiredTicketsAreNotCopied(t *testing.T) {
	for name, over := range map[string]func(*lateBinding){
		"it is cancelled": func(l *lateBinding) { l.Cancel(invocation.ID{1}) },
		"it has expired":  func(l *lateBinding) { l.now = l.now.Add(time.Hour) },
	} {
		l := newLateBinding(t, true, false)
		l.pull("0", Pull{Credits: 1, NodeBusy: true})
		l.offer(1, 1)
		l.pull("1", Pull{Credits: 1})
		over(l)
		l.rebind("0", 1)
		if want := []string{"0 gets 1"}; !slices.Equal(l.said, want) {
			t.Errorf("%s: %q, want %q", name, l.said, want)
		}
	}
}

func TestALoanIsRecalledWhereItsCallWaitsForACore(t *testing.T) {
	for name, tc := range map[string]struct {
		busy []bool
		want []Recall
	}{
		"another node is calm": {[]bool{true, false}, []Recall{{CID: "0", Gateway: "g", Calls: 1}}},
		"all nodes are busy":   {[]bool{true, true}, nil},
		"there is no other":    {[]bool{true}, nil},
	} {
		l := newLateBinding(t, tc.busy...)
		l.pull("0", Pull{NodeBusy: true, AwaitsCore: true, Loans: []Loan{{"g", 1}}})
		var got []Recall
		for range 2 {
			got = append(got, l.bindLate("0", 0, 0)...)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	l := newLateBinding(t, true, false)
	l.pull("0", Pull{Loans: []Loan{{"g", 1}}})
	if recalled := l.bindLate("0", 0, 0); len(recalled) > 0 {
		t.Errorf("of a calm node: %v", recalled)
	}
	l.Drain("0")
	l.pull("1", Pull{NodeBusy: true})
	if l.instances.totals.hasCalm() {
		t.Error("an instance that drains counts as one of a calm node")
	}
}

// An agent says again and again that its call waits, and a place that was recalled for it comes back later.
func TestARecalledPlaceIsStillForItsTicketWhenThatIsSaidAgain(t *testing.T) {
	l := newLateBinding(t, true, false, false)
	l.pull("1", Pull{Loans: []Loan{{"h", 1}}})
	l.pull("2", Pull{Loans: []Loan{{"h", 1}}})
	l.pull("0", Pull{Credits: 1, NodeBusy: true})
	l.offer(1, 1)
	l.expect("0 gets 1")
	awaits := Pull{NodeBusy: true, AwaitsCore: true, Awaits: invocation.ID{1}}
	var recalled []Recall
	for range 2 {
		l.pass(50 * time.Millisecond)
		l.pull("0", awaits)
		recalled = append(recalled, l.bindLate("0", 1, 2)...)
	}
	if len(recalled) != 1 {
		t.Fatalf("%v are recalled for one ticket", recalled)
	}
	of := recalled[0].CID
	l.pull(of, Pull{Credits: 1})
	l.BindLate(of, Pull{}, l.now, true, l.deliver, nil, nil)
	l.expect(string(of) + " gets 1")
}

// Another instance on a calm node polls first, but may not have the ticket: it could not reach the
// ticket's gateway.
func TestARecalledPlaceIsStillForItsTicketAfterAnotherInstanceHasPolled(t *testing.T) {
	l := newLateBinding(t, true, false, false)
	l.pull("2", Pull{Credits: 1})
	l.offer(1, 1)
	l.pull("0", Pull{Credits: 1, NodeBusy: true})
	l.Requeue("2", invocation.ID{1}, l.now)
	l.pull("0", Pull{Credits: 1, NodeBusy: true})
	l.expect("2 gets 1", "0 gets 1")
	l.pull("1", Pull{Loans: []Loan{{"h", 1}}})
	l.pull("0", Pull{NodeBusy: true, AwaitsCore: true, Awaits: invocation.ID{1}})
	if recalled := l.bindLate("0", 1, 1); len(recalled) != 1 {
		t.Fatalf("%v are recalled for one ticket", recalled)
	}
	for _, cid := range []invocation.CID{"2", "1"} {
		l.pull(cid, Pull{Credits: 1})
		l.BindLate(cid, Pull{}, l.now, true, l.deliver, nil, nil)
	}
	l.expect("1 gets 1")
}

// Its node has become calm, and its agent says so before the call has its core.
func TestATicketDoesNotGoToItsHolderAgain(t *testing.T) {
	l := newLateBinding(t)
	if err := l.Join("0", 2); err != nil {
		t.Fatal(err)
	}
	l.pull("0", Pull{Credits: 2})
	l.offer(1, 1)
	l.expect("0 gets 1")
	l.rebind("0", 1)
	l.expect()
}
