package core

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// modelStalled is a call that waits for a core at one instance, and the one that has a credit for it.
type modelStalled struct {
	*Stalled[int]
	at, to *modelLender
}

// nextStalled is who should be asked for which call; nil if nobody.
func (m *poolModel) nextStalled() (*modelStalled, *modelLender) {
	to := m.lender()
	if to == nil || to.busy || len(m.waiting()) > 0 {
		return nil, nil
	}
	for _, s := range m.stalled {
		if s.to == nil && s.at.busy {
			return s, to
		}
	}
	return nil, nil
}

// askForStalled compares who is asked for which call.
func (m *poolModel) askForStalled(t *rapid.T) {
	for {
		want, to := m.nextStalled()
		s, ok := m.pool.NextStalled()
		switch {
		case ok != (want != nil):
			t.Fatalf("asked for a call that stalls: %t, want %v", ok, want)
		case !ok:
			return
		case s != want.Stalled || s.To != to.Lender || s.At != want.at.Lender:
			t.Fatalf("asked for %+v, want %+v for %d", s, want.Stalled, to.Instance)
		}
		want.to = to
		to.credits--
		to.promised++
	}
}

// unstalled frees what waits for a call.
func (m *poolModel) unstalled(s *modelStalled) {
	m.stalled = slices.DeleteFunc(m.stalled, func(other *modelStalled) bool { return other == s })
	if s.to != nil {
		s.to.credits++
		s.to.promised--
	}
}

// lenderGone forgets an instance.
func (m *poolModel) lenderGone(l *modelLender) {
	for _, s := range slices.Clone(m.stalled) {
		switch {
		case s.at == l:
			m.unstalled(s)
		case s.to == l:
			s.to = nil
		}
	}
	l.gone, l.credits, l.running, l.promised = true, 0, 0, 0
}

// stallEvents are what happens to calls that wait for cores.
func (m *poolModel) stallEvents(pick func(*rapid.T, bool) *modelCall) map[string]func(*rapid.T) {
	one := func(t *rapid.T) *modelStalled {
		if len(m.stalled) == 0 {
			return nil
		}
		return m.stalled[rapid.IntRange(0, len(m.stalled)-1).Draw(t, "stalled")]
	}
	return map[string]func(*rapid.T){
		"stall": func(t *rapid.T) {
			l := m.busy(t)
			if l == nil {
				return
			}
			s := &modelStalled{Stalled: &Stalled[int]{At: l.Lender, Number: uint32(len(m.calls))}, at: l}
			m.stalled = append(m.stalled, s)
			m.pool.Stall(s.Stalled)
			m.handOver(t)
		},
		"a call begins that has stalled": func(t *rapid.T) {
			if s := one(t); s != nil {
				m.unstalled(s)
				if !m.pool.Unstall(s.Stalled) || m.pool.Unstall(s.Stalled) {
					t.Fatal("a call does not stall exactly once")
				}
				m.handOver(t)
			}
		},
		"give up": func(t *rapid.T) {
			s, c := one(t), pick(t, false)
			if s == nil || c == nil {
				return
			}
			m.unstalled(s)
			m.coreWaited += invocation.LongCoreWait
			if !m.pool.GivenUp(s.Stalled) {
				t.Fatal("a call does not stall")
			}
			m.add(t, c, false)
			if s.at.gone { // meanwhile
				return
			}
			m.callEnds(t, s.at, rapid.Bool().Draw(t, "keeps"))
		},
		"stall at one that is gone": func(t *rapid.T) {
			if l := m.any(t); l.gone {
				m.pool.Stall(&Stalled[int]{At: l.Lender})
				m.handOver(t)
			}
		},
	}
}

// callEnds ends a call by a loan.
func (m *poolModel) callEnds(t *rapid.T, l *modelLender, keeps bool) {
	m.pool.Executed(time.Millisecond, 0)
	m.pool.Ended(l.Lender, keeps)
	l.running--
	if keeps {
		l.credits++
	}
	m.stranded(t)
	m.handOver(t)
}
