package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

const (
	// settleTime is how long the schedulers have, after the controller's
	// start, to tell of a function before it counts as unobserved.
	settleTime = 10 * time.Second
	// lostGrace is how long facts are believed after the stream that they came
	// by has broken, or after their scheduler has let go of the function:
	// time enough for another one to tell.
	lostGrace = 5 * time.Second
	// maxHappenings bounds what is kept of a function until it is told as
	// Events. The oldest are dropped.
	maxHappenings = 32
)

// stream is one stream from one scheduler.
type stream struct{ address string }

// book holds the latest facts of every unit that is told of, which is a revision of a
// function.
type book struct {
	// poke is called, without the lock, when there is something new.
	poke func(types.NamespacedName)
	// pools are what schedulers tell of warm pools by the same streams.
	pools *poolBook

	mu      sync.Mutex
	opened  time.Time
	entries map[string]*entry // by UID of the FunctionRevision
}

// entry is what is known of one unit.
type entry struct {
	// key is of the function.
	key   types.NamespacedName
	facts facts
	// by is who told last; nil once it does so no more, since the time lost.
	by         *stream
	lost       time.Time
	happenings []happening
}

func newBook(poke func(types.NamespacedName), pools *poolBook) *book {
	return &book{poke: poke, pools: pools, opened: time.Now(), entries: make(map[string]*entry)}
}

// open starts the time in which schedulers may be silent.
func (b *book) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = time.Now()
}

// tell notes what a stream says. Who speaks last is believed: the scheduler
// that a unit has moved to tells of it after the one that it has left.
func (b *book) tell(by *stream, reply *controlwire.WatchReply) {
	b.pools.tell(by, reply.GetWarmPools())
	var changed []types.NamespacedName
	b.mu.Lock()
	for _, told := range reply.GetFunctions() {
		if told.GetFunctionUid() == "" {
			continue
		}
		e, known := b.entries[told.GetFunctionUid()]
		if !known {
			e = &entry{}
			b.entries[told.GetFunctionUid()] = e
		}
		before := *e
		e.key = types.NamespacedName{Namespace: told.GetNamespace(), Name: told.GetName()}
		e.by, e.lost, e.facts = by, time.Time{}, factsOf(told)
		e.note(told.GetEvents())
		// A busy function is told of twice a second, and mostly with other means only.
		if !known || before.facts != e.facts || before.by == nil || len(told.GetEvents()) > 0 {
			changed = append(changed, e.key)
		}
	}
	for _, uid := range reply.GetReleased() {
		if e := b.entries[uid]; e != nil && e.by == by {
			e.by, e.lost = nil, time.Now()
		}
	}
	b.mu.Unlock()
	for _, key := range changed {
		b.poke(key)
	}
}

// close says that a stream has ended.
func (b *book) close(by *stream) {
	b.pools.close(by)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.by == by {
			e.by, e.lost = nil, time.Now()
		}
	}
}

// sweep forgets facts that nobody has told for too long.
func (b *book) sweep() {
	b.pools.sweep()
	var changed []types.NamespacedName
	b.mu.Lock()
	for uid, e := range b.entries {
		if e.by == nil && time.Since(e.lost) >= lostGrace {
			delete(b.entries, uid)
			changed = append(changed, e.key)
		}
	}
	b.mu.Unlock()
	for _, key := range changed {
		b.poke(key)
	}
}

// look returns what is known of a unit, or nil. It hands over the happenings.
func (b *book) look(uid types.UID) (found *facts, told []happening) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[string(uid)]
	if e == nil {
		return nil, nil
	}
	f := e.facts
	told, e.happenings = e.happenings, nil
	return &f, told
}

// settles is the time until what nobody tells of counts as unobserved, and not as
// something that a scheduler has not come to yet; 0 if so.
func (b *book) settles() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(settleTime-time.Since(b.opened), 0)
}

func (e *entry) note(told []*controlwire.Event) {
	for _, h := range told {
		if h.GetReason() == "" {
			continue
		}
		e.happenings = append(e.happenings, happening{
			reason: h.GetReason(), message: h.GetMessage(), warning: h.GetWarning(),
		})
	}
	if excess := len(e.happenings) - maxHappenings; excess > 0 {
		e.happenings = e.happenings[excess:]
	}
}

func factsOf(told *controlwire.FunctionFacts) facts {
	f := facts{
		generation: told.GetGeneration(),
		creating:   int64(told.GetCreating()),
		created:    int64(told.GetCreated()),
		waiting:    told.GetQueued() > 0,
		noRoom:     told.GetNoCapacity(),

		unconfirmed: told.GetUnconfirmed(),
		started:     told.GetStarted(),
	}
	if p := told.GetProblem(); p != nil {
		f.problem = problem{reason: p.GetReason(), detail: p.GetDetail()}
		if f.problem.reason == "" {
			f.problem.reason = v1alpha1.ReasonStartFailed
		}
	}
	return f
}
