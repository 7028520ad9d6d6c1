package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// platform starts instances on workers, as Kubernetes does: what exists does not
// depend on who asks.
type platform struct {
	world     *World
	instances []*instance
	named     int
}

// instance is a pod.
type instance struct {
	cid  invocation.CID
	fn   *unit
	node *node // nil until it starts
	// worker is where it runs, or is to.
	worker *worker
	// by is the scheduler that has launched it, and seen when the others see it, in the
	// world's time.
	by   *scheduler
	seen time.Duration
	// unplaced says that its worker had no room for it.
	unplaced bool
	// launched is when it was launched, in the world's time.
	launched time.Duration
	// ready says that it has asked for work once, and going that it is on its
	// way out.
	ready, going bool
	owner        string
}

// create orders an instance; the same one is never made twice.
func (p *platform) create(in *instance) *instance {
	if known := p.find(in.fn, in.cid); known != nil {
		return known
	}
	in.launched = p.world.now
	in.seen = p.world.now + p.world.between(time.Millisecond, 50*time.Millisecond)
	p.instances = append(p.instances, in)
	p.world.at(p.world.between(50*time.Millisecond, time.Second), func() { p.boot(in) })
	return in
}

// stopGrace is how long an instance that is stopped has to end by itself.
const stopGrace = 3 * time.Second

// stop ends an instance.
func (p *platform) stop(in *instance) {
	switch {
	case in.node == nil:
		p.ended(in)
	case in.node.up():
		in.node.do(in.node.life, true, in.node.program.(*agent).stop)
		p.world.at(stopGrace, func() {
			if p.find(in.fn, in.cid) == in && in.node.up() {
				in.node.kill(false)
				p.ended(in)
			}
		})
	}
}

func (p *platform) boot(in *instance) {
	if p.find(in.fn, in.cid) != in { // it was cancelled
		return
	}
	w := p.world
	if w.looping && w.poisoned == in.fn.function {
		w.at(250*time.Millisecond, func() { p.boot(in) })
		return
	}
	if w.faulty() && w.chance(0.02) {
		w.note("worker", "does not start an instance", uint64(in.worker.machine), uint64(in.fn.index))
		return
	}
	if w.failsToStart(in.fn) {
		w.note("worker", "fails to start an instance", uint64(in.worker.machine), uint64(in.fn.index))
		p.ended(in)
		return
	}
	if w.full && w.chance(0.3) || !in.worker.takes(in, p.instances) {
		w.note("worker", "has no room for an instance", uint64(in.worker.machine), uint64(in.fn.index))
		in.unplaced = true
		p.ended(in)
		return
	}
	p.named++
	n := w.newNode("i", p.named, in.worker.machine)
	n.name = "i" + decimal(p.named)
	in.node = n
	n.start(newAgent(n, in))
}

// ended is the end of an instance's process.
func (p *platform) ended(in *instance) {
	before := len(p.instances)
	p.instances = slices.DeleteFunc(p.instances, func(other *instance) bool { return other == in })
	if len(p.instances) < before {
		p.hearOfEnd(in)
	}
}

// find finds an instance of a function: names are its own.
func (p *platform) find(fn *unit, cid invocation.CID) *instance {
	for _, in := range p.instances {
		if in.fn == fn && in.cid == cid {
			return in
		}
	}
	return nil
}

// running are the instances whose process is up.
func (p *platform) running() []*instance {
	var up []*instance
	for _, in := range p.instances {
		if in.node != nil && in.node.up() {
			up = append(up, in)
		}
	}
	return up
}

func decimal(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}
