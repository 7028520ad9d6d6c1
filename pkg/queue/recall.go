package queue

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// LoanTerm is how long a gateway keeps a loan that it goes on using although calls of other
	// gateways wait. If it is too short, each place goes from one busy gateway to the other with
	// each call, which then costs a ticket. If it is too long, a gateway without loans waits for it.
	LoanTerm = 100 * time.Millisecond
	// recallPatience is how long a recalled place counts as one that comes. After that, its
	// call is a long one, and another place is recalled.
	recallPatience = time.Second
	// A decision looks at all loans, which takes some 0.1 µs for each. Above manyLoans the pause
	// between two decisions grows by timePerLoan for each loan, up to maxBetween. So decisions take
	// a hundredth of a processor at most, however often calls come. A function with so many loans
	// has events all the time, so no decision waits for a tick.
	manyLoans   = 128
	timePerLoan = 10 * time.Microsecond
	maxBetween  = 10 * time.Millisecond
)

// Recall takes places back that an instance has lent to a gateway.
type Recall struct {
	CID     invocation.CID
	Gateway string
	Calls   int
	// Term is what is left of LoanTerm. Until then the instance gives back only places that are
	// surplus: the queue does not know which are in use.
	Term time.Duration
}

// Recalls decides which loans come to an end because tickets of other gateways wait, for which
// no instance polls. It must follow Match, and passes each Recall to visit.
//
// unused is how many calls a gateway could hand over at once, by its last report. Those loans are
// recalled first. Gateways with the most unused loans come first, then those with the most loans.
// Of a gateway's unused loans, those of instances that are known to be idle come first, and then
// those with the highest CIDs, because a gateway uses the lowest first. Of its other loans, those
// with the shortest Term come first, and then those with the lowest CIDs.
//
// A recalled place is owed until the instance polls for it, for at most a second. No more
// places are owed than tickets wait, and no more of one gateway's than tickets of other
// gateways wait. One that runs a call since it was recalled, for LoanTerm or longer, keeps no unused
// loan from being recalled: its call may be a long one.
//
// With more than manyLoans, a call within 10 ms of the last decision may do nothing.
func (q *Queue) Recalls(now time.Time, unused func(gateway string) int, visit func(Recall)) {
	if !lacksLoans(&q.backlog, &q.instances) || now.Before(q.recallsPausedUntil) {
		return
	}
	q.pauseRecalls(now)
	r := recalls{now: now, waiting: q.backlog.waiting(), by: q.backlog.byGateway}
	r.collect(&q.instances, unused)
	for i := range r.borrowers {
		r.take(&r.borrowers[i], true, visit)
	}
	for i := range r.borrowers {
		r.take(&r.borrowers[i], false, visit)
	}
}

// pauseRecalls bounds how often all loans are looked at.
func (q *Queue) pauseRecalls(now time.Time) {
	if lent := q.instances.totals.lent; lent > manyLoans {
		q.recallsPausedUntil = now.Add(min(time.Duration(lent)*timePerLoan, maxBetween))
	}
}

// RecallAll takes all loans back: the function's calls all have to come by from now on.
func (q *Queue) RecallAll(now time.Time, visit func(Recall)) {
	if len(q.instances.lent) == 0 {
		return
	}
	var all []recallable
	for _, in := range q.instances.joined {
		for i := range in.loans {
			l := &in.loans[i]
			if l.forgetOldRecalls(now); l.recalled < l.calls {
				all = append(all, recallable{l, in})
			}
		}
	}
	slices.SortFunc(all, func(a, b recallable) int {
		return cmp.Or(cmp.Compare(a.of.cid, b.of.cid), strings.Compare(a.gateway, b.gateway))
	})
	for _, l := range all {
		l.recall(l.calls-l.recalled, 0, now, visit)
	}
}

// RecallFrom takes up to n places back that a gateway does not know it has. Places that were
// recalled before count.
func (q *Queue) RecallFrom(gateway string, n int, now time.Time, visit func(Recall)) {
	var loans []recallable
	for _, in := range q.instances.joined {
		if l := in.loanTo(gateway); l != nil {
			l.forgetOldRecalls(now)
			n -= l.owed()
			loans = append(loans, recallable{l, in})
		}
	}
	slices.SortFunc(loans, compareIdle)
	for _, l := range loans {
		if k := min(n, l.calls-l.recalled); k > 0 {
			l.recall(k, 0, now, visit)
			n -= k
		}
	}
}

// lacksLoans reports whether tickets wait and another gateway than theirs has loans. It is
// cheap, and mostly false.
func lacksLoans(b *backlog, s *instances) bool {
	waiting := b.waiting()
	if waiting == 0 {
		return false
	}
	for _, to := range s.lent {
		if waiting > b.byGateway.of(to.gateway) {
			return true
		}
	}
	return false
}

