package controller

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

const (
	// settleTime is how long the schedulers have, once this controller is the
	// leader, to report a function before it counts as unobserved.
	settleTime = 10 * time.Second
	// lostGrace is how long facts are kept after their stream has broken, or after their
	// scheduler has released the function: enough time for another scheduler to report it.
	lostGrace = 5 * time.Second
	// maxEvents bounds the events of a function that wait to be emitted. When it is reached,
	// the oldest is dropped.
	maxEvents = 32
)

// stream is one stream from one scheduler.
type stream struct{ address string }

// factStore holds the latest facts of every reported unit, which is a revision of a
// function.
type factStore struct {
	// onChange is called, without the lock, when facts have changed.
	onChange func(types.NamespacedName)
	// pools are what schedulers report about warm pools by the same streams.
	pools *poolStore

	mu sync.Mutex
	// opened is when schedulers could be heard; zero before this controller is the leader.
	opened  time.Time
	entries map[string]*unitEntry // by UID of the FunctionRevision
}

// unitReport is the last that a stream has said of a unit.
type unitReport struct {
	stream *stream
	facts  facts
}

// unitEntry has the facts of one unit.
type unitEntry struct {
	// key is the function's.
	key types.NamespacedName
	// latest counts. Its stream is nil once no stream reports the unit, since the time lost.
	latest unitReport
	lost   time.Time
	// earlier are those of the other streams that report the unit, oldest first. A stream says
	// only what has changed: once the latest report ends, its scheduler does not repeat them.
	earlier []unitReport
	events  []functionEvent
}

func newFactStore(poke func(types.NamespacedName), pools *poolStore) *factStore {
	return &factStore{onChange: poke, pools: pools, entries: make(map[string]*unitEntry)}
}

// restart starts the time in which schedulers may be silent.
func (b *factStore) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = time.Now()
}

// applyReply applies the message of a stream. The latest message counts: the scheduler that
// has taken a unit over reports it after the one that has released it.
func (b *factStore) applyReply(by *stream, reply *controlwire.WatchReply) {
	b.pools.setReport(by, reply.GetWarmPools())
	var changed []types.NamespacedName
	b.mu.Lock()
	for _, observed := range reply.GetFunctions() {
		if observed.GetFunctionUid() == "" {
			continue
		}
		e, known := b.entries[observed.GetFunctionUid()]
		if !known {
			e = &unitEntry{}
			b.entries[observed.GetFunctionUid()] = e
		}
		before := e.latest
		e.key = types.NamespacedName{Namespace: observed.GetNamespace(), Name: observed.GetName()}
		e.add(unitReport{by, factsOf(observed)})
		e.addEvents(observed.GetEvents())
		// A busy function is reported twice a second, and mostly with other means only.
		if !known || before.facts != e.latest.facts || before.stream == nil || len(observed.GetEvents()) > 0 {
			changed = append(changed, e.key)
		}
	}
	for _, uid := range reply.GetReleased() {
		if e := b.entries[uid]; e != nil && e.drop(by) {
			changed = append(changed, e.key)
		}
	}
	b.mu.Unlock()
	for _, key := range changed {
		b.onChange(key)
	}
}

// close says that a stream has ended.
func (b *factStore) close(by *stream) {
	b.pools.close(by)
	var changed []types.NamespacedName
	b.mu.Lock()
	for _, e := range b.entries {
		if e.drop(by) {
			changed = append(changed, e.key)
		}
	}
	b.mu.Unlock()
	for _, key := range changed {
		b.onChange(key)
	}
}

// sweep drops facts that no scheduler has reported for too long.
func (b *factStore) sweep() {
	b.pools.sweep()
	var changed []types.NamespacedName
	b.mu.Lock()
	for uid, e := range b.entries {
		if e.latest.stream == nil && time.Since(e.lost) >= lostGrace {
			delete(b.entries, uid)
			changed = append(changed, e.key)
		}
	}
	b.mu.Unlock()
	for _, key := range changed {
		b.onChange(key)
	}
}

// get returns the facts of a unit, or nil. It returns each event once.
func (b *factStore) get(uid types.UID) (found *facts, observed []functionEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[string(uid)]
	if e == nil {
		return nil, nil
	}
	f := e.latest.facts
	observed, e.events = e.events, nil
	return &f, observed
}

// settlesIn is the time until what no scheduler reports counts as unobserved, and not as
// something that a scheduler has not come to yet; 0 if so.
func (b *factStore) settlesIn() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened.IsZero() {
		return settleTime
	}
	return max(settleTime-time.Since(b.opened), 0)
}

// add makes a report the latest.
func (e *unitEntry) add(latest unitReport) {
	e.drop(latest.stream)
	if e.latest.stream != nil {
		e.earlier = append(e.earlier, e.latest)
	}
	e.latest, e.lost = latest, time.Time{}
}

// drop drops the report of a stream, and says whether other facts count from now on. The last
// report is kept for lostGrace.
func (e *unitEntry) drop(by *stream) (changed bool) {
	last := len(e.earlier) - 1
	switch {
	case e.latest.stream != by:
		e.earlier = slices.DeleteFunc(e.earlier, func(r unitReport) bool { return r.stream == by })
	case last < 0:
		e.latest.stream, e.lost = nil, time.Now()
	default:
		changed = e.latest.facts != e.earlier[last].facts
		e.latest = e.earlier[last]
		e.earlier = slices.Delete(e.earlier, last, last+1)
	}
	if len(e.earlier) == 0 {
		e.earlier = nil // its memory: there are many units, and seldom two reports of one
	}
	return changed
}

func (e *unitEntry) addEvents(observed []*controlwire.Event) {
	for _, h := range observed {
		if h.GetReason() == "" {
			continue
		}
		e.events = append(e.events, functionEvent{
			reason: h.GetReason(), message: h.GetMessage(), warning: h.GetWarning(),
		})
	}
	if excess := len(e.events) - maxEvents; excess > 0 {
		e.events = e.events[excess:]
	}
}

func factsOf(observed *controlwire.FunctionFacts) facts {
	f := facts{
		generation: observed.GetGeneration(),
		creating:   int64(observed.GetCreating()),
		created:    int64(observed.GetCreated()),
		waiting:    observed.GetQueued() > 0,
		noRoom:     observed.GetNoCapacity(),

		unconfirmed: observed.GetUnconfirmed(),
		started:     observed.GetStarted(),
	}
	if p := observed.GetProblem(); p != nil {
		f.problem = problem{reason: p.GetReason(), detail: p.GetDetail()}
		if f.problem.reason == "" {
			f.problem.reason = v1alpha1.ReasonStartFailed
		}
	}
	return f
}
