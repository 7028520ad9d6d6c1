package core

import (
	"slices"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Stalled is a call that an instance has by a loan, and that has long waited for a core of the
// instance's node without having begun. A gateway lets a Pool know only of those whose request it
// can send again.
type Stalled[L any] struct {
	// At is the instance that has the call, and Number the call's number there.
	At     *Lender[L]
	Number uint32
	// To is the instance of a calm node with a credit for it, once its present one was asked to
	// give the call up.
	To *Lender[L]
}

// Stall notes that a call stalls. NextStalled says when to ask for it.
func (p *Pool[C, L]) Stall(s *Stalled[L]) {
	if !s.At.gone && !slices.Contains(p.stalled, s) {
		p.stalled = append(p.stalled, s)
	}
}

// NextStalled takes the call that stalls for longest on a busy node, and the credit that waits for
// it at an instance of a calm node; false if there is no such pair, or a call without an instance
// needs the credit. The instance that has the call gives it up unless it has begun; Unstall follows
// in both cases.
func (p *Pool[C, L]) NextStalled() (s *Stalled[L], ok bool) {
	if len(p.lenders) == 0 || p.lenders[0].busy || p.waiting.first != nil {
		return nil, false
	}
	for _, s := range p.stalled {
		if s.To == nil && s.At.busy {
			s.To = p.lenders[0]
			s.To.promised++
			p.credit(s.To, -1)
			return s, true
		}
	}
	return nil, false
}

// Unstall notes that a call does not stall any more, and frees the credit that has waited for it.
func (p *Pool[C, L]) Unstall(s *Stalled[L]) (was bool) {
	i := slices.Index(p.stalled, s)
	if i < 0 {
		return false
	}
	p.stalled = slices.Delete(p.stalled, i, i+1)
	if s.To != nil {
		s.To.promised--
		p.credit(s.To, 1)
		s.To = nil
	}
	return true
}

// GivenUp is Unstall for a call that its instance has given up. Add comes next, so that the call can
// have the credit. It has waited there as its scheduler does not hear otherwise.
func (p *Pool[C, L]) GivenUp(s *Stalled[L]) (was bool) {
	if was = p.Unstall(s); was {
		p.report.CoreWaited += invocation.LongCoreWait
	}
	return was
}

// unstallGone forgets what stalls at an instance that is gone, and that its credits were waiting for
// others. Those may be asked for again.
func (p *Pool[C, L]) unstallGone(l *Lender[L]) {
	for _, s := range slices.Clone(p.stalled) {
		switch {
		case s.At == l:
			p.Unstall(s)
		case s.To == l:
			s.To = nil
		}
	}
}
