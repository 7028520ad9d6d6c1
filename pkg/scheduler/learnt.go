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

func newStarts(n int) starts { return starts{n: n, of: make(map[string]*estimate.LastN)} }

// kindOf is what takes about as long to start: a Runtime; or an image, of which
// nothing is known.
func kindOf(fn *v1alpha1.Function) string { return string(fn.Spec.Runtime) }

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

// meanStart is how long an instance of a function takes to start: as its last ones
// did, or else as those of its kind; 0 if that is not known either.
func (s *Scheduler) meanStart(f *function, fn *v1alpha1.Function) time.Duration {
	if own := f.means().Start; own > 0 {
		return own
	}
	return min(s.starts.mean(kindOf(fn)), fn.Spec.StartupTimeout.Duration)
}

// learnStart learns from the time that an instance took from its order until it asked
// for work.
func (s *Scheduler) learnStart(f *function, took time.Duration) {
	fn := f.current()
	took = min(took, fn.Spec.StartupTimeout.Duration)
	if took <= 0 {
		return
	}
	s.starts.observe(kindOf(fn), took)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts.Observe(took)
	f.unsure()
}

// recall takes over what was learnt of a function before it was served here. It is
// believed no more than an agent is, and counts as one observation.
func (s *Scheduler) recall(f *function) {
	if s.deps.Memory == nil {
		return
	}
	fn := f.current()
	before := s.deps.Memory.Recall(fn)
	start := min(before.Start, fn.Spec.StartupTimeout.Duration)
	s.starts.observe(kindOf(fn), start)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.executions.Seed(min(before.Execution, fn.Spec.Timeout.Duration))
	f.starts.Seed(start)
	f.unsure()
}

// unlearn forgets what was learnt of a function that another one serves: that one
// knows better, when it comes back.
func (f *function) unlearn(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.executions, f.starts = *estimate.NewLastN(n), *estimate.NewLastN(n)
	f.unsure()
}

// observe learns from an execution time. It comes from an agent, so it is held
// within what the function's timeout allows.
func (f *function) observe(execution time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.executions.Observe(min(execution, f.spec.Spec.Timeout.Duration))
}

// means are what was learnt of the function.
func (f *function) means() estimate.Means {
	f.mu.Lock()
	defer f.mu.Unlock()
	return estimate.Means{Execution: f.executions.Mean(), Start: f.starts.Mean()}
}

// Learnt is what was learnt of a function.
type Learnt struct {
	UID        string
	Generation int64
	estimate.Means
}

// Learnt is what was learnt of all functions of which something is known.
func (s *Scheduler) Learnt() []Learnt {
	var learnt []Learnt
	for _, f := range s.all() {
		if means := f.means(); means != (estimate.Means{}) {
			learnt = append(learnt, Learnt{UID: f.uid, Generation: f.current().Generation, Means: means})
		}
	}
	return learnt
}
