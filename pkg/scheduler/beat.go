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
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		reply := &wirev1.BeatReply{Number: request.GetNumber(), Serving: s.serving.Load()}
		if s.deps.Router != nil {
			reply.Epoch = s.deps.Router.Map().LastEpoch()
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

// Slots tells who owns which slot.
func (s *Scheduler) Slots(context.Context, *wirev1.SlotsRequest) (*wirev1.SlotsReply, error) {
	if s.deps.Router == nil {
		return nil, status.Error(codes.Unimplemented, "this scheduler is the only one")
	}
	return peers.ToWire(s.deps.Router.Map()), nil
}
