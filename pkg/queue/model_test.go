package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// model is the queue once more, as slowly and obviously as possible: flat
// slices that are searched and sorted each time.
type model struct {
	limits    Limits
	tickets   []modelTicket
	instances []modelInstance
	arrived   uint64
	departed  uint64
	seq       int
	// coolDowns are the gateways with a cool-down of some instance, and until when.
	coolDowns map[string]time.Time
	// late are the times of the late tickets handed out in a row, since the
	// pace was last measured.
	late        []time.Time
	newestFirst bool
	// pulls are the credits that instances ever got.
	pulls uint64
}

type modelTicket struct {
	invocation.Ticket
	seq    int
	holder invocation.CID // empty while it waits
	handed time.Time
	// cancelled tickets do not wait again.
	cancelled bool
}

type modelInstance struct {
	cid       invocation.CID
	capacity  int
	credits   int
	ready     bool
	draining  bool
	idle      time.Time // since when its credits are its capacity
	coolDowns map[string]time.Time
}

func (w *model) ticket(id invocation.ID) int {
	return slices.IndexFunc(w.tickets, func(t modelTicket) bool { return t.ID == id })
}

func (w *model) instance(cid invocation.CID) int {
	return slices.IndexFunc(w.instances, func(in modelInstance) bool { return in.cid == cid })
}

func (w *model) waiting() []modelTicket {
	var waiting []modelTicket
	for _, t := range w.tickets {
		if t.holder == "" {
			waiting = append(waiting, t)
		}
	}
	slices.SortFunc(waiting, func(a, b modelTicket) int {
		return cmp.Or(a.Arrived.Compare(b.Arrived), cmp.Compare(a.seq, b.seq))
	})
	return waiting
}

func (w *model) holding(cid invocation.CID) int {
	n := 0
	for _, t := range w.tickets {
		if t.holder == cid {
			n++
		}
	}
	return n
}

func (w *model) remove(i int) { w.tickets = slices.Delete(w.tickets, i, i+1) }

func (w *model) offer(t invocation.Ticket, now time.Time) error {
	if i := w.ticket(t.ID); i >= 0 {
		known := &w.tickets[i]
		if known.holder != "" && (known.Token != t.Token || now.Sub(known.handed) >= w.limits.ClaimGrace) {
			known.holder = ""
			w.departed--
		}
		known.Token, known.cancelled = t.Token, false
		return nil
	}
	if len(w.waiting()) >= w.limits.MaxWaiting {
		return ErrFull
	}
	w.seq++
	w.tickets = append(w.tickets, modelTicket{Ticket: t, seq: w.seq})
	w.arrived++
	return nil
}

func (w *model) cancel(id invocation.ID) bool {
	i := w.ticket(id)
	if i < 0 {
		return false
	}
	if w.tickets[i].holder != "" {
		w.tickets[i].cancelled = true
		return false
	}
	w.remove(i)
	w.departed++
	return true
}

func (w *model) join(cid invocation.CID, capacity int) bool {
	if w.instance(cid) >= 0 {
		return false
	}
	w.instances = append(w.instances, modelInstance{cid: cid, capacity: capacity})
	return true
}

func (w *model) leave(cid invocation.CID, now time.Time) {
	i := w.instance(cid)
	if i < 0 {
		return
	}
	w.instances = slices.Delete(w.instances, i, i+1)
	w.tickets = slices.DeleteFunc(w.tickets, func(t modelTicket) bool {
		return t.holder == cid && (t.cancelled || now.Sub(t.handed) >= w.limits.ClaimGrace)
	})
	for i := range w.tickets {
		if w.tickets[i].holder == cid {
			w.tickets[i].holder = ""
			w.departed--
		}
	}
}

func (w *model) pull(cid invocation.CID, credits int, now time.Time) bool {
	i := w.instance(cid)
	if i < 0 {
		return false
	}
	in := &w.instances[i]
	in.ready = true
	for ; credits > 0 && !in.draining && in.credits+w.holding(cid) < in.capacity; credits-- {
		in.credits++
		w.pulls++
		if in.credits == in.capacity {
			in.idle = now
		}
	}
	return true
}

func (w *model) done(cid invocation.CID, id invocation.ID) {
	if i := w.ticket(id); i >= 0 && cid != "" && w.tickets[i].holder == cid {
		w.remove(i)
	}
}

func (w *model) requeue(cid invocation.CID, id invocation.ID, now time.Time) {
	i := w.ticket(id)
	if i < 0 || cid == "" || w.tickets[i].holder != cid {
		return
	}
	gateway, until := w.tickets[i].Gateway, now.Add(w.limits.CoolDown)
	in := &w.instances[w.instance(cid)]
	if in.coolDowns == nil {
		in.coolDowns = map[string]time.Time{}
	}
	if w.coolDowns == nil {
		w.coolDowns = map[string]time.Time{}
	}
	in.coolDowns[gateway], w.coolDowns[gateway] = until, until
	if w.tickets[i].cancelled {
		w.remove(i)
		return
	}
	w.tickets[i].holder = ""
	w.departed--
}

