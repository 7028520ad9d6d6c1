package wire

import (
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// owners says which scheduler owns the slots: one all of them.
type owners struct {
	network *network

	mu    sync.Mutex
	owner ownership.Owner
	views []*view
}

func newOwners(n *network) *owners { return &owners{network: n} }

// own gives all slots to a scheduler.
func (o *owners) own(role string) {
	o.mu.Lock()
	o.owner = ownership.Owner{ID: role, Addr: o.network.addrs[role], Epoch: o.owner.Epoch + 1}
	views := o.views
	o.mu.Unlock()
	for _, v := range views {
		select {
		case v.changed <- struct{}{}:
		default:
		}
	}
}

func (o *owners) now() ownership.Owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owner
}

// view is what one role knows of owners. It is its Router and its Keeper.
type view struct {
	*owners
	role    string
	changed chan struct{}
}

func (o *owners) seenBy(role string) *view {
	v := &view{owners: o, role: role, changed: make(chan struct{}, 1)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.views = append(o.views, v)
	return v
}

func (v *view) Route(ownership.Slot) (to ownership.Owner, provisional, known bool) {
	owner := v.now()
	return owner, false, owner.Epoch > 0
}

func (v *view) Changed() <-chan struct{} { return v.changed }

func (v *view) Epoch(ownership.Slot) (uint64, bool) {
	owner := v.now()
	return owner.Epoch, owner.ID == v.role
}

func (v *view) Unconfirmed() (since time.Time, orphan bool) { return time.Time{}, false }

// Map has the slots of two functions only, since recordings are read by people.
func (v *view) Map() *ownership.Map {
	m := v.members()
	if owner := v.now(); owner.Epoch > 0 {
		m.Update(ownership.SlotOf("uid-f", 0), owner)
		m.Update(ownership.SlotOf("uid-g", 0), owner)
	}
	return m
}

func (o *owners) members() *ownership.Map {
	m := &ownership.Map{}
	m.SetMembers([]ownership.Member{
		{ID: schedulerA, Addr: o.network.addrs[schedulerA]}, {ID: schedulerB, Addr: o.network.addrs[schedulerB]},
	})
	return m
}

// gossip is what is known of owners to those who cannot read it: what they are told.
type gossip struct {
	changed chan struct{}
	mu      sync.Mutex
	known   *ownership.Map
}

func (o *owners) hearsay() *gossip {
	return &gossip{changed: make(chan struct{}, 1), known: o.members()}
}

func (h *gossip) Map() *ownership.Map {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known.Clone()
}

func (h *gossip) Changed() <-chan struct{} { return h.changed }

func (h *gossip) Update(slot ownership.Slot, owner ownership.Owner) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known.Update(slot, owner)
}
