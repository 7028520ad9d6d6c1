package queue

import (
	"slices"
	"strings"
	"time"
)

// Loan is a number of places that an instance has lent to a gateway.
type Loan struct {
	// Gateway is the gateway's address, as in its tickets.
	Gateway string
	// Calls is how many calls at a time the instance takes directly from the gateway. Those
	// that run count.
	Calls int
}

// loan has the places of an instance that are lent to one gateway.
type loan struct {
	gateway string
	calls   int
	// tickets is how many of the gateway's tickets the instance holds whose places it keeps for
	// the gateway.
	tickets int
	// since is when the loan began, or when the instance was last handed such a ticket.
	since time.Time
	// recalled places were recalled and still count as lent, and returning ones no longer do, but
	// still run a call. Both are since recalledAt, which stays set until all are back, or after
	// recallPatience any, so that other places are recalled first.
	recalled, returning int
	recalledAt          time.Time
}

// gatewayCounts counts something by gateway: those that are not 0, in no order. A search is
// cheap, because gateways are few.
type gatewayCounts []gatewayCount

type gatewayCount struct {
	gateway string
	n       int
}

// add adds n to a gateway's count; n may be negative.
func (c *gatewayCounts) add(gateway string, n int) {
	if n == 0 {
		return
	}
	i := slices.IndexFunc(*c, func(one gatewayCount) bool { return one.gateway == gateway })
	if i < 0 {
		i = len(*c)
		*c = append(*c, gatewayCount{gateway: gateway})
	}
	if (*c)[i].n += n; (*c)[i].n == 0 {
		*c = slices.Delete(*c, i, i+1)
	}
}

func (c gatewayCounts) of(gateway string) int {
	for _, one := range c {
		if one.gateway == gateway {
			return one.n
		}
	}
	return 0
}

// loanTo is the instance's loan to a gateway; nil if it has none.
func (in *instance) loanTo(gateway string) *loan {
	for i := range in.loans {
		if in.loans[i].gateway == gateway {
			return &in.loans[i]
		}
	}
	return nil
}

// beginLoan is loanTo, and adds an empty loan if there is none.
func (in *instance) beginLoan(gateway string, now time.Time) *loan {
	i, there := slices.BinarySearchFunc(in.loans, gateway, func(l loan, gateway string) int { return strings.Compare(l.gateway, gateway) })
	if !there {
		in.loans = slices.Insert(in.loans, i, loan{gateway: gateway, since: now})
	}
	return &in.loans[i]
}

// setLoans replaces an instance's loans, within its capacity: an agent is not trusted. A
// draining instance has none, because its agent takes them back.
func (s *instances) setLoans(in *instance, loans []Loan, now time.Time) {
	if len(loans) == 0 && len(in.loans) == 0 {
		return
	}
	room := in.capacity - in.credits - len(in.out)
	var calls gatewayCounts
	for _, l := range loans {
		if n := min(l.Calls, room); n > 0 && l.Gateway != "" && !in.draining {
			in.beginLoan(l.Gateway, now)
			calls.add(l.Gateway, n)
			room -= n
		}
	}
	for i := range in.loans {
		l := &in.loans[i]
		l.forgetOldRecalls(now)
		s.changeLoan(in, l, calls.of(l.gateway))
	}
}

// changeLoan sets for how many calls a loan is. If places were recalled, it has lost those first.
func (s *instances) changeLoan(in *instance, l *loan, calls int) {
	n := calls - l.calls
	l.calls = calls
	switch {
	case n >= 0:
	case l.owed() > 0:
		answered := min(-n, l.recalled)
		l.recalled, l.returning = l.recalled-answered, l.returning+answered
	default: // the long call that a recall waited for may have ended
		l.recalledAt = time.Time{}
	}
	in.lent += n
	s.totals.lent += n
	s.lent.add(l.gateway, n)
}

// placesReturned records that n places poll again, and drops loans that are over. It follows setLoans,
// by which recalls expire.
func (in *instance) placesReturned(n int) {
	if len(in.loans) == 0 {
		return
	}
	for i := range in.loans {
		l := &in.loans[i]
		if l.owed() == 0 {
			continue
		}
		k := min(n, l.returning)
		n, l.returning = n-k, l.returning-k
		if l.recalled+l.returning == 0 {
			l.recalledAt = time.Time{}
		}
	}
	in.loans = slices.DeleteFunc(in.loans, func(l loan) bool { return l.calls+l.tickets+l.returning == 0 })
}

// calls are the calls that an instance has, as far as the queue can know: its tickets and,
// unless it is idle, its loans and the places that will come back.
func (in *instance) calls(now time.Time) int {
	n := len(in.out)
	if !in.idleSince.IsZero() {
		return n
	}
	for i := range in.loans {
		l := &in.loans[i]
		if n += l.calls; !l.hasOldRecalls(now) {
			n += l.returning
		}
	}
	return n
}

// lend records that an instance was handed a ticket whose place it keeps for the gateway.
func (in *instance) lend(gateway string, now time.Time) {
	l := in.beginLoan(gateway, now)
	l.tickets++
	l.since = now
}

// LentTo is how many calls at a time instances that do not drain take directly from a gateway.
func (q *Queue) LentTo(gateway string) int { return q.instances.lent.of(gateway) }

// EachBorrower calls visit with each gateway that has loans, and with how many calls at a time it
// may hand to instances; in no order.
func (q *Queue) EachBorrower(visit func(gateway string, calls int)) {
	for _, to := range q.instances.lent {
		visit(to.gateway, to.n)
	}
}
