package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// scheduler is the shell of Windlass's scheduler in virtual time: it feeds the core of each
// function what happens to it, and carries out what that asks for.
type scheduler struct {
	*world
	config  core.Config
	planner *capacity.Planner
	budget  *capacity.Budget
	starts  map[string]*estimate.LastN // by runtime
	tickets waitingCalls

	// active are the functions that the next tick looks at, and ticking says that there
	// will be one; spare, considered, ticked and concluded are memory that ticks use again.
	active, spare []*function
	evaluations   []evaluation
	ticked        core.Ticked
	concluded     core.Applied
	ticking       bool
	// planned is when the planner's tick began.
	planned time.Duration
	// doubted are the functions whose usage the planner has to read again.
	doubted []*function

	// hurried and letGo are what the last events left to do: functions to decide on now,
	// and instances to end.
	hurried []*function
	letGo   []*instance

	// lending carries out what concerns gateways and agents; nil if there are none.
	lending *lending
}

func newScheduler(w *world) *scheduler {
	return &scheduler{
		world: w,
		config: core.Config{
			Tick: core.DefaultTick, MaxQueued: core.DefaultMaxQueued,
			ClaimGrace: core.DefaultClaimGrace, Executions: core.DefaultExecutions,
		},
		planner: capacity.New(capacity.Config{
			Tick: core.DefaultTick, EvictAfter: capacity.DefaultEvictAfter, Patience: capacity.DefaultPatience,
		}),
		budget: capacity.NewBudget(0, 0), planned: -1,
		starts: make(map[string]*estimate.LastN), tickets: make(waitingCalls),
	}
}

// waitingCalls are the calls whose tickets wait.
type waitingCalls map[invocation.ID]*call

// take removes and returns a call.
func (w waitingCalls) take(id invocation.ID) *call {
	c := w[id]
	delete(w, id)
	return c
}

// serveFunction begins to serve a function, as a scheduler does with all functions when it starts:
// a function that is called later was decided on once before, in the first tick of all.
func (s *scheduler) serveFunction(f *function) {
	class := f.class
	decide := class.Decider
	if decide == nil {
		decide = s.world.config.Decider
	}
	f.wake = -1
	f.core = core.New(&s.config, core.Spec{
		Concurrency: class.Concurrency, Timeout: forever, StartupTimeout: forever, Decide: decide,
		Min: class.Limits.Min, Max: class.Limits.Max,
		BackoffAfter: class.BackoffAfter, IdleTimeout: class.IdleTimeout, KeepLast: class.KeepLast,
		Windows: class.Windows, Learns: class.Learns,
	})
	s.startsOf(f).Observe(class.KnownStart)
	s.stepAt(0, f, core.OwnershipChanged{Term: term, Restored: estimate.Means{Execution: class.KnownWork, Start: class.KnownStart}})
	first := s.config.Tick
	if s.now <= first {
		return
	}
	// One that wants instances at once gets them from the next tick.
	ticked := f.core.Step(instant(first), &core.Ticked{Observed: s.observation(f)})
	if d, is := core.AnswerOf[*core.Decided](ticked); is && d.Wanted() == 0 {
		s.stepAt(first, f, &core.Applied{Decided: d})
	}
}

// serveFloors serves functions that have instances without any call.
func (s *scheduler) serveFloors() {
	first := 0
	for i, end := range s.classEnds {
		if class := &s.world.config.Functions[i]; class.Limits.Min > 0 || len(class.Windows) > 0 {
			for index := first; index < end; index++ {
				s.function(index)
			}
		}
		first = end
	}
}

// startsOf are the last starts of all functions of a function's runtime.
func (s *scheduler) startsOf(f *function) *estimate.LastN {
	last := s.starts[f.class.Runtime]
	if last == nil {
		last = estimate.NewLastN(s.config.Executions)
		s.starts[f.class.Runtime] = last
	}
	return last
}

func (s *scheduler) kindStart(f *function) time.Duration { return s.startsOf(f).Mean() }

// step brings an event to a function's core and carries out what follows, but for what
// settle does. What it returns is valid until the next event of the function.
func (s *scheduler) step(f *function, e core.Event) []core.Effect { return s.stepAt(s.now, f, e) }

func (s *scheduler) stepAt(at time.Duration, f *function, e core.Event) []core.Effect {
	effects := f.core.Step(instant(at), e)
	for _, effect := range effects {
		s.carryOut(f, effect)
	}
	if !f.doubted {
		f.doubted = true
		s.doubted = append(s.doubted, f)
	}
	return effects
}

// carryOut executes an effect of a function's core. Refusals of offers, joins and leaves go
// back to the caller that fed the event.
func (s *scheduler) carryOut(f *function, e core.Effect) {
	if s.lending != nil && s.lending.carryOut(f, e) {
		return
	}
	switch e := e.(type) {
	case *core.HandOut:
		s.hand(s.tickets.take(e.Ticket.ID), f.instances[e.CID])
	case core.Refuse:
		for _, t := range e.Tickets {
			s.refuse(s.tickets.take(t.ID))
		}
	case core.Terminate:
		f.result.letGo(e.Why)
		s.letGo = append(s.letGo, f.instances[e.CID])
	case core.Wake:
		s.activate(f)
	case core.Park:
		s.rest(f, e.Until)
	case core.RunNow:
		if e.Always || len(f.instances) == 0 {
			s.hurried = append(s.hurried, f)
		}
	case *core.Decided:
		s.result.Decisions++
		if s.world.config.Observe != nil {
			s.world.config.Observe(s.now, f.index, e.Snapshot, e.Decision)
		}
	}
}

// settle does what the events of this moment have left to do. Instances that were let go
// are idle, so that they end at once.
func (s *scheduler) settle() {
	for _, f := range s.hurried {
		s.runNow(f)
	}
	s.hurried = s.hurried[:0]
	for _, in := range s.letGo {
		s.step(in.function, core.Left{CID: in.cid})
		s.remove(in)
	}
	s.letGo = s.letGo[:0]
}

// activate lets the next tick look at a function. There are ticks only while there is one.
func (s *scheduler) activate(f *function) {
	f.awake = true
	if f.listed {
		return
	}
	f.listed = true
	s.active = append(s.active, f)
	if !s.ticking {
		s.ticking = true
		s.agenda.plan(s.now.Truncate(s.config.Tick)+s.config.Tick, tickDue{})
	}
}

// rest lets ticks pass over a function until then.
func (s *scheduler) rest(f *function, until time.Time) {
	f.awake = false
	if until.IsZero() {
		f.wake = -1
		return
	}
	if at := max(s.now, until.Sub(epoch)); f.wake != at {
		f.wake = at
		s.agenda.plan(at, (*functionWakes)(f))
	}
}

// functionWakes is when a function is to be woken, unless it was planned otherwise since.
type functionWakes function

func (e *functionWakes) run(w *world) {
	if f := (*function)(e); f.wake == w.now {
		f.wake = -1
		w.scheduler.step(f, core.Woken{})
	}
}

// FixedPool launches n instances at the first call. It replaces instances that leave, as idle
// ones do unless Function.Limits keep them.
func FixedPool(n int) autoscaler.Decider {
	return func(s autoscaler.Snapshot, _ autoscaler.Params) autoscaler.Decision {
		return autoscaler.Decision{Create: max(0, n-s.Created-s.Creating), Why: "Pool", Required: n}
	}
}
