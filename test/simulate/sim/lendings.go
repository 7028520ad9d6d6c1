package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// lending is what an instance has lent to a gateway, as far as a queue can know.
type lending struct {
	gateway string
	calls   int
	// recalled places still count as lent, and late ones no longer do, but still run a call.
	recalled, late int
	at             time.Time
}

// lendings are those of one instance, in order of the gateways' addresses.
type lendings []lending

// recalledFor is how long a recalled place counts as one that comes.
const recalledFor = time.Second

func (ls *lendings) to(gateway string) *lending {
	i := slices.IndexFunc(*ls, func(l lending) bool { return l.gateway >= gateway })
	if i < 0 {
		i = len(*ls)
	}
	if i == len(*ls) || (*ls)[i].gateway != gateway {
		*ls = slices.Insert(*ls, i, lending{gateway: gateway})
	}
	return &(*ls)[i]
}

// replace notes what an instance says that it has lent, for which there is some room. It returns
// how many places that are.
func (ls *lendings) replace(loans []queue.Loan, room int) (all int) {
	before := slices.Clone(*ls)
	for i := range *ls {
		(*ls)[i].calls = 0
	}
	for _, l := range loans {
		if n := min(l.Calls, room-all); n > 0 {
			ls.to(l.Gateway).calls += n
			all += n
		}
	}
	for _, was := range before {
		l := ls.to(was.gateway)
		gone := max(0, min(was.calls-l.calls, l.recalled))
		l.late += gone
		l.recalled = min(l.recalled-gone, l.calls)
	}
	return all
}

func (ls *lendings) recall(r core.Recall, now time.Time) {
	l := ls.to(r.Gateway)
	if l.expire(now); r.Calls > 0 {
		l.recalled, l.at = l.recalled+r.Calls, now
	}
}

func (l *lending) expire(now time.Time) {
	if now.Sub(l.at) >= recalledFor {
		l.recalled, l.late = 0, 0
	}
}

// comeBack notes that an instance asks for n more tickets.
func (ls *lendings) comeBack(n int, now time.Time) {
	for i := range *ls {
		l := &(*ls)[i]
		l.expire(now)
		k := max(0, min(n, l.late))
		n, l.late = n-k, l.late-k
	}
}

// coming is how many recalled places still run a call.
func (ls *lendings) coming(now time.Time) (n int) {
	for i := range *ls {
		(*ls)[i].expire(now)
		n += (*ls)[i].late
	}
	return n
}
