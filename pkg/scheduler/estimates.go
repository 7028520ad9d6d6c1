package scheduler

import (
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
)

// starts has the last start times of all functions by ClusterRuntime: a new function's horizon
// is that of its ClusterRuntime.
type starts struct {
	n int

	mu sync.Mutex
	// of has an entry for each ClusterRuntime whose instances have started, and one for
	// images.
	of map[string]*estimate.LastN
}

func newStarts(n int) *starts { return &starts{n: n, of: make(map[string]*estimate.LastN)} }

// kindOf groups functions with similar start times: those of one ClusterRuntime, and all
// images.
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

// restoreEstimates returns the means that were measured before this scheduler served the unit.
// A new revision begins with those of the others. They are bounded like an agent's reports,
// and count as one observation.
// The caller holds the function's lock.
func (s *host) restoreEstimates(f *function) estimate.Means {
	if s.deps.Estimates == nil {
		return estimate.Means{}
	}
	fn := f.opened().fn
	before := s.deps.Estimates.Restore(fn)
	s.starts.observe(kindOf(fn), min(before.Start, fn.Spec.Template.StartupTimeout.Duration))
	return before
}

// Estimates returns the means of each unit whose slot this scheduler owns, for the next owner.
// Units that it serves as a standby are left out.
func (s *reporter) Estimates() []estimate.Unit {
	var estimates []estimate.Unit
	for _, f := range s.all() {
		if term, served := s.syncOwnership(f); !served || term.Standby != "" {
			continue
		}
		if means := f.means().Round(10 * time.Microsecond); means != (estimate.Means{}) {
			fn := f.current()
			estimates = append(estimates, estimate.Unit{
				UID: f.uid, Function: fn.FunctionUID(), Revision: fn.Revision(), Execution: means.Execution, Start: means.Start,
			})
		}
	}
	return estimates
}
