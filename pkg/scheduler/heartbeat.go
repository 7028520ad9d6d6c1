package scheduler

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// Heartbeat answers heartbeats until the stream ends.
func (s *Scheduler) Heartbeat(stream grpc.BidiStreamingServer[controlwire.HeartbeatRequest, controlwire.HeartbeatReply]) error {
	trusted := s.shell.deps.IsScheduler == nil || s.shell.deps.IsScheduler(stream.Context())
	for first := true; ; first = false {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		reply := &controlwire.HeartbeatReply{Number: request.GetNumber(), Serving: s.shell.slots.serving.Load()}
		if first {
			if reply.Welcome, err = s.shell.answerHello(request.GetHello()); err != nil {
				return err
			}
		}
		if s.shell.deps.Router != nil {
			reply.Epoch = s.shell.deps.Router.Map().LastEpoch()
		}
		if trusted {
			reply.CapacityFreed = s.receiveRequests(request)
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

// receiveRequests takes another scheduler's requests for room, and returns the room that was
// made for earlier ones.
func (s *Scheduler) receiveRequests(request *controlwire.HeartbeatRequest) []*controlwire.CapacityFreed {
	id, asked := request.GetScheduler(), request.GetCapacityRequests()
	if id == "" || id == s.shell.config.ID {
		return nil
	}
	lacks := make([]capacity.Shortage, 0, min(len(asked), capacity.MaxShortages))
	for _, w := range asked[:min(len(asked), capacity.MaxShortages)] {
		lacks = append(lacks, capacity.Shortage{
			UID: w.GetFunctionUid(), Instances: int(min(w.GetInstances(), capacity.MaxInstances)), Waited: clampAge(w.GetWaitedNs()),
		})
	}
	var room []*controlwire.CapacityFreed
	for uid, made := range s.ticker.peerRoom.receive(id, lacks, s.shell.deps.Now()) {
		room = append(room, &controlwire.CapacityFreed{FunctionUid: uid, Instances: uint32(made.Instances), Exhausted: made.Exhausted})
	}
	return room
}

// CapacityRequests returns the requests for room that the next heartbeat carries to another
// scheduler. It and CapacityFreed implement health.CapacityExchange.
func (s *Scheduler) CapacityRequests(to string) []*controlwire.CapacityRequest {
	var room []*controlwire.CapacityRequest
	for _, l := range s.ticker.peerRoom.requestsTo(to, s.shell.deps.Now()) {
		room = append(room, &controlwire.CapacityRequest{FunctionUid: l.UID, Instances: uint32(l.Instances), WaitedNs: int64(l.Waited)})
	}
	return room
}

// CapacityFreed takes another scheduler's answers to requests for room.
func (s *Scheduler) CapacityFreed(by string, room []*controlwire.CapacityFreed) {
	made := make(map[capacity.Shape]capacity.Grant, min(len(room), capacity.MaxShortages))
	for _, m := range room[:min(len(room), capacity.MaxShortages)] {
		if u := s.shell.lookup(m.GetFunctionUid()); u != nil {
			made[u.spec().shape] = capacity.Grant{Instances: int(min(m.GetInstances(), capacity.MaxInstances)), Exhausted: m.GetExhausted()}
		}
	}
	s.ticker.peerRoom.recordGrants(by, made, s.shell.deps.Now())
}

var _ health.CapacityExchange = (*Scheduler)(nil)

// Slots returns the owner of each slot.
func (s *Scheduler) Slots(_ context.Context, request *controlwire.SlotsRequest) (*controlwire.SlotsReply, error) {
	if s.shell.deps.Router == nil {
		return nil, status.Error(codes.Unimplemented, "this scheduler is the only one")
	}
	welcome, err := s.shell.answerHello(request.GetHello())
	if err != nil {
		return nil, err
	}
	reply := health.ToWire(s.shell.deps.Router.Map())
	reply.Welcome = welcome
	return reply, nil
}

// peerRoom is the room that this scheduler borrows from and lends to others. Heartbeats
// exchange requests, and ticks make room.
type peerRoom struct {
	mu       sync.Mutex
	borrower capacity.Borrower
	lender   capacity.Lender
}

func newPeerRoom(self string) *peerRoom {
	return &peerRoom{borrower: capacity.NewBorrower(self)}
}

func (n *peerRoom) setShortages(lacks []capacity.Shortage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.borrower.SetShortages(lacks)
}

func (n *peerRoom) requestsTo(peer string, now time.Time) []capacity.Shortage {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.borrower.RequestsTo(peer, now)
}

func (n *peerRoom) recordGrants(peer string, made map[capacity.Shape]capacity.Grant, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.borrower.RecordGrants(peer, made, now)
}

func (n *peerRoom) mayGrant(of capacity.Shape, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.borrower.MayGrant(of, now)
}

func (n *peerRoom) receive(peer string, lacks []capacity.Shortage, now time.Time) map[string]capacity.Grant {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lender.Receive(peer, lacks, now)
}

func (n *peerRoom) requests(now time.Time) []capacity.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lender.Requests(now)
}

func (n *peerRoom) setGrants(made map[string]map[string]capacity.Grant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lender.SetGrants(made)
}
