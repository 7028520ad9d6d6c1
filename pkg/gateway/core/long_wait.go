package core

import (
	"slices"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// LongWait is the wait of a call that an instance has by a loan, and that has long waited for a core of
// the instance's node without having begun. A gateway lets a Pool know only of calls whose request it
// can send again.
type LongWait[L any] struct {
	// At is the instance that has the call, and Number the call's number there.
	At     *Lender[L]
	Number uint32
	// To is the instance of a calm node with a credit for it, once its present one was asked to
	// give the call up.
	To *Lender[L]
}

// BeginWait notes that a call waits long. NextLongWait says when to ask for it.
func (p *Pool[C, L]) BeginWait(w *LongWait[L]) {
	if !w.At.gone && !slices.Contains(p.longWaits, w) {
		p.longWaits = append(p.longWaits, w)
	}
}

// NextLongWait takes the longest wait on a busy node, and the credit that waits for its call at an
// instance of a calm node; false if there is no such pair, or a call without an instance needs the
// credit. The instance that has the call gives it up unless it has begun; EndWait follows in both
// cases.
func (p *Pool[C, L]) NextLongWait() (w *LongWait[L], ok bool) {
	if len(p.lenders) == 0 || p.lenders[0].busy || p.waiting.first != nil {
		return nil, false
	}
	for _, w := range p.longWaits {
		if w.To == nil && w.At.busy {
			w.To = p.lenders[0]
			w.To.promised++
			p.credit(w.To, -1)
			return w, true
		}
	}
	return nil, false
}

// EndWait notes that a call does not wait any more, and frees the credit that has waited for it.
func (p *Pool[C, L]) EndWait(w *LongWait[L]) (was bool) {
	i := slices.Index(p.longWaits, w)
	if i < 0 {
		return false
	}
	p.longWaits = slices.Delete(p.longWaits, i, i+1)
	if w.To != nil {
		w.To.promised--
		p.credit(w.To, 1)
		w.To = nil
	}
	return true
}

// GivenUp is EndWait for a call that its instance has given up. Add comes next, so that the call can
// have the credit. It has waited there as its scheduler does not hear otherwise.
func (p *Pool[C, L]) GivenUp(w *LongWait[L]) (was bool) {
	if was = p.EndWait(w); was {
		p.report.CoreWaited += invocation.LongCoreWait
	}
	return was
}

// forgetWaitsOf forgets the waits at an instance that is gone, and that its credits were waiting for
// others. Those may be asked for again.
func (p *Pool[C, L]) forgetWaitsOf(l *Lender[L]) {
	for _, w := range slices.Clone(p.longWaits) {
		switch {
		case w.At == l:
			p.EndWait(w)
		case w.To == l:
			w.To = nil
		}
	}
}
