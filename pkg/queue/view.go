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
	// Instances have joined and are not retired; Busy ones hold a ticket.
	Instances int
	Busy      int
	// OldestWait is how long the first waiting ticket has waited.
	OldestWait time.Duration
}

// View describes the queue.
func (q *Queue) View(now time.Time) View {
	v := View{
		Waiting:  q.waiting.len,
		Out:      len(q.entries) - q.waiting.len,
		Arrived:  q.arrived,
		Departed: q.departed,
	}
	for _, in := range q.instances {
		if in.retired {
			continue
		}
		v.Instances++
		if len(in.out) > 0 {
			v.Busy++
		}
	}
	if first := q.waiting.first; first != nil {
		v.OldestWait = max(0, now.Sub(first.ticket.Arrived))
	}
	return v
}

// Waiting is how many tickets wait.
func (q *Queue) Waiting() int { return q.waiting.len }
