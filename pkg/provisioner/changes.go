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
func (m *ChangeTracker) mark(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uids != nil {
		m.uids[uid] = struct{}{}
	}
}

// Changed appends the functions with changes since the last call; at first, and after
// ResetChanged, all functions with instances.
func (m *ChangeTracker) Changed(uids []string) []string {
	uids, noted := m.collect(uids)
	if noted {
		return uids
	}
	for _, a := range m.table.entries() {
		a.mu.Lock()
		if len(a.instances) > 0 {
			uids = append(uids, a.uid)
		}
		a.mu.Unlock()
	}
	return uids
}

// collect appends the recorded functions. noted is false if nothing was recorded yet.
func (m *ChangeTracker) collect(uids []string) (all []string, noted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uids == nil {
		m.uids = make(map[string]struct{})
		return uids, false
	}
	for uid := range m.uids {
		uids = append(uids, uid)
	}
	clear(m.uids)
	return uids, true
}

// ResetChanged stops recording until the next call of Changed, which then returns all
// functions.
func (m *ChangeTracker) ResetChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uids = nil
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
func (m *ChangeTracker) Placed(list []Placed, uid string) []Placed {
	a := m.table.find(uid)
	if a == nil {
		return list
	}
	defer a.mu.Unlock()
	for _, in := range a.instances {
		list = append(list, Placed{Key: in.Key, State: in.State, Node: in.Node, Requests: in.Requests, Launched: in.Launched})
	}
	return list
}
