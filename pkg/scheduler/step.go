package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wire"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
	"github.com/windlass-dev/windlass/pkg/scheduler/timerqueue"
)

// shell surrounds the cores of all functions: it feeds them events and carries out their effects.
type shell struct {
	config  Config
	deps    Deps
	metrics *metrics
	core    core.Config
	// protocols are the protocols for agents, and oldestKept the oldest one whose agents are
	// not replaced.
	protocols  wire.Speech
	oldestKept uint32
	slots      *slotTable

	units     *units
	opener    *opener
	dirty     *dirtySet
	gateways  *gatewayStreams
	streams   *streams // of instances
	busyNodes *busyNodes
	// timers wake functions whose floor changes.
	timers *timers
	// starts are the last start times by ClusterRuntime.
	starts *starts
	// triggers are functions that should not wait for the next tick. If the channel is full,
	// they do.
	triggers chan *unit
}

func newShell(config Config, deps Deps) *shell {
	return &shell{
		config:    config,
		deps:      deps,
		protocols: wire.AgentProtocols, oldestKept: wire.KeepAgents,
		core:      core.Config{Tick: config.Tick, MaxQueued: config.MaxQueued, ClaimGrace: config.ClaimGrace, Executions: config.Executions},
		slots:     &slotTable{id: config.ID, standby: standbyName(config.ID), ownership: deps.Ownership, router: deps.Router},
		units:     newUnits(),
		opener:    &opener{requests: deps.Instances, runtimes: deps.Runtimes},
		dirty:     &dirtySet{},
		gateways:  &gatewayStreams{},
		streams:   &streams{},
		busyNodes: newBusyNodes(),
		timers:    newTimers(),
		starts:    newStarts(config.Executions),
		triggers:  make(chan *unit, 64),
	}
}

// timers are the timers of functions that are parked until a time. Only Run's goroutine uses
// them, because only ticks park functions.
type timers struct {
	queue  timerqueue.Queue[*unit]
	byUnit map[*unit]*timerqueue.Timer[*unit]
}

func newTimers() *timers {
	return &timers{byUnit: make(map[*unit]*timerqueue.Timer[*unit])}
}

// set replaces a function's timer; the zero time removes it.
func (t *timers) set(u *unit, at time.Time) {
	one := t.byUnit[u]
	switch {
	case at.IsZero() && one == nil:
		return
	case one == nil:
		one = &timerqueue.Timer[*unit]{Owner: u}
		t.byUnit[u] = one
	case at.IsZero():
		delete(t.byUnit, u)
	}
	t.queue.Set(one, at)
}

// due returns the functions whose timers have expired, and removes these.
func (t *timers) due(now time.Time) []*unit {
	due := t.queue.Due(now)
	for _, u := range due {
		delete(t.byUnit, u)
	}
	return due
}

// step feeds an event to a function's core and carries out the effects.
func (s *shell) step(u *unit, e core.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.stepLocked(u, e)
}

// stepFor is step for an event that a T answers.
func stepFor[T core.Effect](s *shell, u *unit, e core.Event) (answer T, is bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return core.AnswerOf[T](s.stepLocked(u, e))
}

// stepLocked is step for callers that hold the function's lock. Its result is valid until they
// release it.
func (s *shell) stepLocked(u *unit, e core.Event) []core.Effect {
	return s.stepAt(u, s.deps.Now(), e)
}

// stepAt is stepLocked for callers that have read the clock under the lock: a core's time must
// not go back.
func (s *shell) stepAt(u *unit, now time.Time, e core.Event) []core.Effect {
	before := u.core.Demand()
	effects := u.core.Step(now, e)
	for _, effect := range effects {
		s.execute(u, now, effect)
	}
	if core.ChangesUsage(e, effects, before, u.core.Demand()) {
		s.markDirty(u)
	}
	u.settle()
	return effects
}

