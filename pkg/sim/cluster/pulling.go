package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// callPolicy decides what becomes of calls.
type callPolicy interface {
	// admit takes a call that waits from now on, and forget one that does not wait
	// any more.
	admit(c *call)
	forget(c *call)
}

// instancePolicy decides what instances do.
type instancePolicy interface {
	// ready is told of an instance that can have its first call, and freed of one
	// that can have another one.
	ready(in *instance)
	freed(in *instance, c *call)
	// leave tells whether an instance that has been idle for its time may leave.
	leave(in *instance) bool
}

// pulling is the policy of Windlass: instances pull from the queue of their function,
// and deciders decide how many there are.
type pulling struct{ *scheduler }

func (p pulling) admit(c *call) {
	w, f := p.scheduler, c.function
	w.revive(f)
	w.disturb(f)
	deadline := forever
	if f.class.Patience > 0 {
		deadline = w.now + f.class.Patience
	}
	ticket := invoke.Ticket{ID: c.id, Arrived: instant(w.now), Deadline: instant(deadline), Request: c}
	if f.queue.Offer(ticket, instant(w.now)) != nil {
		w.refuse(c)
		return
	}
	if f.class.Patience > 0 {
		w.agenda.plan(deadline, (*callGivenUp)(c))
	}
	p.match(f)
	w.activate(f)
	if f.queue.Waiting() > 0 {
		w.kick(f)
	}
}

// match lets the queue hand out what it can.
func (p pulling) match(f *function) {
	if f.queue.Waiting() == 0 {
		return
	}
	f.queue.Match(instant(p.now), func(cid invoke.CID, t invoke.Ticket) {
		p.hand(t.Request.(*call), f.instances[cid])
	})
}

func (p pulling) forget(c *call) {
	// The queue may have come to it, and be gone since.
	if q := c.function.queue; q != nil {
		q.Withdraw(c.id)
		p.noteQuiet(c.function)
	}
}

func (p pulling) ready(in *instance) {
	f, capacity := in.function, in.function.class.Concurrency
	// It has not joined before.
	_ = f.queue.Join(in.cid, capacity)
	_ = f.queue.Pull(in.cid, capacity, instant(p.now))
	p.match(f)
	p.activate(f)
}

func (p pulling) freed(in *instance, c *call) {
	f := in.function
	f.queue.Done(in.cid, c.id)
	_ = f.queue.Pull(in.cid, 1, instant(p.now))
	p.match(f)
	p.noteQuiet(f)
}

// shortestPause is the least time between two requests to leave.
const shortestPause = time.Second

func (p pulling) leave(in *instance) bool {
	f := in.function
	answer, err := f.queue.RequestLeave(in.cid, p.now-in.since, p.leavePolicy(f, p.now-in.since))
	if err == nil && !answer.Granted {
		in.notBefore = p.now + max(answer.AskAgain, shortestPause)
		return false
	}
	p.activate(f)
	return true
}

// evict sends an idle instance away, unless it may not be.
func (s *scheduler) evict(in *instance) bool {
	f := in.function
	if !f.queue.Evict(in.cid, instant(s.now), s.evictPolicy(f)) {
		return false
	}
	f.queue.Leave(in.cid, instant(s.now))
	f.result.Evicted++
	s.remove(in)
	s.activate(f)
	return true
}

// withdraw takes back the youngest n instances that are under way.
func (s *scheduler) withdraw(f *function, n int) {
	for range min(n, len(f.starting)) {
		last := len(f.starting) - 1
		in := f.starting[last]
		f.starting = f.starting[:last]
		f.result.Withdrawn++
		s.dispose(in)
	}
	s.rest(f)
}
