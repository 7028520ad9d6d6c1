package scheduler

import (
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// awaitsHello tells whether instances that were taken over have yet to say hello,
// and still have the time to: nothing is decided until then. Those that did not
// say it in time do not count as coming any more; unheard is how many they are.
func (s *Scheduler) awaitsHello(f *function, counts *provisioner.Counts) (awaits bool, unheard int) {
	if by := f.helloBy.Load(); counts.Awaited > 0 && by != nil && s.deps.Now().Before(*by) {
		return true, 0
	}
	unheard = counts.Awaited
	counts.Creating -= unheard
	counts.Awaited = 0
	return false, unheard
}

// beside leaves the instances out of a function's maximum that were not heard of, but
// may run: until they are given up (after 15 s), others take their places only up to the
// maximum, or one if that is all that can be reached.
func beside(unheard int, l fpcs.Limits) fpcs.Limits {
	if l.Max > 0 {
		l.Max = max(1, l.Max-unheard)
		l.Min = min(l.Min, l.Max)
	}
	return l
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
