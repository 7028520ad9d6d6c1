package scheduler

import (
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// awaitsHello tells whether instances that were taken over have yet to say hello,
// and still have the time to: nothing is decided until then. Those that did not
// say it in time do not count any more.
func (s *Scheduler) awaitsHello(f *function, counts *provisioner.Counts) bool {
	if by := f.helloBy.Load(); counts.Awaited > 0 && by != nil && s.deps.Now().Before(*by) {
		return true
	}
	counts.Creating -= counts.Awaited
	counts.Awaited = 0
	return false
}

// cautious bounds the instances of a function while nobody can confirm that this
// scheduler owns its slot: somebody else may provide for it too.
func (s *Scheduler) cautious(f *function, l fpcs.Limits, counts provisioner.Counts) fpcs.Limits {
	_, orphan := s.deps.Keeper.Orphan()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !orphan:
		f.settled = -1
		return l
	case f.settled < 0:
		f.settled = counts.Created + counts.Creating
	}
	return capped(l, f.settled)
}

// capped bounds the instances to a fifth more than there were, and to one at
// least.
func capped(l fpcs.Limits, settled int) fpcs.Limits {
	most := max(1, settled+(settled+4)/5)
	if l.Max == 0 || l.Max > most {
		l.Max = most
	}
	l.Min = min(l.Min, l.Max)
	return l
}
