package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// worker is a machine on which instances run.
type worker struct {
	name    string
	machine int
	// cores is how much instances may request of it.
	cores placement.Amount
}

// workerOf is the worker of that name.
func (w *World) workerOf(name string) *worker {
	for _, at := range w.workers {
		if at.name == name {
			return at
		}
	}
	return nil
}

func cores(n int) placement.Amount { return placement.Amount{MilliCPU: 1000 * int64(n)} }

// requested is what a scheduler believes to be requested of each worker, by what was so
// up to a time: what others launched is heard of a moment later, and so is the end of an
// instance. While the workers are full, others have taken all that was free.
func (s *scheduler) requested(upTo time.Duration) []placement.Amount {
	w := s.world
	of := make([]placement.Amount, len(w.workers))
	for _, in := range slices.Concat(w.platform.instances, s.unheard) {
		if in.by == s || in.seen <= upTo {
			of[in.worker.index(w)].MilliCPU += in.fn.requests.MilliCPU
		}
	}
	if w.full && w.filled <= upTo {
		for i, at := range w.workers {
			of[i].MilliCPU = max(of[i].MilliCPU, at.cores.MilliCPU)
		}
	}
	return of
}

func (at *worker) index(w *World) int { return at.machine - w.workers[0].machine }

// candidates are the workers as a scheduler sees them.
func (s *scheduler) candidates() (c placement.Candidates) {
	w := s.world
	c.Nodes = make([]placement.Node, 0, len(w.workers))
	for i, requested := range s.requested(w.now) {
		at := w.workers[i]
		c.Nodes = append(c.Nodes, placement.Node{Name: at.name, Allocatable: at.cores, Requested: requested})
	}
	return c
}

// takes tells whether a worker has room for an instance beside those that run there. One
// that two schedulers have placed at the same time may find none.
func (at *worker) takes(in *instance, beside []*instance) bool {
	n := placement.Node{Allocatable: at.cores}
	for _, other := range beside {
		if other != in && other.node != nil && other.worker == at {
			n.Requested = n.Requested.Plus(other.fn.requests)
		}
	}
	return n.Fits(in.fn.requests)
}
