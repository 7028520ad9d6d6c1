package cluster

import "time"

// event happens at a time. Events of one time happen in the order in which they were planned.
type event struct {
	at  time.Duration
	seq uint64
	act action
}

// action is what happens. Every kind of event is a type that is one pointer wide, so
// that planning one allocates nothing.
type action interface{ run(w *world) }

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.seq < other.seq
}

// agenda is a heap of events with four children to a node, the next event on top. It
// is written out because a simulation does little else.
type agenda struct {
	heap []event
	seq  uint64
}

func (a *agenda) plan(at time.Duration, act action) {
	a.seq++
	a.heap = append(a.heap, event{})
	h := a.heap
	e := event{at: at, seq: a.seq, act: act}
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// next is when the next event happens; false if there is none.
func (a *agenda) next() (time.Duration, bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

func (a *agenda) pop() event {
	h := a.heap
	top, n := h[0], len(h)-1
	e := h[n]
	h[n] = event{}
	h = h[:n]
	a.heap = h
	if n == 0 {
		return top
	}
	i := 0
	for {
		least, first := -1, 4*i+1
		for child := first; child < min(first+4, n); child++ {
			if least < 0 || h[child].before(&h[least]) {
				least = child
			}
		}
		if least < 0 || !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
	return top
}
