package scheduler

import (
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
)

// starts are the last times that instances of all functions took to start, by what
// they run: a new function's horizon is that of its kind.
type starts struct {
	n int

	mu sync.Mutex
	// of has an entry for each Runtime of which an instance has started, and one
	// for images.
	of map[string]*estimate.LastN
}

func newStarts(n int) *starts { return &starts{n: n, of: make(map[string]*estimate.LastN)} }

// kindOf is what takes about as long to start: a Runtime; or an image, of which
// nothing is known.
func kindOf(fn *v1alpha1.Function) string { return string(fn.Spec.Template.RuntimeRef.Name) }

func (s *starts) observe(kind string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.of[kind]
	if last == nil {
		last = estimate.NewLastN(s.n)
		s.of[kind] = last
	}
	last.Observe(took)
}

func (s *starts) mean(kind string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.of[kind]; last != nil {
		return last.Mean()
	}
	return 0
}

// restoreEstimates are the estimates of a unit's function from before the unit was served
// here: a new revision begins with those of the others. They are capped like an agent's
// report, and count as one observation.
func (s *host) restoreEstimates(fn *v1alpha1.Function) estimate.Means {
	if s.deps.Estimates == nil {
		return estimate.Means{}
	}
	before := s.deps.Estimates.Restore(fn)
	s.starts.observe(kindOf(fn), min(before.Start, fn.Spec.Template.StartupTimeout.Duration))
	return before
}

// Estimates are those of each unit that this scheduler serves as owner, not as standby: the
// owner stores them for the next one.
func (s *reporter) Estimates() []estimate.Unit {
	var estimates []estimate.Unit
	for _, f := range s.all() {
		if term, served := s.syncOwnership(f); !served || term.Standby != "" {
			continue
		}
		fn, means := f.current(), f.means().Round(10*time.Microsecond)
		if means != (estimate.Means{}) {
			estimates = append(estimates, estimate.Unit{
				UID: f.uid, Function: fn.FunctionUID(), Revision: fn.Revision(), Execution: means.Execution, Start: means.Start,
			})
		}
	}
	return estimates
}
