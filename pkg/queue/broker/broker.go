package broker

import (
	"errors"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/queue"
)

var (
	// ErrClosed is returned by Offer and Join after Close.
	ErrClosed = errors.New("broker: closed")
	// ErrNotAdmitted is returned by Offer for a ticket that was not admitted.
	ErrNotAdmitted = errors.New("broker: not admitted")
)

// Arrival is what a new ticket comes upon: so many that wait, so many that are out,
// and for how long there had been neither; 0 if there are some, or never were any.
type Arrival struct {
	Waiting, Out int
	Quiet        time.Duration
}

// Admission is asked whether a new ticket is taken in. Like a Sink's methods it is
// called under the broker's lock.
type Admission func(Arrival) bool

// Sink takes what the broker has for one instance. Its methods are called under
// the broker's lock: they must not block and must not call the broker.
type Sink interface {
	// Deliver hands over a ticket that the instance asked for.
	Deliver(t invoke.Ticket)
	// Retire says that the instance should finish what it holds and go.
	Retire(reason string)
	// Dismiss says that the queue is elsewhere now.
	Dismiss()
}

// Broker is the queue of one function for concurrent use.
type Broker struct {
	now func() time.Time

	mu     sync.Mutex
	queue  *queue.Queue
	sinks  map[invoke.CID]Sink
	closed bool
	// quietSince is when the last ticket was done with; zero while there are
	// some, and before the first.
	quietSince time.Time
	// changed is called, under the lock, when tickets or instances may have changed.
	changed func()
}

// New makes a Broker with an empty queue. The clock must be monotonic.
func New(limits queue.Limits, now func() time.Time) *Broker {
	return &Broker{now: now, queue: queue.New(limits), sinks: make(map[invoke.CID]Sink), changed: func() {}}
}

// OnChange has changed called whenever tickets or instances may have changed. It is to be
// set before anything else. Like a Sink's methods it must not block and must not call the
// broker.
func (b *Broker) OnChange(changed func()) { b.changed = changed }

// unlock unlocks the broker after something may have changed.
func (b *Broker) unlock() {
	b.changed()
	b.mu.Unlock()
}

// match is where tickets meet pulls.
func (b *Broker) match(now time.Time) {
	b.queue.Match(now, func(cid invoke.CID, t invoke.Ticket) { b.sinks[cid].Deliver(t) })
	b.noteQuiet(now)
}

// noteQuiet notes when no ticket was left. It follows whatever may have taken the
// last one away.
func (b *Broker) noteQuiet(now time.Time) {
	switch {
	case b.queue.Waiting()+b.queue.Out() > 0:
		b.quietSince = time.Time{}
	case b.quietSince.IsZero() && b.queue.Arrived() > 0:
		b.quietSince = now
	}
}

// QuietSince is when the last ticket was done with; zero while there are some, and
// before the first.
func (b *Broker) QuietSince() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.quietSince
}

// Offer adds a ticket, if admit lets it in; see queue.Queue.Offer. One that is known
// was let in before. It tells whether tickets wait now. The error is queue.ErrFull,
// ErrNotAdmitted, ErrClosed or nil.
func (b *Broker) Offer(t invoke.Ticket, admit Admission) (waiting bool, err error) {
	b.mu.Lock()
	defer b.unlock()
	if b.closed {
		return false, ErrClosed
	}
	now := b.now()
	if !b.queue.Knows(t.ID) && !admit(b.arrival(now)) {
		return false, ErrNotAdmitted
	}
	if err := b.queue.Offer(t, now); err != nil {
		return false, err
	}
	b.match(now)
	return b.queue.Waiting() > 0, nil
}

func (b *Broker) arrival(now time.Time) Arrival {
	a := Arrival{Waiting: b.queue.Waiting(), Out: b.queue.Out()}
	if !b.quietSince.IsZero() {
		a.Quiet = now.Sub(b.quietSince)
	}
	return a
}

// Waiting is how many tickets wait.
func (b *Broker) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Waiting()
}

// Waits tells whether the ticket of an invocation waits.
func (b *Broker) Waits(id invoke.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Waits(id)
}

// Withdraw forgets a ticket.
func (b *Broker) Withdraw(id invoke.ID) {
	b.mu.Lock()
	defer b.unlock()
	b.queue.Withdraw(id)
	b.noteQuiet(b.now())
}

