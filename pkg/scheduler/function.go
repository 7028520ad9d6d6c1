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
	spec       *v1alpha1.Function
	rev        string
	executions *estimate.LastN
	memory     fpcs.Memory
	// settled is how many instances there were when etcd was last there; -1
	// while it is.
	settled int
	// lost counts the instances that ended while they were needed, since
	// the last tick.
	lost int
	// ordered counts all orders, and peak is the most instances at a time.
	ordered int
	peak    int

	// active says that the next tick looks at the function.
	active atomic.Bool
	// blocked says that the last order had no effect: until another one has,
	// only ticks try again.
	blocked atomic.Bool
	// noRoom is why the last order found no node; empty if it did.
	noRoom atomic.Pointer[string]
	// evicted is the instance that was evicted to make room for this
	// function, until an order after its end. Only Run's goroutine uses it.
	evicted provisioner.Key
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
		executions: estimate.NewLastN(config.Executions),
	}
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
	return old
}

// revision is the Function.Revision of the function as it is now.
func (f *function) revision() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rev
}

// observe learns from an execution time. It comes from an agent, so it is held
// within what the function's timeout allows.
func (f *function) observe(execution time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.executions.Observe(min(execution, f.spec.Spec.Timeout.Duration))
}

// loseOne notes that an instance ended while it was needed.
func (f *function) loseOne() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost++
}

// mean is the mean execution time; 0 if unknown.
func (f *function) mean() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.executions.Mean()
}

// leavePolicy is when an idle instance may leave.
func leavePolicy(fn *v1alpha1.Function) queue.LeavePolicy {
	s := fn.Spec.Scaling
	return queue.LeavePolicy{
		Min:         int(s.Min),
		IdleTimeout: s.BackoffAfter.Duration + s.IdleTimeout.Duration,
		KeepLast:    s.KeepLast.Duration,
	}
}

// evictPolicy is when an idle instance may be made to leave.
func evictPolicy(fn *v1alpha1.Function, config Config) queue.EvictPolicy {
	return queue.EvictPolicy{Min: int(fn.Spec.Scaling.Min), IdleFor: config.EvictAfter}
}

// limits are the bounds on the number of instances.
func limits(fn *v1alpha1.Function) fpcs.Limits {
	l := fpcs.Limits{Min: int(fn.Spec.Scaling.Min)}
	if most := fn.Spec.Scaling.Max; most != nil {
		l.Max = int(*most)
	}
	return l
}

// decider is the function's algorithm.
func decider(fn *v1alpha1.Function) fpcs.Decider {
	// listing1 is the only one that validation admits.
	return fpcs.Listing1
}
