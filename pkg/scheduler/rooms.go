package scheduler

import (
	"encoding/json"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// rooms is for how many instances the nodes have room, counted once in a tick for all
// functions whose instances may run in the same places and request the same.
// Namespaces have no bound of their own: they share what is ordered, and a quota of
// theirs is known to the API server only.
type rooms map[placement]int

// placement is what the room for an instance depends on.
type placement struct {
	requests nodepick.Amount
	// where is empty for a function that may run on every ordinary node.
	where string
}

// whereOf says in a word on which nodes a function's instances may run.
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

// forget makes everything be counted again.
func (r rooms) forget() { clear(r) }

// room is for how many more instances of a function there is room. It is that at the
// first look since the tick began: functions that decide in the same tick do not see
// what the others take, which the orders find out. A spare instance that the function
// can take has room already.
func (s *Scheduler) room(f *function, fn *v1alpha1.Function) int {
	want := s.deps.Instances.Requests(fn)
	at := placement{requests: want, where: f.place()}
	room, counted := s.rooms[at]
	if !counted {
		nodes, _ := s.deps.Instances.Candidates(fn)
		room = nodepick.Room(nodes, want)
		s.rooms[at] = room
	}
	return room + s.spareRoom(f, fn)
}
