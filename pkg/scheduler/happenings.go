package scheduler

import (
	"time"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// maxHappenings bounds what is kept for one function. Of more, the oldest are
// dropped.
const maxHappenings = 16

// happening is something that an operator may ask about later.
type happening struct {
	reason, message string
	warning         bool
}

// happenings are the last things that happened to a function, oldest first. Its
// zero value is empty. It is guarded by the function's lock.
type happenings struct {
	next uint64 // number of the one that comes next
	list []numbered
}

type numbered struct {
	happening
	number uint64
	count  uint32
	last   time.Time
}

// add notes that something happened. What happens again and again is counted,
// and is news each time.
func (h *happenings) add(what happening, now time.Time) {
	what.message = invocation.Excerpt(what.message)
	h.next++
	for i, n := range h.list {
		if n.happening == what {
			h.list = append(h.list[:i], h.list[i+1:]...)
			h.list = append(h.list, numbered{what, h.next, n.count + 1, now})
			return
		}
	}
	if len(h.list) == maxHappenings {
		h.list = h.list[1:]
	}
	h.list = append(h.list, numbered{what, h.next, 1, now})
}

// since returns what happened after a number and not before a time, and the number
// to ask with next.
func (h *happenings) since(number uint64, notBefore time.Time) (news []*controlwire.Event, next uint64) {
	for _, n := range h.list {
		if n.number > number && !n.last.Before(notBefore) {
			news = append(news, &controlwire.Event{Reason: n.reason, Message: n.message, Warning: n.warning, Count: n.count})
		}
	}
	return news, h.next
}

// happened notes that something happened to the function.
func (f *function) happened(what happening, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.book.happenings.add(what, now)
}

// news is what happened to the function since a number and not before a time, and the
// number to ask with next.
func (f *function) news(since uint64, notBefore time.Time) ([]*controlwire.Event, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book.happenings.since(since, notBefore)
}
