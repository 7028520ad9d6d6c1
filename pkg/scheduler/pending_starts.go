package scheduler

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// pendingStarts holds the timestamps of launches made by this scheduler that have not
// finished: until the instance asks for its first call, or ends. The zero value is empty.
type pendingStarts map[invocation.CID]*startTrace

type startTrace struct {
	coldstart.Moments
	// waited are the recorded calls that waited at the launch.
	waited []trace.SpanContext
}

// addPendingStarts records launches, and since when their instances were wanted.
func (u *unit) addPendingStarts(keys []provisioner.Key, wanted time.Time) {
	if len(keys) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	waited := u.waitingSpans()
	if u.stats.pendingStarts == nil {
		u.stats.pendingStarts = make(pendingStarts)
	}
	for _, key := range keys {
		u.stats.pendingStarts[key.CID] = &startTrace{Moments: coldstart.Moments{Wanted: wanted}, waited: waited}
	}
}

// recordHello records the first hello of an agent, with the agent's report of its own start.
// The hello says when the function became ready only if it already was.
func (u *unit) recordHello(cid invocation.CID, hello *agentwire.Hello, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	m := u.stats.pendingStarts[cid]
	if m == nil || !m.Hello.IsZero() {
		return
	}
	m.Hello = now
	if age := hello.GetAgeNs(); age > 0 {
		m.Began = now.Add(-time.Duration(age))
		if ready := hello.GetReadyAfterNs(); ready > 0 {
			m.Ready = m.Began.Add(time.Duration(ready))
		}
	}
}

// popStart removes and returns a start; nil if this scheduler did not launch the instance.
func (u *unit) popStart(cid invocation.CID) *startTrace {
	u.mu.Lock()
	defer u.mu.Unlock()
	m := u.stats.pendingStarts[cid]
	if delete(u.stats.pendingStarts, cid); len(u.stats.pendingStarts) == 0 {
		u.stats.pendingStarts = nil
	}
	return m
}

// addPhases adds the phases of a start to the sums.
func (u *unit) addPhases(phases coldstart.Durations) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stats.startPhases == nil {
		u.stats.startPhases = new(coldstart.Durations)
	}
	*u.stats.startPhases = u.stats.startPhases.Plus(phases)
}

// dropInstance drops the data of an instance that has ended.
func (u *unit) dropInstance(cid invocation.CID) {
	u.popStart(cid)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stats.reports.removeInstance(cid)
}

// wantedSince is since when the instances of this decision were wanted: the arrival of the
// oldest waiting call, or now.
func (e *evaluation) wantedSince(now time.Time) time.Time {
	if e.Snapshot.Waiting() > 0 {
		return now.Add(-e.Snapshot.OldestWait)
	}
	return now
}

// finishStart reports the start of an instance that asked for its first call at asked.
func (s *shell) finishStart(p *pullStream, asked time.Time) {
	u, key := p.unit, p.key
	m := u.popStart(key.CID)
	if m == nil {
		return
	}
	progress := s.deps.Instances.Progress(key)
	m.Launched, m.Created, m.Sandboxed = progress.Launched, progress.Created, progress.Sandboxed
	if m.Ready.IsZero() {
		// The agent connected while its function was starting, and pulls as soon as that is
		// ready.
		m.Ready = asked
	}
	m.Served = s.deps.Now()
	phases := m.Phases()
	u.addPhases(phases)
	s.metrics.observeStart(phases)
	s.recordStart(startRecord{key: key, fn: u.fn(), moments: m.Moments, waited: m.waited, served: u.firstCallSpan(p)})
}

// failStart reports a start that failed.
func (s *shell) failStart(u *unit, key provisioner.Key, why provisioner.StartFailure) {
	if m := u.popStart(key.CID); m != nil {
		now := s.deps.Now()
		s.recordStart(startRecord{
			key: key, fn: u.fn(), moments: coldstart.Moments{Wanted: m.Wanted, Launched: m.Wanted, Served: now},
			waited: m.waited, failure: why.Code,
		})
	}
}

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
