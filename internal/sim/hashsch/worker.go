package hashsch

import "slices"

// Worker is one machine's containers.
type Worker struct {
	slots int
	// containers counts all, busy and warm; warm are the warm ones, the one that
	// was used least recently first.
	containers int
	warm       []container
	waiting    []Job
	next       int
	// busy are the functions of busy containers by number.
	busy map[int]int
}

type container struct{ number, function int }

// NewWorker makes a worker with that many slots, at least 1.
func NewWorker(slots int) *Worker {
	return &Worker{slots: slots, busy: make(map[int]int)}
}

// Job is a call that was pushed to a worker.
type Job struct {
	Function int
	// Call is whatever the caller wants back.
	Call any
}

// Start says that a job starts on a container.
type Start struct {
	Job
	// Container is its number, which no other container of the worker ever has.
	Container int
	// Cold says that the container is new, and Evicted that another one,
	// Instead, went for it.
	Cold    bool
	Evicted bool
	Instead int
}

// Push brings a job. It starts at once or waits.
func (w *Worker) Push(j Job) (Start, bool) {
	if len(w.waiting) > 0 {
		w.waiting = append(w.waiting, j)
		return Start{}, false
	}
	s, ok := w.start(j)
	if !ok {
		w.waiting = append(w.waiting, j)
	}
	return s, ok
}

// Finish makes a container warm whose job has ended.
func (w *Worker) Finish(number int) {
	w.warm = append(w.warm, container{number, w.busy[number]})
	delete(w.busy, number)
}

// Resume starts the job that has waited for longest, if it can start.
func (w *Worker) Resume() (Start, bool) {
	if len(w.waiting) == 0 {
		return Start{}, false
	}
	s, ok := w.start(w.waiting[0])
	if ok {
		w.waiting[0] = Job{}
		w.waiting = w.waiting[1:]
	}
	return s, ok
}

// Remove removes a container if it is warm, and reports whether it was.
func (w *Worker) Remove(number int) bool {
	i := slices.IndexFunc(w.warm, func(c container) bool { return c.number == number })
	if i < 0 {
		return false
	}
	w.warm = slices.Delete(w.warm, i, i+1)
	w.containers--
	return true
}

// Waiting is how many jobs wait.
func (w *Worker) Waiting() int { return len(w.waiting) }

func (w *Worker) start(j Job) (Start, bool) {
	for i := len(w.warm) - 1; i >= 0; i-- {
		if c := w.warm[i]; c.function == j.Function {
			w.warm = slices.Delete(w.warm, i, i+1)
			w.busy[c.number] = c.function
			return Start{Job: j, Container: c.number}, true
		}
	}
	s := Start{Job: j, Container: w.next, Cold: true}
	switch {
	case w.containers < w.slots:
		w.containers++
	case len(w.warm) > 0:
		s.Evicted, s.Instead = true, w.warm[0].number
		w.warm = slices.Delete(w.warm, 0, 1)
	default:
		return Start{}, false
	}
	w.next++
	w.busy[s.Container] = j.Function
	return s, true
}
