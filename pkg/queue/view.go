package queue

import "time"

// View is what a queue looks like at one moment.
type View struct {
	// Waiting tickets, and tickets out with instances.
	Waiting int
	Out     int
	// Arrived counts all tickets that ever arrived, the paper's Qend, and
	// Departed those that do not wait any more, its Qbegin:
	// Arrived - Departed = Waiting.
	Arrived  uint64
	Departed uint64
	// Requested counts the tickets that instances ever polled for within their capacity,
	// and Credits those that they poll for now.
	Requested uint64
	Credits   int
	// Lent is how many calls at a time gateways hand directly to instances that do not drain.
	Lent int
	// Instances have joined and are not draining; Busy ones hold a ticket.
	Instances int
	Busy      int
	// AwaitingCore of those instances have a call that has long waited for a core of its node.
	AwaitingCore int
	// Untracked is how many calls those instances run beside tickets and loans: calls that they
	// have from an earlier scheduler, or whose loans were recalled.
	Untracked int
	// OldestWait is how long the first waiting ticket has waited.
	OldestWait time.Duration
	// NewestFirst says that the queue was overloaded at the last Match, so that the
	// newest ticket is the next to be handed out.
	NewestFirst bool
}

// View describes the queue.
func (q *Queue) View(now time.Time) View {
	v := View{
		Waiting:     q.Waiting(),
		Out:         q.Out(),
		Arrived:     q.backlog.arrived,
		Departed:    q.backlog.departed,
		Requested:   q.instances.requested,
		NewestFirst: q.backlog.order.newestFirst,
		Instances:   q.instances.totals.instances,
		Credits:     q.instances.totals.credits,
		Lent:        q.instances.totals.lent,
		Busy:        q.instances.totals.busy,

		AwaitingCore: q.instances.totals.awaiting,
		Untracked:    q.instances.totals.untracked(),
	}
	if first := q.backlog.oldest(); first != nil {
		v.OldestWait = max(0, now.Sub(first.ticket.Arrived))
	}
	return v
}

// Waiting is how many tickets wait.
func (q *Queue) Waiting() int { return q.backlog.waiting() }

// Arrived counts all tickets that ever arrived.
func (q *Queue) Arrived() uint64 { return q.backlog.arrived }

// Out is how many tickets are out with instances.
func (q *Queue) Out() int { return len(q.entries) - q.Waiting() }

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
