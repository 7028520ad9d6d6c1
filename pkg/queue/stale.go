package queue

import "time"

// Stale is how many tickets have waited for after or longer. It costs at most twice
// the lesser of how many have and how many have not.
func (q *Queue) Stale(now time.Time, after time.Duration) int {
	limit := now.Add(-after)
	n := 0
	for l := range q.backlog.lists() {
		n += l.arrivedBy(limit)
	}
	return n
}

// arrivedBy is how many of the list had arrived at a time. It walks from both ends
// at once: the list is in order of arrival.
func (l *ticketList) arrivedBy(limit time.Time) int {
	counted := 0
	for oldest, newest := l.first, l.last; oldest != nil; oldest, newest = oldest.next, newest.prev {
		if oldest.ticket.Arrived.After(limit) {
			return counted
		}
		if !newest.ticket.Arrived.After(limit) {
			return l.len - counted
		}
		counted++
	}
	return counted
}
