package serve

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/wiretest"
)

// said is a stream by which one message comes after another.
type said struct {
	grpc.ServerStream
	messages []proto.Message
}

func (s *said) Context() context.Context { return context.Background() }

func (s *said) RecvMsg(m any) error {
	proto.Merge(m.(proto.Message), s.messages[0])
	s.messages = s.messages[1:]
	return nil
}

func TestWhatIsNotKnownIsCountedAndPassedOn(t *testing.T) {
	g := newGuard(prometheus.NewRegistry())
	stream := &said{messages: []proto.Message{
		&agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{}}},
		wiretest.Beyond(&agentwire.PullRequest{}),
		wiretest.Newer(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{}}}),
	}}
	info := &grpc.StreamServerInfo{FullMethod: agentwire.Instances_Pull_FullMethodName}
	heard := 0
	err := g.stream(nil, stream, info, func(_ any, guarded grpc.ServerStream) error {
		for len(stream.messages) > 0 {
			if err := guarded.RecvMsg(&agentwire.PullRequest{}); err != nil {
				return err
			}
			heard++
		}
		return nil
	})
	if err != nil || heard != 3 {
		t.Errorf("%d messages were heard, %v; want 3", heard, err)
	}
	if got := testutil.ToFloat64(g.unknown.WithLabelValues("PullRequest")); got != 1 {
		t.Errorf("%v were counted, want the one that says nothing that is known", got)
	}
}
