package cluster

import (
	"math"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// machine is what happens on a node.
type machine struct {
	placement.Node
	// starts is how many instances may start at a time, 0 for any number; begun
	// have, and waiting are those that wait for their turn.
	starts  int
	begun   int
	waiting []*instance

	// shared says that the calls that run share capacity. Their work was last
	// brought forward at since, and at due the next of them ends.
	shared   bool
	capacity Demand
	running  []*call
	used     Demand // what they did, demand times seconds
	since    time.Duration
	due      time.Duration
	// planned says that an event is planned for due.
	planned bool
	// tickets are its cores, where calls ask for them; nil where they do not.
	tickets *coreTickets
}

// joinLater lets nodes join when it is their time.
func (w *world) joinLater(n Nodes) {
	if n.From > 0 {
		w.agenda.plan(n.From, (*nodesJoin)(&n))
		return
	}
	w.join(n)
}

// nodesJoin is when nodes join.
type nodesJoin Nodes

func (e *nodesJoin) run(w *world) { w.join(Nodes(*e)) }

func (w *world) join(n Nodes) {
	for range n.Count {
		m := &machine{
			Node:   placement.Node{Name: strconv.Itoa(len(w.machines)), Allocatable: n.Allocatable},
			starts: n.Starts, shared: n.Capacity != Demand{}, capacity: n.Capacity,
		}
		if n.Order != nil {
			m.tickets = newCoreTickets(w, m, *n.Order)
		}
		w.machines = append(w.machines, m)
		w.result.Nodes = append(w.result.Nodes, NodeResult{Joined: w.now})
	}
	w.onNodes.joined(len(w.machines))
}

// start lets an instance start, when it is its turn.
func (m *machine) start(w *world, in *instance) {
	if m.starts > 0 && m.begun >= m.starts {
		m.waiting = append(m.waiting, in)
		return
	}
	m.begun++
	in.begun = true
	took := in.delay + in.function.class.Start.Draw(w.starts)
	w.agenda.plan(w.now+took, (*instanceReady)(in))
}

// started records that an instance has started, or that one which did is no longer wanted.
func (m *machine) started(w *world) {
	m.begun--
	if len(m.waiting) > 0 {
		next := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.start(w, next)
	}
}

// cancelled records that a starting instance was cancelled.
func (m *machine) cancelled(w *world, in *instance) {
	if in.begun {
		m.started(w)
		return
	}
	m.waiting = without(m.waiting, in)
}

// begin begins a call's work on a shared machine.
func (m *machine) begin(w *world, c *call) {
	m.advance(w.now)
	c.left = float64(c.work)
	m.running = append(m.running, c)
	if m.tickets != nil {
		m.tickets.began(w, c)
	}
	m.plan(w)
}

// advance brings the work of all calls forward to now.
func (m *machine) advance(now time.Duration) {
	passed := float64(now - m.since)
	m.since = now
	if passed <= 0 {
		return
	}
	full := m.fullness()
	for _, c := range m.running {
		d := c.function.class.Demand
		did := passed * full.speedOf(c)
		c.left -= did
		m.used.CPU += d.CPU * did / float64(time.Second)
		m.used.IO += d.IO * did / float64(time.Second)
		m.used.Network += d.Network * did / float64(time.Second)
	}
}

// fullness is by how much the demand for each resource exceeds the capacity, 1 if it
// does not. Low is the same for calls that get only what the others leave of the cores; no
// cores are left if its CPU is 0.
type fullness struct{ normal, low Demand }

func (m *machine) fullness() fullness {
	var sum Demand
	low := 0.0
	for _, c := range m.running {
		d := &c.function.class.Demand
		if c.low() {
			low += d.CPU
		} else {
			sum.CPU += d.CPU
		}
		sum.IO += d.IO
		sum.Network += d.Network
	}
	full := Demand{
		CPU: excess(sum.CPU, m.capacity.CPU), IO: excess(sum.IO, m.capacity.IO), Network: excess(sum.Network, m.capacity.Network),
	}
	rest := full
	if low > 0 {
		rest.CPU = 0
		if left := m.capacity.CPU - sum.CPU; left > 1e-9 {
			rest.CPU = excess(low, left)
		}
	}
	return fullness{full, rest}
}

// low says that a call gets only what the others leave of the cores.
func (c *call) low() bool { return c.instance.computer != nil && c.instance.computer.low }

// speedOf is how fast a call runs.
func (full *fullness) speedOf(c *call) float64 {
	d := c.function.class.Demand
	switch {
	case !c.low():
		return full.normal.speed(d)
	case d.CPU > 0 && full.low.CPU == 0:
		return 0
	}
	return full.low.speed(d)
}

func excess(demand, capacity float64) float64 {
	if capacity <= 0 {
		return 1
	}
	return max(1, demand/capacity)
}

// speed is how fast a call of that demand runs, 1 as if it were alone: as fast as the
// resource allows that it has to share most.
func (full Demand) speed(d Demand) float64 {
	slowest := 1.0
	for _, r := range [...]struct{ demand, full float64 }{{d.CPU, full.CPU}, {d.IO, full.IO}, {d.Network, full.Network}} {
		if r.demand > 0 {
			slowest = max(slowest, r.full)
		}
	}
	return 1 / slowest
}

// plan plans when the next call ends if nothing changes until then.
func (m *machine) plan(w *world) {
	if len(m.running) == 0 {
		return
	}
	full := m.fullness()
	soonest := math.Inf(1)
	for _, c := range m.running {
		if speed := full.speedOf(c); speed > 0 {
			soonest = min(soonest, c.left/speed)
		}
	}
	if math.IsInf(soonest, 1) {
		m.planned = false
		return
	}
	due := w.now + time.Duration(math.Ceil(max(0, soonest)))
	if m.planned && m.due == due {
		return
	}
	m.due, m.planned = due, true
	w.agenda.plan(due, (*machineDue)(m))
}

// machineDue is when the work of a call on a shared machine ends, unless something
// has changed since this was planned.
type machineDue machine

func (e *machineDue) run(w *world) {
	m := (*machine)(e)
	if !m.planned || w.now != m.due {
		return
	}
	m.planned = false
	m.advance(w.now)
	var ended []*call
	kept := m.running[:0]
	for _, c := range m.running {
		if c.left < 1 {
			ended = append(ended, c)
		} else {
			kept = append(kept, c)
		}
	}
	clear(m.running[len(kept):])
	m.running = kept
	m.plan(w)
	for _, c := range ended {
		w.end(c)
	}
}
