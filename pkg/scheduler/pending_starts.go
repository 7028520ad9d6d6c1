package scheduler

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// pendingStarts are the starts of a function's instances that this scheduler launched, with
// the times that it knows itself. A start is removed when its instance has polled for its
// first call or has ended. The zero value is empty.
type pendingStarts map[invocation.CID]*startTrace

type startTrace struct {
	coldstart.Moments
	// waited are the recorded calls that waited when the instance was launched.
	waited []trace.SpanContext
}

// addPendingStarts notes that instances were launched, and since when they were wanted.
func (f *function) addPendingStarts(keys []provisioner.Key, wanted time.Time) {
	if len(keys) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	waited := f.waitingSpans()
	if f.stats.pendingStarts == nil {
		f.stats.pendingStarts = make(pendingStarts)
	}
	for _, key := range keys {
		f.stats.pendingStarts[key.CID] = &startTrace{Moments: coldstart.Moments{Wanted: wanted}, waited: waited}
	}
}

// recordHello notes that an agent said hello for the first time, and what it told of its
// own beginning. Whether the function was ready by then is known only if it was.
func (f *function) recordHello(cid invocation.CID, hello *agentwire.Hello, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.stats.pendingStarts[cid]
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

// popStart ends a start, and returns what is known of it; nil if it was not ordered here.
func (f *function) popStart(cid invocation.CID) *startTrace {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.stats.pendingStarts[cid]
	if delete(f.stats.pendingStarts, cid); len(f.stats.pendingStarts) == 0 {
		f.stats.pendingStarts = nil
	}
	return m
}

// addPhases adds up what starts took.
func (f *function) addPhases(phases coldstart.Durations) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stats.startPhases == nil {
		f.stats.startPhases = new(coldstart.Durations)
	}
	*f.stats.startPhases = f.stats.startPhases.Plus(phases)
}

// dropInstance removes the start and the report of an instance that is gone.
func (f *function) dropInstance(cid invocation.CID) {
	f.popStart(cid)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.reports.removeInstance(cid)
}

// wantedSince is since when the launched instances are wanted: since the oldest waiting call
// has come, if one waits.
func (c *evaluation) wantedSince(now time.Time) time.Time {
	if c.Snapshot.Waiting() > 0 {
		return now.Add(-c.Snapshot.OldestWait)
	}
	return now
}

// finishStart tells how the start of an instance went that asked for its first call at
// asked. What is known of it is given up.
func (s *host) finishStart(p *pullStream, asked time.Time) {
	f, key := p.function, p.key
	m := f.popStart(key.CID)
	if m == nil {
		return
	}
	progress := s.deps.Instances.Progress(key)
	m.Ordered, m.Created, m.Sandboxed = progress.Launched, progress.Created, progress.Sandboxed
	if m.Ready.IsZero() {
		// It said hello while its function began, and asks as soon as that is ready.
		m.Ready = asked
	}
	m.Served = s.deps.Now()
	phases := m.Phases()
	f.addPhases(phases)
	s.metrics.observeStart(phases)
	s.recordStart(startRecord{key: key, fn: f.current(), moments: m.Moments, waited: m.waited, served: f.firstCallSpan(p)})
}

// failStart tells of a start that nothing came of.
func (s *host) failStart(f *function, key provisioner.Key, why provisioner.StartFailure) {
	if m := f.popStart(key.CID); m != nil {
		now := s.deps.Now()
		s.recordStart(startRecord{
			key: key, fn: f.current(), moments: coldstart.Moments{Wanted: m.Wanted, Ordered: m.Wanted, Served: now},
			waited: m.waited, failure: why.Code,
		})
	}
}
