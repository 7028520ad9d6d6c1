package scheduler

import (
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// notServed is the term of a slot that this scheduler does not serve.
var notServed = core.Unserved

// syncOwnership returns the term in which this scheduler serves the function's slot, if it
// does. If that has changed, it first adopts or releases the function's instances.
func (s *shell) syncOwnership(u *unit) (invocation.Term, bool) {
	term := s.slots.term(u.slot)
	u.mu.Lock()
	defer u.mu.Unlock()
	return s.syncOwnershipLocked(u, term)
}

// syncOwnershipLocked is syncOwnership for callers that hold the function's lock and have just
// read the term. If the term differs, it reads the term again, because another goroutine may
// have applied a later one.
func (s *shell) syncOwnershipLocked(u *unit, term invocation.Term) (invocation.Term, bool) {
	if term != u.core.Term() {
		term = s.slots.term(u.slot)
	}
	if term != u.core.Term() {
		e := core.OwnershipChanged{Term: term}
		if term != core.Unserved {
			e.Restored = s.restoreEstimates(u)
		}
		s.stepLocked(u, e)
	}
	return term, term != core.Unserved
}

// served reports whether this scheduler serves the function, as far as the core knows.
func (u *unit) served() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.Term() != core.Unserved
}

// slotTable says which slots this scheduler serves, and who serves the others.
type slotTable struct {
	id string
	// standby is this scheduler's name in the terms in which it acts as a standby.
	standby   string
	ownership Ownership
	router    Router // nil in local mode
	// serving says that others may rely on this scheduler, and stopped that it serves no slot any
	// more, also one that it still owns.
	serving, stopped atomic.Bool
}

// term is the term in which this scheduler serves a slot; none if it does not. The holder of a
// slot serves it until it reads of a later owner. Any other scheduler serves it, as the
// standby, while the owner is silent and it is the next to own the slot.
func (s *slotTable) term(slot ownership.Slot) invocation.Term {
	if s.stopped.Load() {
		return notServed
	}
	epoch, held := s.ownership.Epoch(slot)
	if s.router == nil {
		return invocation.Term{Epoch: epoch}
	}
	to, acting, known := s.router.Route(slot)
	switch {
	case held && (to.ID == s.id || to.Epoch <= epoch):
		return invocation.Term{Epoch: epoch}
	case !held && known && acting && to.ID == s.id && s.serving.Load():
		return invocation.Term{Epoch: to.Epoch, Standby: s.standby}
	}
	return notServed
}

// standbyBytes is how many bytes of an id's hash tell standbys apart: in a cluster of a
// hundred schedulers, two have the same name with a probability below 10^-10.
const standbyBytes = 6

// standbyName is a scheduler's name in a term as a standby. Two standbys of one name would
// give their instances the same names.
func standbyName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:standbyBytes])
}

// Resync compares every function with the served slots. Run does so periodically; a caller
// that has just handed off slots need not wait for that.
func (s *Scheduler) Resync() {
	for _, u := range s.shell.all() {
		s.shell.syncOwnership(u)
	}
}

// countSlotsEvery is after how many audits slots are counted even without news of them:
// reading all of them costs more than an audit.
const countSlotsEvery = 40

// countSlots counts the slots that were gained and lost since the last time.
func (s *Scheduler) countSlots() {
	s.shell.metrics.countSlotMoves(s.slotEpochs.update(func(slot ownership.Slot) uint64 {
		if term := s.shell.slots.term(slot); term.Standby == "" {
			return term.Epoch
		}
		return 0
	}))
}

// slotEpochs has the epoch in which each slot is owned here; 0 if it is not.
type slotEpochs [ownership.Slots]uint64

// update returns how many slots were gained and lost. A slot with another epoch than before
// was lost and gained in between.
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

// Busy reports whether calls wait or instances start in a slot, so that clients would notice a
// handoff now.
func (s *Scheduler) Busy(slot ownership.Slot) bool { return s.shell.units.busy(slot) }

// owner returns the scheduler that serves a slot, as far as known; its epoch is 0 if no other
// scheduler does.
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

// restoreEstimates returns the means that were measured before this scheduler served the unit.
// A new revision begins with those of the others. They are bounded like an agent's reports,
// and count as one observation.
// The caller holds the function's lock.
func (s *shell) restoreEstimates(u *unit) estimate.Means {
	if s.deps.Estimates == nil {
		return estimate.Means{}
	}
	fn := u.specLocked().fn
	before := s.deps.Estimates.Restore(fn)
	s.starts.observe(kindOf(fn), min(before.Start, fn.Spec.Template.StartupTimeout.Duration))
	return before
}

// Estimates returns the means of each unit whose slot this scheduler owns, for the next owner.
// Units that it serves as a standby are left out.
func (r *reporter) Estimates() []estimate.Unit {
	var estimates []estimate.Unit
	for _, u := range r.shell.all() {
		if term, served := r.shell.syncOwnership(u); !served || term.Standby != "" {
			continue
		}
		if means := u.means().Round(10 * time.Microsecond); means != (estimate.Means{}) {
			fn := u.fn()
			estimates = append(estimates, estimate.Unit{
				UID: u.uid, Function: fn.FunctionUID(), Revision: fn.Revision(), Execution: means.Execution, Start: means.Start,
			})
		}
	}
	return estimates
}
