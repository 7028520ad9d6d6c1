package cluster

import (
	"encoding/binary"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// call is one running call.
type call struct {
	id       invocation.ID
	function *function
	arrived  time.Duration
	work     time.Duration
	// group is whose client waits for it; nil in an open loop.
	group *clientGroup
	// instance is the one that was handed the call, begun when its work began, and took
	// how long that took.
	instance    *instance
	begun, took time.Duration
	over        bool
	// coreWait is how long it waited for a core, once it had an instance.
	coreWait time.Duration
	// left is the work that is left, in nanoseconds, where calls share a machine,
	// and controller the one that pushed the call, where calls are pushed.
	left       float64
	controller int
	// place is where it waits at its gateway, and admitted when it came there, where there are
	// gateways.
	place    *place
	admitted time.Duration
}

// arrive is a call that its caller makes now.
func (w *world) arrive(due Call, from *clientGroup) {
	f := w.function(due.Function)
	c := &call{function: f, arrived: w.now, work: due.Work, group: from}
	if c.work < 0 {
		c.work = f.class.Work.Draw(w.works)
	}
	w.calls++
	binary.BigEndian.PutUint64(c.id[8:], w.calls)
	w.counters.open++
	f.result.Calls++
	w.after(w.config.Overheads.Admit, (*callAdmitted)(c))
}

// callAdmitted is when a call comes to its queue.
type callAdmitted call

func (e *callAdmitted) run(w *world) {
	w.counters.waiting++
	w.onCalls.enterQueue((*call)(e))
}

// hand gives a call to an instance that is ready.
func (w *world) hand(c *call, in *instance) {
	c.instance = in
	w.counters.waiting--
	in.held++
	if in.phase == idle {
		w.enter(in, busy)
	}
	if in.computer == nil {
		w.after(w.config.Overheads.Claim, (*callBegun)(c))
		return
	}
	asked, granted, long := w.now, false, false
	w.machines[in.node].tickets.askFor(w, in.computer, func(w *world) {
		c.coreWait, granted = w.now-asked, true
		if long {
			w.onCalls.waitsForCore(in, false)
		}
		w.after(w.config.Overheads.Claim, (*callBegun)(c))
	})
	w.agenda.plan(w.now+invocation.LongCoreWait, coreEvent(func(w *world) {
		if long = !granted; long {
			w.onCalls.waitsForCore(in, true)
		}
	}))
}

// callBegun is when the work begins.
type callBegun call

func (e *callBegun) run(w *world) {
	c := (*call)(e)
	c.begun = w.now
	w.result.began(c, w.now-c.arrived-c.coreWait-w.config.Overheads.Admit-w.config.Overheads.Claim, w.now-c.arrived)
	if m := w.machines[c.instance.node]; m.shared {
		m.begin(w, c)
		return
	}
	w.agenda.plan(w.now+c.work, (*callEnded)(c))
}

// callEnded is when the work ends.
type callEnded call

func (e *callEnded) run(w *world) { w.end((*call)(e)) }

func (w *world) end(c *call) {
	c.took, c.over = w.now-c.begun, true
	if t := w.machines[c.instance.node].tickets; t != nil {
		t.sawEnd(w, c)
	}
	w.result.ended(c)
	w.after(w.config.Overheads.Answer, (*callAnswered)(c))
	w.after(w.config.Overheads.Pull, (*instanceFreed)(c))
}

// callAnswered is when the caller has its answer.
type callAnswered call

func (e *callAnswered) run(w *world) {
	c := (*call)(e)
	w.counters.answered++
	w.result.answered(c, w.now)
	w.settle(c)
}

// callGivenUp is when a caller has no more patience.
type callGivenUp call

func (e *callGivenUp) run(w *world) {
	c := (*call)(e)
	if c.instance != nil || c.over {
		return
	}
	w.onCalls.forget(c)
	c.over = true
	w.counters.waiting--
	c.function.result.Expired++
	w.settle(c)
}

// refuse answers a call that waits with a refusal.
func (w *world) refuse(c *call) {
	w.counters.waiting--
	c.over = true
	c.function.result.Refused++
	w.settle(c)
}

// settle is the end of a call.
func (w *world) settle(c *call) {
	w.counters.open--
	if c.group != nil {
		c.group.answered(w)
	}
}
