package core

import (
	"container/heap"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Pauses between two probes, after probes that no instance took.
const (
	minProbePause = 2 * time.Millisecond
	maxProbePause = AskAfter
)

// Pool has what a gateway knows of one revision of a function: the pulls that instances have
// lent to the gateway, and the calls that wait. It is the one place at a gateway where calls
// meet loans: the call that has waited longest goes to the instance with the alphabetically
// first CID, and to one on a busy node only if there is no other. Of a credit on a calm node that no
// call waits for, it says which call of a busy node should have it.
//
// C is a call, and L a lender: an instance by its connection. A Pool holds no lock and reads no
// clock.
type Pool[C, L any] struct {
	lenders   lenderHeap[L] // those with credits
	waiting   waiting[C]
	longWaits []*LongWait[L] // the longest first
	report    LoanReport
	// probing is the call whose ticket is a probe that neither an instance nor a loan has
	// answered; nil if there is none. probe is when the next call that has to wait sends one,
	// and pause for how long none did before.
	probing *Waiting[C]
	probe   time.Time
	pause   time.Duration
}

// LoanReport is what a gateway did with the loans of one revision.
type LoanReport struct {
	// Served counts the calls that never had a ticket and no longer wait, and Waiting are those
	// that wait without one.
	Served  uint64
	Waiting int
	// Running calls run by loans, and Lent is how many could.
	Running, Lent int
	// Executions counts the calls that have run by loans, and ExecutionTime is the sum of their
	// durations.
	Executions    uint64
	ExecutionTime time.Duration
	// CoreWaited is how long they waited for cores of their nodes before; of each call, as much
	// as its scheduler did not hear of meanwhile (invocation.ShortCoreWait).
	CoreWaited time.Duration
}

// Lender is an instance with loans to this gateway.
type Lender[L any] struct {
	Instance L
	cid      invocation.CID
	// busy says that more threads want to run on its node than there are cores.
	busy bool
	// credits is how many more calls the gateway may hand to it. It is negative while a call
	// and a TakeBack have crossed.
	credits int
	// promised credits wait for calls with a LongWait at other instances, and are none of credits.
	promised int
	// running calls run by its loans.
	running int
	gone    bool
	index   int // in the heap, -1 if not there
}

// Waiting is a call in a Pool.
type Waiting[C any] struct {
	Call C
	// Since is when the call was admitted: calls wait in this order.
	Since time.Time
	// asked says that its ticket was sent, probe that it was sent although loans exist.
	asked, probe bool
	// ticketOnly says that only an instance with its ticket may have it.
	ticketOnly bool
	in         *waiting[C]
	prev, next *Waiting[C]
}

// NewLender makes an instance without credits.
func NewLender[L any](cid invocation.CID, instance L) *Lender[L] {
	return &Lender[L]{Instance: instance, cid: cid, index: -1}
}

// Add lets a call wait; Next says which instance gets which call. ask says that the call sends
// its ticket now; it does in any case if tickets is set, for functions that lend nothing: then no
// loan runs it.
func (p *Pool[C, L]) Add(w *Waiting[C], now time.Time, tickets bool) (ask bool) {
	w.asked, w.probe, w.ticketOnly = false, false, tickets
	p.waiting.insert(w)
	p.report.Waiting++
	switch {
	case tickets:
		p.ask(w)
	case len(p.lenders) > 0: // Next hands it out
	case p.report.Lent <= 0:
		p.ask(w)
	case p.probing == nil && !now.Before(p.probe):
		p.ask(w)
		p.probing, w.probe = w, true
	}
	return w.asked
}

// leave takes a call out of the waiting ones.
func (p *Pool[C, L]) leave(w *Waiting[C]) {
	p.waiting.remove(w)
	if p.probing == w {
		p.probing = nil
	}
	if !w.asked {
		p.report.Waiting--
		p.report.Served++
	}
}

// ask marks a call that sends its ticket.
func (p *Pool[C, L]) ask(w *Waiting[C]) {
	w.asked = true
	p.report.Waiting--
}

// askAll marks all calls that wait without a ticket, and returns them.
func (p *Pool[C, L]) askAll() (ask []C) {
	for w := p.waiting.first; w != nil && p.report.Waiting > 0; w = w.next {
		if !w.asked {
			p.ask(w)
			ask = append(ask, w.Call)
		}
	}
	return ask
}

// Next takes a call that waits and the credit that it uses up; false if there is no such pair.
// If the call turns out not to wait any more, Refund takes the credit back. If the instance
// turns out to be gone, PutBack takes the call back.
func (p *Pool[C, L]) Next() (w *Waiting[C], by *Lender[L], ok bool) {
	if len(p.lenders) == 0 {
		return nil, nil, false
	}
	if w = p.waiting.firstForLoan(); w == nil {
		return nil, nil, false
	}
	by = p.lenders[0]
	p.leave(w)
	p.credit(by, -1)
	by.running++
	p.report.Running++
	return w, by, true
}

// Handed records that Next's call was handed over.
func (p *Pool[C, L]) Handed(w *Waiting[C], now time.Time) {
	if w.probe { // no instance took it: a loan was free first
		p.pause = min(max(2*p.pause, minProbePause), maxProbePause)
		p.probe = now.Add(p.pause)
	}
}

// Refund takes back what Next took, for a call that no longer waits.
func (p *Pool[C, L]) Refund(by *Lender[L]) { p.Ended(by, true) }

// PutBack takes back the call that Next took for an instance that is gone. It waits on at its
// place, and has not been counted as served.
func (p *Pool[C, L]) PutBack(w *Waiting[C], gone *Lender[L]) {
	p.Gone(gone)
	p.waiting.insert(w)
	if !w.asked {
		p.report.Waiting++
		p.report.Served--
	}
	if w.probe {
		p.probing = w
	}
}

// Remove takes a call out that no longer waits for another reason than Next, and reports
// whether it was in.
func (p *Pool[C, L]) Remove(w *Waiting[C]) bool {
	if w.in != &p.waiting {
		return false
	}
	p.leave(w)
	return true
}

// Taken takes a call out that an instance has claimed with a ticket. There may be more such
// instances, so it returns the calls that send their tickets now.
func (p *Pool[C, L]) Taken(w *Waiting[C]) (ask []C) {
	if !p.Remove(w) {
		return nil
	}
	p.probe, p.pause = time.Time{}, 0
	return p.askAll()
}

// Stranded returns the calls that wait without a ticket although the last loan has ended. They
// send it now.
func (p *Pool[C, L]) Stranded() (ask []C) {
	if p.report.Lent > 0 {
		return nil
	}
	return p.askAll()
}

// Overdue returns the calls without a ticket that have waited for AskAfter and are among the
// AskFirst, or have waited for AskAllAfter. They send it now.
func (p *Pool[C, L]) Overdue(now time.Time) (ask []C) {
	after, place := AskAfter, 0
	for w := p.waiting.first; w != nil && p.report.Waiting > 0 && now.Sub(w.Since) >= after; w = w.next {
		if !w.asked {
			p.ask(w)
			ask = append(ask, w.Call)
		}
		if place++; place == AskFirst {
			after = AskAllAfter
		}
	}
	return ask
}

// Lend gives credits, or takes them away if n is negative.
func (p *Pool[C, L]) Lend(to *Lender[L], n int) {
	if !to.gone {
		p.report.Lent += n
		p.credit(to, n)
	}
}

// SetBusy records whether the node of a lender has more to do than cores.
func (p *Pool[C, L]) SetBusy(l *Lender[L], busy bool) {
	if l.busy = busy; l.index >= 0 {
		heap.Fix(&p.lenders, l.index)
	}
}

// Began records that a lender runs a call which it has claimed with a ticket, and may keep its
// place.
func (p *Pool[C, L]) Began(by *Lender[L]) {
	if by.gone { // its connection is about to end, and Ended will count nothing
		return
	}
	by.running++
	p.report.Running++
	p.report.Lent++
}

// Ended records that a call by a lender has ended; keeps says that its place stays with the
// gateway.
func (p *Pool[C, L]) Ended(by *Lender[L], keeps bool) {
	if by.gone {
		return
	}
	by.running--
	p.report.Running--
	p.report.Lent--
	if keeps {
		p.Lend(by, 1)
	}
}

// CountExecution counts an execution by a loan, which waited for a core before.
func (p *Pool[C, L]) CountExecution(took, coreWait time.Duration) {
	p.report.Executions++
	p.report.ExecutionTime += took
	p.report.CoreWaited += invocation.ShortCoreWait(coreWait)
}

// Gone removes a lender with its credits and running calls.
func (p *Pool[C, L]) Gone(l *Lender[L]) {
	if l.gone {
		return
	}
	p.forgetWaitsOf(l)
	p.report.Lent -= l.Held()
	p.report.Running -= l.running
	p.credit(l, -l.credits)
	l.running, l.promised, l.gone = 0, 0, true
}

// Credits are the credits of a lender; never negative.
func (l *Lender[L]) Credits() int { return max(0, l.credits) }

// Held is how many places of a lender the gateway has: its credits, also the promised ones, and its
// running calls.
func (l *Lender[L]) Held() int { return l.credits + l.promised + l.running }

// NextUnused takes all credits of a lender that Next and NextLongWait have left, to give them back; false if
// none are left.
func (p *Pool[C, L]) NextUnused() (from *Lender[L], credits int, ok bool) {
	if len(p.lenders) == 0 {
		return nil, 0, false
	}
	from = p.lenders[0]
	credits = from.credits
	p.Lend(from, -credits)
	return from, credits, true
}

// Report is what the gateway did with the loans so far. Numbers that a lender holds back for a
// moment count as 0.
func (p *Pool[C, L]) Report() LoanReport {
	r := p.report
	r.Lent = max(r.Lent, r.Running, 0)
	return r
}

// Unused reports whether the pool has neither calls nor loans.
func (p *Pool[C, L]) Unused() bool {
	return p.waiting.first == nil && len(p.lenders) == 0 && p.report.Lent == 0 && p.report.Running == 0
}

// credit changes the credits of a lender, and keeps the heap in order.
func (p *Pool[C, L]) credit(l *Lender[L], n int) {
	l.credits += n
	switch {
	case l.credits > 0 && l.index < 0:
		heap.Push(&p.lenders, l)
	case l.credits <= 0 && l.index >= 0:
		heap.Remove(&p.lenders, l.index)
	}
}

// waiting are the calls that wait, in the order of their admission.
type waiting[C any] struct{ first, last *Waiting[C] }

// insert puts a call in its place. Calls that come back are among the first, new ones the last.
func (q *waiting[C]) insert(w *Waiting[C]) {
	after := q.last
	if q.first != nil && w.Since.Before(q.first.Since) {
		after = nil
	}
	for after != nil && w.Since.Before(after.Since) {
		after = after.prev
	}
	w.in, w.prev = q, after
	if after == nil {
		w.next, q.first = q.first, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		q.last = w
	} else {
		w.next.prev = w
	}
}

// firstForLoan is the first call that a loan may run; nil if there is none.
func (q *waiting[C]) firstForLoan() *Waiting[C] {
	w := q.first
	for w != nil && w.ticketOnly {
		w = w.next
	}
	return w
}

func (q *waiting[C]) remove(w *Waiting[C]) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.in, w.prev, w.next = nil, nil, nil
}

func (l *Lender[L]) rank() invocation.Rank { return invocation.Rank{NodeBusy: l.busy, CID: l.cid} }

// lenderHeap has the first in rank on top.
type lenderHeap[L any] []*Lender[L]

func (h lenderHeap[L]) Len() int           { return len(h) }
func (h lenderHeap[L]) Less(i, j int) bool { return h[i].rank().Before(h[j].rank()) }

func (h lenderHeap[L]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap only.
func (h *lenderHeap[L]) Push(x any) {
	l := x.(*Lender[L])
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop is for container/heap only.
func (h *lenderHeap[L]) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.index = -1
	return l
}
