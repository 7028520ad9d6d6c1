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
func (a *Queue[T]) Set(timer *Timer[T], at time.Time) {
	set := timer.index > 0
	timer.at = at
	switch {
	case at.IsZero() && set:
		heap.Remove(&a.timers, timer.index-1)
	case at.IsZero():
	case set:
		heap.Fix(&a.timers, timer.index-1)
	default:
		heap.Push(&a.timers, timer)
	}
}

// Due returns the owners of the timers that have expired, in the order of their times, and
// stops these timers.
func (a *Queue[T]) Due(now time.Time) []T {
	var due []T
	for len(a.timers) > 0 && !a.timers[0].at.After(now) {
		due = append(due, heap.Pop(&a.timers).(*Timer[T]).Owner)
	}
	return due
}

// Len is how many are set.
func (a *Queue[T]) Len() int { return len(a.timers) }

// timerHeap is a heap, the first time on top.
type timerHeap[T any] []*Timer[T]

func (q timerHeap[T]) Len() int           { return len(q) }
func (q timerHeap[T]) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q timerHeap[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i+1, j+1
}

// Push is for container/heap only.
func (q *timerHeap[T]) Push(x any) {
	timer := x.(*Timer[T])
	*q = append(*q, timer)
	timer.index = len(*q)
}

// Pop is for container/heap only.
func (q *timerHeap[T]) Pop() any {
	old := *q
	timer := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	timer.index = 0
	return timer
}