func (w *model) drain(cid invocation.CID) bool {
	i := w.instance(cid)
	if i < 0 || w.instances[i].draining {
		return false
	}
	w.instances[i].draining, w.instances[i].credits = true, 0
	return true
}

func (w *model) requestLeave(cid invocation.CID, idle time.Duration, p LeavePolicy) (LeaveAnswer, bool) {
	i := w.instance(cid)
	if i < 0 {
		return LeaveAnswer{}, false
	}
	others := w.others(cid)
	draining := w.instances[i].draining
	if w.holding(cid) > 0 || (!draining && others < p.Min) {
		return LeaveAnswer{RetryAfter: p.IdleTimeout}, true
	}
	needed := p.IdleTimeout
	if others == 0 && p.KeepLast > needed {
		needed = p.KeepLast
	}
	if !draining && idle < needed {
		return LeaveAnswer{RetryAfter: needed - idle}, true
	}
	w.instances = slices.Delete(w.instances, i, i+1)
	return LeaveAnswer{Granted: true}, true
}

func (w *model) others(cid invocation.CID) int {
	n := 0
	for _, in := range w.instances {
		if in.cid != cid && in.ready && !in.draining {
			n++
		}
	}
	return n
}

func (w *model) longestIdle(now time.Time, p EvictPolicy) []IdleInstance {
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

func (w *model) evict(cid invocation.CID, now time.Time, p EvictPolicy) bool {
	for _, in := range w.longestIdle(now, p) {
		if in.CID == cid {
			return w.drain(cid)
		}
	}
	return false
}

type handed struct {
	cid invocation.CID
	id  invocation.ID
}

func (w *model) match(now time.Time) (out []handed, expired int) {
	w.resetOrder(now)
	for {
		expired += w.expire(now)
		i, best := w.pair(now)
		if best < 0 {
			w.resetOrder(now)
			return out, expired
		}
		w.departed++
		if !w.tickets[i].Deadline.After(now) {
			w.remove(i)
			expired++
			continue
		}
		w.instances[best].credits--
		w.tickets[i].holder, w.tickets[i].handed = w.instances[best].cid, now
		out = append(out, handed{w.instances[best].cid, w.tickets[i].ID})
		w.detectOverload(w.tickets[i].Ticket, now)
	}
}

// pair finds the first ticket in the order of the moment that an instance takes,
// and the first instance that takes it.
func (w *model) pair(now time.Time) (ticket, instance int) {
	waiting := w.waiting()
	if w.newestFirst {
		slices.Reverse(waiting)
	}
	for _, t := range waiting {
		best := -1
		for i, in := range w.instances {
			if in.credits > 0 && !in.coolDowns[t.Gateway].After(now) && (best < 0 || in.cid < w.instances[best].cid) {
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
// has a cool-down, and else the oldest of all other gateways.
func (w *model) expire(now time.Time) (expired int) {
	kept := map[string]bool{}
	for _, t := range w.waiting() {
		group := ""
		if w.coolDowns[t.Gateway].After(now) {
			group = t.Gateway
		}
		if !kept[group] && !t.Deadline.After(now) {
			w.remove(w.ticket(t.ID))
			w.departed++
			expired++
		} else {
			kept[group] = true
		}
	}
	return expired
}

func modelLate(t invocation.Ticket, now time.Time) bool {
	half := t.Arrived.Add(t.Deadline.Sub(t.Arrived) / 2)
	return now.After(half)
}

func (w *model) detectOverload(t invocation.Ticket, now time.Time) {
	if w.newestFirst {
		return
	}
	if !modelLate(t, now) {
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
		w.newestFirst = modelLate(waiting[len(waiting)-1].Ticket, now.Add(rest))
	}
	w.late = []time.Time{now}
}

func (w *model) resetOrder(now time.Time) {
	waiting := w.waiting()
	if len(waiting) == 0 || w.newestFirst && !modelLate(waiting[0].Ticket, now) {
		w.newestFirst, w.late = false, nil
	}
}

func (w *model) clear() []invocation.ID {
	var ids []invocation.ID
	for _, t := range w.waiting() {
		ids = append(ids, t.ID)
		w.remove(w.ticket(t.ID))
		w.departed++
	}
	return ids
}

func (w *model) view(now time.Time) View {
	waiting := w.waiting()
	v := View{Waiting: len(waiting), Out: len(w.tickets) - len(waiting), Arrived: w.arrived, Departed: w.departed, NewestFirst: w.newestFirst, Requested: w.pulls}
	for _, in := range w.instances {
		if in.draining {
			continue
		}
		v.Instances++
		v.Credits += in.credits
		if w.holding(in.cid) > 0 {
			v.Busy++
		}
	}
	if len(waiting) > 0 {
		v.OldestWait = max(0, now.Sub(waiting[0].Arrived))
	}
	return v
}
