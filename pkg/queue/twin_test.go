package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// twin is the queue once more, as slowly and obviously as possible: flat
// slices that are searched and sorted each time.
type twin struct {
	limits    Limits
	tickets   []twinTicket
	instances []twinInstance
	arrived   uint64
	departed  uint64
	seq       int
}

type twinTicket struct {
	invoke.Ticket
	seq    int
	holder invoke.CID // empty while it waits
	handed time.Time
	// withdrawn tickets do not wait again.
	withdrawn bool
}

type twinInstance struct {
	cid      invoke.CID
	capacity int
	credits  int
	asked    bool
	retired  bool
	idle     time.Time // since when it asks for all that it can hold
}

func (w *twin) ticket(id invoke.ID) int {
	return slices.IndexFunc(w.tickets, func(t twinTicket) bool { return t.ID == id })
}

func (w *twin) instance(cid invoke.CID) int {
	return slices.IndexFunc(w.instances, func(in twinInstance) bool { return in.cid == cid })
}

func (w *twin) waiting() []twinTicket {
	var waiting []twinTicket
	for _, t := range w.tickets {
		if t.holder == "" {
			waiting = append(waiting, t)
		}
	}
	slices.SortFunc(waiting, func(a, b twinTicket) int {
		return cmp.Or(a.Arrived.Compare(b.Arrived), cmp.Compare(a.seq, b.seq))
	})
	return waiting
}

func (w *twin) holding(cid invoke.CID) int {
	n := 0
	for _, t := range w.tickets {
		if t.holder == cid {
			n++
		}
	}
	return n
}

func (w *twin) drop(i int) { w.tickets = slices.Delete(w.tickets, i, i+1) }

func (w *twin) offer(t invoke.Ticket, now time.Time) error {
	if i := w.ticket(t.ID); i >= 0 {
		known := &w.tickets[i]
		if known.holder != "" && (known.Token != t.Token || now.Sub(known.handed) >= w.limits.ClaimGrace) {
			known.holder = ""
			w.departed--
		}
		known.Token, known.withdrawn = t.Token, false
		return nil
	}
	if len(w.waiting()) >= w.limits.MaxWaiting {
		return ErrFull
	}
	w.seq++
	w.tickets = append(w.tickets, twinTicket{Ticket: t, seq: w.seq})
	w.arrived++
	return nil
}

func (w *twin) withdraw(id invoke.ID) bool {
	i := w.ticket(id)
	if i < 0 {
		return false
	}
	if w.tickets[i].holder != "" {
		w.tickets[i].withdrawn = true
		return false
	}
	w.drop(i)
	w.departed++
	return true
}

func (w *twin) join(cid invoke.CID, capacity int) bool {
	if w.instance(cid) >= 0 {
		return false
	}
	w.instances = append(w.instances, twinInstance{cid: cid, capacity: capacity})
	return true
}

func (w *twin) leave(cid invoke.CID, now time.Time) {
	i := w.instance(cid)
	if i < 0 {
		return
	}
	w.instances = slices.Delete(w.instances, i, i+1)
	w.tickets = slices.DeleteFunc(w.tickets, func(t twinTicket) bool {
		return t.holder == cid && (t.withdrawn || now.Sub(t.handed) >= w.limits.ClaimGrace)
	})
	for i := range w.tickets {
		if w.tickets[i].holder == cid {
			w.tickets[i].holder = ""
			w.departed--
		}
	}
}

func (w *twin) pull(cid invoke.CID, credits int, now time.Time) bool {
	i := w.instance(cid)
	if i < 0 {
		return false
	}
	in := &w.instances[i]
	in.asked = true
	for ; credits > 0 && !in.retired && in.credits+w.holding(cid) < in.capacity; credits-- {
		in.credits++
		if in.credits == in.capacity {
			in.idle = now
		}
	}
	return true
}

