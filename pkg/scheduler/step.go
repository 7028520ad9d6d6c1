package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// step brings an event to a function's core and carries out what follows.
func (s *Scheduler) step(f *function, e core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.stepLocked(f, e)
}

// ask is step for an event that a T answers.
func ask[T core.Effect](s *Scheduler, f *function, e core.Event) (answer T, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return core.AnswerOf[T](s.stepLocked(f, e))
}

// stepLocked is step for who holds the function's lock. What it returns is valid as long
// as that is held.
func (s *Scheduler) stepLocked(f *function, e core.Event) []core.Effect {
	waiting := f.core.Waiting()
	effects := f.core.Step(s.deps.Now(), e)
	for _, effect := range effects {
		s.carryOut(f, effect)
	}
	switch e.(type) {
	case core.Ticked, core.Concluded, core.ActivityAudited, core.GatewaysAudited, core.Woken, core.Paused:
		// They change what others could have of it only in these ways.
		if _, let := core.AnswerOf[core.LetGo](effects); let || f.core.Waiting() != waiting {
			s.unsure(f)
		}
	default:
		s.unsure(f)
	}
	return effects
}

// carryOut does what a function's core asks for. What it calls takes no function's lock,
// and returns at once.
func (s *Scheduler) carryOut(f *function, e core.Effect) {
	switch e := e.(type) {
	case core.HandOut:
		f.streams[e.CID].deliver(e.Ticket)
	case core.Refuse:
		s.refuse(f, e)
	case core.Retire:
		f.streams[e.CID].retire(e.Reason)
	case core.Dismiss:
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
	case core.LetGo:
		s.letIdleGo(f, e)
	case core.Wake:
		s.activate(f)
	case core.Rest:
		s.alarms.Set(&f.alarm, e.Until)
		s.idle(f)
	case core.Hurry:
		s.kick(f, e.Eager)
	}
}

// refuse refuses tickets at the gateways that they came from.
func (s *Scheduler) refuse(f *function, e core.Refuse) {
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
func (s *Scheduler) letIdleGo(f *function, e core.LetGo) {
	switch e.Why {
	case core.BecauseEvicted:
		f.book.tally[instanceEvicted]++
	case core.BecauseNoCall, core.BecauseTooMany:
		f.book.tally[instanceReleased]++
		s.deps.Log.Info("released an idle instance", "function", f.fn.Key().String(), "cid", e.CID,
			"reason", string(e.Why), "idle", e.Idle)
	default:
		return // its stream's goroutine knows more of it
	}
	s.deps.Instances.End(keyOf(f.uid, e.CID), provisioner.Ending{Within: capacity.EvictGrace})
}

// kindStart is how long instances of the function's kind take to start. The function's
// lock is held.
func (s *Scheduler) kindStart(f *function) time.Duration { return s.starts.mean(kindOf(f.fn)) }

// activate lets the next tick look at a function.
func (s *Scheduler) activate(f *function) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.functions.of(f.uid) == f {
		s.active[f] = struct{}{}
	}
}

// idle lets ticks pass over a function.
func (s *Scheduler) idle(f *function) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, f)
}

// awake tells whether the next tick looks at a function.
func (s *Scheduler) awake(f *function) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, active := s.active[f]
	return active
}

// kick lets a function be looked at now that has calls and no instance, for what the
// next tick would decide is certain, and its first call would wait for it; or one whose
// decider asked to see the next call.
func (s *Scheduler) kick(f *function, eager bool) {
	if eager || !s.hasInstance(f) {
		select {
		case s.kicks <- f:
		default:
		}
	}
}
