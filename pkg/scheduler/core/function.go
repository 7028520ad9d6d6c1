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
	// GatewayCoolDown is for how long an instance that could not reach a gateway gets none of
	// its tickets: about as long as a gateway takes to restart.
	GatewayCoolDown = 2 * time.Second
	// StaleAfter is how long a call waits until it is stale; Apache OpenWhisk uses the same
	// time.
	StaleAfter = 100 * time.Millisecond
	// HelloTime is how long a new owner waits for adopted instances to connect before it
	// launches replacements; without it, every failover would launch all instances again. It
	// must exceed the standby's hold time (1 s of healthy heartbeats) plus one heartbeat and
	// one reconnect.
	HelloTime = 2500 * time.Millisecond
	// standbyTime is how long a standby leaves to the owner what no call waits for: etcd names
	// another owner sooner if the owner is gone.
	standbyTime = 15 * time.Second
)

// Config is shared by all functions of a scheduler.
type Config struct {
	// Tick is the time between two decisions.
	Tick time.Duration
	// MaxQueued is how many tickets may wait, and ClaimGrace how long an instance may hold a
	// ticket unclaimed.
	MaxQueued  int
	ClaimGrace time.Duration
	// Executions is the number of recent executions and starts that a mean covers.
	Executions int
}

// Spec has the settings of a function that its core uses. What instances run never changes:
// another revision is another Function.
type Spec struct {
	Concurrency int
	// Timeout bounds one execution, and StartupTimeout one start.
	Timeout, StartupTimeout time.Duration
	Decide                  autoscaler.Decider
	Calls                   admission.Limits
	// Limited says that Calls has a limit. A function with limits must see each call, so its instances lend
	// no places to gateways.
	Limited bool
	// Min and Max bound the number of instances; Max is 0 for no bound.
	Min, Max int
	// Proving says that Min is one instance that proves the revision.
	Proving bool
	// An instance backs off after BackoffAfter without a call, and may leave after IdleTimeout
	// more; the last one after KeepLast.
	BackoffAfter, IdleTimeout, KeepLast time.Duration
	// Windows and Learns are parameters of floor.New.
	Windows []schedule.Window
	Learns  bool
}

// keptHandOuts bounds the memory that a function keeps for hand-outs: one step rarely has
// more, and there are many functions.
const keptHandOuts = 16

// Unserved is the term of a function that this scheduler does not serve.
var Unserved invocation.Term

// Function is the state of one function at its scheduler. It is not safe for concurrent use.
type Function struct {
	config *Config
	spec   Spec
	serving

	queue     *queue.Queue
	limiter   admission.Limiter
	instances instances
	// idleSince is when the last call was done; zero while the function has calls, and before
	// the first that came since it is served here.
	idleSince time.Time

	estimates   estimates
	floorPolicy *floor.Policy
	last        lastDecision
	degraded    degradedMode
	// lost are the instances that ended while they were needed, since the last decision, and have not come back.
	lost []invocation.CID
	// coreWaited is how long calls that have ended since the last decision waited for cores of
	// their nodes, as far as nobody said so meanwhile.
	coreWaited time.Duration

	reports  loanReports
	activity activity
	audits   auditFindings
	// out are the effects of this step, and handOuts the HandOuts and ranByLoan the RanByLoan
	// among them. Steps reuse them.
	out       []Effect
	handOuts  []HandOut
	ranByLoan RanByLoan
}

// New makes a Function that is not served yet, and is parked.
func New(config *Config, spec Spec) *Function {
	return &Function{
		config:      config,
		spec:        spec,
		queue:       queue.New(queue.Limits{MaxWaiting: config.MaxQueued, ClaimGrace: config.ClaimGrace, CoolDown: GatewayCoolDown}),
		estimates:   newEstimates(config),
		floorPolicy: newFloorPolicy(spec, nil),
		activity:    activity{parked: true},
	}
}

// Step applies an event and returns the effects in the order to carry them out. They are valid
// until the next step. now must not go back.
func (f *Function) Step(now time.Time, e Event) []Effect {
	clear(f.out)
	f.out = f.out[:0]
	if clear(f.handOuts); cap(f.handOuts) > keptHandOuts {
		f.handOuts = nil
	}
	f.handOuts = f.handOuts[:0]
	e.apply(f, now)
	effects := f.out
	if f.activity.parked && len(f.instances) == 0 {
		f.out, f.handOuts, f.instances = nil, nil, nil // there are many such functions, and their steps are rare
	}
	return effects
}

func (f *Function) do(e Effect) { f.out = append(f.out, e) }

// refuseWaiting refuses all waiting tickets.
func (f *Function) refuseWaiting(why invocation.Refusal, now time.Time) {
	why.Admitted = true
	if tickets := f.queue.Clear(); len(tickets) > 0 {
		f.do(Refuse{Tickets: tickets, Why: why})
	}
	f.updateIdleSince(now)
}

// activity says whether ticks look at a function.
type activity struct {
	// parked says that they do not, and woken that an event came since the last tick began to
	// look at it.
	parked, woken bool
}

// wake makes the next tick look at the function, even if a tick is looking at it now.
func (f *Function) wake() {
	f.activity.woken = true
	if f.activity.parked {
		f.activity.parked = false
		f.do(Wake{})
	}
}

// park makes ticks pass over the function until an event wakes it or a time comes, unless an
// event came since the tick began.
func (f *Function) park(until time.Time) {
	if !f.activity.woken {
		f.activity.parked = true
		f.do(Park{Until: until})
	}
}
