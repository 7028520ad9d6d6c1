package timerqueue

import (
	"container/heap"
	"time"
)

// Timer wakes its Owner at a time that Set sets.
type Timer[T any] struct {
	// Owner is what Due returns when the timer has expired.
	Owner T

	at    time.Time // with its monotonic reading, if it has one, since the clock may be set back
	index int       // in its heap, counted from 1; 0 if it is not set
}

// Queue has the timers that are set. Its zero value is empty.
type Queue[T any] struct {
	// monotonic has the timers whose times have a monotonic reading, and wall those of a calendar.
	// Once the clock was set back, the two have no common order.
	monotonic, wall timerHeap[T]
	// looked is when Due was called last, by the calendar.
	looked time.Time
}

// Set sets a timer, in place of the time that it was set to before. The zero time stops
// it.
func (q *Queue[T]) Set(timer *Timer[T], at time.Time) {
	if timer.index > 0 {
		heap.Remove(q.heapOf(timer.at), timer.index-1)
	}
	if timer.at = at; !at.IsZero() {
		heap.Push(q.heapOf(at), timer)
	}
}

func (q *Queue[T]) heapOf(at time.Time) *timerHeap[T] {
	if at == at.Round(0) {
		return &q.wall
	}
	return &q.monotonic
}

// Due returns the owners of the timers that have expired, and stops these timers: first those with a
// monotonic reading, then the others, each in the order of their times. If the clock was set back since
// the last call, the times of a calendar may have to be computed again, so all of these have expired.
func (q *Queue[T]) Due(now time.Time) []T {
	calendar := now.Round(0)
	setBack := calendar.Before(q.looked)
	q.looked = calendar
	return append(q.monotonic.takeExpired(now, false), q.wall.takeExpired(now, setBack)...)
}

// Len is how many are set.
func (q *Queue[T]) Len() int { return len(q.monotonic) + len(q.wall) }

// timerHeap is a heap, the first time on top.
type timerHeap[T any] []*Timer[T]

// takeExpired removes the timers that have expired, or all, and returns their owners.
func (t *timerHeap[T]) takeExpired(now time.Time, all bool) (owners []T) {
	for len(*t) > 0 && (all || !(*t)[0].at.After(now)) {
		owners = append(owners, heap.Pop(t).(*Timer[T]).Owner)
	}
	return owners
}

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