// execute carries out an effect of a function's core. It calls nothing that takes a function's
// lock or blocks.
func (s *shell) execute(u *unit, now time.Time, e core.Effect) {
	switch e := e.(type) {
	case *core.HandOut:
		if e.Rebound {
			u.stats.counters[ticketRebound]++
		}
		u.streams[e.CID].deliver(e, now)
	case core.Recall:
		u.stats.counters[placeRecalled] += uint64(e.Calls)
		u.streams[e.CID].recall(e)
	case *core.RanByLoan:
		u.stats.observeExecutions(e.Mean, e.Calls)
	case core.Refuse:
		s.refuseTickets(u, e)
	case core.Drain:
		u.streams[e.CID].drain(e)
	case core.Redirect:
		u.streams[e.CID].redirect()
		u.streams.replace(e.CID, nil)
	case core.Adopt:
		s.deps.Instances.Adopt(u.specLocked().fn)
	case core.Release:
		s.deps.Instances.Release(u.uid)
		u.stats.pendingStarts = nil
		u.stats.reports.dropInstances()
		// They are of this term, and would be told in the next one.
		u.stats.failure, u.stats.coreWait, u.stats.noRoom = nil, nil, ""
	case core.Connect:
		s.deps.Instances.Connect(keyOf(u.uid, e.CID))
	case core.Terminate:
		s.onTerminate(u, e)
	case core.Wake:
		s.units.activate(u)
	case core.Park:
		s.timers.set(u, e.Until)
		s.units.park(u)
	case core.RunNow:
		s.trigger(u, e.Always)
	}
}

// refuseTickets refuses tickets at their gateways.
func (s *shell) refuseTickets(u *unit, e core.Refuse) {
	u.stats.byReason.refusals.add(string(e.Why.Reason), len(e.Tickets))
	for _, t := range e.Tickets {
		if o := s.gateways.streamTo(t.Gateway); o != nil {
			o.refuse(t.ID, u.uid, e.Why)
		} else {
			s.metrics.countUnreached()
		}
	}
}

// onTerminate terminates an instance that was drained because it was idle, or for its agent.
func (s *shell) onTerminate(u *unit, e core.Terminate) {
	switch e.Why {
	case core.BecauseEvicted:
		u.stats.counters[instanceEvicted]++
	case core.BecauseNoCall, core.BecauseTooMany:
		u.stats.counters[instanceReleased]++
		s.deps.Log.Info("released an idle instance", "function", u.key.String(), "cid", e.CID,
			"reason", string(e.Why), "idle", e.Idle)
	case core.BecauseOutdated:
		s.metrics.agentReplaced("Outdated")
		s.deps.Log.Info("replacing an instance with an outdated agent", "function", u.key.String(), "cid", e.CID)
		s.deps.Instances.End(keyOf(u.uid, e.CID), provisioner.Ending{Within: drainTime(u.specLocked().fn)})
		return
	case core.BecauseUnsupported:
		s.metrics.agentReplaced("Unsupported")
		return // join ends it, which knows more of it
	}
	s.deps.Instances.End(keyOf(u.uid, e.CID), provisioner.Ending{Within: capacity.EvictGrace})
}

// kindStart is the mean start time of the function's ClusterRuntime. The caller holds the
// function's lock.
func (s *shell) kindStart(u *unit) time.Duration { return s.starts.mean(u.kind) }

// trigger runs a decision now for a function that has calls and no instance: the next tick
// would decide the same, and the first call would wait for it. always also triggers a function
// whose decider asked to see the next call.
func (s *shell) trigger(u *unit, always bool) {
	if always || !s.hasInstance(u) {
		select {
		case s.triggers <- u:
		default:
		}
	}
}

// lookup returns a unit, or nil.
func (s *shell) lookup(uid string) *unit { return s.units.lookup(uid) }

func (s *shell) all() []*unit { return s.units.all() }

// hasInstance reports whether the function has an instance, or one is starting.
func (s *shell) hasInstance(u *unit) bool {
	counts := s.deps.Instances.Observe(u.uid)
	return counts.Created+counts.Creating > 0
}

// terminate lets a drained instance finish its calls and end within that time. An instance
// that is still starting is stopped.
func (s *shell) terminate(in provisioner.Instance, within time.Duration) {
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

// releaseIfUnserved drops instances that were launched or adopted while another goroutine gave
// the function up. Their agents go to its owner, and this scheduler would stop them for their
// silence.
func (s *shell) releaseIfUnserved(u *unit) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.core.Term() == core.Unserved {
		s.deps.Instances.Release(u.uid)
	}
}
