package scheduler

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// births are the starts of a function's instances that were ordered here and are not
// over: what the scheduler itself knows of their moments. Each is taken out when its
// instance has asked for its first call or has ended. Its zero value is empty.
type births map[invocation.CID]*birth

type birth struct {
	coldstart.Moments
	// waited are the recorded calls that waited when the instance was ordered.
	waited []trace.SpanContext
}

// ordered notes that instances were ordered, and since when they were wanted.
func (f *function) ordered(keys []provisioner.Key, wanted time.Time) {
	if len(keys) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	waited := f.waiting()
	if f.book.births == nil {
		f.book.births = make(births)
	}
	for _, key := range keys {
		f.book.births[key.CID] = &birth{Moments: coldstart.Moments{Wanted: wanted}, waited: waited}
	}
}

// greeted notes that an agent said hello for the first time, and what it told of its
// own beginning. Whether the function was ready by then is known only if it was.
func (f *function) greeted(cid invocation.CID, hello *agentwire.Hello, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.book.births[cid]
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

// born ends a start, and returns what is known of it; nil if it was not ordered here.
func (f *function) born(cid invocation.CID) *birth {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.book.births[cid]
	if delete(f.book.births, cid); len(f.book.births) == 0 {
		f.book.births = nil
	}
	return m
}

// spend adds up what starts took.
func (f *function) spend(phases coldstart.Durations) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.book.spent == nil {
		f.book.spent = new(coldstart.Durations)
	}
	*f.book.spent = f.book.spent.Plus(phases)
}

// ended forgets what is kept of an instance that is gone.
func (f *function) ended(cid invocation.CID) {
	f.born(cid)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.book.reports.forget(cid)
}

// wantedSince is since when an instance is wanted that is ordered for a snapshot: since the
// first call that waits has come, if one does.
func (c *considered) wantedSince(now time.Time) time.Time {
	if c.Snapshot.Waiting() > 0 {
		return now.Add(-c.Snapshot.OldestWait)
	}
	return now
}

// started tells how the start of an instance went that asked for its first call at
// asked. What is known of it is given up.
func (s *host) started(p *pullStream, asked time.Time) {
	f, key := p.function, p.key
	m := f.born(key.CID)
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
	f.spend(phases)
	s.metrics.started(phases)
	s.recordStart(beginning{key: key, fn: f.current(), moments: m.Moments, waited: m.waited, served: f.spanOfFirst(p)})
}

// stillborn tells of a start that nothing came of.
func (s *host) stillborn(f *function, key provisioner.Key, why provisioner.StartFailure) {
	if m := f.born(key.CID); m != nil {
		now := s.deps.Now()
		s.recordStart(beginning{
			key: key, fn: f.current(), moments: coldstart.Moments{Wanted: m.Wanted, Ordered: m.Wanted, Served: now},
			waited: m.waited, failure: why.Code,
		})
	}
}
