package scheduler

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// births are the starts of a function's instances that were ordered here and are not
// over: what the scheduler itself knows of their moments. Each is taken out when its
// instance has asked for its first call or has ended. Its zero value is empty.
type births map[invoke.CID]*birth

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
	waited := f.waiting()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.births == nil {
		f.births = make(births)
	}
	for _, key := range keys {
		f.births[key.CID] = &birth{Moments: coldstart.Moments{Wanted: wanted}, waited: waited}
	}
}

// greeted notes that an agent said hello for the first time, and what it told of its
// own beginning. Whether the function was ready by then is known only if it was.
func (f *function) greeted(cid invoke.CID, hello *wirev1.Hello, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.births[cid]
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
func (f *function) born(cid invoke.CID) *birth {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.births[cid]
	if delete(f.births, cid); len(f.births) == 0 {
		f.births = nil
	}
	return m
}

// spend adds up what starts took.
func (f *function) spend(stages coldstart.Durations) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spent == nil {
		f.spent = new(coldstart.Durations)
	}
	*f.spent = f.spent.Plus(stages)
}

// ended forgets what is kept of an instance that is gone.
func (f *function) ended(cid invoke.CID) {
	f.born(cid)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reports.forget(cid)
}

// leave forgets what is kept of instances that another scheduler looks after.
func (f *function) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.births = nil
	f.reports.release()
}

// wantedSince is since when an instance is wanted that is ordered for a snapshot: since the
// first call that waits has come, if one does.
func (c *considered) wantedSince(now time.Time) time.Time {
	if c.snapshot.Waiting() > 0 {
		return now.Add(-c.snapshot.OldestWait)
	}
	return now
}

// started tells how the start of an instance went that asked for its first call at
// asked; first is the one that it was handed at once, or nil. What is known of it is given up.
func (s *Scheduler) started(f *function, key provisioner.Key, asked time.Time, first *invoke.ID) {
	m := f.born(key.CID)
	if m == nil {
		return
	}
	progress := s.deps.Instances.Progress(key)
	m.Ordered, m.Created, m.Sandboxed = progress.Ordered, progress.Created, progress.Sandboxed
	if m.Ready.IsZero() {
		// It said hello while its function began, and asks as soon as that is ready.
		m.Ready = asked
	}
	m.Served = s.deps.Now()
	stages := m.Stages()
	f.spend(stages)
	s.metrics.started(stages)
	s.recordStart(beginning{key: key, fn: f.current(), moments: m.Moments, waited: m.waited, served: f.spanOf(first)})
}

// stillborn tells of a start that nothing came of.
func (s *Scheduler) stillborn(f *function, key provisioner.Key, why provisioner.StartFailure) {
	if m := f.born(key.CID); m != nil {
		now := s.deps.Now()
		s.recordStart(beginning{
			key: key, fn: f.current(), moments: coldstart.Moments{Wanted: m.Wanted, Ordered: m.Wanted, Served: now},
			waited: m.waited, failure: why.Code,
		})
	}
}
