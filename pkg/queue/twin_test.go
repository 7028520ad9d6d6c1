package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
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
	// avoided are the gateways that some instance has avoided, and until when.
	avoided map[string]time.Time
	// late are the times of the late tickets handed out in a row, since the
	// pace was judged last.
	late        []time.Time
	newestFirst bool
	// pulls are the credits that were ever given.
	pulls uint64
}

type twinTicket struct {
	invocation.Ticket
	seq    int
	holder invocation.CID // empty while it waits
	handed time.Time
	// withdrawn tickets do not wait again.
	withdrawn bool
}

type twinInstance struct {
	cid      invocation.CID
	capacity int
	credits  int
	asked    bool
	retired  bool
	idle     time.Time // since when it asks for all that it can hold
	avoids   map[string]time.Time
}

func (w *twin) ticket(id invocation.ID) int {
	return slices.IndexFunc(w.tickets, func(t twinTicket) bool { return t.ID == id })
}

func (w *twin) instance(cid invocation.CID) int {
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

func (w *twin) holding(cid invocation.CID) int {
	n := 0
	for _, t := range w.tickets {
		if t.holder == cid {
			n++
		}
	}
	return n
}

func (w *twin) drop(i int) { w.tickets = slices.Delete(w.tickets, i, i+1) }

func (w *twin) offer(t invocation.Ticket, now time.Time) error {
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

func (w *twin) withdraw(id invocation.ID) bool {
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

func (w *twin) join(cid invocation.CID, capacity int) bool {
	if w.instance(cid) >= 0 {
		return false
	}
	w.instances = append(w.instances, twinInstance{cid: cid, capacity: capacity})
	return true
}

func (w *twin) leave(cid invocation.CID, now time.Time) {
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

func (w *twin) pull(cid invocation.CID, credits int, now time.Time) bool {
	i := w.instance(cid)
	if i < 0 {
		return false
	}
	in := &w.instances[i]
	in.asked = true
	for ; credits > 0 && !in.retired && in.credits+w.holding(cid) < in.capacity; credits-- {
		in.credits++
		w.pulls++
		if in.credits == in.capacity {
			in.idle = now
		}
	}
	return true
}

func (w *twin) done(cid invocation.CID, id invocation.ID) {
	if i := w.ticket(id); i >= 0 && cid != "" && w.tickets[i].holder == cid {
		w.drop(i)
	}
}

func (w *twin) giveBack(cid invocation.CID, id invocation.ID, now time.Time) {
	i := w.ticket(id)
	if i < 0 || cid == "" || w.tickets[i].holder != cid {
		return
	}
	gateway, until := w.tickets[i].Gateway, now.Add(w.limits.AvoidFor)
	in := &w.instances[w.instance(cid)]
	if in.avoids == nil {
		in.avoids = map[string]time.Time{}
	}
	if w.avoided == nil {
		w.avoided = map[string]time.Time{}
	}
	in.avoids[gateway], w.avoided[gateway] = until, until
	if w.tickets[i].withdrawn {
		w.drop(i)
		return
	}
	w.tickets[i].holder = ""
	w.departed--
}

func (w *twin) retire(cid invocation.CID) bool {
	i := w.instance(cid)
	if i < 0 || w.instances[i].retired {
		return false
	}
	w.instances[i].retired, w.instances[i].credits = true, 0
	return true
}

func (w *twin) requestLeave(cid invocation.CID, idle time.Duration, p LeavePolicy) (LeaveAnswer, bool) {
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

func (w *twin) others(cid invocation.CID) int {
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
			idle = append(idle, IdleInstance{CID: in.cid, Idle: now.Sub(in.idle), Since: in.idle})
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

func (w *twin) evict(cid invocation.CID, now time.Time, p EvictPolicy) bool {
	for _, in := range w.longestIdle(now, p) {
		if in.CID == cid {
			return w.retire(cid)
		}
	}
	return false
}

type handed struct {
	cid invocation.CID
	id  invocation.ID
}

func (w *twin) match(now time.Time) (out []handed, expired int) {
	w.calmDown(now)
	for {
		expired += w.expire(now)
		i, best := w.pair(now)
		if best < 0 {
			w.calmDown(now)
			return out, expired
		}
		w.departed++
		if !w.tickets[i].Deadline.After(now) {
			w.drop(i)
			expired++
			continue
		}
		w.instances[best].credits--
		w.tickets[i].holder, w.tickets[i].handed = w.instances[best].cid, now
		out = append(out, handed{w.instances[best].cid, w.tickets[i].ID})
		w.judge(w.tickets[i].Ticket, now)
	}
}

// pair finds the first ticket in the order of the moment that an instance takes,
// and the first instance that takes it.
func (w *twin) pair(now time.Time) (ticket, instance int) {
	waiting := w.waiting()
	if w.newestFirst {
		slices.Reverse(waiting)
	}
	for _, t := range waiting {
		best := -1
		for i, in := range w.instances {
			if in.credits > 0 && !in.avoids[t.Gateway].After(now) && (best < 0 || in.cid < w.instances[best].cid) {
				best = i
			}
		}
		if best >= 0 {
			return w.ticket(t.ID), best
		}
	}
	return -1, -1
}

// expire drops what is past its deadline, is the oldest of its gateway if that is
// avoided, and else the oldest of all gateways that are not.
func (w *twin) expire(now time.Time) (expired int) {
	kept := map[string]bool{}
	for _, t := range w.waiting() {
		group := ""
		if w.avoided[t.Gateway].After(now) {
			group = t.Gateway
		}
		if !kept[group] && !t.Deadline.After(now) {
			w.drop(w.ticket(t.ID))
			w.departed++
			expired++
		} else {
			kept[group] = true
		}
	}
	return expired
}

func twinLate(t invocation.Ticket, now time.Time) bool {
	half := t.Arrived.Add(t.Deadline.Sub(t.Arrived) / 2)
	return now.After(half)
}

func (w *twin) judge(t invocation.Ticket, now time.Time) {
	if w.newestFirst {
		return
	}
	if !twinLate(t, now) {
		w.late = nil
		return
	}
	w.late = append(w.late, now)
	took, n := now.Sub(w.late[0]), len(w.late)-1
	if n == 0 || took < time.Second {
		return
	}
	if waiting := w.waiting(); len(waiting) > 0 {
		each := took.Seconds() / float64(n)
		rest := time.Duration(each * float64(len(waiting)) * float64(time.Second))
		w.newestFirst = twinLate(waiting[len(waiting)-1].Ticket, now.Add(rest))
	}
	w.late = []time.Time{now}
}

func (w *twin) calmDown(now time.Time) {
	waiting := w.waiting()
	if len(waiting) == 0 || w.newestFirst && !twinLate(waiting[0].Ticket, now) {
		w.newestFirst, w.late = false, nil
	}
}

func (w *twin) clear() []invocation.ID {
	var ids []invocation.ID
	for _, t := range w.waiting() {
		ids = append(ids, t.ID)
		w.drop(w.ticket(t.ID))
		w.departed++
	}
	return ids
}

func (w *twin) view(now time.Time) View {
	waiting := w.waiting()
	v := View{Waiting: len(waiting), Out: len(w.tickets) - len(waiting), Arrived: w.arrived, Departed: w.departed, NewestFirst: w.newestFirst, Asked: w.pulls}
	for _, in := range w.instances {
		if in.retired {
			continue
		}
		v.Instances++
		v.Asking += in.credits
		if w.holding(in.cid) > 0 {
			v.Busy++
		}
	}
	if len(waiting) > 0 {
		v.OldestWait = max(0, now.Sub(waiting[0].Arrived))
	}
	return v
}
