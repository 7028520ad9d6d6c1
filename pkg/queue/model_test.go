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
	// pastHalf are the times of the tickets handed out past half in a row, since the
	// pace was last measured.
	pastHalf    []time.Time
	newestFirst bool
	// pulls are the credits that instances ever got.
	pulls uint64
	// recalledFor are tickets that wait for cores and get the next places of calm nodes.
	recalledFor []invocation.ID
}

type modelTicket struct {
	invocation.Ticket
	seq    int
	holder invocation.CID // empty while it waits
	handed time.Time
	// cancelled tickets do not wait again.
	cancelled bool
	lent      bool // its place stays with its gateway
	rebound   bool // an earlier holder has it as well
}

type modelInstance struct {
	cid       invocation.CID
	capacity  int
	credits   int
	ready     bool
	draining  bool
	busy      bool          // its node has more to do than cores
	awaits    bool          // it has a call that waits for one of them
	ticket    invocation.ID // that of this call
	idle      time.Time     // since when it is known to run nothing; zero if it may run something
	coolDowns map[string]time.Time
	loans     map[string]int
	// since is when a loan began or was last handed a ticket. recalled are the places that
	// were recalled and count as lent, each with the time, and returning those that no longer do. running
	// are those of them that ran a call for 100 ms when the last decision began.
	since               map[string]time.Time
	recalled, returning map[string][]time.Time
	running             map[string]int
	// asked are the gateways with a recall that was not answered.
	asked map[string]time.Time
}

func (in *modelInstance) lent() (n int) {
	for _, calls := range in.loans {
		n += calls
	}
	return n
}

func (in *modelInstance) clearLoans() {
	in.loans, in.asked = map[string]int{}, map[string]time.Time{}
	in.recalled, in.returning, in.running = map[string][]time.Time{}, map[string][]time.Time{}, map[string]int{}
}