// recalls is one decision.
type recalls struct {
	now time.Time
	// waiting is how many tickets wait, and by whose they are.
	waiting int
	by      gatewayCounts
	// borrowers are the gateways with loans in the order in which they lose them. owed is how many
	// places will come back, and running are those of them that run a call for long.
	borrowers     []borrower
	owed, running int
}

// borrower is a gateway that may lose loans.
type borrower struct {
	gateway                      string
	unused, calls, owed, running int
	loans                        []recallable
}

// recallable is a loan that has places to recall.
type recallable struct {
	*loan
	of *instance
}

// collect looks at all loans.
func (r *recalls) collect(s *instances, unused func(string) int) {
	for _, to := range s.lent {
		r.borrowers = append(r.borrowers, borrower{gateway: to.gateway, calls: to.n, unused: max(0, min(unused(to.gateway), to.n))})
	}
	slices.SortFunc(r.borrowers, func(a, b borrower) int {
		return cmp.Or(cmp.Compare(b.unused, a.unused), cmp.Compare(b.calls, a.calls), strings.Compare(a.gateway, b.gateway))
	})
	for _, in := range s.joined {
		for i := range in.loans {
			l := &in.loans[i]
			l.forgetOldRecalls(r.now)
			owed, running := l.owed(), l.running(r.now)
			r.owed, r.running = r.owed+owed, r.running+running
			at := slices.IndexFunc(r.borrowers, func(b borrower) bool { return b.gateway == l.gateway })
			if at < 0 {
				continue // it has no loan any more
			}
			b := &r.borrowers[at]
			b.owed, b.running = b.owed+owed, b.running+running
			if l.calls > l.recalled && r.wanted(in, l.gateway) {
				b.loans = append(b.loans, recallable{l, in})
			}
		}
	}
}

// wanted reports whether a ticket of another gateway waits that the instance may be handed.
func (r *recalls) wanted(in *instance, gateway string) bool {
	others := r.waiting - r.by.of(gateway)
	for other := range in.coolDowns {
		if other != gateway && in.coolingDown(other, r.now) {
			others -= r.by.of(other)
		}
	}
	return others > 0
}

// take recalls loans of a gateway: at first only as many as are unused by its report.
func (r *recalls) take(from *borrower, unusedOnly bool, visit func(Recall)) {
	n := min(r.waiting-r.owed, r.waiting-r.by.of(from.gateway)-from.owed)
	if unusedOnly {
		n = min(r.waiting-(r.owed-r.running), r.waiting-r.by.of(from.gateway)-(from.owed-from.running), from.unused)
	}
	if n <= 0 {
		return
	}
	order := compareIdle
	if !unusedOnly {
		order = func(a, b recallable) int { return compareBusy(a, b, r.now) }
	}
	slices.SortFunc(from.loans, order)
	for _, l := range from.loans {
		k := min(n, l.calls-l.recalled)
		if k <= 0 {
			continue
		}
		l.recall(k, l.term(r.now), r.now, visit)
		n, from.owed, r.owed = n-k, from.owed+k, r.owed+k
	}
}

// compareBusy orders loans that are all busy.
func compareBusy(a, b recallable, now time.Time) int {
	return cmp.Or(a.recalledAt.Compare(b.recalledAt), cmp.Compare(a.term(now), b.term(now)), cmp.Compare(a.of.cid, b.of.cid))
}

// compareIdle orders loans, some of them idle.
func compareIdle(a, b recallable) int {
	if known := !a.of.idleSince.IsZero(); known == b.of.idleSince.IsZero() {
		if known {
			return -1
		}
		return 1
	}
	return cmp.Or(a.recalledAt.Compare(b.recalledAt), cmp.Compare(b.of.cid, a.of.cid))
}

// hasOldRecalls reports whether the loan's places were recalled for so long that these recalls no longer
// count.
func (l *loan) hasOldRecalls(now time.Time) bool { return now.Sub(l.recalledAt) >= recallPatience }

// forgetOldRecalls drops recalls that no longer count. Each decision about loans begins with it.
func (l *loan) forgetOldRecalls(now time.Time) {
	if l.hasOldRecalls(now) {
		l.recalled, l.returning = 0, 0
	}
}

// owed is how many places are recalled and will come back soon.
func (l *loan) owed() int { return l.recalled + l.returning }

// running is how many recalled places run a call for long.
func (l *loan) running(now time.Time) int {
	if now.Sub(l.recalledAt) < LoanTerm {
		return 0
	}
	return l.returning
}

// term is what is left of LoanTerm.
func (l *loan) term(now time.Time) time.Duration { return max(0, l.since.Add(LoanTerm).Sub(now)) }

// recall takes n places of a loan back.
func (l recallable) recall(n int, term time.Duration, now time.Time, visit func(Recall)) {
	l.recalled, l.recalledAt = l.recalled+n, now
	visit(Recall{CID: l.of.cid, Gateway: l.gateway, Calls: n, Term: term})
}
