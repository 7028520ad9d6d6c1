package main

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// service is what gRPC's own tests call.
type service struct {
	grpc_testing.UnimplementedTestServiceServer
}

// UnaryCall answers with the payload, with the status that was asked for, and with its caller's
// metadata as headers and trailers.
func (service) UnaryCall(ctx context.Context, request *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	said, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetHeader(ctx, metadata.MD{"x-heard": said.Get("x-said")})
	_ = grpc.SetTrailer(ctx, metadata.MD{"x-ended-bin": said.Get("x-said-bin")})
	if asked := request.GetResponseStatus(); asked.GetCode() != 0 {
		return nil, status.Error(codes.Code(asked.GetCode()), asked.GetMessage())
	}
	return &grpc_testing.SimpleResponse{Payload: request.GetPayload()}, nil
}

// StreamingOutputCall sends payloads of the sizes that are asked for.
func (service) StreamingOutputCall(request *grpc_testing.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error {
	return sendSizes(request, stream)
}

// StreamingInputCall counts the bytes of payloads.
func (service) StreamingInputCall(stream grpc.ClientStreamingServer[grpc_testing.StreamingInputCallRequest, grpc_testing.StreamingInputCallResponse]) error {
	var total int32
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&grpc_testing.StreamingInputCallResponse{AggregatedPayloadSize: total})
		} else if err != nil {
			return err
		}
		total += int32(len(request.GetPayload().GetBody()))
	}
}

// FullDuplexCall sends for each request what it asks for, at once.
func (service) FullDuplexCall(stream grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := sendSizes(request, stream); err != nil {
			return err
		}
	}
}

type sender interface {
	Send(*grpc_testing.StreamingOutputCallResponse) error
}

func sendSizes(request *grpc_testing.StreamingOutputCallRequest, to sender) error {
	for _, asked := range request.GetResponseParameters() {
		time.Sleep(time.Duration(asked.GetIntervalUs()) * time.Microsecond)
		payload := &grpc_testing.Payload{Body: make([]byte, asked.GetSize())}
		if err := to.Send(&grpc_testing.StreamingOutputCallResponse{Payload: payload}); err != nil {
			return err
		}
	}
	return nil
}
