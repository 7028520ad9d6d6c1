package gateway

import (
	"sync"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// agentConns are the connections of agents, and what broken ones have left.
type agentConns struct {
	mu   sync.Mutex // guards everything below
	open map[*agentConn]struct{}
	// broken are connections that broke with calls that may not have come to the agent.
	broken map[[16]byte]*agentConn
}

func newAgentConns() *agentConns {
	return &agentConns{open: make(map[*agentConn]struct{}), broken: make(map[[16]byte]*agentConn)}
}

func (s *agentConns) add(c *agentConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

// drop removes a connection. If resumable is set, its agent may ask for it for a while.
func (s *agentConns) drop(c *agentConn, resumable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if resumable {
		s.broken[c.resume] = c
	}
}

// takeBroken takes a broken connection; false if another goroutine has.
func (s *agentConns) takeBroken(c *agentConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken[c.resume] != c {
		return false
	}
	delete(s.broken, c.resume)
	return true
}

// resume settles the agent's last connection, to which calls up to seen came. The gateway may
// not have noticed yet that it is broken: then resume closes it.
func (s *agentConns) resume(secret [16]byte, cid invocation.CID, seen uint32) {
	before := s.find(secret, cid, seen)
	switch {
	case before == nil:
	case s.takeBroken(before):
		before.settle(seen)
	default:
		before.frames.Close() // its reader settles it
	}
}

// find returns the connection of an agent with a secret, and notes in an open one which calls
// came; nil if there is none.
func (s *agentConns) find(secret [16]byte, cid invocation.CID, seen uint32) *agentConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.broken[secret]; c != nil && c.cid == cid {
		return c
	}
	for c := range s.open {
		if c.resume == secret && c.cid == cid {
			c.resumedAt(seen)
			return c
		}
	}
	return nil
}

func (s *agentConns) all() []*agentConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*agentConn, 0, len(s.open))
	for c := range s.open {
		all = append(all, c)
	}
	return all
}
