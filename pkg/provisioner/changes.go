package provisioner

import (
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// ChangeTracker reports to one reader which functions have instances that came, went or
// changed their state.
type ChangeTracker struct {
	table *functionTable

	mu sync.Mutex
	// uids are those functions; nil until the first call of Changed.
	uids map[string]struct{}
}

// mark records a function while its lock is held, so that a reader that sees the mark waits
// for that lock.
func (c *ChangeTracker) mark(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uids != nil {
		c.uids[uid] = struct{}{}
	}
}

// Changed appends the functions with changes since the last call; at first, and after
// ResetChanged, all functions with instances.
func (c *ChangeTracker) Changed(uids []string) []string {
	uids, noted := c.collect(uids)
	if noted {
		return uids
	}
	for _, e := range c.table.entries() {
		e.mu.Lock()
		if len(e.instances) > 0 {
			uids = append(uids, e.uid)
		}
		e.mu.Unlock()
	}
	return uids
}

// collect appends the recorded functions. noted is false if nothing was recorded yet.
func (c *ChangeTracker) collect(uids []string) (all []string, noted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uids == nil {
		c.uids = make(map[string]struct{})
		return uids, false
	}
	for uid := range c.uids {
		uids = append(uids, uid)
	}
	clear(c.uids)
	return uids, true
}

// ResetChanged stops recording until the next call of Changed, which then returns all
// functions.
func (c *ChangeTracker) ResetChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uids = nil
}

// Placed is the node of an instance and its requests there.
type Placed struct {
	Key
	State    State
	Node     string
	Requests placement.Amount
	Launched time.Time
}

// Placed appends a function's instances to list.
func (c *ChangeTracker) Placed(list []Placed, uid string) []Placed {
	e := c.table.find(uid)
	if e == nil {
		return list
	}
	defer e.mu.Unlock()
	for _, in := range e.instances {
		list = append(list, Placed{Key: in.Key, State: in.State, Node: in.Node, Requests: in.Requests, Launched: in.Launched})
	}
	return list
}
