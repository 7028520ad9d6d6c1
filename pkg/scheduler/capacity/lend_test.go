package capacity

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// peer is a scheduler with nodes of its own, which are full of idle instances of its
// functions.
type peer struct {
	*cluster
	id       string
	borrower Borrower
	lender   Lender
	// shortages is for how many instances of its functions it finds no room.
	shortages int
}

var lent = Shape{Requests: milli(100)}

func newPeer(n, idle, shortages int) *peer {
	p := &peer{cluster: newCluster(idle, 100), id: fmt.Sprint("s", n), shortages: shortages}
	p.borrower = NewBorrower(p.id)
	for i := range idle {
		p.add(fmt.Sprint("f", i), "ns", fmt.Sprint("n", i), 100)
	}
	return p
}

// tick makes room for others, and says what is lacked.
func (p *peer) tick() {
	p.begin(testTick)
	for key, in := range p.instances {
		if in.leaving {
			delete(p.instances, key)
		}
	}
	if p.shortages > 0 {
		p.borrower.SetShortages([]Shortage{{Shape: lent, UID: "uid-" + p.id, Instances: p.shortages, Waited: time.Second}})
	}
	loans, granted := make(map[Loan]int), make(map[string]map[string]Grant)
	asked := p.lender.Requests(p.now)
	for _, a := range asked {
		loans[Loan{a.Peer, lent}] = a.Instances
	}
	if p.TrimLoans(loans) {
		p.gather()
	}
	for _, a := range asked {
		granted[a.Peer] = map[string]Grant{a.UID: p.Lend(Loan{a.Peer, lent}, a.Instances, a.Waited, p.now, p.evict)}
	}
	p.lender.SetGrants(granted)
}

// heartbeat asks another one for room, and hears what it has made.
func (p *peer) heartbeat(to *peer) {
	heard := to.lender.Receive(p.id, p.borrower.RequestsTo(to.id, p.now), to.now)
	granted := make(map[Shape]Grant)
	for _, m := range heard {
		granted[lent] = m
	}
	p.borrower.RecordGrants(to.id, granted, p.now)
}

// Of several schedulers some lack room and others have idle instances: all that is lacked
// is made, if it can be had, and no instance more is evicted, in whatever order they talk.
// What is made stays reserved for as long as it is asked for.
func TestPeersLendWhatIsLackedAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peers := make([]*peer, rapid.IntRange(2, 3).Draw(t, "schedulers"))
		borrowers := rapid.IntRange(1, len(peers)-1).Draw(t, "borrowers")
		lacked, idle := 0, 0
		for n := range peers {
			if n < borrowers {
				peers[n] = newPeer(n, 0, rapid.IntRange(1, 4).Draw(t, "lacks"))
				lacked += peers[n].shortages
			} else {
				peers[n] = newPeer(n, rapid.IntRange(0, 5).Draw(t, "idle"), 0)
				idle += len(peers[n].instances)
			}
		}
		evicted := func() (n int) {
			for _, p := range peers {
				n += len(p.evicted)
			}
			return n
		}
		for begun := peers[0].now; peers[0].now.Sub(begun) < 20*time.Second; {
			for range int(ownership.HeartbeatInterval / testTick) {
				for _, p := range rapid.Permutation(peers).Draw(t, "ticks") {
					p.tick()
				}
			}
			for _, from := range rapid.Permutation(peers).Draw(t, "heartbeats") {
				for _, to := range peers {
					if from != to {
						from.heartbeat(to)
					}
				}
			}
			if evicted() > lacked {
				t.Fatalf("%d were evicted, and %d are lacked", evicted(), lacked)
			}
		}
		if want := min(lacked, idle); evicted() != want {
			t.Fatalf("%d were evicted, want %d: %d are lacked, and %d idle", evicted(), want, lacked, idle)
		}
		reserved := 0
		for _, p := range peers {
			for _, h := range p.Planner.lent {
				reserved += len(h.reserved)
			}
		}
		if want := min(lacked, idle); reserved != want {
			t.Fatalf("%d are reserved, want %d", reserved, want)
		}
	})
}

// A borrower that asks for no more, or falls silent, has nothing reserved any more.
func TestALoanEndsWithItsBorrower(t *testing.T) {
	for name, end := range map[string]func(from, to *peer){
		"it has what it lacks": func(from, to *peer) {
			from.shortages = 0
			from.borrower.SetShortages(nil)
			from.heartbeat(to)
		},
		"it is silent": func(_, to *peer) { to.now = to.now.Add(PeerSilent) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := newPeer(0, 0, 1), newPeer(1, 2, 0)
			for range 20 {
				from.tick()
				to.tick()
				from.heartbeat(to)
			}
			if len(to.Planner.lent) != 1 {
				t.Fatalf("%d loans, want one", len(to.Planner.lent))
			}
			end(from, to)
			to.tick()
			if len(to.Planner.lent) != 0 {
				t.Errorf("the loan has not ended")
			}
		})
	}
}

// Peers are believed up to a bound.
func TestTheNumberOfBorrowersIsBounded(t *testing.T) {
	var l Lender
	now := time.Unix(1000, 0)
	for n := range 2 * maxBorrowers {
		l.Receive(fmt.Sprint(n), []Shortage{{UID: "f", Instances: 1}}, now)
	}
	if n := len(l.Requests(now)); n != maxBorrowers {
		t.Errorf("%d are believed, want %d", n, maxBorrowers)
	}
}
