package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// auditEvery is how often all functions are compared with the slots that are
// owned. A function that anybody asks for is compared at once.
const auditEvery = 250 * time.Millisecond

// owns tells whether the function's slot is owned, and in which epoch. When that
// has changed, the function's instances are taken over or left first.
func (s *Scheduler) owns(f *function) (epoch uint64, owned bool) {
	if epoch = s.epoch(f); epoch == f.epoch.Load() {
		return epoch, epoch != 0
	}
	f.handover.Lock()
	defer f.handover.Unlock()
	switch epoch = s.epoch(f); epoch {
	case f.epoch.Load():
	case 0:
		s.disown(f)
		f.epoch.Store(0)
	default:
		s.deps.Instances.Adopt(f.current())
		f.epoch.Store(epoch)
		s.activate(f)
	}
	return epoch, epoch != 0
}

// epoch is that of the function's slot; 0 if it is not owned.
func (s *Scheduler) epoch(f *function) uint64 {
	epoch, owned := s.deps.Keeper.Epoch(f.slot)
	if !owned {
		return 0
	}
	return epoch
}

// disown sends the instances to the new owner, leaves them to it, and refuses
// what waits.
func (s *Scheduler) disown(f *function) {
	f.broker.Dismiss()
	s.deps.Instances.Release(f.uid)
	s.refuseAll(f, f.broker.Clear(), notOwner)
	f.loseNone()
	f.blocked.Store(false)
}

// Audit compares every function with the slots that are owned. Run does so from
// time to time; who has just given slots back need not wait for that.
func (s *Scheduler) Audit() {
	for _, f := range s.all() {
		s.owns(f)
	}
}

// ownerAddr is where the owner of a slot serves, as far as is known; empty if it
// is here.
func (s *Scheduler) ownerAddr(slot ownership.Slot) string {
	if s.deps.Directory == nil {
		return ""
	}
	owner, _ := s.deps.Directory.Owner(slot)
	if owner.Addr == s.config.Addr {
		return ""
	}
	return owner.Addr
}
