package scheduler

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// rooms is what one tick knows of the nodes. It looks at them once for all functions
// whose instances may run in the same places, and follows what is ordered since, so
// that no function costs a look at all nodes. Between two ticks it knows nothing of
// room that others take or leave, which the next tick sees. Only Run's goroutine uses
// it.
type rooms struct {
	// sites are by whereOf the functions.
	sites map[string]*site
	// charges are what was ordered since the tick began: a site applies those that
	// it has not seen when it is next asked for.
	charges []charge
	// stills is when something last moved where there could be room; see still.
	stills map[placement]time.Time
	moves  movement
	// holders are those that have reservations, leaving the instances that
	// were told to go so that others have room, and freed what these request of each
	// node.
	holders map[*holder]struct{}
	leaving map[provisioner.Key]leaver
	freed   map[string]nodepick.Amount
	// roster is what could make room; nil until it is asked for, and after each
	// reconcile, when it is made anew.
	roster *roster
}

// placement is what the room for an instance depends on.
type placement struct {
	requests nodepick.Amount
	// where is whereOf the function.
	where string
}

func newRooms() rooms {
	return rooms{
		sites: make(map[string]*site), stills: make(map[placement]time.Time),
		holders: make(map[*holder]struct{}), leaving: make(map[provisioner.Key]leaver), freed: make(map[string]nodepick.Amount),
	}
}

// site is the nodes on which the instances of some functions may run.
type site struct {
	*nodepick.Site
	applied int
	// looked says that this tick has looked for what moved.
	looked bool
}

// charge is an amount that is requested of a node, or given back if it is negative.
type charge struct {
	node   string
	amount nodepick.Amount
}

// whereOf says in a word on which nodes a function's instances may run; it is empty
// for a function that may run on every ordinary node. Namespaces have no bound of their
// own: they share what is ordered, and a quota of theirs is known to the API server only.
func whereOf(fn *v1alpha1.Function) string {
	if len(fn.Spec.NodeSelector) == 0 && len(fn.Spec.Tolerations) == 0 {
		return ""
	}
	// What was read from JSON can be written.
	text, _ := json.Marshal([]any{fn.Spec.NodeSelector, fn.Spec.Tolerations})
	return string(text)
}

// place is on which nodes the function's instances may run.
func (f *function) place() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.where
}

// forget makes all nodes be looked at again.
func (r *rooms) forget() {
	clear(r.sites)
	clear(r.stills)
	r.charges = r.charges[:0]
}

// request notes that an amount is requested of a node from now on.
func (r *rooms) request(node string, amount nodepick.Amount) {
	r.charges = append(r.charges, charge{node, amount})
}

// site is where the instances of a function may run, whose whereOf that is.
func (s *Scheduler) site(where string, fn *v1alpha1.Function) *site {
	r := &s.rooms
	at := r.sites[where]
	if at == nil {
		// What was ordered before is counted among the candidates already.
		at = &site{Site: nodepick.NewSite(s.deps.Instances.Candidates(fn)), applied: len(r.charges)}
		for h := range r.holders {
			for _, kept := range h.reserved {
				at.Request(kept.node, kept.amount)
			}
		}
		r.sites[where] = at
	}
	r.apply(at)
	return at
}

// apply lets a site know of what was ordered and reserved since it was last asked for.
func (r *rooms) apply(at *site) {
	for ; at.applied < len(r.charges); at.applied++ {
		c := r.charges[at.applied]
		at.Request(c.node, c.amount)
	}
}

// room is for how many more instances of a function there is room. It is that at the
// first look since the tick began: functions that decide in the same tick do not see
// what the others take, which the orders find out. A spare instance that the function
// can take has room already.
func (s *Scheduler) room(f *function, fn *v1alpha1.Function) int {
	return s.site(f.place(), fn).Room(s.deps.Instances.Requests(fn)) + s.spareRoom(f, fn)
}

// still is for how long nothing has moved on the nodes that could hold an instance of a
// function, were they empty. It is looked at once in a tick for all functions that
// request the same.
func (s *Scheduler) still(where string, fn *v1alpha1.Function) time.Duration {
	now, of := s.deps.Now(), placement{s.deps.Instances.Requests(fn), where}
	last, known := s.rooms.stills[of]
	if !known {
		for _, n := range s.site(where, fn).Nodes() {
			if n.Requested = (nodepick.Amount{}); n.Fits(of.requests) {
				last = later(last, s.rooms.moves.last(n.Name))
			}
		}
		s.rooms.stills[of] = last
	}
	return now.Sub(last)
}

// lookForMoves compares the nodes on which a function's instances may run with how they
// were before.
func (s *Scheduler) lookForMoves(where string, fn *v1alpha1.Function) {
	at := s.site(where, fn)
	if at.looked {
		return
	}
	at.looked = true
	since := s.deps.Now().Add(-s.config.Tick)
	for _, n := range at.Nodes() {
		s.rooms.moves.look(n, since)
	}
}

// orderAt orders up to n instances on nodes that have room, first of all where some is
// reserved for the function, which is nil for a pool; and says why they are fewer if
// that is for want of room.
func (s *Scheduler) orderAt(f *function, where string, fn *v1alpha1.Function, term invoke.Term, n int) (ordered provisioner.Ordered) {
	want := s.deps.Instances.Requests(fn)
	at := s.site(where, fn)
	ordered.Keys = s.deps.Instances.OrderOn(fn, term, n, func() (string, bool) {
		node, ok := s.reservedRoom(f, at, want)
		if !ok {
			node, ok = at.Pick(want, rand.IntN)
		}
		if !ok {
			ordered.NoRoom = at.Explain(want)
			return "", false
		}
		s.rooms.request(node, want)
		s.rooms.apply(at)
		return node, true
	})
	return ordered
}

// reservedRoom is a node on which room that is reserved for a function has come free. The
// reservation is given up.
func (s *Scheduler) reservedRoom(f *function, at *site, want nodepick.Amount) (node string, ok bool) {
	if f == nil {
		return "", false
	}
	for i, kept := range f.reserved {
		// What is reserved for the function does not stand in its own way.
		if at.Fits(kept.node, want, kept.amount) {
			s.rooms.release(&f.holder, i)
			s.rooms.apply(at)
			return kept.node, true
		}
	}
	return "", false
}