func (w *twin) done(cid invoke.CID, id invoke.ID) {
	if i := w.ticket(id); i >= 0 && cid != "" && w.tickets[i].holder == cid {
		w.drop(i)
	}
}

func (w *twin) retire(cid invoke.CID) bool {
	i := w.instance(cid)
	if i < 0 || w.instances[i].retired {
		return false
	}
	w.instances[i].retired, w.instances[i].credits = true, 0
	return true
}

func (w *twin) requestLeave(cid invoke.CID, idle time.Duration, p LeavePolicy) (LeaveAnswer, bool) {
	i := w.instance(cid)
	if i < 0 {
		return LeaveAnswer{}, false
	}
	others := w.others(cid)
	retired := w.instances[i].retired
	if w.holding(cid) > 0 || (!retired && others < p.Min) {
		return LeaveAnswer{AskAgain: p.IdleTimeout}, true
	}
	needed := p.IdleTimeout
	if others == 0 && p.KeepLast > needed {
		needed = p.KeepLast
	}
	if !retired && idle < needed {
		return LeaveAnswer{AskAgain: needed - idle}, true
	}
	w.instances = slices.Delete(w.instances, i, i+1)
	return LeaveAnswer{Granted: true}, true
}

func (w *twin) others(cid invoke.CID) int {
	n := 0
	for _, in := range w.instances {
		if in.cid != cid && in.asked && !in.retired {
			n++
		}
	}
	return n
}

func (w *twin) longestIdle(now time.Time, p EvictPolicy) []IdleInstance {
	var idle []IdleInstance
	for _, in := range w.instances {
		if in.credits == in.capacity && now.Sub(in.idle) >= p.IdleFor && w.others(in.cid) >= p.Min {
			idle = append(idle, IdleInstance{CID: in.cid, Idle: now.Sub(in.idle)})
		}
	}
	slices.SortFunc(idle, func(a, b IdleInstance) int {
		if a.Idle != b.Idle {
			return cmp.Compare(b.Idle, a.Idle)
		}
		return cmp.Compare(b.CID, a.CID)
	})
	return idle
}

func (w *twin) evict(cid invoke.CID, now time.Time, p EvictPolicy) bool {
	for _, in := range w.longestIdle(now, p) {
		if in.CID == cid {
			return w.retire(cid)
		}
	}
	return false
}

type handed struct {
	cid invoke.CID
	id  invoke.ID
}

func (w *twin) match(now time.Time) (out []handed, expired int) {
	for {
		waiting := w.waiting()
		if len(waiting) > 0 && !waiting[0].Deadline.After(now) {
			w.drop(w.ticket(waiting[0].ID))
			w.departed++
			expired++
			continue
		}
		best := -1
		for i, in := range w.instances {
			if in.credits > 0 && (best < 0 || in.cid < w.instances[best].cid) {
				best = i
			}
		}
		if len(waiting) == 0 || best < 0 {
			return out, expired
		}
		i := w.ticket(waiting[0].ID)
		w.departed++
		w.instances[best].credits--
		w.tickets[i].holder, w.tickets[i].handed = w.instances[best].cid, now
		out = append(out, handed{w.instances[best].cid, w.tickets[i].ID})
	}
}

func (w *twin) clear() []invoke.ID {
	var ids []invoke.ID
	for _, t := range w.waiting() {
		ids = append(ids, t.ID)
		w.drop(w.ticket(t.ID))
		w.departed++
	}
	return ids
}

func (w *twin) view(now time.Time) View {
	waiting := w.waiting()
	v := View{Waiting: len(waiting), Out: len(w.tickets) - len(waiting), Arrived: w.arrived, Departed: w.departed}
	for _, in := range w.instances {
		if in.retired {
			continue
		}
		v.Instances++
		if w.holding(in.cid) > 0 {
			v.Busy++
		}
	}
	if len(waiting) > 0 {
		v.OldestWait = max(0, now.Sub(waiting[0].Arrived))
	}
	return v
}
