package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// leaveGrace is how much longer than its calls may run a drained instance has to end.
const leaveGrace = 10 * time.Second

// Scheduler implements the wire's Scheduler service and runs the ticks. It receives the events
// of the provisioner.
//
// Only the goroutine of Run adds functions, removes them and launches instances, so that
// nothing is launched for a removed function.
type Scheduler struct {
	unimplemented
	*host
	*warmPools
	*ticker
	*sessions
	*offers
	*reporter
	*auditor

	slotEpochs slotEpochs
	// changes are the changes of the catalog.
	changes chan catalog.Event
}

// unimplemented has the methods of the wire's services that a Scheduler lacks.
type unimplemented struct {
	agentwire.UnimplementedInstancesServer
	controlwire.UnimplementedSchedulerServer
}

// New makes a Scheduler. It starts nothing.
func New(config Config, deps Deps) (*Scheduler, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if deps.Traces == nil {
		deps.Traces = (*tracing.Tracer)(nil)
	}
	h, spares, peers := newHost(config, deps), newSpares(), newPeerRoom(config.ID)
	pools := &warmPools{
		host: h, spares: spares, placer: newPlacer(h, spares, peers),
		budget: capacity.NewBudget(config.CreateRate, config.CreateBurst),
	}
	t := &ticker{host: h, warmPools: pools, peerRoom: peers, decisions: newDecisionLog()}
	s := &Scheduler{
		host: h, warmPools: pools, ticker: t,
		sessions: &sessions{h, pools}, offers: &offers{h}, reporter: &reporter{h, t.decisions, pools}, auditor: newAuditor(h, t),
		changes: make(chan catalog.Event),
	}
	h.metrics = newMetrics(deps.Registry, s)
	return s, nil
}

var _ provisioner.Events = (*Scheduler)(nil)

// Run follows the catalog and ticks until ctx ends. It then drains the instances of the
// functions that it owns and refuses their waiting calls. It returns an error only if it can
// no longer follow the catalog.
func (s *Scheduler) Run(ctx context.Context) error {
	watched := make(chan error, 1)
	go func() { watched <- s.watch(ctx) }()
	ticker := time.NewTicker(s.config.Tick)
	defer ticker.Stop()
	audit := time.NewTicker(core.AuditEvery)
	defer audit.Stop()
	reconcile := time.NewTicker(core.ReconcileEvery)
	defer reconcile.Stop()
	defer s.close()
	audits := 0
	var rerouted <-chan struct{}
	if s.deps.Router != nil {
		rerouted = s.deps.Router.Changed()
	}
	for {
		select {
		case due := <-ticker.C:
			s.metrics.observeLag(s.deps.Now().Sub(due))
			s.tick()
		case <-audit.C:
			s.noteRun(s.deps.Now())
			s.Resync()
			if audits++; audits%countSlotsEvery == 1 {
				s.countSlots()
			}
		case <-reconcile.C:
			s.reconcile()
		case <-rerouted:
			s.Resync()
			s.countSlots()
		case f := <-s.triggers:
			s.runNow(f)
		case e := <-s.changes:
			s.functionChanged(e)
		case err := <-watched:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("scheduler: following the catalog: %w", err)
		}
	}
}

// watch passes the catalog's changes to Run.
func (s *Scheduler) watch(ctx context.Context) error {
	return s.deps.Catalog.Watch(ctx, func(e catalog.Event) {
		select {
		case s.changes <- e:
		case <-ctx.Done():
		}
	})
}

const reasonStopping = "the scheduler is shutting down"

func (s *Scheduler) close() {
	for _, f := range s.all() {
		if _, served := s.syncOwnership(f); !served {
			continue
		}
		s.step(f, core.Closed{Reason: reasonStopping, Refusal: invocation.Refusal{Reason: invocation.RefusedNotOwner, Detail: reasonStopping}})
	}
}

