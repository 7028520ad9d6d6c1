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

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
)

const (
	// firstWithin is how long a stream may take to say what it is for: who
	// says nothing holds memory for nothing.
	firstWithin = 5 * time.Second
	// maxFirst is the longest first message in bytes of whoever has no
	// certificate. A hello holds a token of some 1,500 bytes.
	maxFirst = 4 << 10
)

// strangers are the methods that clients without a certificate may call.
var strangers = map[string]bool{
	wirev1.Scheduler_Pull_FullMethodName:  true,
	wirev1.Gateway_Attempt_FullMethodName: true,
}

// guard watches over the streams of one server.
type guard struct{ refused *prometheus.CounterVec }

func newGuard(reg prometheus.Registerer) *guard {
	g := &guard{refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "windlass_wire_refused_total",
		Help: "Streams between components that were refused, by method and gRPC status code.",
	}, []string{"method", "code"})}
	reg.MustRegister(g.refused)
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

func (g *guard) count(method string, err error) {
	if code := status.Code(err); refusals[code] {
		g.refused.WithLabelValues(path.Base(method), code.String()).Inc()
	}
}

func (g *guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(srv, &guardedStream{ServerStream: stream, stranger: strangers[info.FullMethod]})
	g.count(info.FullMethod, err)
	return err
}

// guardedStream is a stream whose first message must come soon and be short.
type guardedStream struct {
	grpc.ServerStream
	stranger bool
	begun    bool
}

// RecvMsg implements grpc.ServerStream. The error says which limit was passed.
func (s *guardedStream) RecvMsg(m any) error {
	if s.begun {
		return s.ServerStream.RecvMsg(m)
	}
	s.begun = true
	got := make(chan error, 1)
	// It ends with the stream at the latest, and so with the handler.
	go func() { got <- s.ServerStream.RecvMsg(m) }()
	late := time.NewTimer(firstWithin)
	defer late.Stop()
	select {
	case err := <-got:
		if message, ok := m.(proto.Message); ok && err == nil && s.stranger && proto.Size(message) > maxFirst {
			return status.Error(codes.ResourceExhausted, fmt.Sprintf("the first message is longer than %d bytes", maxFirst))
		}
		return err
	case <-late.C:
		return status.Error(codes.DeadlineExceeded, fmt.Sprintf("the first message did not come within %v", firstWithin))
	}
}

// SendMsg implements grpc.ServerStream. It ends the connection of a client that
// goes on guessing tokens.
func (s *guardedStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if reply, ok := m.(*wirev1.AttemptReply); ok {
		switch kind := reply.GetKind().(type) {
		case *wirev1.AttemptReply_Granted:
			guessedRight(s.Context())
		case *wirev1.AttemptReply_Refused:
			if kind.Refused.GetReason() == wirev1.Refused_REASON_BAD_TOKEN {
				guessedWrong(s.Context())
			}
		}
	}
	return err
}
