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
func (p *platform) create(fn *function, cid invoke.CID, by *scheduler) {
	if p.find(cid) != nil {
		return
	}
	by.note("orders an instance", uint64(fn.index), by.served[fn.index].ordered)
	in := &instance{cid: cid, fn: fn, owner: by.name, ordered: p.world.now}
	p.instances = append(p.instances, in)
	if created, creating := p.count(fn); created+creating > p.world.config.MaxInstances {
		p.world.violate(RuleWithinMax, 0)
	}
	p.world.at(p.world.between(50*time.Millisecond, time.Second), func() { p.boot(in) })
}

// withdraw ends up to n instances of a function that have not begun to start, those
// that were ordered last.
func (p *platform) withdraw(fn *function, n int, by *scheduler) {
	for i := len(p.instances) - 1; i >= 0 && n > 0; i-- {
		if in := p.instances[i]; in.fn == fn && in.node == nil {
			by.note("withdraws an instance", uint64(fn.index), 0)
			p.ended(in)
			n--
		}
	}
}

func (p *platform) boot(in *instance) {
	if p.find(in.cid) != in { // it was withdrawn
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
	p.instances = slices.DeleteFunc(p.instances, func(other *instance) bool { return other == in })
}

func (p *platform) find(cid invoke.CID) *instance {
	for _, in := range p.instances {
		if in.cid == cid {
			return in
		}
	}
	return nil
}

func (p *platform) knows(cid invoke.CID) bool { return p.find(cid) != nil }

// pulled notes that an instance works, and tells how long it took to start; 0 if it
// was known to work.
func (p *platform) pulled(cid invoke.CID) (took time.Duration) {
	if in := p.find(cid); in != nil && !in.ready {
		in.ready = true
		return p.world.now - in.ordered
	}
	return 0
}

// leaving notes that an instance goes. One that does not within a minute is made
// to.
func (p *platform) leaving(cid invoke.CID) {
	if in := p.find(cid); in != nil {
		in.going = true
	}
}

// count is how many instances of a function can be called and are on their way.
func (p *platform) count(fn *function) (created, creating int) {
	for _, in := range p.instances {
		switch {
		case in.fn != fn || in.going:
		case in.ready:
			created++
		default:
			creating++
		}
	}
	return created, creating
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
