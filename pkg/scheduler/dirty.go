package scheduler

import "sync"

// dirtySet holds, once each, the functions whose usage has changed since the planner last read
// it.
type dirtySet struct {
	mu   sync.Mutex
	list []*function
}

// takeAll returns all functions and empties the set.
func (d *dirtySet) takeAll() []*function {
	d.mu.Lock()
	taken := d.list
	d.list = nil
	d.mu.Unlock()
	for _, f := range taken {
		f.mu.Lock()
		f.dirty = false
		f.mu.Unlock()
	}
	return taken
}

// markDirty records that the usage of a function has changed. The caller holds the function's
// lock.
func (s *host) markDirty(f *function) {
	if f.dirty {
		return
	}
	f.dirty = true
	s.dirty.mu.Lock()
	defer s.dirty.mu.Unlock()
	s.dirty.list = append(s.dirty.list, f)
}
