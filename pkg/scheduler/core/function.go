package core

import (
	"time"

	"github.com/windlass-dev/windlass/internal/schedule"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

const (
	// GatewayCoolDown is how long an instance that could not reach a gateway is not handed its
	// tickets: a restart of a gateway takes about as long.
	GatewayCoolDown = 2 * time.Second
	// StaleAfter is how long a call waits until it is stale, as in production.
	StaleAfter = 100 * time.Millisecond
	// HelloTime is how long the instances of a function that was taken over have to say
	// hello before others are ordered in their place. Without it every failover would
	// order as many again. It is longer than an owner that comes back waits for them: a
	// stand-in keeps them until the owner has answered for a second, which it hears
	// after a beat and with a connection made anew.
	HelloTime = 2500 * time.Millisecond
)

// Config is what all functions of a scheduler have in common.
type Config struct {
	// Tick is the time between two decisions.
	Tick time.Duration
	// MaxQueued is how many tickets may wait, and ClaimGrace how long an instance may
	// hold one unclaimed.
	MaxQueued  int
	ClaimGrace time.Duration
	// Executions is how many of the last executions and starts a mean is taken of.
	Executions int
}

// Spec is what the owner of a function asks for, as far as it matters here. What
// instances run never changes: to run something else is another function.
type Spec struct {
	Concurrency int
	// Timeout bounds one execution, and StartupTimeout one start.
	Timeout, StartupTimeout time.Duration
	Decide                  autoscaler.Decider
	Calls                   admission.Limits
	// Min and Max are the instances at a time; Max is 0 if there is no bound.
	Min, Max int
	// Proving says that Min is one instance that is to prove the revision.
	Proving bool
	// An instance backs off when it was idle for BackoffAfter, and may leave after
	// IdleTimeout more; the last one after KeepLast.
	BackoffAfter, IdleTimeout, KeepLast time.Duration
	// Windows and Learns are what floor.New takes.
	Windows []schedule.Window
	Learns  bool
}

// keptHandOuts is how many hand-outs a function keeps memory for: one step seldom has
// more, and there are many functions.
const keptHandOuts = 16

// Unserved is the term of a function that is not served here.
var Unserved invocation.Term

// Function is what a scheduler knows of one function. It is not safe for concurrent use.
type Function struct {
	config *Config
	spec   Spec
	serving

	queue     *queue.Queue
	limiter   admission.Limiter
	instances instances
	// idleSince is when the last ticket was done with; zero while there are some, and
	// before the first.
	idleSince time.Time

	estimates   estimates
	floorPolicy *floor.Policy
	lastDecision
	degraded degradedMode
	// lost counts the instances that ended while they were needed, since the last
	// decision.
	lost int

	activity activity
	audits   auditFindings
	// out are the effects of this step, and handOuts those of them that come with calls:
	// memory that steps use again.
	out      []Effect
	handOuts []HandOut
}

// New makes a Function that is not served yet, and rests.
func New(config *Config, spec Spec) *Function {
	return &Function{
		config:      config,
		spec:        spec,
		queue:       queue.New(queue.Limits{MaxWaiting: config.MaxQueued, ClaimGrace: config.ClaimGrace, CoolDown: GatewayCoolDown}),
		instances:   make(instances),
		estimates:   newEstimates(config),
		floorPolicy: newFloorPolicy(spec, nil),
		activity:    activity{parked: true},
	}
}

// Step takes note of an event and returns what to do about it, in order. The effects
// are valid until the next step. The time must not go back.
func (f *Function) Step(now time.Time, e Event) []Effect {
	clear(f.out)
	f.out = f.out[:0]
	if clear(f.handOuts); cap(f.handOuts) > keptHandOuts {
		f.handOuts = nil
	}
	f.handOuts = f.handOuts[:0]
	handle(f, e, now)
	return f.out
}

func (f *Function) do(e Effect) { f.out = append(f.out, e) }

// refuseWaiting refuses all tickets that wait.
func (f *Function) refuseWaiting(why invocation.Refusal, now time.Time) {
	if tickets := f.queue.Clear(); len(tickets) > 0 {
		f.do(Refuse{Tickets: tickets, Why: why})
	}
	f.updateIdleSince(now)
}

// activity says whether ticks pass over a function.
type activity struct {
	// parked says that they do, and news that something happened since the last one
	// began to look at it.
	parked, woken bool
}

// wake lets the next tick look at the function, also if one is looking at it now.
func (f *Function) wake() {
	f.activity.woken = true
	if f.activity.parked {
		f.activity.parked = false
		f.do(Wake{})
	}
}

// park lets ticks pass over the function until something happens or a time comes,
// unless something has happened since the tick began.
func (f *Function) park(until time.Time) {
	if !f.activity.woken {
		f.activity.parked = true
		f.do(Park{Until: until})
	}
}
