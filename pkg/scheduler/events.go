package scheduler

import (
	"time"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// maxEvents bounds the events that are kept for one function. When it is reached, the oldest
// is dropped.
const maxEvents = 16

// unitEvent is an event of a function that an operator may ask about later.
type unitEvent struct {
	reason, message string
	warning         bool
}

// eventRing has the last events of a function, oldest first. The zero value is empty. The
// function's lock guards it.
type eventRing struct {
	next uint64 // number of the one that comes next
	list []numberedEvent
}

type numberedEvent struct {
	unitEvent
	number uint64
	count  uint32
	last   time.Time
}

// add records an event. A repeated event is counted and gets a new number each time.
func (e *eventRing) add(what unitEvent, now time.Time) {
	what.message = invocation.Excerpt(what.message)
	e.next++
	for i, n := range e.list {
		if n.unitEvent == what {
			e.list = append(e.list[:i], e.list[i+1:]...)
			e.list = append(e.list, numberedEvent{what, e.next, n.count + 1, now})
			return
		}
	}
	if len(e.list) == maxEvents {
		e.list = e.list[1:]
	}
	e.list = append(e.list, numberedEvent{what, e.next, 1, now})
}

// since returns the events after a number and not before a time, and the number to ask with
// next.
func (e *eventRing) since(number uint64, notBefore time.Time) (news []*controlwire.Event, next uint64) {
	for _, n := range e.list {
		if n.number > number && !n.last.Before(notBefore) {
			news = append(news, &controlwire.Event{Reason: n.reason, Message: n.message, Warning: n.warning, Count: n.count})
		}
	}
	return news, e.next
}

func (u *unit) recordEvent(what unitEvent, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stats.events.add(what, now)
}

// eventsSince returns the function's events after a number and not before a time, and the
// number to ask with next.
func (u *unit) eventsSince(since uint64, notBefore time.Time) ([]*controlwire.Event, uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stats.events.since(since, notBefore)
}
