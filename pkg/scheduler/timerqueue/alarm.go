package timerqueue

import (
	"container/heap"
	"time"
)

// Alarm is a sleeper's alarm. Its zero value, but for Of, is one that is not set.
type Alarm[T any] struct {
	// Of is who sleeps.
	Of T

	at    int64 // in nanoseconds since 1970
	place int   // in the heap, counted from 1; 0 if it is not set
}

// Alarms are the alarms that are set. Its zero value has none.
type Alarms[T any] struct{ queue queue[T] }

// Set sets an alarm, in place of the time that it was set to before. The zero time
// means that it is not set any more.
func (a *Alarms[T]) Set(alarm *Alarm[T], at time.Time) {
	set := alarm.place > 0
	alarm.at = at.UnixNano()
	switch {
	case at.IsZero() && set:
		heap.Remove(&a.queue, alarm.place-1)
	case at.IsZero():
	case set:
		heap.Fix(&a.queue, alarm.place-1)
	default:
		heap.Push(&a.queue, alarm)
	}
}

// Due returns who is to be woken now, the one whose time came first in front. Their
// alarms are not set any more.
func (a *Alarms[T]) Due(now time.Time) []T {
	var due []T
	for len(a.queue) > 0 && a.queue[0].at <= now.UnixNano() {
		due = append(due, heap.Pop(&a.queue).(*Alarm[T]).Of)
	}
	return due
}

// Len is how many are set.
func (a *Alarms[T]) Len() int { return len(a.queue) }

// queue is a heap, the first time on top.
type queue[T any] []*Alarm[T]

func (q queue[T]) Len() int           { return len(q) }
func (q queue[T]) Less(i, j int) bool { return q[i].at < q[j].at }

func (q queue[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push is for container/heap only.
func (q *queue[T]) Push(x any) {
	alarm := x.(*Alarm[T])
	*q = append(*q, alarm)
	alarm.place = len(*q)
}

// Pop is for container/heap only.
func (q *queue[T]) Pop() any {
	old := *q
	alarm := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	alarm.place = 0
	return alarm
}