// handedTo are the tickets of a gateway that an instance holds and whose places it keeps.
func (w *model) handedTo(cid invocation.CID, gateway string) (n int) {
	for _, t := range w.tickets {
		if t.holder == cid && t.Gateway == gateway && t.lent {
			n++
		}
	}
	return n
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

// calls are the calls that an instance may have.
func (w *model) calls(cid invocation.CID) int {
	n := w.holding(cid)
	if i := w.instance(cid); i >= 0 && w.instances[i].idle.IsZero() {
		in := &w.instances[i]
		n += in.lent() + len(in.returning["A"]) + len(in.returning["B"]) + len(in.returning["C"])
	}
	return n
}

// release makes a ticket wait again.
func (w *model) release(i int) {
	w.tickets[i].holder, w.tickets[i].rebound = "", false
	w.departed--
}

func (w *model) remove(i int) { w.tickets = slices.Delete(w.tickets, i, i+1) }

func (w *model) offer(t invocation.Ticket, now time.Time) error {
	if i := w.ticket(t.ID); i >= 0 {
		known := &w.tickets[i]
		if known.holder != "" && (known.Token != t.Token || w.overdue(*known, now)) {
			w.release(i)
		}
		if known.Token != t.Token {
			known.Token, known.Deadline = t.Token, t.Deadline
		}
		known.cancelled = false
		if t.Arrived.Before(known.Arrived) {
			known.Arrived, known.Deadline = t.Arrived, t.Deadline
		}
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

// overdue tickets are claimed, or their holders hang.
func (w *model) overdue(t modelTicket, now time.Time) bool {
	return now.Sub(t.handed) >= w.limits.ClaimGrace && w.instances[w.instance(t.holder)].ticket != t.ID
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
	in := modelInstance{cid: cid, capacity: capacity, since: map[string]time.Time{}}
	in.clearLoans()
	w.instances = append(w.instances, in)
	return true
}

func (w *model) leave(cid invocation.CID, now time.Time) {
	i := w.instance(cid)
	if i < 0 {
		return
	}
	w.tickets = slices.DeleteFunc(w.tickets, func(t modelTicket) bool {
		return t.holder == cid && (t.cancelled || w.overdue(t, now))
	})
	w.instances = slices.Delete(w.instances, i, i+1)
	for i := range w.tickets {
		if w.tickets[i].holder == cid {
			w.release(i)
		}
	}
}

func (w *model) pull(cid invocation.CID, p Pull, now time.Time) bool {
	i := w.instance(cid)
	if i < 0 {
		return false
	}
	in := &w.instances[i]
	if i := w.ticket(in.ticket); in.ticket != p.Awaits && i >= 0 && w.tickets[i].holder == cid {
		w.tickets[i].handed = now
	}
	in.ready, in.busy, in.awaits, in.ticket = true, p.NodeBusy, p.AwaitsCore, p.Awaits
	before := in.loans
	in.loans = map[string]int{}
	for _, l := range p.Loans {
		for range l.Calls {
			if l.Gateway != "" && !in.draining && in.credits+w.holding(cid)+in.lent() < in.capacity {
				in.loans[l.Gateway]++
			}
		}
	}
	for _, gateway := range []string{"A", "B", "C"} {
		if in.loans[gateway] > 0 && before[gateway] == 0 && in.since[gateway].IsZero() {
			in.since[gateway] = now
		}
		if lost := before[gateway] - in.loans[gateway]; lost > 0 {
			if len(in.recalled[gateway])+len(in.returning[gateway]) == 0 {
				delete(in.asked, gateway)
			}
			answered := min(lost, len(in.recalled[gateway]))
			in.returning[gateway] = append(in.returning[gateway], in.recalled[gateway][:answered]...)
			in.recalled[gateway] = in.recalled[gateway][answered:]
		}
	}
	for range p.Credits {
		if !in.draining && in.credits+w.holding(cid)+in.lent() < in.capacity {
			in.credits++
			w.pulls++
			in.comeBack()
		}
	}
	for _, gateway := range []string{"A", "B", "C"} {
		if in.loans[gateway]+w.handedTo(cid, gateway)+len(in.returning[gateway]) == 0 {
			in.since[gateway] = time.Time{}
			delete(in.asked, gateway)
		}
	}
	switch full := in.credits+in.lent() == in.capacity; {
	case !full, in.lent() > 0 && p.Idle == 0:
		in.idle = time.Time{}
	case p.Idle > 0:
		in.idle = now.Add(-p.Idle)
	case in.idle.IsZero():
		in.idle = now
	}
	return true
}

// comeBack is a recalled place that polls again.
func (in *modelInstance) comeBack() {
	for _, gateway := range []string{"A", "B", "C"} {
		if times := in.returning[gateway]; len(times) > 0 {
			in.returning[gateway] = times[1:]
			if len(times)+len(in.recalled[gateway]) == 1 {
				delete(in.asked, gateway)
			}
			return
		}
	}
}

// recalls decides place by place: as long as a ticket wants one, it takes the first in the
// order of the moment.
func (w *model) recalls(now time.Time, idle map[string]int, all bool) (list []Recall) {
	for i := range w.instances {
		in := &w.instances[i]
		for _, gateway := range []string{"A", "B", "C"} {
			times := append(slices.Clone(in.recalled[gateway]), in.returning[gateway]...)
			if len(times) > 0 && now.Sub(slices.MaxFunc(times, time.Time.Compare)) >= time.Second {
				in.recalled[gateway], in.returning[gateway] = nil, nil
			}
			in.running[gateway] = 0
			for _, recalled := range in.returning[gateway] {
				if now.Sub(recalled) >= 100*time.Millisecond {
					in.running[gateway]++
				}
			}
		}
	}
	if all {
		return w.recallAll(now)
	}
	lent := map[string]int{}
	for _, in := range w.instances {
		for gateway, n := range in.loans {
			lent[gateway] += n
		}
	}
	gateways := []string{"A", "B", "C"}
	slices.SortFunc(gateways, func(a, b string) int {
		return cmp.Or(cmp.Compare(min(idle[b], lent[b]), min(idle[a], lent[a])), cmp.Compare(lent[b], lent[a]), cmp.Compare(a, b))
	})
	for _, idly := range []bool{true, false} {
		for _, gateway := range gateways {
			for n := 0; !idly || n < min(idle[gateway], lent[gateway]); n++ {
				if !w.wantsFrom(gateway, idly) {
					break
				}
				best := w.nextRecall(gateway, idly, now)
				if best == nil {
					break
				}
				best.recall(gateway, best.term(gateway, now), now, &list)
			}
			w.markAsked(gateway, now)
		}
	}
	return list
}

func (w *model) recallAll(now time.Time) (list []Recall) {
	var cids []invocation.CID
	for _, in := range w.instances {
		cids = append(cids, in.cid)
	}
	slices.Sort(cids)
	for _, cid := range cids {
		in := &w.instances[w.instance(cid)]
		for _, gateway := range []string{"A", "B", "C"} {
			for range in.loans[gateway] - len(in.recalled[gateway]) {
				in.recall(gateway, 0, now, &list)
			}
			w.markAsked(gateway, now)
		}
	}
	return list
}

// term is what is left of the 100 ms for which a loan is kept.
func (in *modelInstance) term(gateway string, now time.Time) time.Duration {
	return max(0, 100*time.Millisecond-now.Sub(in.since[gateway]))
}

// recall recalls one more place.
func (in *modelInstance) recall(gateway string, term time.Duration, now time.Time, list *[]Recall) {
	in.recalled[gateway] = append(in.recalled[gateway], now)
	for _, times := range [][]time.Time{in.recalled[gateway], in.returning[gateway]} {
		for i := range times {
			times[i] = now
		}
	}
	*list = append(*list, Recall{CID: in.cid, Gateway: gateway, Calls: 1, Term: term})
}

// markAsked notes which instances have not answered a recall of a gateway's loans.
func (w *model) markAsked(gateway string, now time.Time) {
	for _, in := range w.instances {
		if times := in.recalled[gateway]; len(times) > 0 && times[0].Equal(now) {
			in.asked[gateway] = now
		}
	}
}

// wantsFrom tells whether a ticket may cost a gateway a loan. Late places count as ones that come
// only beside loans that run calls, too.
func (w *model) wantsFrom(gateway string, idly bool) bool {
	waiting, others, expected, expectedHere := 0, 0, 0, 0
	for _, t := range w.waiting() {
		if waiting++; t.Gateway != gateway {
			others++
		}
	}
	for _, in := range w.instances {
		for _, other := range []string{"A", "B", "C"} {
			n := len(in.recalled[other]) + len(in.returning[other])
			if idly {
				n -= in.running[other]
			}
			if expected += n; other == gateway {
				expectedHere += n
			}
		}
	}
	return expected < waiting && expectedHere < others
}

// nextRecall is the instance that is to give back a place of a gateway; nil if there is none.
func (w *model) nextRecall(gateway string, idly bool, now time.Time) (best *modelInstance) {
	waiting := w.waiting()
	for i := range w.instances {
		in := &w.instances[i]
		useful := slices.ContainsFunc(waiting, func(t modelTicket) bool {
			return t.Gateway != gateway && !in.coolDowns[t.Gateway].After(now)
		})
		switch {
		case in.loans[gateway] <= len(in.recalled[gateway]), !useful:
		case best == nil || w.comesBefore(in, best, gateway, idly, now):
			best = in
		}
	}
	return best
}

func (w *model) comesBefore(in, other *modelInstance, gateway string, idly bool, now time.Time) bool {
	if idly && in.idle.IsZero() != other.idle.IsZero() {
		return other.idle.IsZero()
	}
	if !in.asked[gateway].Equal(other.asked[gateway]) {
		return in.asked[gateway].Before(other.asked[gateway])
	}
	if a, b := in.term(gateway, now), other.term(gateway, now); !idly && a != b {
		return a < b
	}
	return idly == (in.cid > other.cid)
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
	w.release(i)
}

func (w *model) drain(cid invocation.CID) bool {
	i := w.instance(cid)
	if i < 0 || w.instances[i].draining {
		return false
	}
	w.instances[i].draining, w.instances[i].credits, w.instances[i].idle = true, 0, time.Time{}
	w.instances[i].clearLoans()
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
		if !in.idle.IsZero() && now.Sub(in.idle) >= p.IdleFor && w.others(in.cid) >= p.Min {
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
	cid  invocation.CID
	id   invocation.ID
	lent bool
}

// lends tells whether an instance keeps places of calls: not if others are on calm nodes.
func (w *model) lends(in modelInstance) bool {
	return !in.busy || !w.hasCalm()
}

func (w *model) hasCalm() bool {
	return slices.ContainsFunc(w.instances, func(in modelInstance) bool { return in.ready && !in.draining && !in.busy })
}

func (w *model) match(now time.Time, lend bool) (out []handed, expired int) {
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
		out = append(out, w.assign(i, best, now, lend))
		w.detectOverload(w.tickets[i].Ticket, now)
	}
}

// assign hands a ticket to a polling instance.
func (w *model) assign(ticket, instance int, now time.Time, lend bool) handed {
	t, in := &w.tickets[ticket], &w.instances[instance]
	in.credits--
	in.idle = time.Time{}
	t.holder, t.handed, t.lent = in.cid, now, lend && w.lends(*in)
	if t.lent {
		in.since[t.Gateway] = now
	}
	return handed{in.cid, t.ID, t.lent}
}

// precedes tells whether the instance at i gets a ticket before the one at j.
func (w *model) precedes(i, j int) bool {
	a, b := &w.instances[i], &w.instances[j]
	return a.busy == b.busy && a.cid < b.cid || !a.busy && b.busy
}

// pair finds the first ticket in the order of the moment that an instance takes,
// and the first instance that takes it.
func (w *model) pair(now time.Time) (ticket, instance int) {
	waiting := w.waiting()
	if w.newestFirst {
		slices.Reverse(waiting)
	}
	for _, t := range waiting {
		if best := w.pollerFor(t.Gateway, now); best >= 0 {
			return w.ticket(t.ID), best
		}
	}
	return -1, -1
}

// pollerFor is the instance that gets the next ticket of a gateway, or -1.
func (w *model) pollerFor(gateway string, now time.Time) int {
	best := -1
	for i, in := range w.instances {
		if in.credits > 0 && !in.coolDowns[gateway].After(now) && (best < 0 || w.precedes(i, best)) {
			best = i
		}
	}
	return best
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
		w.pastHalf = nil
		return
	}
	w.pastHalf = append(w.pastHalf, now)
	took, n := now.Sub(w.pastHalf[0]), len(w.pastHalf)-1
	if n == 0 || took < time.Second {
		return
	}
	if waiting := w.waiting(); len(waiting) > 0 {
		each := took.Seconds() / float64(n)
		rest := time.Duration(each * float64(len(waiting)) * float64(time.Second))
		w.newestFirst = modelLate(waiting[len(waiting)-1].Ticket, now.Add(rest))
	}
	w.pastHalf = []time.Time{now}
}

func (w *model) resetOrder(now time.Time) {
	waiting := w.waiting()
	if len(waiting) == 0 || w.newestFirst && !modelLate(waiting[0].Ticket, now) {
		w.newestFirst, w.pastHalf = false, nil
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
		v.Lent += in.lent()
		if in.ready {
			v.Untracked += in.capacity - in.credits - in.lent() - w.holding(in.cid)
		}
		if w.holding(in.cid) > 0 {
			v.Busy++
		}
		if in.awaits {
			v.AwaitingCore++
		}
	}
	if len(waiting) > 0 {
		v.OldestWait = max(0, now.Sub(waiting[0].Arrived))
	}
	return v
}
