package serve

import (
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

const (
	// firstMessageTimeout is how long a stream may take to say what it is for: who
	// says nothing holds memory for nothing.
	firstMessageTimeout = 5 * time.Second
	// cancelTimeout is how long an instance may take to end a cancelled attempt. One that is
	// merely slow loses its connection about as soon because it does not answer pings.
	cancelTimeout = 10 * time.Second
)

// strangers are the methods that clients without a certificate may call.
var strangers = map[string]bool{
	agentwire.Instances_Pull_FullMethodName:  true,
	agentwire.Gateway_Attempt_FullMethodName: true,
}

// guard watches over the streams of one server.
type guard struct{ refused, unknown *prometheus.CounterVec }

func newGuard(reg prometheus.Registerer) *guard {
	g := &guard{refused: wireRefusedTotal.Vec(), unknown: wireUnknownTotal.Vec()}
	reg.MustRegister(g.refused, g.unknown)
	return g
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
	late := time.NewTimer(firstMessageTimeout)
	defer late.Stop()
	guarded := &guardedStream{ServerStream: stream, guard: g, conn: connOf(stream.Context()), stranger: strangers[info.FullMethod], late: late.C}
	err := guarded.handle(srv, handler)
	g.countRefusal(info.FullMethod, err)
	return err
}

// guardedStream is a stream whose first message must come soon and be short.
type guardedStream struct {
	grpc.ServerStream
	guard    *guard
	conn     *peerConn // nil if it did not come by Wire
	stranger bool
	messages int
	late     <-chan time.Time

	mu sync.Mutex
	// cancelTimer ends the connection of an instance that does not end a cancelled attempt.
	// Once ended is true it is not set any more.
	cancelTimer *time.Timer
	ended       bool
}

func (s *guardedStream) handle(srv any, handler grpc.StreamHandler) error {
	defer s.stopTimer()
	if s.stranger && s.conn != nil {
		leave, err := s.conn.acquireStream(s.late)
		if err != nil {
			return err
		}
		defer leave()
	}
	return handler(srv, s)
}

// stopTimer says that the stream has ended.
func (s *guardedStream) stopTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.cancelTimer != nil {
		s.cancelTimer.Stop()
	}
}

// startTimer starts the time in which the client has to end the stream.
func (s *guardedStream) startTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && s.cancelTimer == nil {
		ctx := s.Context()
		s.cancelTimer = time.AfterFunc(cancelTimeout, func() { hangUp(ctx) })
	}
}

// RecvMsg implements grpc.ServerStream. The error says which limit was passed. A
// handler asks for a second message only if it has accepted the first.
func (s *guardedStream) RecvMsg(m any) error {
	if s.messages++; s.messages > 1 {
		s.prove()
		return s.received(m, s.ServerStream.RecvMsg(m))
	}
	if err := s.first(m); err != nil {
		return err
	}
	if !s.stranger {
		s.prove() // by its certificate
	}
	return nil
}

// received counts what this release does not know. It passes the error on.
func (s *guardedStream) received(m any, err error) error {
	if err == nil && agentwire.IsUnknown(m) {
		s.guard.unknown.WithLabelValues(string(m.(proto.Message).ProtoReflect().Descriptor().Name())).Inc()
	}
	return err
}

func (s *guardedStream) prove() {
	if s.conn != nil && s.messages <= 2 {
		s.conn.prove()
	}
}

func (s *guardedStream) first(m any) error {
	got := make(chan error, 1)
	// It ends with the stream at the latest, and so with the handler.
	go func() { got <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-got:
		if message, ok := m.(proto.Message); ok && err == nil && s.stranger && proto.Size(message) > wire.MaxFirst {
			return status.Error(codes.ResourceExhausted, fmt.Sprintf("the first message is longer than %d bytes", wire.MaxFirst))
		}
		return err
	case <-s.late:
		return status.Error(codes.DeadlineExceeded, fmt.Sprintf("the first message did not come within %v", firstMessageTimeout))
	}
}

// SendMsg implements grpc.ServerStream. It ends the connection of a client that keeps guessing
// tokens, or continues an attempt that it was asked to end.
func (s *guardedStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if reply, ok := m.(*agentwire.AttemptReply); ok {
		switch kind := reply.GetKind().(type) {
		case *agentwire.AttemptReply_Cancel:
			s.startTimer()
		case *agentwire.AttemptReply_Granted:
			s.countToken(true)
		case *agentwire.AttemptReply_Refused:
			if kind.Refused.GetReason() == agentwire.Refused_REASON_BAD_TOKEN {
				s.countToken(false)
			}
		}
	}
	return err
}

func (s *guardedStream) countToken(right bool) {
	if s.conn != nil {
		s.conn.countToken(right)
	}
}
