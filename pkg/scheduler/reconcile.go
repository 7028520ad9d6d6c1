package scheduler

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// level is state that events keep up to date, and that is compared with what it is
// about all the same (see package reconcile).
type level struct {
	// kind is its label in windlass_scheduler_reconciled_total.
	kind string
	// mend looks at it once, mends what differs, and returns how much that was. Run's
	// goroutine calls it.
	mend func() int
}

// auditor compares what is believed with what is so one level below. Only Run's goroutine
// uses it.
type auditor struct {
	*host
	*ticker
	own    levels
	levels []level
}

func newAuditor(h *host, t *ticker) *auditor {
	a := &auditor{host: h, ticker: t}
	a.levels = a.auditedLevels()
	return a
}

func (s *auditor) auditedLevels() []level {
	return []level{
		{"instance", s.deps.Instances.Reconcile},
		{"pod", func() int { return s.deps.Instances.ReconcilePods(s.servedFunctions()) }},
		{"stream", s.mendStreams},
		{"activity", s.mendActivity},
		{"ticket", s.mendTickets},
	}
}

// servedFunctions are those that are served here, and those of its warm pools.
func (s *auditor) servedFunctions() []*v1alpha1.Function {
	served := s.spares.functions()
	for _, f := range s.all() {
		if _, here := s.serves(f); here {
			served = append(served, f.current())
		}
	}
	return served
}

// reconcile looks at every level once, unless the process stood still: then news has
// yet to come.
func (s *auditor) reconcile() {
	now := s.deps.Now()
	s.noteTurn(now)
	if s.stood.Holding(now) {
		return
	}
	s.placer.mistrust()
	for _, l := range s.levels {
		if mended := l.mend(); mended > 0 {
			s.deps.Log.Warn("what was believed was not so, and no event had said it; it is mended", "kind", l.kind, "differences", mended)
			s.metrics.mended(l.kind, mended)
		}
	}
}
