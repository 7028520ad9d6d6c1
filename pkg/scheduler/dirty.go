package scheduler

import "sync"

// dirtySet are the functions of which something has changed since the roster looked at
// them. Each is among them once.
type dirtySet struct {
	mu   sync.Mutex
	list []*function
}

// takeAll returns all, and forgets them: what changes from now on is a doubt again.
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

// markDirty notes that something has changed of what the roster knows of a function, whose
// lock is held.
func (s *host) markDirty(f *function) {
	if f.dirty {
		return
	}
	f.dirty = true
	s.dirty.mu.Lock()
	defer s.dirty.mu.Unlock()
	s.dirty.list = append(s.dirty.list, f)
}
