package serve

import (
	"fmt"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
)

// firstMessageTimeout is how long a stream, or an agent's connection, may take to say what it is
// for: who says nothing holds memory for nothing.
const firstMessageTimeout = 5 * time.Second

// guard watches over the streams of one server.
type guard struct{ refused, unknown *prometheus.CounterVec }

func newGuard(reg prometheus.Registerer) *guard {
	return &guard{refused: registered(reg, wireRefusedTotal.Vec()), unknown: registered(reg, wireUnknownTotal.Vec())}
}

// refusals are the codes that speak of a client which is wrong, not of a server
// which is not ready.
var refusals = map[codes.Code]bool{
	codes.DeadlineExceeded:   true,
	codes.FailedPrecondition: true,
	codes.InvalidArgument:    true,
	codes.NotFound:           true,
	codes.PermissionDenied:   true,
	codes.ResourceExhausted:  true,
	codes.Unauthenticated:    true,
}

func (g *guard) countRefusal(method string, err error) {
	if code := status.Code(err); refusals[code] {
		g.refused.WithLabelValues(path.Base(method), code.String()).Inc()
	}
}

func (g *guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	guarded := &guardedStream{ServerStream: stream, guard: g, conn: connOf(stream.Context()), late: time.NewTimer(firstMessageTimeout)}
	err := handler(srv, guarded)
	guarded.punctual()
	g.countRefusal(info.FullMethod, err)
	return err
}

// guardedStream is a stream of gRPC's server, whose first message must come soon. Its client is known by its certificate.
type guardedStream struct {
	grpc.ServerStream
	guard *guard
	conn  *peerConn   // nil if it did not come by Wire
	late  *time.Timer // nil once the first message has come
}

// punctual lets go of the timer, which is memory as long as the stream lasts.
func (s *guardedStream) punctual() {
	if s.late != nil {
		s.late.Stop()
		s.late = nil
	}
}

// RecvMsg implements grpc.ServerStream. The error says which limit was passed.
func (s *guardedStream) RecvMsg(m any) error {
	if s.late == nil {
		return s.guard.received(m, s.ServerStream.RecvMsg(m))
	}
	if err := s.first(m); err != nil {
		return err
	}
	s.punctual()
	if s.conn != nil {
		s.conn.prove()
	}
	return nil
}

// received counts what this release does not know. It passes the error on.
func (g *guard) received(m any, err error) error {
	if err == nil && (agentwire.IsUnknown(m) || nodewire.IsUnknown(m)) {
		g.unknown.WithLabelValues(string(m.(proto.Message).ProtoReflect().Descriptor().Name())).Inc()
	}
	return err
}

func (s *guardedStream) first(m any) error {
	got := make(chan error, 1)
	// It ends with the stream at the latest, and so with the handler.
	go func() { got <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-got:
		return err
	case <-s.late.C:
		return status.Error(codes.DeadlineExceeded, fmt.Sprintf("the first message did not come within %v", firstMessageTimeout))
	}
}
