package scheduler

import "sync"

// dirtySet has the functions that have changed since the usage index last read them, each
// once.
type dirtySet struct {
	mu   sync.Mutex
	list []*function
}

// takeAll returns all and empties the set.
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

// markDirty notes that the usage of a function may have changed. The function's lock is
// held.
func (s *host) markDirty(f *function) {
	if f.dirty {
		return
	}
	f.dirty = true
	s.dirty.mu.Lock()
	defer s.dirty.mu.Unlock()
	s.dirty.list = append(s.dirty.list, f)
}