// functionChanged applies a change of the catalog: each unit of a function is served
// separately.
func (s *Scheduler) functionChanged(e catalog.Event) {
	var units []*v1alpha1.Function
	if e.Entry != nil {
		units = e.Entry.Units
	}
	why := reasonDeleted
	if e.Entry != nil {
		why = reasonUnused
	}
	// Removed units go first: another one may have the same number.
	for _, uid := range s.functions.setUnits(e.UID, units) {
		s.removeUnit(uid, why)
	}
	for _, unit := range units {
		n := news{e.Entry, e.Packed, unit}
		switch f := s.lookup(uidOf(unit)); {
		case f == nil:
			s.addUnit(n)
		case !f.isSame(n): // otherwise another unit of the function has changed
			s.updateUnit(f, n)
		}
	}
}

func (s *Scheduler) addUnit(n news) {
	f := s.newFunction(n)
	s.functions.add(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	s.markDirty(f)
	s.stepLocked(f, core.Woken{})
}

// updateUnit applies a unit's new share of the calls or new bounds. What an instance runs does
// not change: another revision is another unit. The start back-off is reset if the author has
// changed the function, but not by a rollout.
func (s *Scheduler) updateUnit(f *function, n news) {
	spec := s.specOf(n.fn)
	f.mu.Lock()
	changed := f.generation != n.fn.Generation
	f.accept(n)
	s.stepLocked(f, core.SpecChanged{Spec: spec})
	f.mu.Unlock()
	if changed {
		s.deps.Instances.ResetBackoff(f.uid)
	}
}

// terminate lets a drained instance finish its calls and end within that time. An instance
// that is still starting is stopped.
func (s *host) terminate(in provisioner.Instance, within time.Duration) {
	if in.State == provisioner.Creating {
		s.deps.Instances.End(in.Key, provisioner.Ending{})
	} else {
		s.deps.Instances.End(in.Key, provisioner.Ending{Within: within})
	}
}

// drainTime is how long an instance may take to finish its calls and end.
func drainTime(fn *v1alpha1.Function) time.Duration {
	return fn.Spec.Template.Timeout.Duration + leaveGrace
}

// removeUnit removes a unit: its instances are drained, and its waiting calls are refused.
func (s *Scheduler) removeUnit(uid, why string) {
	f := s.functions.remove(uid)
	if f == nil {
		return
	}
	s.timers.set(f, time.Time{})
	s.step(f, core.Closed{Reason: why, Refusal: invocation.Refusal{Reason: invocation.RefusedUnknownFunction, Detail: why}})
	if s.term(f.slot) != notServed {
		s.deps.Instances.Adopt(f.current())
	}
	for _, in := range s.deps.Instances.Instances(f.uid) {
		s.terminate(in, drainTime(f.current()))
	}
	s.deps.Instances.Forget(f.uid)
	s.reporter.decisions.removeFunction(uid)
}

const (
	reasonDeleted = "the function was deleted"
	reasonUnused  = "the revision is not in use any more"
)

// lookup returns a unit, or nil.
func (s *host) lookup(uid string) *function { return s.functions.lookup(uid) }

func (s *host) all() []*function { return s.functions.all() }

// runNow decides on a function before the next tick, unless that is no longer needed.
func (s *ticker) runNow(f *function) {
	now := s.deps.Now()
	s.noteRun(now)
	left := s.budget.LeftNow(now)
	if left == 0 || !s.needsRun(f) || s.pauses.Holding(now) {
		return
	}
	if c := s.evaluate(f); c != nil {
		s.launch(c, min(left, c.Wanted()))
		s.apply(c, false)
	}
}

// needsRun reports whether a waiting call requires a decision before the next tick.
func (s *ticker) needsRun(f *function) bool {
	there := s.hasInstance(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.NeedsRun(s.deps.Now(), there)
}

// hasInstance reports whether the function has an instance, or one is starting.
func (s *host) hasInstance(f *function) bool {
	counts := s.deps.Instances.Observe(f.uid)
	return counts.Created+counts.Creating > 0
}

// StartFailed receives the failed start of an instance from the provisioner. If the function
// has no other instance, not even a starting one, its waiting calls cannot be served.
func (s *Scheduler) StartFailed(key provisioner.Key, why provisioner.StartFailure) {
	if s.spareEnded(key, why) {
		return
	}
	f := s.lookup(key.FunctionUID)
	if f == nil {
		// The failure came after the function was removed.
		s.deps.Instances.Forget(key.FunctionUID)
		return
	}
	s.deps.Log.Warn("an instance did not start", "function", f.about().key.String(), "cid", key.CID, "code", why.Code, "reason", why.Reason)
	s.failStart(f, key, why)
	f.dropInstance(key.CID)
	now := s.deps.Now()
	if !why.FromCluster() {
		f.recordFailure(why, now)
		f.recordEvent(functionEvent{reason: why.Code, message: "an instance did not start: " + why.Reason, warning: true}, now)
	}
	seen := s.deps.Instances.Observe(f.uid)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.byReason.failures.add(why.Code, 1)
	s.stepLocked(f, core.StartFailed{
		Blameless: why.FromCluster(), OthersExist: seen.Created+seen.Creating > 0, Transient: seen.Failing && seen.Why.Transient(),
		Refusal: cannotStart(why, seen.RetryAfter),
	})
}

func cannotStart(why provisioner.StartFailure, retryAfter time.Duration) invocation.Refusal {
	return invocation.Refusal{
		Reason:     invocation.RefusedCannotStart,
		Detail:     invocation.Excerpt("the function could not be started: " + why.String()),
		RetryAfter: retryAfter,
	}
}

// Owns says whether this scheduler owns a function for all that it knows. A standby does not,
// nor does a scheduler that etcd cannot confirm: the others may only seem silent.
func (s *Scheduler) Owns(uid string) bool {
	if _, unconfirmed := s.deps.Ownership.Unconfirmed(); unconfirmed {
		return false
	}
	f := s.lookup(uid)
	if f == nil {
		return true // it was deleted, or is a warm pool
	}
	term := s.term(f.slot)
	return term != notServed && term.Standby == ""
}

// Gone receives the end of a started instance from the provisioner.
func (s *Scheduler) Gone(key provisioner.Key, lost bool, why provisioner.StartFailure) {
	if s.spareEnded(key, why) {
		return
	}
	f := s.lookup(key.FunctionUID)
	if f == nil {
		return
	}
	s.notifyEnd(key, why)
	f.dropInstance(key.CID)
	log, level := s.deps.Log.With("function", f.about().key.String(), "cid", key.CID, "lost", lost), slog.LevelInfo
	if lost {
		log, level = log.With("code", why.Code), slog.LevelWarn
		f.recordFailure(why, s.deps.Now())
		inEvent := why
		inEvent.LogTail = lastLines(why.LogTail, eventLogBytes)
		f.recordEvent(functionEvent{reason: why.Code, message: "an instance was lost: " + inEvent.String(), warning: true}, s.deps.Now())
	}
	log.Log(context.Background(), level, "an instance is gone", "reason", why.Reason)
	f.mu.Lock()
	defer f.mu.Unlock()
	if lost {
		f.stats.byReason.losses.add(why.Code, 1)
	}
	s.stepLocked(f, core.Ended{})
}

// eventLogBytes is how many bytes of a log an Event quotes: the whole Event is at most 1 KiB,
// and a longer one would lose the newest lines.
const eventLogBytes = 600

// lastLines returns the last of lines that have at most that many bytes together, including
// line ends. Of a longer last line it returns the beginning.
func lastLines(lines []string, most int) []string {
	if len(lines) == 0 {
		return nil
	}
	from := len(lines)
	for left := most; from > 0 && len(lines[from-1]) < left; from-- {
		left -= len(lines[from-1]) + 1
	}
	if from == len(lines) {
		return []string{invocation.ExcerptOf(lines[from-1], most)}
	}
	return lines[from:]
}

// notifyEnd informs an agent that its function has ended, which the agent cannot see where
// they are containers. It has moments to answer the running calls before its own container
// ends too.
func (s *sessions) notifyEnd(key provisioner.Key, why provisioner.StartFailure) {
	how := why.Reason
	switch why.Code {
	case v1alpha1.ReasonFunctionExited:
	case v1alpha1.ReasonOutOfMemory:
		how = "the function was killed for the memory that it used"
	default:
		return
	}
	s.streams.sendTo(key, &agentwire.PullReply{Kind: &agentwire.PullReply_Ended{Ended: &agentwire.Ended{How: how, LastLines: why.LogTail}}})
}
