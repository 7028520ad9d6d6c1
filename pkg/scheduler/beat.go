package scheduler

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/peers"
)

// Beat answers beats until the stream ends.
func (s *Scheduler) Beat(stream grpc.BidiStreamingServer[wirev1.BeatRequest, wirev1.BeatReply]) error {
	trusted := s.deps.IsScheduler == nil || s.deps.IsScheduler(stream.Context())
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		reply := &wirev1.BeatReply{Number: request.GetNumber(), Serving: s.serving.Load()}
		if s.deps.Router != nil {
			reply.Epoch = s.deps.Router.Map().LastEpoch()
		}
		if trusted {
			reply.Room = s.hearWants(request)
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

// hearWants hears what room another scheduler asks for, and says what was made of it.
func (s *Scheduler) hearWants(request *wirev1.BeatRequest) []*wirev1.RoomMade {
	id, asked := request.GetScheduler(), request.GetRoom()
	if id == "" || id == s.config.ID {
		return nil
	}
	wants := make([]roomWant, 0, min(len(asked), maxWants))
	for _, w := range asked[:min(len(asked), maxWants)] {
		wants = append(wants, roomWant{
			uid: w.GetFunctionUid(), n: int(min(w.GetInstances(), maxWanted)), waited: believable(w.GetWaitedNs()),
		})
	}
	var room []*wirev1.RoomMade
	for uid, made := range s.askers.hear(id, wants, s.deps.Now()) {
		room = append(room, &wirev1.RoomMade{FunctionUid: uid, Instances: uint32(made.n), Exhausted: made.exhausted})
	}
	return room
}

// Ask is what another scheduler is asked for with the next beat. It implements
// peers.Talk, as Answered does.
func (s *Scheduler) Ask(to string) []*wirev1.RoomWant {
	var room []*wirev1.RoomWant
	for _, w := range s.asks.ask(to, s.deps.Now()) {
		room = append(room, &wirev1.RoomWant{FunctionUid: w.uid, Instances: uint32(w.n), WaitedNs: int64(w.waited)})
	}
	return room
}

// Answered hears what another scheduler has made of what it was asked for.
func (s *Scheduler) Answered(by string, room []*wirev1.RoomMade) {
	made := make(map[placement]madeRoom, min(len(room), maxWants))
	for _, m := range room[:min(len(room), maxWants)] {
		if f := s.lookup(m.GetFunctionUid()); f != nil {
			of := placement{s.deps.Instances.Requests(f.current()), f.place()}
			made[of] = madeRoom{int(min(m.GetInstances(), maxWanted)), m.GetExhausted()}
		}
	}
	s.asks.answered(by, made, s.deps.Now())
}

var _ peers.Talk = (*Scheduler)(nil)

// Slots tells who owns which slot.
func (s *Scheduler) Slots(context.Context, *wirev1.SlotsRequest) (*wirev1.SlotsReply, error) {
	if s.deps.Router == nil {
		return nil, status.Error(codes.Unimplemented, "this scheduler is the only one")
	}
	return peers.ToWire(s.deps.Router.Map()), nil
}
