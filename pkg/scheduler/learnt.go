package scheduler

import (
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
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

// recall is what was learnt of a unit's function before the unit was served here: a new
// revision begins with what is known of the others. It is believed no more than an agent
// is, and counts as one observation.
func (s *host) recall(fn *v1alpha1.Function) estimate.Means {
	if s.deps.Memory == nil {
		return estimate.Means{}
	}
	before := s.deps.Memory.Recall(fn)
	s.starts.observe(kindOf(fn), min(before.Start, fn.Spec.Template.StartupTimeout.Duration))
	return before
}

// Learnt is what was learnt of a function.
type Learnt struct {
	// UID is the function's, and not that of a unit of it.
	UID string
	estimate.Means
}

// Learnt is what was learnt of all functions of which something is known: of several units
// of a function, what the foremost of them knows.
func (s *accounts) Learnt() []Learnt {
	known := make(map[string][]*function)
	for _, f := range s.all() {
		if f.means() != (estimate.Means{}) {
			of := f.current().FunctionUID()
			known[of] = append(known[of], f)
		}
	}
	var learnt []Learnt
	for uid, units := range known {
		learnt = append(learnt, Learnt{UID: uid, Means: s.foremost(units).means()})
	}
	return learnt
}
