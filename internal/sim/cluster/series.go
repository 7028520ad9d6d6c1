package cluster

import "time"

// counters is the state of the world in numbers.
type counters struct {
	// instances by phase, and how many of all exist.
	phases    [gone + 1]int
	instances int
	// open calls were made and have no end, and waiting ones are in a queue.
	open, waiting int
	answered      int
}

// moved counts an instance that goes from one phase to another.
func (w *world) moved(from, to phase) {
	w.counters.phases[from]--
	w.counters.phases[to]++
	if to == gone {
		w.counters.instances--
	}
}

// countStart counts a new instance.
func (w *world) countStart() {
	w.counters.phases[starting]++
	w.counters.instances++
	w.result.Peak = max(w.result.Peak, w.counters.instances)
}

// pointDue is when a point of the series is taken.
type pointDue struct{}

func (pointDue) run(w *world) {
	t := &w.counters
	w.result.Series = append(w.result.Series, Point{
		At: w.now, Instances: t.phases[idle] + t.phases[busy], Starting: t.phases[starting],
		Waiting: t.waiting, Busy: t.phases[busy], Answered: t.answered,
	})
	w.agenda.plan(w.now+w.config.Resolution, pointDue{})
}

// firstPoint is the first point of a resolution.
func (w *world) firstPoint() {
	if w.config.Resolution > time.Duration(0) {
		w.agenda.plan(0, pointDue{})
	}
}
