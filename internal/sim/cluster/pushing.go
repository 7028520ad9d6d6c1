package cluster

import "github.com/windlass-dev/windlass/internal/sim/hashsch"

// pushing is the policy that is compared with: controllers push calls to workers.
type pushing struct {
	*world
	hash      Hash
	balancers []*hashsch.Balancer
	workers   []*pushed
	turn      int // the controller that gets the next call
}

// pushed is a worker, and its instances by the numbers of their containers.
type pushed struct {
	*hashsch.Worker
	instances map[int]*instance
}

func (p *pushing) joined(nodes int) {
	for len(p.balancers) < p.hash.Controllers {
		p.balancers = append(p.balancers, hashsch.NewBalancer(nodes, p.hash.Slots, p.hash.Controllers))
	}
	for _, b := range p.balancers {
		b.Grow(nodes)
	}
	for len(p.workers) < nodes {
		p.workers = append(p.workers, &pushed{hashsch.NewWorker(p.hash.Slots), make(map[int]*instance)})
	}
}

func (p *pushing) enterQueue(c *call) {
	c.controller = p.turn
	p.turn = (p.turn + 1) % len(p.balancers)
	f := c.function
	node, _ := p.balancers[c.controller].Place(hashsch.Hash(f.class.Namespace, f.name), p.picks.IntN)
	if s, ok := p.workers[node].Push(hashsch.Job{Function: f.index, Call: c}); ok {
		p.begin(node, s)
	}
}

// begin begins a call that its worker has started, at once or when its container is
// there.
func (p *pushing) begin(node int, s hashsch.Start) {
	c, worker := s.Call.(*call), p.workers[node]
	if s.Evicted {
		old := worker.instances[s.Instead]
		delete(worker.instances, s.Instead)
		old.function.result.Evicted++
		p.remove(old)
	}
	if !s.Cold {
		p.hand(c, worker.instances[s.Container])
		return
	}
	in := p.create(c.function, node)
	in.container, in.first = s.Container, c
	if s.Evicted {
		in.delay = p.hash.Remove
	}
	worker.instances[s.Container] = in
	p.machines[node].start(p.world, in)
}

func (p *pushing) vacated(*instance) {}

func (p *pushing) forget(*call) {}

func (p *pushing) waitsForCore(*instance, bool) {}

func (p *pushing) nowReady(in *instance) {
	c := in.first
	in.first = nil
	p.hand(c, in)
}

func (p *pushing) freed(in *instance, c *call) {
	worker := p.workers[in.node]
	worker.Finish(in.container)
	p.balancers[c.controller].Release(in.node)
	for s, ok := worker.Resume(); ok; s, ok = worker.Resume() {
		p.begin(in.node, s)
	}
}

func (p *pushing) leave(in *instance) bool {
	worker := p.workers[in.node]
	worker.Remove(in.container)
	delete(worker.instances, in.container)
	return true
}
