package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// instance is one from its order to its end.
type instance struct {
	function *function
	cid      invoke.CID
	node     int
	ordered  time.Duration
	ready    time.Duration
	// phase is what it is doing, and since when.
	phase phase
	since time.Duration
	// held is how many calls it holds.
	held int
	// jitter stretches its idle timeout, so that instances do not leave together.
	jitter float64
	// notBefore is when the scheduler wants to be asked again, and asking says that
	// an event is planned at which it asks.
	notBefore time.Duration
	asking    bool
}

type phase uint8

const (
	starting phase = iota
	idle
	busy
	gone
)

// enter accounts for the phase that ends.
func (w *world) enter(in *instance, next phase) {
	took := w.now - in.since
	r := in.function.result
	switch in.phase {
	case starting:
		r.Starting += took
	case idle:
		r.Idle += took
	case busy:
		r.Busy += took
		w.result.Nodes[in.node].Busy += took
	}
	w.moved(in.phase, next)
	in.phase, in.since = next, w.now
}

// create orders an instance on a node.
func (w *world) create(f *function, node int) {
	w.revive(f)
	f.sequence++
	in := &instance{
		function: f, cid: invoke.Term{Epoch: 1}.CID(f.sequence), node: node,
		ordered: w.now, since: w.now, jitter: 1 + w.jitters.Float64()/10,
	}
	f.instances[in.cid] = in
	f.starting = append(f.starting, in)
	w.nodes.Request(node, f.class.Requests)
	f.result.Created++
	w.born()
	n := &w.result.Nodes[node]
	n.Created++
	n.now++
	n.Peak = max(n.Peak, n.now)
	w.agenda.plan(w.now+f.class.Start.Draw(w.starts), (*instanceReady)(in))
}

// instanceReady is when it asks for work for the first time.
type instanceReady instance

func (e *instanceReady) happen(w *world) {
	in := (*instance)(e)
	if in.phase == gone {
		return // withdrawn
	}
	f := in.function
	f.starting = without(f.starting, in)
	f.created++
	in.ready = w.now
	f.starts.Observe(w.now - in.ordered)
	w.enter(in, idle)
	capacity := f.class.Concurrency
	// It has not joined before.
	_ = f.queue.Join(in.cid, capacity)
	_ = f.queue.Pull(in.cid, capacity, instant(w.now))
	w.askToLeaveLater(in)
	w.match(f)
	w.activate(f)
}

// hold is when the instance is handed a call.
func (w *world) hold(in *instance) {
	in.held++
	if in.phase == idle {
		w.enter(in, busy)
	}
}

// instancePulls is when the instance of a call that is over asks for more.
type instancePulls call

func (e *instancePulls) happen(w *world) {
	c := (*call)(e)
	in, f := c.instance, c.function
	in.held--
	f.queue.Done(in.cid, c.id)
	if in.held == 0 {
		w.enter(in, idle)
	}
	_ = f.queue.Pull(in.cid, 1, instant(w.now))
	w.match(f)
	if in.held == 0 {
		w.askToLeaveLater(in)
	}
}

// leaveAt is when an idle instance asks to leave.
func (in *instance) leaveAt() time.Duration {
	class := in.function.class
	at := in.since + class.BackoffAfter + time.Duration(float64(class.IdleTimeout)*in.jitter)
	return max(at, in.notBefore)
}

// askToLeaveLater sees to it that an idle instance asks in time. There is one event
// for each instance, however often it is idle: an event that comes too early plans
// the next one.
func (w *world) askToLeaveLater(in *instance) {
	if !in.asking {
		in.asking = true
		w.agenda.plan(in.leaveAt(), (*instanceAsksToLeave)(in))
	}
}

// instanceAsksToLeave is when an instance has been idle for long, perhaps.
type instanceAsksToLeave instance

// shortestPause is the least time between two requests to leave.
const shortestPause = time.Second

func (e *instanceAsksToLeave) happen(w *world) {
	in := (*instance)(e)
	in.asking = false
	if in.phase != idle {
		return
	}
	if in.leaveAt() > w.now {
		w.askToLeaveLater(in)
		return
	}
	f := in.function
	answer, err := f.queue.RequestLeave(in.cid, w.now-in.since, f.leavePolicy())
	if err == nil && !answer.Granted {
		in.notBefore = w.now + max(answer.AskAgain, shortestPause)
		w.askToLeaveLater(in)
		return
	}
	f.result.Left++
	w.remove(in)
}

// evict sends an idle instance away, unless it may not be.
func (w *world) evict(in *instance) bool {
	f := in.function
	if !f.queue.Evict(in.cid, instant(w.now), w.evictPolicy(f)) {
		return false
	}
	f.queue.Leave(in.cid, instant(w.now))
	f.result.Evicted++
	w.remove(in)
	return true
}

// remove is the end of an instance that is created and holds nothing.
func (w *world) remove(in *instance) {
	in.function.created--
	w.dispose(in)
	w.activate(in.function)
	w.rest(in.function)
}

// withdraw takes back the youngest n instances that are under way.
func (w *world) withdraw(f *function, n int) {
	for range min(n, len(f.starting)) {
		last := len(f.starting) - 1
		in := f.starting[last]
		f.starting = f.starting[:last]
		f.result.Withdrawn++
		w.dispose(in)
	}
	w.rest(f)
}

// dispose gives back what an instance took.
func (w *world) dispose(in *instance) {
	w.enter(in, gone)
	delete(in.function.instances, in.cid)
	w.nodes.Request(in.node, nodepick.Amount{}.Minus(in.function.class.Requests))
	w.result.Nodes[in.node].now--
}

func without(list []*instance, in *instance) []*instance {
	for i, other := range list {
		if other == in {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}
