package scheduler

import "sync"

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
		f.mu.Lock()
		f.doubted = false
		f.mu.Unlock()
	}
	return taken
}

// unsure notes that something has changed of what the roster knows of a function, whose
// lock is held.
func (s *host) unsure(f *function) {
	if f.doubted {
		return
	}
	f.doubted = true
	s.doubts.mu.Lock()
	defer s.doubts.mu.Unlock()
	s.doubts.list = append(s.doubts.list, f)
}
