package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

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
	// Asked counts the tickets that instances ever asked for, as far as they could
	// hold them, and Asking those that they ask for now.
	Asked  uint64
	Asking int
	// Instances have joined and are not retired; Busy ones hold a ticket.
	Instances int
	Busy      int
	// OldestWait is how long the first waiting ticket has waited.
	OldestWait time.Duration
	// NewestFirst says that the queue was hopeless when it was last matched,
	// so that the newest ticket is the next to be handed out.
	NewestFirst bool
}

// View describes the queue.
func (q *Queue) View(now time.Time) View {
	v := View{
		Waiting:     q.Waiting(),
		Out:         q.Out(),
		Arrived:     q.arrived,
		Departed:    q.departed,
		Asked:       q.asked,
		NewestFirst: q.turn.newestFirst,
		Instances:   q.crowd.all,
		Asking:      q.crowd.credits,
		Busy:        q.crowd.busy,
	}
	if first := q.oldest(); first != nil {
		v.OldestWait = max(0, now.Sub(first.ticket.Arrived))
	}
	return v
}

// crowd is what the instances that are not retired come to. It is kept as they
// change, since it is asked for more often than it may cost to look at all of them.
type crowd struct {
	all int
	// asked are those that have ever asked for work, and busy those that hold a
	// ticket.
	asked, busy int
	// credits is how many tickets they ask for.
	credits int
}

// count adds an instance that asks for nothing at the moment, or takes it away.
func (c *crowd) count(in *instance, n int) {
	c.all += n
	if in.asked {
		c.asked += n
	}
	if len(in.out) > 0 {
		c.busy += n
	}
}

// EachWaiting calls see with every ticket that waits, in the order of arrival of each
// lane.
func (q *line) EachWaiting(see func(invoke.Ticket)) {
	for e := q.waiting.first; e != nil; e = e.next {
		see(e.ticket)
	}
	for _, l := range q.lanes {
		for e := l.first; e != nil; e = e.next {
			see(e.ticket)
		}
	}
}

// Waiting is how many tickets wait.
func (q *Queue) Waiting() int { return int(q.arrived - q.departed) }

// Arrived counts all tickets that ever arrived.
func (q *Queue) Arrived() uint64 { return q.arrived }

// Out is how many tickets are out with instances.
func (q *Queue) Out() int { return len(q.entries) - q.Waiting() }
