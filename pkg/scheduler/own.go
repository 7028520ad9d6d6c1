package scheduler

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// auditEvery is how often all functions are compared with the slots that
	// are served. A function that anybody asks for is compared at once.
	auditEvery = 250 * time.Millisecond
	// helloTime is how long the instances of a function that was taken over
	// have to say hello before others are ordered in their place. Without it
	// every fail-over would order as many again. It is longer than an owner that
	// comes back waits for them: whoever stood in keeps them until it has answered
	// for a second, which it hears after a beat and with a connection made anew.
	helloTime = 2500 * time.Millisecond
)

// none is the term of a slot that is not served here.
var none invoke.Term

// serves tells in which term the function's slot is served here, if it is. When
// that has changed, the function's instances are taken over or left first.
func (s *Scheduler) serves(f *function) (invoke.Term, bool) {
	if term := s.term(f.slot); term == *f.term.Load() {
		return term, term != none
	}
	f.handover.Lock()
	defer f.handover.Unlock()
	term := s.term(f.slot)
	switch before := *f.term.Load(); {
	case term == before:
		return term, term != none
	case term == none:
		s.disown(f)
	default:
		s.deps.Instances.Adopt(f.current())
		s.recall(f)
		by := s.deps.Now().Add(helloTime)
		f.helloBy.Store(&by)
		s.activate(f)
	}
	f.term.Store(&term)
	return term, term != none
}

// term is that in which a slot is served here; none if it is not. Whoever holds a
// slot serves it until it hears of a later owner. Whoever does not, stands in
// while the owner is silent, if it is the one to own the slot next.
func (s *Scheduler) term(slot ownership.Slot) invoke.Term {
	epoch, held := s.deps.Keeper.Epoch(slot)
	if s.deps.Router == nil {
		return invoke.Term{Epoch: epoch}
	}
	to, provisional, known := s.deps.Router.Route(slot)
	switch {
	case held && (to.ID == s.config.ID || to.Epoch <= epoch):
		return invoke.Term{Epoch: epoch}
	case !held && known && provisional && to.ID == s.config.ID && s.serving.Load():
		return invoke.Term{Epoch: to.Epoch, Heir: s.heir}
	}
	return none
}

// heirBytes is how much of an id's hash tells stand-ins apart: of a hundred schedulers
// two have the same name in less than one of 10^10 clusters.
const heirBytes = 6

// heirName is what a scheduler calls itself in a term in which it stands in. Two
// stand-ins of one name would give their instances the same names.
func heirName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:heirBytes])
}

// disown sends the instances to the new owner, leaves them to it, and refuses
// what waits.
func (s *Scheduler) disown(f *function) {
	left := f.broker.Dismiss()
	s.deps.Instances.Release(f.uid)
	s.refuseAll(f, left, notOwner)
	f.loseNone()
	f.unlearn(s.config.Executions)
	f.leave()
	f.blocked.Store(false)
}

// Audit compares every function with the slots that are served. Run does so from
// time to time; who has just given slots back need not wait for that.
func (s *Scheduler) Audit() {
	for _, f := range s.all() {
		s.serves(f)
	}
}

// countSlotsEvery is after how many audits slots are counted though nothing was heard
// of them: to ask for all costs more than an audit does.
const countSlotsEvery = 40

// countSlots counts which slots have come and gone since the last time.
func (s *Scheduler) countSlots() {
	s.metrics.moved(s.tenure.update(func(slot ownership.Slot) uint64 {
		if term := s.term(slot); term.Heir == "" {
			return term.Epoch
		}
		return 0
	}))
}

// tenure is in which epoch each slot is owned; 0 if it is not.
type tenure [ownership.Slots]uint64

// update tells how many slots were gained and lost. One that is owned in another epoch
// than before was lost and gained in between.
func (t *tenure) update(epoch func(ownership.Slot) uint64) (gained, lost int) {
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
func (s *Scheduler) Busy(slot ownership.Slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.active {
		if f.slot == slot {
			return true
		}
	}
	return false
}

// Serving says whether others may count on this scheduler: not before it has
// learnt what there is, and not once it is to stop.
func (s *Scheduler) Serving(yes bool) { s.serving.Store(yes) }

// owner is who serves a slot, as far as is known; its epoch is 0 if that is
// nobody else.
func (s *Scheduler) owner(slot ownership.Slot) ownership.Owner {
	if s.deps.Router == nil {
		return ownership.Owner{}
	}
	to, _, _ := s.deps.Router.Route(slot)
	if to.ID == s.config.ID {
		return ownership.Owner{}
	}
	return to
}
