package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/wire"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
	"github.com/windlass-dev/windlass/pkg/scheduler/timerqueue"
)

// host is the shell around the cores of all functions: it brings them events, and carries
// out what they ask for.
type host struct {
	config  Config
	deps    Deps
	metrics *metrics
	core    core.Config
	// speech is what is spoken with agents, and keepAgents the oldest protocol whose
	// agents are not replaced.
	speech     wire.Speech
	keepAgents uint32
	*tenancy

	functions *functions
	doubts    *doubts
	gateways  *registrations
	streams   *streams // of instances
	// alarms let ticks look at functions whose floor changes.
	alarms *alarms
	// starts are those of all functions.
	starts *starts
	// kicks are functions that need not wait for the next tick. A full
	// channel means that they do.
	kicks chan *function
}

func newHost(config Config, deps Deps) *host {
	return &host{
		config: config,
		deps:   deps,
		speech: wire.AgentProtocols, keepAgents: wire.KeepAgents,
		core:      core.Config{Tick: config.Tick, MaxQueued: config.MaxQueued, ClaimGrace: config.ClaimGrace, Executions: config.Executions},
		tenancy:   &tenancy{id: config.ID, heir: heirName(config.ID), keeper: deps.Keeper, router: deps.Router},
		functions: newFunctions(),
		doubts:    &doubts{},
		gateways:  &registrations{},
		streams:   &streams{},
		alarms:    newAlarms(),
		starts:    newStarts(config.Executions),
		kicks:     make(chan *function, 64),
	}
}

// alarms are those of functions that rest until a time comes. Only Run's goroutine uses
// them: only ticks let functions rest.
type alarms struct {
	queue timerqueue.Queue[*function]
	of    map[*function]*timerqueue.Timer[*function]
}

func newAlarms() *alarms { return &alarms{of: make(map[*function]*timerqueue.Timer[*function])} }

// set sets a function's alarm, in place of the one before; the zero time is for none.
func (a *alarms) set(f *function, at time.Time) {
	one := a.of[f]
	switch {
	case at.IsZero() && one == nil:
		return
	case one == nil:
		one = &timerqueue.Timer[*function]{Owner: f}
		a.of[f] = one
	case at.IsZero():
		delete(a.of, f)
	}
	a.queue.Set(one, at)
}

// due are the functions whose time has come. Their alarms are not set any more.
func (a *alarms) due(now time.Time) []*function {
	due := a.queue.Due(now)
	for _, f := range due {
		delete(a.of, f)
	}
	return due
}

// step brings an event to a function's core and carries out what follows.
func (s *host) step(f *function, e core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.stepLocked(f, e)
}

// ask is step for an event that a T answers.
func ask[T core.Effect](s *host, f *function, e core.Event) (answer T, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return core.AnswerOf[T](s.stepLocked(f, e))
}

// stepLocked is step for who holds the function's lock. What it returns is valid as long
// as that is held.
func (s *host) stepLocked(f *function, e core.Event) []core.Effect {
	return s.stepAt(f, s.deps.Now(), e)
}

// stepAt is stepLocked for who has read the clock since it holds the lock: a core's time
// must not go back.
func (s *host) stepAt(f *function, now time.Time, e core.Event) []core.Effect {
	waiting := f.core.Waiting()
	effects := f.core.Step(now, e)
	for _, effect := range effects {
		s.carryOut(f, now, effect)
	}
	switch e.(type) {
	case *core.Ticked, *core.Applied, core.ActivityAudited, core.GatewaysAudited, core.Woken, core.Paused:
		// They change what others could have of it only in these ways.
		if _, let := core.AnswerOf[core.Terminate](effects); let || f.core.Waiting() != waiting {
			s.unsure(f)
		}
	default:
		s.unsure(f)
	}
	return effects
}

// carryOut does what a function's core asks for. What it calls takes no function's lock,
// and returns at once.
func (s *host) carryOut(f *function, now time.Time, e core.Effect) {
	switch e := e.(type) {
	case *core.HandOut:
		f.streams[e.CID].deliver(&e.Ticket, now)
	case core.Refuse:
		s.refuse(f, e)
	case core.Drain:
		f.streams[e.CID].retire(e.Reason)
	case core.Redirect:
		f.streams[e.CID].dismiss()
		delete(f.streams, e.CID)
	case core.Adopt:
		s.deps.Instances.Adopt(f.fn)
	case core.Release:
		s.deps.Instances.Release(f.uid)
		f.book.births = nil
		f.book.reports.release()
	case core.Connected:
		s.deps.Instances.Connect(keyOf(f.uid, e.CID))
	case core.Terminate:
		s.letIdleGo(f, e)
	case core.Wake:
		s.functions.activate(f)
	case core.Park:
		s.alarms.set(f, e.Until)
		s.functions.idle(f)
	case core.RunNow:
		s.kick(f, e.Always)
	}
}

// refuse refuses tickets at the gateways that they came from.
func (s *host) refuse(f *function, e core.Refuse) {
	f.book.tallies.refusals.add(string(e.Why.Reason), len(e.Tickets))
	for _, t := range e.Tickets {
		if o := s.gateways.reach(t.Gateway); o != nil {
			o.refuse(t.ID, e.Why)
		} else {
			s.metrics.notReached()
		}
	}
}

// letIdleGo follows up on an instance that was retired since it was idle.
func (s *host) letIdleGo(f *function, e core.Terminate) {
	switch e.Why {
	case core.BecauseEvicted:
		f.book.tally[instanceEvicted]++
	case core.BecauseNoCall, core.BecauseTooMany:
		f.book.tally[instanceReleased]++
		s.deps.Log.Info("released an idle instance", "function", f.fn.Key().String(), "cid", e.CID,
			"reason", string(e.Why), "idle", e.Idle)
	case core.BecauseOutdated:
		s.metrics.agentReplaced("Outdated")
		s.deps.Log.Info("replacing an instance for the age of its agent", "function", f.fn.Key().String(), "cid", e.CID)
		s.deps.Instances.End(keyOf(f.uid, e.CID), provisioner.Ending{Within: finishTime(f.fn)})
		return
	default:
		return // its stream's goroutine knows more of it
	}
	s.deps.Instances.End(keyOf(f.uid, e.CID), provisioner.Ending{Within: capacity.EvictGrace})
}

// kindStart is how long instances of the function's kind take to start. The function's
// lock is held.
func (s *host) kindStart(f *function) time.Duration { return s.starts.mean(kindOf(f.fn)) }

// kick lets a function be looked at now that has calls and no instance, for what the
// next tick would decide is certain, and its first call would wait for it; or one whose
// decider asked to see the next call.
func (s *host) kick(f *function, eager bool) {
	if eager || !s.hasInstance(f) {
		select {
		case s.kicks <- f:
		default:
		}
	}
}
