package health

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/windlass-dev/windlass/api/wire"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// ToWire converts a map for a reply.
func ToWire(m *ownership.Map) *controlwire.SlotsReply {
	reply := &controlwire.SlotsReply{}
	for slot := range ownership.Slot(ownership.Slots) {
		if owner, known := m.Owner(slot); known {
			reply.Slots = append(reply.Slots, &controlwire.SlotsReply_Slot{Slot: uint32(slot), Owner: &controlwire.SlotOwner{
				Id: owner.ID, Address: owner.Addr, Epoch: owner.Epoch,
			}})
		}
	}
	for _, member := range m.Members() {
		reply.Members = append(reply.Members, &controlwire.SlotsReply_Member{Id: member.ID, Address: member.Addr, Draining: member.Draining})
	}
	return reply
}

// Hello names the protocols of this program within the control plane.
func Hello() *controlwire.Hello {
	ours := wire.ControlProtocols
	return &controlwire.Hello{ProtocolMin: ours.Min, ProtocolMax: ours.Max, Release: buildinfo.Version, Features: ours.Features}
}

// Accepts reports whether this program supports the protocol that a scheduler picked.
func Accepts(w *controlwire.Welcome) bool {
	_, ok := wire.ControlProtocols.Accept(w)
	return ok
}

// Fetch reads the map of a scheduler. It returns an error if that map has no owner.
func Fetch(ctx context.Context, scheduler grpc.ClientConnInterface) (*ownership.Map, error) {
	return fetch(ctx, controlwire.NewSchedulerClient(scheduler))
}

func fetch(ctx context.Context, scheduler controlwire.SchedulerClient) (*ownership.Map, error) {
	reply, err := scheduler.Slots(ctx, &controlwire.SlotsRequest{Hello: Hello()})
	if err != nil {
		return nil, fmt.Errorf("peers: asking a scheduler for the slots: %w", err)
	}
	m := new(ownership.Map)
	for _, s := range reply.GetSlots() {
		o := s.GetOwner()
		m.Update(ownership.Slot(min(s.GetSlot(), ownership.Slots)), ownership.Owner{ID: o.GetId(), Addr: o.GetAddress(), Epoch: o.GetEpoch()})
	}
	members := make([]ownership.Member, 0, len(reply.GetMembers()))
	for _, one := range reply.GetMembers() {
		members = append(members, ownership.Member{ID: one.GetId(), Addr: one.GetAddress(), Draining: one.GetDraining()})
	}
	m.SetMembers(members)
	if len(members) == 0 {
		return nil, fmt.Errorf("peers: the scheduler knows of no scheduler")
	}
	return m, nil
}
