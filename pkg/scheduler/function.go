package scheduler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/fpcs/history"
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
	// helloBy is when instances that were taken over must have said hello; nil if
	// none were. See helloTime.
	helloBy atomic.Pointer[time.Time]

	happenings happenings

	// known is since when this scheduler knows of the function, and counts for it. It is
	// told with each counter, so it is a whole second, which compresses well.
	known time.Time

	mu sync.Mutex
	// spec is replaced, never changed, and rev is its revision.
	spec *v1alpha1.Function
	rev  string
	// revSince is since when this scheduler knows of that revision.
	revSince time.Time
	// startedRev is the last revision of which an instance has started.
	startedRev string
	// executions and starts are how long the last ones took.
	executions, starts estimate.LastN
	// memory is what the last decision asked to remember, and decided when that
	// was; zero if there was none.
	memory  fpcs.Memory
	decided time.Time
	// eagerFrom is from when on the decider wants to be asked as soon as a call
	// comes; zero if the next tick is soon enough.
	eagerFrom time.Time
	keeper    *upkeep.Keeper
	// where is whereOf the function.
	where string
	// settled is how many instances there were when etcd was last there; -1
	// while it is.
	settled int
	// lost counts the instances that ended while they were needed, since
	// the last tick.
	lost int
	// failure is how an instance of the present revision failed last, or nil.
	failure *history.Failure
	// peak is the most instances at a time.
	peak int
	// terms are those of the last decision.
	terms   terms
	tally   tally
	tallies tallies
	births  births
	awaited awaited
	reports reports
	// spent is what the starts of instances took; nil if there was none.
	spent *coldstart.Durations

	// news says that something happened since a tick last began to look at the
	// function, so that the next one looks at it.
	news atomic.Bool
	// blocked says that the last order had no effect: until another one has,
	// only ticks try again.
	blocked atomic.Bool
	// noRoom is why the last order found no node; empty if it did.
	noRoom atomic.Pointer[string]
	// alarm lets a tick look at the function when its upkeep changes. Only Run's
	// goroutine uses it.
	alarm alarm.Alarm[*function]
	doubt doubt
}

// avoidFor is how long an instance that could not reach a gateway is not handed its
// tickets: a restart of a gateway takes about as long.
const avoidFor = 2 * time.Second

func newFunction(fn *v1alpha1.Function, config Config, now func() time.Time, all *doubts) *function {
	limits := queue.Limits{MaxWaiting: config.MaxQueued, ClaimGrace: config.ClaimGrace, AvoidFor: avoidFor}
	f := &function{
		uid:        uidOf(fn),
		slot:       ownership.SlotOf(uidOf(fn), 0),
		broker:     broker.New(limits, now),
		spec:       fn,
		rev:        fn.Revision(),
		revSince:   now(),
		known:      now().Truncate(time.Second),
		settled:    -1,
		executions: *estimate.NewLastN(config.Executions),
		starts:     *estimate.NewLastN(config.Executions),
		keeper:     newKeeper(fn, nil),
		where:      whereOf(fn),
	}
	f.alarm.Of = f
	f.doubt.all = all
	f.broker.OnChange(f.unsure)
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
func (f *function) update(fn *v1alpha1.Function, now time.Time) (old *v1alpha1.Function) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.rev
	old, f.spec, f.rev = f.spec, fn, fn.Revision()
	if f.rev != was {
		f.failure, f.revSince = nil, now
	}
	f.keeper, f.where = newKeeper(fn, f.keeper), whereOf(fn)
	f.unsure()
	return old
}

// revision is the Function.Revision of the function as it is now.
func (f *function) revision() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rev
}

// revisionSince is since when this scheduler knows of the function as it is now.
func (f *function) revisionSince() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revSince
}

// failed notes how an instance failed, unless it was of another revision.
func (f *function) failed(why provisioner.StartFailure, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if why.Revision == f.rev {
		f.failure = &history.Failure{At: now.UTC(), Code: why.Code, Detail: invoke.Excerpt(why.String())}
	}
}

// lastFailure is how an instance of the function as it is now failed last, or nil.
func (f *function) lastFailure() *history.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure
}

// startedOf notes that an instance of a revision has started.
func (f *function) startedOf(revision string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.startedRev = revision
}

// hasStarted tells whether an instance of the function as it is now has.
func (f *function) hasStarted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startedRev == f.rev
}

// loseOne notes that an instance ended while it was needed.
func (f *function) loseOne() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost++
}

// functions are those that the scheduler knows, by UID. Every call looks its function
// up, which must not wait for what is done with others; who adds or removes one holds
// the scheduler's lock.
type functions struct{ byUID sync.Map }

// of is a function, or nil.
func (fs *functions) of(uid string) *function {
	f, _ := fs.byUID.Load(uid)
	one, _ := f.(*function)
	return one
}

func (fs *functions) add(f *function) { fs.byUID.Store(f.uid, f) }

func (fs *functions) remove(uid string) { fs.byUID.Delete(uid) }

func (fs *functions) all() (list []*function) {
	fs.byUID.Range(func(_, f any) bool {
		list = append(list, f.(*function))
		return true
	})
	return list
}

// awake tells whether the next tick looks at a function.
func (s *Scheduler) awake(f *function) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, active := s.active[f]
	return active
}

// missed tells whether an instance was lost that no tick has seen.
func (f *function) missed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost > 0
}
