package cluster

import (
	"github.com/windlass-dev/windlass/pkg/invocation"
	agent "github.com/windlass-dev/windlass/pkg/podagent/core"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// callPolicy decides which instance runs which call.
type callPolicy interface {
	// enterQueue takes a call that waits from now on, and forget one that does not wait
	// any more.
	enterQueue(c *call)
	forget(c *call)
	// waitsForCore says that the call of an instance has long waited for a core, or that it has
	// one now.
	waitsForCore(in *instance, long bool)
}

// instancePolicy decides what instances do.
type instancePolicy interface {
	// nowReady handles an instance that can have its first call, and freed one that can have
	// another.
	nowReady(in *instance)
	freed(in *instance, c *call)
	// leave tells whether an instance that has been idle for its time may leave.
	leave(in *instance) bool
}

// nodePolicy follows the nodes.
type nodePolicy interface {
	// joined handles new nodes, given their number, and vacated an instance that has released
	// its room on its node.
	joined(nodes int)
	vacated(in *instance)
}

// pulling is the policy of Windlass: instances pull from the queue of their function, and
// deciders decide how many exist.
type pulling struct {
	*scheduler
	// offered and pulled are memory for the events that come with each call.
	offered core.Offered
	pulled  core.Pulled
	done    [1]core.Done
}

func (p *pulling) enterQueue(c *call) {
	w, f := p.scheduler, c.function
	deadline := forever
	if f.class.Patience > 0 {
		deadline = w.now + f.class.Patience
	}
	p.offered.Ticket = invocation.Ticket{ID: c.id, Arrived: instant(w.now), Deadline: instant(deadline)}
	w.tickets[c.id] = c
	effects := w.step(f, &p.offered)
	if _, refused := core.AnswerOf[core.OfferRefused](effects); refused {
		w.refuse(w.tickets.take(c.id))
		return
	}
	if f.class.Patience > 0 {
		w.agenda.plan(deadline, (*callGivenUp)(c))
	}
	w.settle()
}

func (p *pulling) forget(c *call) {
	p.tickets.take(c.id)
	p.step(c.function, &core.CallCancelled{ID: c.id})
}

func (p *pulling) nowReady(in *instance) {
	f, capacity, took := in.function, in.function.class.Concurrency, p.now-in.launched
	p.step(f, core.Joined{CID: in.cid, Capacity: capacity})
	p.step(f, &core.Pulled{CID: in.cid, Wants: true, Credits: capacity, NodeBusy: in.computer != nil})
	p.startsOf(f).Observe(took)
	p.step(f, core.Started{Took: took})
}

func (p *pulling) freed(in *instance, c *call) {
	p.done[0] = core.Done{ID: c.id, Execution: c.took, CoreWait: c.coreWait}
	p.pulled = core.Pulled{CID: in.cid, Wants: true, Credits: 1, Done: p.done[:], NodeBusy: in.computer != nil}
	p.step(in.function, &p.pulled)
}

func (p *pulling) waitsForCore(in *instance, long bool) {
	p.pulled = core.Pulled{CID: in.cid, Wants: true, NodeBusy: true, AwaitsCore: long}
	p.step(in.function, &p.pulled)
	p.settle()
}

func (p *pulling) leave(in *instance) bool {
	f := in.function
	answer, is := core.AnswerOf[core.LeaveAnswered](p.step(f, core.LeaveRequested{
		CID: in.cid, Idle: p.now - in.since, KindStart: p.kindStart(f),
	}))
	if is && !answer.Granted {
		in.notBefore = p.now + max(answer.RetryAfter, agent.MinLeavePause)
		return false
	}
	p.step(f, core.Left{CID: in.cid})
	return true
}
