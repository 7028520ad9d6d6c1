package gateway

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// reportEvery is how often schedulers learn what was done with loans, and how often the gateway
// looks for calls that have waited for long without a ticket: as often as schedulers decide.
const reportEvery = 100 * time.Millisecond

// dropEvery is how often the gateway looks for pools whose revisions are gone, and for hosts whose functions are.
const dropEvery = 5 * time.Second

// pools has a pool for each revision that has been called here.
type pools struct {
	mu    sync.RWMutex // guards byUID
	byUID map[string]*pool
}

func newPools() *pools { return &pools{byUID: make(map[string]*pool)} }

// lentPulls is what the core knows of a pool.
type lentPulls = core.Pool[*call, *agentConn]

// pool is the core.Pool of one revision with its lock.
type pool struct {
	uid  string
	slot ownership.Slot
	unit *v1alpha1.Function
	// function is the key of the unit's function.
	function invocation.FunctionKey

	mu   sync.Mutex // guards everything below
	core lentPulls
	// entry is that of the last call or, without calls, the latest one. The catalog keeps a function
	// packed that nobody uses, and calls of a function that was called must not wait until it is
	// opened.
	entry *rollout.Entry
	// removed says that it is none of the pools any more. What is lent to it is given back.
	removed bool
	// limited says that the function had limits at its last call. Such a function lends nothing, and what
	// it lent before is given back.
	limited bool
	// sent is the last report, and base what the reports on the present stream leave out,
	// because earlier streams had it.
	sent, base core.LoanReport
	stream     *linkStream // of sent
}

// locked returns the pool of a call's unit with its lock held.
func (ps *pools) locked(at destination, function invocation.FunctionKey) *pool {
	uid := string(at.unit.UID)
	for {
		ps.mu.RLock()
		p := ps.byUID[uid]
		ps.mu.RUnlock()
		if p == nil {
			p = ps.add(&pool{uid: uid, slot: at.slot(), unit: at.unit, function: function})
		}
		p.mu.Lock()
		if !p.removed {
			p.entry = at.entry
			return p
		}
		p.mu.Unlock()
	}
}

// add adds a pool, unless there is one, and returns the one that there is.
func (ps *pools) add(fresh *pool) *pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.byUID[fresh.uid]; p != nil {
		return p
	}
	ps.byUID[fresh.uid] = fresh
	return fresh
}

// all are the present pools.
func (ps *pools) all() []*pool {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	all := make([]*pool, 0, len(ps.byUID))
	for _, p := range ps.byUID {
		all = append(all, p)
	}
	return all
}

// dropUnused removes a pool without calls and loans, once a scheduler has its last numbers.
func (ps *pools) dropUnused(p *pool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.core.Unused() && p.core.Report() == p.sent {
		p.removed = true
		delete(ps.byUID, p.uid)
	}
}

// enqueue lets a call wait, and hands it over at once if an instance has lent a pull. The caller
// writes the frames.
func (s *shell) enqueue(c *call) conns {
	for {
		if to, done := s.enqueueAt(c, c.destination()); done {
			return to
		}
	}
}

// enqueueAt is enqueue at a destination; not done if the call was moved to another one meanwhile. Two
// goroutines may get here with one call, when one moves it that the other one has just queued again.
// The first one lets it wait, for the revision that it was last moved to.
func (s *shell) enqueueAt(c *call, at destination) (to conns, done bool) {
	p := s.pools.locked(at, c.function.Key())
	if !c.pool.CompareAndSwap(nil, p) {
		p.mu.Unlock()
		return nil, true
	}
	// From here on dequeue and taken wait for the lock, and take it out.
	last, waits := c.waitsAt(at)
	if !waits {
		c.pool.Store(nil)
		p.mu.Unlock()
		return nil, !c.queued()
	}
	p.limited = at.unit.Spec.Calls.Limited()
	// The lock is held from here to handOver, or another call could take the credit that waits for this one.
	if last != nil && last.pool == p && p.core.GivenUp(&last.longWait) {
		s.metrics.callGivenUp()
	}
	ask := p.core.Add(&c.waiting, time.Now(), p.limited)
	after := s.handOver(p)
	p.mu.Unlock()
	if ask {
		after.ask = append(after.ask, c)
	}
	s.askFor(after.ask)
	return after.to, true
}

// lockedPool returns the pool in which a call waits, with its lock held; nil if it waits in
// none.
func (c *call) lockedPool() *pool {
	for {
		p := c.pool.Load()
		if p == nil {
			return nil
		}
		p.mu.Lock()
		if c.pool.Load() == p {
			return p
		}
		p.mu.Unlock()
	}
}

// dequeue takes a call out of its pool that no longer waits.
func (s *shell) dequeue(c *call) {
	if p := c.lockedPool(); p != nil {
		p.core.Remove(&c.waiting)
		c.pool.Store(nil)
		p.mu.Unlock()
	}
}

// taken takes a call out of its pool that an instance has claimed with a ticket. Others that
// wait ask for the next such instance.
func (s *shell) taken(c *call) {
	p := c.lockedPool()
	if p == nil {
		return
	}
	ask := p.core.Taken(&c.waiting)
	c.pool.Store(nil)
	p.mu.Unlock()
	s.askFor(ask)
}

// askFor sends the first tickets of waiting calls.
func (s *shell) askFor(calls []*call) {
	for _, c := range calls {
		now := time.Now()
		s.step(c, func(v *core.Invocation) core.Decision { return v.Ask(now) }, problem{})
	}
}

