package scheduler

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// notServed is the term of a slot that is not served here.
var notServed = core.Unserved

// syncOwnership tells in which term the function's slot is served here, if it is. When that has
// changed, the function's instances are taken over or left first.
func (s *host) syncOwnership(f *function) (invocation.Term, bool) {
	term := s.term(f.slot)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.syncOwnershipLocked(f, term)
}

// syncOwnershipLocked is serves for who holds the function's lock, and has just read the term. It
// reads it again if it is another one: somebody may have been quicker with a later one.
func (s *host) syncOwnershipLocked(f *function, term invocation.Term) (invocation.Term, bool) {
	if term != f.core.Term() {
		term = s.term(f.slot)
	}
	if term != f.core.Term() {
		e := core.OwnershipChanged{Term: term}
		if term != core.Unserved {
			e.Restored = s.restoreEstimates(f.fn)
		}
		s.stepLocked(f, e)
	}
	return term, term != core.Unserved
}

// served tells whether the function is served here as far as its core knows.
func (f *function) served() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Term() != core.Unserved
}

// slotTable tells which slots are served here, and who serves the others.
type slotTable struct {
	id string
	// standby is the scheduler's name in terms in which it stands in.
	standby   string
	ownership Ownership
	router    Router // nil if there is no other scheduler

	mu sync.Mutex
	// serving says that others may count on this scheduler.
	serving bool
}

// term is that in which a slot is served here; none if it is not. Whoever holds a
// slot serves it until it hears of a later owner. Whoever does not, stands in
// while the owner is silent, if it is the one to own the slot next.
func (s *slotTable) term(slot ownership.Slot) invocation.Term {
	epoch, held := s.ownership.Epoch(slot)
	if s.router == nil {
		return invocation.Term{Epoch: epoch}
	}
	to, acting, known := s.router.Route(slot)
	switch {
	case held && (to.ID == s.id || to.Epoch <= epoch):
		return invocation.Term{Epoch: epoch}
	case !held && known && acting && to.ID == s.id && s.isServing():
		return invocation.Term{Epoch: to.Epoch, Standby: s.standby}
	}
	return notServed
}

// standbyBytes is how much of an id's hash tells stand-ins apart: of a hundred schedulers
// two have the same name in less than one of 10^10 clusters.
const standbyBytes = 6

// standbyName is what a scheduler calls itself in a term in which it stands in. Two
// stand-ins of one name would give their instances the same names.
func standbyName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:standbyBytes])
}

// Resync compares every function with the slots that are served. Run does so from
// time to time; who has just given slots back need not wait for that.
func (s *Scheduler) Resync() {
	for _, f := range s.all() {
		s.syncOwnership(f)
	}
}

// countSlotsEvery is after how many audits slots are counted though nothing was heard
// of them: to ask for all costs more than an audit does.
const countSlotsEvery = 40

// countSlots counts which slots have come and gone since the last time.
func (s *Scheduler) countSlots() {
	s.metrics.countSlotMoves(s.slotEpochs.update(func(slot ownership.Slot) uint64 {
		if term := s.term(slot); term.Standby == "" {
			return term.Epoch
		}
		return 0
	}))
}

// slotEpochs is in which epoch each slot is owned; 0 if it is not.
type slotEpochs [ownership.Slots]uint64

// update tells how many slots were gained and lost. One that is owned in another epoch
// than before was lost and gained in between.
func (t *slotEpochs) update(epoch func(ownership.Slot) uint64) (gained, lost int) {
	for slot, before := range t {
		now := epoch(ownership.Slot(slot))
		if now == before {
			continue
		}
		if before != 0 {
			lost++
		}
		if now != 0 {
			gained++
		}
		t[slot] = now
	}
	return gained, lost
}

// Busy tells whether calls wait, or instances are being created, in a slot: to
// give it away now would be noticed.
func (s *Scheduler) Busy(slot ownership.Slot) bool { return s.functions.busy(slot) }

// Serving says whether others may count on this scheduler: not before it has
// learnt what there is, and not once it is to stop.
func (s *slotTable) Serving(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = yes
}

func (s *slotTable) isServing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving
}

// owner is who serves a slot, as far as is known; its epoch is 0 if that is
// nobody else.
func (s *slotTable) owner(slot ownership.Slot) ownership.Owner {
	if s.router == nil {
		return ownership.Owner{}
	}
	to, _, _ := s.router.Route(slot)
	if to.ID == s.id {
		return ownership.Owner{}
	}
	return to
}
