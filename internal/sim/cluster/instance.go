package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// instance is an instance from its launch to its end.
type instance struct {
	function *function
	cid      invocation.CID
	node     int
	launched time.Duration
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
	// begun says that its start has begun, which takes delay longer than others.
	begun bool
	delay time.Duration
	// container is its number on its worker, and first the call that waits for it,
	// where calls are pushed.
	container int
	first     *call
	// agent is its agent, where there are gateways.
	agent *agentEnd
	// computer is what asks for cores, where calls do.
	computer *computer
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
func (w *world) create(f *function, node int) *instance {
	f.sequence++
	in := &instance{
		function: f, cid: term.CID(f.sequence), node: node,
		launched: w.now, since: w.now, jitter: 1 + w.jitters.Float64()/10,
	}
	w.populate(f, in)
	f.starting = append(f.starting, in)
	m := w.machines[node]
	m.Requested = m.Requested.Plus(f.class.Requests)
	f.result.Created++
	w.countStart()
	n := &w.result.Nodes[node]
	n.Created++
	n.now++
	n.Peak = max(n.Peak, n.now)
	return in
}

// populate and depopulate keep the list of the functions that have instances.
func (w *world) populate(f *function, in *instance) {
	if len(f.instances) == 0 {
		f.instances = make(map[invocation.CID]*instance)
		f.place = len(w.populated)
		w.populated = append(w.populated, f)
	}
	f.instances[in.cid] = in
}

func (w *world) depopulate(f *function, in *instance) {
	delete(f.instances, in.cid)
	if len(f.instances) == 0 {
		f.instances = nil
		last := len(w.populated) - 1
		moved := w.populated[last]
		w.populated[f.place], moved.place = moved, f.place
		w.populated[last] = nil
		w.populated = w.populated[:last]
	}
}

// instanceReady is when it asks for work for the first time.
type instanceReady instance

func (e *instanceReady) run(w *world) {
	in := (*instance)(e)
	if in.phase == gone {
		return // cancelled
	}
	f := in.function
	f.starting = without(f.starting, in)
	f.created++
	in.ready = w.now
	w.enter(in, idle)
	m := w.machines[in.node]
	m.started(w)
	m.tickets.joined(w, in)
	w.onInstances.nowReady(in)
	w.watchIdleness(in)
}

// instanceFreed is when the instance of a call that is over can have another one.
type instanceFreed call

func (e *instanceFreed) run(w *world) {
	c := (*call)(e)
	in := c.instance
	in.held--
	if in.held == 0 {
		w.enter(in, idle)
	}
	w.onInstances.freed(in, c)
	w.watchIdleness(in)
}

// leaveAt is when an idle instance asks to leave.
func (in *instance) leaveAt() time.Duration {
	class := in.function.class
	at := in.since + class.BackoffAfter + time.Duration(float64(class.IdleTimeout)*in.jitter)
	return max(at, in.notBefore)
}

// watchIdleness sees to it that an idle instance asks to leave in time, unless it has an agent,
// which does. There is one event for each instance, however often it is idle: an event that
// comes too early plans the next one.
func (w *world) watchIdleness(in *instance) {
	if in.phase == idle && !in.asking && in.agent == nil {
		in.asking = true
		w.agenda.plan(in.leaveAt(), (*instanceAsksToLeave)(in))
	}
}

// instanceAsksToLeave is when an instance has been idle for long, perhaps.
type instanceAsksToLeave instance

func (e *instanceAsksToLeave) run(w *world) {
	in := (*instance)(e)
	in.asking = false
	if in.phase != idle {
		return
	}
	if in.leaveAt() > w.now || !w.onInstances.leave(in) {
		w.watchIdleness(in)
		return
	}
	in.function.result.Left++
	w.remove(in)
}

// remove is the end of an instance that is created and holds nothing.
func (w *world) remove(in *instance) {
	in.function.created--
	w.dispose(in)
}

// dispose gives back what an instance took.
func (w *world) dispose(in *instance) {
	m := w.machines[in.node]
	if in.phase == starting {
		m.cancelled(w, in)
	}
	m.tickets.left(w, in)
	w.enter(in, gone)
	w.depopulate(in.function, in)
	m.Requested = m.Requested.Minus(in.function.class.Requests)
	w.result.Nodes[in.node].now--
	w.onNodes.vacated(in)
}

func without(list []*instance, in *instance) []*instance {
	for i, other := range list {
		if other == in {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}