// Gateways calls add with the gateway of each ticket that waits.
func (b *Broker) Gateways(add func(gateway string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue.EachWaiting(func(t invoke.Ticket) { add(t.Gateway) })
}

// WithdrawAll forgets the tickets that wait and are chosen, and returns how many.
func (b *Broker) WithdrawAll(chosen func(invoke.Ticket) bool) (withdrawn int) {
	b.mu.Lock()
	defer b.unlock()
	var ids []invoke.ID
	b.queue.EachWaiting(func(t invoke.Ticket) {
		if chosen(t) {
			ids = append(ids, t.ID)
		}
	})
	for _, id := range ids {
		b.queue.Withdraw(id)
	}
	b.noteQuiet(b.now())
	return len(ids)
}

// Join adds an instance that can hold capacity tickets. The error is
// queue.ErrJoined, ErrClosed or nil.
func (b *Broker) Join(cid invoke.CID, capacity int, sink Sink) error {
	b.mu.Lock()
	defer b.unlock()
	if b.closed {
		return ErrClosed
	}
	if err := b.queue.Join(cid, capacity); err != nil {
		return err
	}
	b.sinks[cid] = sink
	return nil
}

// Pull gives back the tickets that an instance is done with and lets it ask for
// credits more. The error is queue.ErrUnknownInstance or nil.
func (b *Broker) Pull(cid invoke.CID, credits int, done ...invoke.ID) error {
	b.mu.Lock()
	defer b.unlock()
	for _, id := range done {
		b.queue.Done(cid, id)
	}
	now := b.now()
	if err := b.queue.Pull(cid, credits, now); err != nil {
		return err
	}
	b.match(now)
	return nil
}

// GiveBack puts tickets back whose gateway an instance could not reach; see
// queue.Queue.GiveBack.
func (b *Broker) GiveBack(cid invoke.CID, ids ...invoke.ID) {
	b.mu.Lock()
	defer b.unlock()
	now := b.now()
	for _, id := range ids {
		b.queue.GiveBack(cid, id, now)
	}
	b.match(now)
}

// Leave removes an instance; what it holds unclaimed goes to others. It returns
// how much it held.
func (b *Broker) Leave(cid invoke.CID) (held int) {
	b.mu.Lock()
	defer b.unlock()
	now := b.now()
	held = b.queue.Leave(cid, now)
	delete(b.sinks, cid)
	b.match(now)
	return held
}

// RequestLeave decides whether an idle instance may leave, and removes it if so;
// see queue.Queue.RequestLeave.
func (b *Broker) RequestLeave(cid invoke.CID, idle time.Duration, policy queue.LeavePolicy) (queue.LeaveAnswer, error) {
	b.mu.Lock()
	defer b.unlock()
	answer, err := b.queue.RequestLeave(cid, idle, policy)
	if answer.Granted {
		delete(b.sinks, cid)
	}
	return answer, err
}

// Retire lets an instance finish what it holds and tells it to go.
func (b *Broker) Retire(cid invoke.CID, reason string) {
	b.mu.Lock()
	defer b.unlock()
	if b.queue.Retire(cid) {
		b.sinks[cid].Retire(reason)
	}
}

// LongestIdle returns the instances that may be evicted; see
// queue.Queue.LongestIdle.
func (b *Broker) LongestIdle(policy queue.EvictPolicy) []queue.IdleInstance {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.LongestIdle(b.now(), policy)
}

// Evict retires an instance if it may be evicted still, and tells whether it
// did.
func (b *Broker) Evict(cid invoke.CID, policy queue.EvictPolicy, reason string) bool {
	b.mu.Lock()
	defer b.unlock()
	evicted := b.queue.Evict(cid, b.now(), policy)
	if evicted {
		b.sinks[cid].Retire(reason)
	}
	return evicted
}

// Expire forgets tickets past their deadline; see queue.Queue.Match. Without it
// they would be counted for as long as no instance asks.
func (b *Broker) Expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := b.queue.Waiting()
	b.match(b.now())
	if b.queue.Waiting() != waiting {
		b.changed()
	}
}

// Clear removes all tickets that wait and returns them.
func (b *Broker) Clear() []invoke.Ticket {
	b.mu.Lock()
	defer b.unlock()
	cleared := b.queue.Clear()
	b.noteQuiet(b.now())
	return cleared
}

// Dismiss tells every instance that the queue is elsewhere now, removes them, and
// returns the tickets that waited. Whether it is quiet there is not known here.
func (b *Broker) Dismiss() []invoke.Ticket {
	b.mu.Lock()
	defer b.unlock()
	for cid, sink := range b.sinks {
		b.queue.Leave(cid, b.now())
		sink.Dismiss()
	}
	clear(b.sinks)
	b.quietSince = time.Time{}
	return b.queue.Clear()
}

// Close retires every instance, refuses everything from now on, and returns the
// tickets that waited.
func (b *Broker) Close(reason string) []invoke.Ticket {
	b.mu.Lock()
	defer b.unlock()
	b.closed = true
	for cid, sink := range b.sinks {
		if b.queue.Retire(cid) {
			sink.Retire(reason)
		}
	}
	return b.queue.Clear()
}

// View describes the queue.
func (b *Broker) View() queue.View {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.View(b.now())
}

// ViewAndStale describes the queue, and says how many of those that wait have waited
// for after or longer.
func (b *Broker) ViewAndStale(after time.Duration) (view queue.View, stale int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	return b.queue.View(now), b.queue.Stale(now, after)
}
