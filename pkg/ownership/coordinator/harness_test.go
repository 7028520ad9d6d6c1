package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	ttl    = 10 * time.Second
	settle = 500 * time.Millisecond
	step   = 50 * time.Millisecond
)

// harness is a Store with schedulers, in steps of virtual time.
type harness struct {
	t     testing.TB
	now   time.Time
	store *Store
	all   []*node
	// away says that nobody reaches the store.
	away bool
	// moves counts how often each slot's key came to name another owner.
	moves  [ownership.Slots]int
	owners [ownership.Slots]string
	// gapless makes every moment without a key a failure.
	gapless bool
	// forked says that the store has another history for some of the nodes.
	forked bool
	// checked is the revision that was checked last.
	checked int64
	// news says that a node heard something since the last check.
	news bool
}

// node drives a Core as its shell does.
type node struct {
	*Core
	id   string
	busy func(ownership.Slot) bool
	// reported is what others say of owners.
	reported map[ownership.Slot]ownership.Owner
	// lag is how late news come; cut says that it does not reach the store.
	lag     time.Duration
	cut     bool
	ended   bool
	read    int64 // revision up to which changes were told
	renewAt time.Time
	auditAt time.Time
	inbox   []mail
	before  [ownership.Slots]bool // what it held before
}

type mail struct {
	at      time.Time
	entries []Entry
}

func newHarness(t testing.TB) *harness {
	return &harness{t: t, now: time.Unix(1e9, 0), store: NewStore()}
}

func (w *harness) start(id string) *node {
	n := &node{id: id}
	n.Core = New(Config{Self: ownership.Member{ID: id, Addr: id + ":1"}, TTL: ttl, Settle: settle},
		func(s ownership.Slot) bool { return n.busy != nil && n.busy(s) },
		func(s ownership.Slot) (ownership.Owner, bool) { owner, known := n.reported[s]; return owner, known })
	w.all = append(w.all, n)
	return n
}

// run lets time pass.
func (w *harness) run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.step()
	}
}

func (w *harness) step() {
	w.now = w.now.Add(step)
	if !w.away {
		w.store.Expire(w.now)
	}
	for _, n := range w.all {
		if !n.ended {
			w.stepNode(n)
		}
	}
	// Nobody changes its mind without news.
	if w.news {
		w.check()
		w.news = false
	}
}

func (w *harness) stepNode(n *node) {
	if w.away || n.cut {
		n.Interrupted()
		n.inbox = nil
		return
	}
	w.renew(n)
	if !n.Following() || w.now.After(n.auditAt) {
		n.auditAt = w.now.Add(4 * time.Second)
		l := w.store.List()
		n.Listed(w.now, l)
		w.news = true
		n.read, n.inbox = l.Revision, nil
	}
	w.deliver(n)
	for {
		txn, due := n.Next(w.now)
		if !due {
			break
		}
		n.Answered(w.now, txn, w.store.Commit(txn))
		w.check()
	}
}

func (w *harness) renew(n *node) {
	if lease := n.Lease(); lease != 0 {
		if w.now.Before(n.renewAt) {
			return
		}
		if w.store.Renew(w.now, lease) {
			n.Renewed(w.now)
			n.renewAt = w.now.Add(ttl / 3)
			return
		}
	}
	n.Leased(w.now, w.store.Grant(w.now, ttl))
	w.news = true
	n.renewAt = w.now.Add(ttl / 3)
}

// deliver tells a node what changed, when its time has come.
func (w *harness) deliver(n *node) {
	if w.store.Revision() < n.read {
		n.Interrupted()
		n.Listed(w.now, w.store.List())
		n.read, n.inbox = w.store.Revision(), nil
		return
	}
	changes, err := w.store.Since(n.read)
	if err != nil {
		n.Interrupted()
		return
	}
	if len(changes) > 0 {
		n.inbox = append(n.inbox, mail{at: w.now.Add(n.lag), entries: slices.Clone(changes)})
		n.read = w.store.Revision()
	}
	for len(n.inbox) > 0 && !w.now.Before(n.inbox[0].at) {
		n.Seen(w.now, n.inbox[0].entries...)
		w.news = true
		n.inbox = n.inbox[1:]
	}
}

// stop hands over and ends a node as its shell does.
func (w *harness) stop(n *node) {
	n.Listed(w.now, w.store.List())
	n.Drain()
	for {
		txn, due := n.Next(w.now)
		if !due {
			break
		}
		n.Answered(w.now, txn, w.store.Commit(txn))
		w.check()
	}
	n.ended = true
	n.ReleaseAll()
	w.store.End(n.Lease())
	w.check()
}

// check looks at what must hold at any moment.
func (w *harness) check() {
	for i := range ownership.Slots {
		slot := ownership.Slot(i)
		w.checkHolders(slot)
		if w.checked == w.store.Revision() {
			continue
		}
		e := w.store.Get(Key{Slot: slot})
		if w.gapless && e.Absent {
			w.t.Fatalf("slot %d has no key", slot)
		}
		if !e.Absent && w.owners[i] != e.Value.ID {
			w.owners[i] = e.Value.ID
			w.moves[i]++
		}
	}
	w.checked = w.store.Revision()
}

func (w *harness) checkHolders(slot ownership.Slot) {
	for i, n := range w.all {
		epoch := n.Epoch(slot)
		if r := &n.view.slots[slot]; n.before[slot] && epoch == 0 && !n.ended && (!r.exists || r.lease == 0) {
			w.t.Fatalf("%s let go of slot %d, which nobody else has", n.id, slot)
		}
		n.before[slot] = epoch != 0
		for _, other := range w.all[:i] {
			if epoch != 0 && other.Epoch(slot) == epoch && !w.forked {
				w.t.Fatalf("slot %d is held by %s and %s in epoch %d", slot, other.id, n.id, epoch)
			}
		}
	}
}

// resetMoves counts moves from now on.
func (w *harness) resetMoves() { w.moves = [ownership.Slots]int{} }

func (w *harness) moved() int {
	sum := 0
	for _, n := range w.moves {
		sum += n
	}
	return sum
}

// wantRest fails the test unless every slot's key and holder are the first of
// Ranked among the nodes that live, and all views agree.
func (w *harness) wantRest() {
	w.t.Helper()
	var members []ownership.Member
	byID := make(map[string]*node)
	for _, n := range w.all {
		if !n.ended {
			members = append(members, ownership.Member{ID: n.id, Addr: n.id + ":1"})
			byID[n.id] = n
		}
	}
	for i := range ownership.Slots {
		slot := ownership.Slot(i)
		want := ownership.Ranked(slot, members)[0].ID
		e := w.store.Get(Key{Slot: slot})
		if e.Absent || e.Value.ID != want || byID[want].Epoch(slot) != uint64(e.Revision) {
			w.t.Fatalf("slot %d: key %+v, want %s, which holds epoch %d", slot, e, want, byID[want].Epoch(slot))
		}
		for id, n := range byID {
			if owner, current := n.View().Owner(slot); !current || owner.ID != want {
				w.t.Fatalf("slot %d: %s believes that %+v has it, want %s", slot, id, owner, want)
			}
		}
	}
}

func (w *harness) holds() string {
	var out []string
	for _, n := range w.all {
		out = append(out, fmt.Sprintf("%s:%d", n.id, n.Holds()))
	}
	return fmt.Sprint(out)
}