// change changes a pool, and hands calls to the places that are free then. reader is the connection whose
// reader calls it, or nil.
func (s *shell) change(p *pool, reader *agentConn, how func(*lentPulls)) {
	p.mu.Lock()
	how(&p.core)
	after := s.handOver(p)
	p.mu.Unlock()
	s.finish(after, reader)
}

// handedOver is what is left to do once a pool's lock is released.
type handedOver struct {
	// to are the connections with frames that were not written yet.
	to conns
	// ask are the calls that send their first tickets.
	ask []*call
}

// handOver hands calls to lent pulls for as long as there are both. If pulls are left, it asks for calls
// that wait long, and gives back what the gateway may not keep. The caller holds the pool's lock, and does
// what is left once it has released the lock.
func (s *shell) handOver(p *pool) (after handedOver) {
	for {
		w, by, ok := p.core.Next()
		if !ok {
			requestGiveUps(p, &after)
			if s.keepsNoLoans.Load() || p.limited || p.removed {
				returnUnused(p, &after)
			}
			after.ask = p.core.Stranded()
			return after
		}
		c, now := w.Call, time.Now()
		switch by.Instance.take(c, p, now) {
		case takeNotWaiting:
			p.core.Refund(by)
			c.pool.Store(nil)
		case takeGone:
			p.core.PutBack(w, by)
		case takeDone:
			c.pool.Store(nil)
			p.core.Handed(w, now)
			after.to = after.to.with(by.Instance)
		}
	}
}

// requestGiveUps asks instances of busy nodes to give up calls for which a calm one has a credit.
func requestGiveUps(p *pool, after *handedOver) {
	for w, ok := p.core.NextLongWait(); ok; w, ok = p.core.NextLongWait() {
		w.At.Instance.askToGiveUp(w.Number)
		after.to = after.to.with(w.At.Instance)
	}
}

// returnUnused gives back the credits that no call needs now. Schedulers hand them to others.
func returnUnused(p *pool, after *handedOver) {
	for from, n, ok := p.core.NextUnused(); ok; from, n, ok = p.core.NextUnused() {
		from.Instance.returnPlaces(n)
		after.to = after.to.with(from.Instance)
	}
}

// finish sends tickets, and lets other goroutines write the frames of calls that were handed over. The
// reader of a connection writes those to its own itself; reader is nil for other callers.
func (s *shell) finish(after handedOver, reader *agentConn) {
	after.to.flushLater(reader)
	s.askFor(after.ask)
}

// conns are connections with frames that were not written yet.
type conns []*agentConn

func (cs conns) with(one *agentConn) conns {
	if slices.Contains(cs, one) {
		return cs
	}
	return append(cs, one)
}

// flush writes the frames to the agent that has a call, and lets other goroutines write the rest. That takes
// as long as the agent does not read, so it is for the goroutine of that call. It first lets those run that
// are ready, because their frames then go out with its own.
func (cs conns) flush(c *call) {
	own := c.currentConn()
	cs.flushLater(own)
	if own != nil && slices.Contains(cs, own) {
		runtime.Gosched()
		own.frames.Flush()
	}
}

// flushLater lets other goroutines write the frames to all connections but one.
func (cs conns) flushLater(except *agentConn) {
	for _, c := range cs {
		if c != except {
			c.frames.FlushLater()
		}
	}
}

// sweep looks for calls that have waited for long without a ticket, and reports to schedulers: to
// each in one message.
func (s *shell) sweep(now time.Time) {
	reported := make(map[*link]bool)
	for _, p := range s.pools.all() {
		p.mu.Lock()
		ask := p.core.Overdue(now)
		p.mu.Unlock()
		s.askFor(ask)
		if l := s.report(p); l != nil { // even if it is unused: an owner that comes back may know an old report
			reported[l] = true
		}
	}
	for l := range reported {
		signal(l.wakeSender)
	}
}

// dropGone removes the unused pools of units that are gone. Until then a pool knows what it has
// reported, since the numbers of one stream never fall.
func (s *shell) dropGone() {
	for _, p := range s.pools.all() {
		entry, exists := s.deps.Catalog.Get(p.function)
		if !exists || !hasUnit(entry, p.unit) {
			s.pools.dropUnused(p)
			continue
		}
		p.keepLatest(entry)
	}
}

// keepLatest keeps the latest entry of the function if no call needs another one.
func (p *pool) keepLatest(latest *rollout.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.core.Unused() {
		p.entry = latest
	}
}

// report reports on a pool to its scheduler if anything has changed, or the stream is another. It
// returns the link whose sender has to be woken; nil if none has.
func (s *shell) report(p *pool) *link {
	l := s.links.to(p.slot)
	if l == nil {
		return nil
	}
	stream := l.stream()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.core.Report()
	switch {
	case stream == nil:
		return nil
	case p.stream != stream:
		p.stream, p.base = stream, p.sent
	case r == p.sent:
		return nil
	}
	p.sent = r
	l.enqueueReport(&controlwire.LoanReport{
		FunctionUid: p.uid,
		Served:      r.Served - p.base.Served,
		Waiting:     uint32(r.Waiting),
		Running:     uint32(r.Running),
		Lent:        uint32(r.Lent),
		Executions:  r.Executions - p.base.Executions,
		ExecutedNs:  int64(r.ExecutionTime - p.base.ExecutionTime),

		CoreWaitedNs: int64(r.CoreWaited - p.base.CoreWaited),
	})
	return l
}

// returnLoans gives back the credits that no call needs now, and those that come later: before the
// gateway stops.
func (s *shell) returnLoans() {
	s.keepsNoLoans.Store(true)
	for _, conn := range s.agents.all() {
		if p := conn.lendsTo(); p != nil {
			s.change(p, nil, func(*lentPulls) {})
		}
	}
}
