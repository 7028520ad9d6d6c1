package provisioner

import (
	"sync"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// accounts are those of all functions. Each has a lock of its own, so that nobody waits
// for what is done for other functions.
type accounts struct {
	// nodes and moves are what all accounts come to.
	nodes *occupancy
	moves *Moves

	// mu guards the map and not what is in it. It is never held while an account's
	// lock is waited for.
	mu        sync.RWMutex
	functions map[string]*account
	// given is the highest sequence of the accounts that were closed. A revision can come
	// back while a pod of its last time is still there, so new accounts go on from it.
	given uint64
}

func newAccounts() *accounts {
	s := &accounts{nodes: newOccupancy(), functions: make(map[string]*account)}
	s.moves = &Moves{accounts: s}
	return s
}

// find returns a function's account with its lock held, or nil.
func (s *accounts) find(uid string) *account {
	s.mu.RLock()
	a := s.functions[uid]
	s.mu.RUnlock()
	if a != nil {
		a.mu.Lock()
	}
	return a
}

// open returns a function's account with its lock held.
func (s *accounts) open(uid string) *account {
	for {
		a := s.find(uid)
		if a == nil {
			a = s.enter(uid)
			a.mu.Lock()
		}
		if !a.closed {
			return a
		}
		a.mu.Unlock()
	}
}

// enter makes an account for a function, unless there is one by now.
func (s *accounts) enter(uid string) *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.functions[uid]
	if a == nil {
		a = &account{uid: uid, nodes: s.nodes, moves: s.moves, instances: make(map[invocation.CID]*Instance), sequence: s.given}
		s.functions[uid] = a
	}
	return a
}

// close closes an account, whose lock is held, if its function is gone and its last
// instance has ended.
func (s *accounts) close(a *account) {
	if !a.forgotten || len(a.instances) > 0 || a.closed {
		return
	}
	a.closed = true
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.functions, a.uid)
	s.given = max(s.given, a.sequence)
}

// all are those that are open. Their locks are not held.
func (s *accounts) all() []*account {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*account, 0, len(s.functions))
	for _, a := range s.functions {
		all = append(all, a)
	}
	return all
}

// each calls do with all instances, under the lock of the function of each.
func (s *accounts) each(do func(in *Instance)) {
	for _, a := range s.all() {
		a.mu.Lock()
		for _, in := range a.instances {
			do(in)
		}
		a.mu.Unlock()
	}
}
