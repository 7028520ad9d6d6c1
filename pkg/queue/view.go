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
		Arrived:     q.backlog.arrived,
		Departed:    q.backlog.departed,
		Asked:       q.instances.asked,
		NewestFirst: q.backlog.turn.newestFirst,
		Instances:   q.instances.crowd.all,
		Asking:      q.instances.crowd.credits,
		Busy:        q.instances.crowd.busy,
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
