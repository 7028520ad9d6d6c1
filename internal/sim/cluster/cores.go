package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	agent "github.com/windlass-dev/windlass/pkg/podagent/core"
)

const (
	// coreSampleEvery is how often a node agent reads processor times, and stillEvery how often
	// it says to those that wait for a core that they still do.
	coreSampleEvery = 5 * time.Millisecond
	stillEvery      = 100 * time.Millisecond
)

// coreTickets is the node agent of a busy machine in virtual time. The product's core (package
// callorder) decides which calls compute. Its messages take no time and are never lost.
type coreTickets struct {
	machine *machine
	core    *callorder.Core
	params  callorder.Params
	// computers are the instances that ask, by ID from 1 on.
	computers []*computer
	watched   []callorder.InstanceID
	// sampling and waiting say that the next sample, and the next word to those that wait, are planned.
	sampling, waiting bool
}

// computer is an instance that asks before its call begins.
type computer struct {
	id  callorder.InstanceID
	in  *instance
	ask uint64
	// granted lets the call begin that asked.
	granted func(*world)
	// call is the one that computes, and before the processor time of those before it.
	call   *call
	before float64
	// low says that it computes on what the others leave.
	low, saidLow bool
	moves        int
	// sampled is what the core was told last, and repeated how often in a row.
	sampled  time.Duration
	repeated int
}

func newCoreTickets(w *world, m *machine, params callorder.Params) *coreTickets {
	params.Cores = int(m.capacity.CPU)
	core, err := callorder.New(params)
	if err != nil {
		panic(err) // the configuration was validated
	}
	t := &coreTickets{machine: m, core: core, params: params}
	t.tell(w, callorder.ModeChanged{Busy: true})
	return t
}

// joined lets an instance ask from now on, unless its calls cannot be told apart.
func (t *coreTickets) joined(w *world, in *instance) {
	if t == nil || in.function.class.Concurrency != 1 {
		return
	}
	in.computer = &computer{id: callorder.InstanceID(len(t.computers) + 1), in: in}
	t.computers = append(t.computers, in.computer)
	t.tell(w, callorder.Joined{Instance: in.computer.id, Namespace: in.function.class.Namespace, Function: in.function.name})
}

// left forgets an instance.
func (t *coreTickets) left(w *world, in *instance) {
	if in.computer != nil {
		t.tell(w, callorder.Left{Instance: in.computer.id})
		t.computers[in.computer.id-1] = nil
		in.computer = nil
	}
}

// askFor asks for a core for the next call of an instance.
func (t *coreTickets) askFor(w *world, c *computer, granted func(*world)) {
	c.ask++
	c.granted, c.repeated = granted, 0
	t.tell(w, callorder.Asked{Instance: c.id, Ask: c.ask, Usage: t.processorTime(w, c)})
	t.sayStill(w)
}

// gaveUp takes the ask back.
func (t *coreTickets) gaveUp(w *world, c *computer) {
	c.granted = nil
	t.tell(w, callorder.GaveUp{Instance: c.id, Ask: c.ask})
}

// began and sawEnd follow the call of an instance.
func (t *coreTickets) began(w *world, c *call) {
	if of := c.instance.computer; of != nil {
		of.call = c
		t.sampleLater(w)
	}
}

func (t *coreTickets) sawEnd(w *world, c *call) {
	of := c.instance.computer
	if of == nil {
		return
	}
	of.before, of.call = float64(t.processorTime(w, of)), nil
	t.callOver(w, of, false)
}

// callOver says that the call is over for which an instance asked, or that it was refused.
func (t *coreTickets) callOver(w *world, c *computer, refused bool) {
	t.tell(w, callorder.Ended{Instance: c.id, Usage: t.processorTime(w, c), Refused: refused})
}

// processorTime is the processor time of an instance.
func (t *coreTickets) processorTime(w *world, c *computer) time.Duration {
	if c.call == nil {
		return time.Duration(c.before)
	}
	t.machine.advance(w.now)
	did := float64(c.call.work) - max(0, c.call.left)
	return time.Duration(c.before + did*min(1, c.in.function.class.Demand.CPU))
}

// tell steps the core, and carries out what it decides.
func (t *coreTickets) tell(w *world, e callorder.Event) {
	t.machine.advance(w.now)
	for _, effect := range t.core.Step(w.now, e) {
		switch effect := effect.(type) {
		case callorder.Grant:
			c := t.computers[effect.Instance-1]
			if granted := c.granted; granted != nil && c.ask == effect.Ask {
				c.granted = nil
				w.agenda.plan(w.now, coreEvent(granted))
			}
		case callorder.SetBand:
			c := t.computers[effect.Instance-1]
			c.low, c.repeated = effect.Low, 0
			t.sayBand(w, c)
		}
	}
	t.machine.plan(w)
	t.sampleLater(w)
}

// sayBand tells an instance's agent of its band. Where there are no agents, it tells the scheduler what
// they would: that an instance has long been in the low band, or has left it.
func (t *coreTickets) sayBand(w *world, c *computer) {
	c.moves++
	move, low, in := c.moves, c.low, time.Duration(0)
	if low && c.in.agent == nil {
		in = invocation.LongCoreWait
	}
	w.agenda.plan(w.now+in, coreEvent(func(w *world) {
		switch {
		case c.in.computer != c || c.moves != move:
		case c.in.agent != nil:
			c.in.agent.feed(agent.NodeLow{Low: low})
		case low || c.saidLow:
			c.saidLow = low
			w.onCalls.waitsForCore(c.in, low)
		}
	}))
}

// coreEvent is when a call has a core, or has long waited for one.
type coreEvent func(*world)

func (e coreEvent) run(w *world) { e(w) }

func (t *coreTickets) sampleLater(w *world) {
	if t.sampling || !t.params.Preempt && t.params.BlockedAfter == 0 && t.params.Slice.Rule == callorder.SliceOff {
		return
	}
	if t.watched = t.core.AppendWatched(t.watched[:0]); len(t.watched) > 0 {
		t.sampling = true
		w.agenda.plan(w.now+coreSampleEvery, (*coresSampled)(t))
	}
}

// coresSampled is when the node agent reads processor times.
type coresSampled coreTickets

// It leaves out those that stand still for longer than the core needs to notice.
func (e *coresSampled) run(w *world) {
	t := (*coreTickets)(e)
	for _, id := range t.core.AppendWatched(nil) {
		c := t.computers[id-1]
		if c == nil {
			continue
		}
		usage := t.processorTime(w, c)
		if usage != c.sampled {
			c.sampled, c.repeated = usage, 0
		}
		if c.repeated++; c.repeated <= t.params.BlockedAfter+2 {
			t.tell(w, callorder.Sampled{Instance: id, Usage: usage})
		}
	}
	t.sampling = false
	t.sampleLater(w)
}

// sayStill says to agents that wait that they do: where there are gateways, they go on without a
// core if they hear nothing.
func (t *coreTickets) sayStill(w *world) {
	if !t.waiting && w.config.Gateways > 0 {
		t.waiting = true
		w.agenda.plan(w.now+stillEvery, (*stillSaid)(t))
	}
}

type stillSaid coreTickets

func (e *stillSaid) run(w *world) {
	t := (*coreTickets)(e)
	t.waiting = false
	waiting := t.core.AppendWaiting(nil)
	for _, id := range waiting {
		if c := t.computers[id-1]; c != nil && c.granted != nil {
			c.in.agent.feed(agent.NodeStill{})
		}
	}
	if len(waiting) > 0 {
		t.sayStill(w)
	}
}
