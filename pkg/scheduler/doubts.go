package scheduler

import (
	"sync"
	"sync/atomic"
)

// doubts are the functions of which something has changed since the roster looked at
// them. Each is among them once.
type doubts struct {
	mu   sync.Mutex
	list []*function
}

// take returns all, and forgets them: what changes from now on is a doubt again.
func (d *doubts) take() []*function {
	d.mu.Lock()
	taken := d.list
	d.list = nil
	d.mu.Unlock()
	for _, f := range taken {
		f.doubt.raised.Store(false)
	}
	return taken
}

// doubt says of one function whether it is among the doubts.
type doubt struct {
	raised atomic.Bool
	all    *doubts
}

// unsure notes that something has changed of what the roster knows of the function.
func (f *function) unsure() {
	if f.doubt.raised.Load() || f.doubt.raised.Swap(true) {
		return
	}
	f.doubt.all.mu.Lock()
	defer f.doubt.all.mu.Unlock()
	f.doubt.all.list = append(f.doubt.all.list, f)
}
