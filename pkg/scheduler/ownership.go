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

// syncOwnership returns the term in which the function's slot is served here, and whether it
// is. If the term has changed, the function's instances are adopted or released first.
func (s *host) syncOwnership(f *function) (invocation.Term, bool) {
	term := s.term(f.slot)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.syncOwnershipLocked(f, term)
}

// syncOwnershipLocked is syncOwnership for a caller that holds the function's lock, and has
// just read the term. It reads a changed term again: another goroutine may have stored a
// later one.
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

// served reports whether the function is served here as far as its core knows.
func (f *function) served() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Term() != core.Unserved
}

// slotTable says which slots are served here, and which scheduler serves the others.
type slotTable struct {
	id string
	// standby is the scheduler's name in terms in which it is the acting owner.
	standby   string
	ownership Ownership
	router    Router // nil if there is no other scheduler

	mu sync.Mutex
	// serving says that others may count on this scheduler.
	serving bool
}

// term is that in which a slot is served here; notServed if it is not. A scheduler that
// holds a slot serves it until it learns of a later owner. The standby serves it while
// the owner is silent.
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

// standbyBytes is how much of an id's hash distinguishes standbys: of a hundred schedulers
// two have the same name in less than one of 10^10 clusters.
const standbyBytes = 6

// standbyName is a scheduler's name in a term in which it is the acting owner. Two standbys
// of one name would give their instances the same names.
func standbyName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:standbyBytes])
}

// Resync compares every function with the slots that are served. Run does so regularly; a
// caller that has just handed slots off need not wait for that.
func (s *Scheduler) Resync() {
	for _, f := range s.all() {
		s.syncOwnership(f)
	}
}

// countSlotsEvery is after how many audits slots are counted even without a change of
// routes: to read all of them costs more than an audit.
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
