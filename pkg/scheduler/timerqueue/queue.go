package timerqueue

import (
	"container/heap"
	"time"
)

// Timer wakes its Owner at a time that Set sets.
type Timer[T any] struct {
	// Owner is what Due returns when the timer has expired.
	Owner T

	at    time.Time // with its monotonic reading, since the clock may be set back
	index int       // in the heap, counted from 1; 0 if it is not set
}

// Queue has the timers that are set. Its zero value is empty.
type Queue[T any] struct{ timers timerHeap[T] }

// Set sets a timer, in place of the time that it was set to before. The zero time stops
// it.
func (q *Queue[T]) Set(timer *Timer[T], at time.Time) {
	set := timer.index > 0
	timer.at = at
	switch {
	case at.IsZero() && set:
		heap.Remove(&q.timers, timer.index-1)
	case at.IsZero():
	case set:
		heap.Fix(&q.timers, timer.index-1)
	default:
		heap.Push(&q.timers, timer)
	}
}

// Due returns the owners of the timers that have expired, in the order of their times, and
// stops these timers.
func (q *Queue[T]) Due(now time.Time) []T {
	var due []T
	for len(q.timers) > 0 && !q.timers[0].at.After(now) {
		due = append(due, heap.Pop(&q.timers).(*Timer[T]).Owner)
	}
	return due
}

// Len is how many are set.
func (q *Queue[T]) Len() int { return len(q.timers) }

// timerHeap is a heap, the first time on top.
type timerHeap[T any] []*Timer[T]

func (t timerHeap[T]) Len() int           { return len(t) }
func (t timerHeap[T]) Less(i, j int) bool { return t[i].at.Before(t[j].at) }

func (t timerHeap[T]) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i+1, j+1
}

// Push is for container/heap only.
func (t *timerHeap[T]) Push(x any) {
	timer := x.(*Timer[T])
	*t = append(*t, timer)
	timer.index = len(*t)
}

// Pop is for container/heap only.
func (t *timerHeap[T]) Pop() any {
	old := *t
	timer := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	timer.index = 0
	return timer
}
