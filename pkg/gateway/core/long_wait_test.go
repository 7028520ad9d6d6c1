package core

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// modelWait is a call that waits for a core at one instance, and the one that has a credit for it.
type modelWait struct {
	*LongWait[int]
	at, to *modelLender
}

// nextLongWait is who should be asked for which call; nil if nobody.
func (m *poolModel) nextLongWait() (*modelWait, *modelLender) {
	to := m.lender()
	if to == nil || to.busy || len(m.waiting()) > 0 {
		return nil, nil
	}
	for _, w := range m.longWaits {
		if w.to == nil && w.at.busy {
			return w, to
		}
	}
	return nil, nil
}

// requestGiveUps compares who is asked for which call.
func (m *poolModel) requestGiveUps(t *rapid.T) {
	for {
		want, to := m.nextLongWait()
		w, ok := m.pool.NextLongWait()
		switch {
		case ok != (want != nil):
			t.Fatalf("asked for a call that waits: %t, want %v", ok, want)
		case !ok:
			return
		case w != want.LongWait || w.To != to.Lender || w.At != want.at.Lender:
			t.Fatalf("asked for %+v, want %+v for %d", w, want.LongWait, to.Instance)
		}
		want.to = to
		to.credits--
		to.promised++
	}
}

// waitEnds frees what waits for a call.
func (m *poolModel) waitEnds(w *modelWait) {
	m.longWaits = slices.DeleteFunc(m.longWaits, func(other *modelWait) bool { return other == w })
	if w.to != nil {
		w.to.credits++
		w.to.promised--
	}
}

// lenderGone forgets an instance.
func (m *poolModel) lenderGone(l *modelLender) {
	for _, w := range slices.Clone(m.longWaits) {
		switch {
		case w.at == l:
			m.waitEnds(w)
		case w.to == l:
			w.to = nil
		}
	}
	l.gone, l.credits, l.running, l.promised = true, 0, 0, 0
}

// waitEvents are what happens to calls that wait for cores.
func (m *poolModel) waitEvents(pick func(*rapid.T, bool) *modelCall) map[string]func(*rapid.T) {
	one := func(t *rapid.T) *modelWait {
		if len(m.longWaits) == 0 {
			return nil
		}
		return m.longWaits[rapid.IntRange(0, len(m.longWaits)-1).Draw(t, "long wait")]
	}
	return map[string]func(*rapid.T){
		"wait": func(t *rapid.T) {
			l := m.busy(t)
			if l == nil {
				return
			}
			w := &modelWait{LongWait: &LongWait[int]{At: l.Lender, Number: uint32(len(m.calls))}, at: l}
			m.longWaits = append(m.longWaits, w)
			m.pool.BeginWait(w.LongWait)
			m.handOver(t)
		},
		"a call begins that has waited": func(t *rapid.T) {
			if w := one(t); w != nil {
				m.waitEnds(w)
				if !m.pool.EndWait(w.LongWait) || m.pool.EndWait(w.LongWait) {
					t.Fatal("a wait does not end exactly once")
				}
				m.handOver(t)
			}
		},
		"give up": func(t *rapid.T) {
			w, c := one(t), pick(t, false)
			if w == nil || c == nil {
				return
			}
			m.waitEnds(w)
			m.coreWaited += invocation.LongCoreWait
			if !m.pool.GivenUp(w.LongWait) {
				t.Fatal("a call does not wait")
			}
			m.add(t, c, false)
			if w.at.gone { // meanwhile
				return
			}
			m.callEnds(t, w.at, rapid.Bool().Draw(t, "keeps"))
		},
		"wait at one that is gone": func(t *rapid.T) {
			if l := m.any(t); l.gone {
				m.pool.BeginWait(&LongWait[int]{At: l.Lender})
				m.handOver(t)
			}
		},
	}
}

// callEnds ends a call by a loan.
func (m *poolModel) callEnds(t *rapid.T, l *modelLender, keeps bool) {
	m.pool.CountExecution(time.Millisecond, 0)
	m.pool.Ended(l.Lender, keeps)
	l.running--
	if keeps {
		l.credits++
	}
	m.stranded(t)
	m.handOver(t)
}
