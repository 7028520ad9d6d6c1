package scheduler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/broker"
	"github.com/windlass-dev/windlass/pkg/queue/intake"
	"github.com/windlass-dev/windlass/pkg/scheduler/alarm"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
	"github.com/windlass-dev/windlass/pkg/scheduler/upkeep"
)

// function is what the scheduler keeps of one function.
type function struct {
	uid    string
	slot   ownership.Slot
	broker *broker.Broker
	// intake decides what the broker takes in. It is used under the broker's
	// lock only.
	intake   intake.Intake
	foreseen atomic.Pointer[intake.Outlook]

	// term is that in which the slot was served when it was last looked at. It
	// changes under handover only.
	term     atomic.Pointer[invoke.Term]
	handover sync.Mutex
	// helloBy is when instances that were taken over must have said hello, in
	// nanoseconds since 1970; see helloTime.
	helloBy atomic.Int64

	happenings happenings

	mu sync.Mutex
	// spec is replaced, never changed, and rev is its revision.
	spec *v1alpha1.Function
	rev  string
	// executions and starts are how long the last ones took.
	executions, starts estimate.LastN
	// memory is what the last decision asked to remember, and decided when that
	// was, in nanoseconds since 1970; 0 if there was none.
	memory  fpcs.Memory
	decided int64
	keeper  *upkeep.Keeper
	// where is whereOf the function.
	where string
	// settled is how many instances there were when etcd was last there; -1
	// while it is.
	settled int
	// lost counts the instances that ended while they were needed, since
	// the last tick.
	lost int
	// peak is the most instances at a time.
	peak int
	// terms are those of the last decision.
	terms   terms
	tally   tally
	births  births
	awaited awaited
	reports reports
	// spent is what the starts of instances took; nil if there was none.
	spent *coldstart.Durations

	// eagerFrom is from when on, in nanoseconds since 1970, the decider wants to be
	// asked as soon as a call comes; 0 if the next tick is soon enough.
	eagerFrom atomic.Int64
	// active says that the next tick looks at the function.
	active atomic.Bool
	// blocked says that the last order had no effect: until another one has,
	// only ticks try again.
	blocked atomic.Bool
	// noRoom is why the last order found no node; empty if it did.
	noRoom atomic.Pointer[string]
	// evicted is the instance that was evicted to make room for this
	// function, until an order after its end. Only Run's goroutine uses it.
	evicted *provisioner.Key
	// alarm lets a tick look at the function when its upkeep changes. Only Run's
	// goroutine uses it.
	alarm alarm.Alarm[*function]
}

// avoidFor is how long an instance that could not reach a gateway is not handed its
// tickets: a restart of a gateway takes about as long.
const avoidFor = 2 * time.Second

func newFunction(fn *v1alpha1.Function, config Config, now func() time.Time) *function {
	limits := queue.Limits{MaxWaiting: config.MaxQueued, ClaimGrace: config.ClaimGrace, AvoidFor: avoidFor}
	f := &function{
		uid:        uidOf(fn),
		slot:       ownership.SlotOf(uidOf(fn), 0),
		broker:     broker.New(limits, now),
		spec:       fn,
		rev:        fn.Revision(),
		settled:    -1,
		executions: *estimate.NewLastN(config.Executions),
		starts:     *estimate.NewLastN(config.Executions),
		keeper:     newKeeper(fn, nil),
		where:      whereOf(fn),
	}
	f.alarm.Of = f
	f.term.Store(&none)
	return f
}

// current returns the function as it is now.
func (f *function) current() *v1alpha1.Function {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spec
}

// update replaces the function and returns what it was.
func (f *function) update(fn *v1alpha1.Function) (old *v1alpha1.Function) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, f.spec, f.rev = f.spec, fn, fn.Revision()
	f.keeper, f.where = newKeeper(fn, f.keeper), whereOf(fn)
	return old
}

// revision is the Function.Revision of the function as it is now.
func (f *function) revision() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rev
}

// loseOne notes that an instance ended while it was needed.
func (f *function) loseOne() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost++
}
