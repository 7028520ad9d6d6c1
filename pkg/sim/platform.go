package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
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
	cid  invoke.CID
	fn   *function
	node *node // nil until it starts
	// ordered is when it was ordered, in the world's time.
	ordered time.Duration
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
	in.ordered = p.world.now
	p.instances = append(p.instances, in)
	p.world.at(p.world.between(50*time.Millisecond, time.Second), func() { p.boot(in) })
	return in
}

// withdraw ends an instance that is on its way.
func (p *platform) withdraw(in *instance) {
	if in.node == nil {
		p.ended(in)
		return
	}
	if in.node.up() {
		in.node.do(in.node.life, true, in.node.program.(*agent).stop)
	}
}

func (p *platform) boot(in *instance) {
	if p.find(in.fn, in.cid) != in { // it was withdrawn
		return
	}
	w := p.world
	if w.full || w.looping && w.poisoned == in.fn {
		w.at(250*time.Millisecond, func() { p.boot(in) })
		return
	}
	p.named++
	n := w.newNode("i", p.named, pick(w, w.workers))
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
func (p *platform) find(fn *function, cid invoke.CID) *instance {
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
