package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/wire"
)

var (
	errCanceled   = status.Error(codes.Canceled, "the client has ended the stream")
	errGone       = status.Error(codes.Unavailable, "the connection is gone")
	errGoesAway   = status.Error(codes.Unavailable, "the server shuts down")
	errNoHello    = status.Error(codes.DeadlineExceeded, fmt.Sprintf("the first message did not come within %v", firstMessageTimeout))
	errCompressed = status.Error(codes.Unimplemented, "the message is compressed: this server takes none that are")
	errCut        = status.Error(codes.Internal, "the stream ended within a message")
	errMetadata   = status.Error(codes.Unimplemented, "streams of agents have no metadata")
)

// agentStream is a stream of an agent as its handler sees it: the handler's goroutine receives, and
// another one may send. Beside what gRPC's streams can do, End ends it.
type agentStream struct {
	conn *streamConn
	id   uint32

	// in is what has come and was not received; borrowed says that it is in the connection's
	// frame. These are the handler's goroutine's.
	in         []byte
	borrowed   bool
	longest    int // of its messages, in bytes
	messages   int // that were asked for
	unreturned int // bytes that the client's window was not given back
	halfClosed bool
	reset      bool  // by the client
	over       error // why nothing can be received any more

	// why is the reason of End or of the end of the handler, and ended is closed with the first.
	why   atomic.Pointer[error]
	ended chan struct{}
}

var _ grpc.ServerStream = (*agentStream)(nil)

// serveStream serves a stream, and returns why the connection ends; nil if it does not.
func (c *streamConn) serveStream(r request) error {
	s := &agentStream{conn: c, id: r.id, halfClosed: r.halfClosed, ended: make(chan struct{})}
	c.stream, c.until = s, time.Now().Add(firstMessageTimeout)
	c.out.letSend(s)
	httpStatus, err := r.check(c.method)
	if err == nil {
		method := c.server.methods[c.method]
		s.longest = method.longest
		err = method.handler(method.service, s)
	}
	if why := s.why.Load(); why != nil {
		err = *why
	}
	s.endFor(errFinished)
	if r.path == c.method {
		c.countRefusal(err)
	}
	c.letGo()
	c.stream, c.until = nil, time.Time{}
	c.peer.read = 0 // a stranger has as much for its next stream
	if c.closing.Load() {
		err = errGoesAway
	}
	if c.broken != nil && !errors.Is(c.broken, errShutdown) {
		return c.broken
	}
	if failed := c.out.finish(s, httpStatus, err); failed != nil {
		return failed
	}
	return c.broken
}

// End ends the stream with an error of gRPC, from any goroutine. It does not wait: the handler no
// longer receives, and the client learns of it once the handler has returned. The first reason counts.
func (s *agentStream) End(why error) {
	if s.endFor(why) {
		s.conn.wake()
	}
}

// endFor says why the stream ends, and reports whether nobody has before.
func (s *agentStream) endFor(why error) bool {
	first := s.why.CompareAndSwap(nil, &why)
	if first {
		close(s.ended)
	}
	return first
}

// RecvMsg implements grpc.ServerStream. The first message must come soon and be short. A handler
// asks for a second one only if it has accepted the first.
func (s *agentStream) RecvMsg(m any) error {
	if s.messages++; s.messages == 2 {
		s.conn.peer.prove()
	}
	if s.over == nil {
		s.over = s.readMessage(m.(proto.Message))
	}
	s.conn.until = time.Time{}
	return s.conn.server.wire.guard.received(m, s.over)
}

// readMessage reads frames until a message is there.
func (s *agentStream) readMessage(m proto.Message) error {
	c := s.conn
	for {
		n, err := s.decodeFirst(m)
		switch {
		case err != nil:
			return err
		case n > 0:
			s.in = s.in[n:]
			c.idleFrames = 0
			return nil
		case s.halfClosed && len(s.in) > 0:
			return errCut
		case s.halfClosed:
			return io.EOF
		}
		opened, err := c.nextFrame()
		if opened.id != 0 {
			return status.Error(codes.Internal, "two streams at a time") // onHeaders has refused it
		}
		if err != nil {
			return s.interrupted(err)
		}
	}
}

// interrupted is what an error of the connection means to the handler.
func (s *agentStream) interrupted(err error) error {
	switch {
	case errors.Is(err, errLate):
		return errNoHello
	case errors.Is(err, errEnded):
		return *s.why.Load()
	case errors.Is(err, errReset):
		s.reset = true
		s.endFor(errCanceled)
		return errCanceled
	}
	s.conn.broken = err
	s.endFor(errGone)
	return errGone
}

// decodeFirst decodes and returns the length of the first message in what has come; 0 if it is not all there.
func (s *agentStream) decodeFirst(m proto.Message) (n int, err error) {
	if len(s.in) < messagePrefix {
		return 0, nil
	}
	length, most := int(binary.BigEndian.Uint32(s.in[1:])), s.longest
	if s.messages == 1 {
		most = min(most, wire.MaxFirst)
	}
	switch {
	case s.in[0] != 0:
		return 0, errCompressed
	case length > most && s.messages == 1:
		return 0, status.Error(codes.ResourceExhausted, fmt.Sprintf("the first message is longer than %d bytes", most))
	case length > most:
		return 0, status.Error(codes.ResourceExhausted, fmt.Sprintf("the message is longer than %d bytes", most))
	case len(s.in) < messagePrefix+length:
		return 0, nil
	}
	if err := decode(s.in[messagePrefix:messagePrefix+length], m); err != nil {
		return 0, status.Error(codes.Internal, "the message is none: "+err.Error())
	}
	return messagePrefix + length, nil
}

// came takes data of the connection's frame.
func (s *agentStream) came(data []byte, last bool) {
	s.halfClosed = last
	if len(s.in) == 0 {
		s.in, s.borrowed = data, true
		return
	}
	s.in = append(s.in, data...)
}

// keep copies what is in the connection's frame, which goes.
func (s *agentStream) keep() {
	if s.borrowed {
		s.in, s.borrowed = bytes.Clone(s.in), false
	}
	if len(s.in) == 0 {
		s.in = nil
	}
}

// SendMsg implements grpc.ServerStream. It waits for the client's windows, which grow only while the
// handler receives: another goroutine has to send what may not fit into them.
func (s *agentStream) SendMsg(m any) error { return s.conn.out.message(s, m.(proto.Message)) }

// Context implements grpc.ServerStream. It ends with the stream.
func (s *agentStream) Context() context.Context {
	ctx := grpc.NewContextWithServerTransportStream(s.conn.withPeer(context.Background()), transportStream{s})
	return &streamContext{value: ctx.Value, stream: s}
}

// Method implements grpc.ServerTransportStream.
func (s *agentStream) Method() string { return s.conn.method }

// SetHeader implements grpc.ServerStream.
func (s *agentStream) SetHeader(metadata.MD) error { return errMetadata }

// SendHeader implements grpc.ServerStream.
func (s *agentStream) SendHeader(metadata.MD) error { return errMetadata }

// transportStream is what grpc.ServerTransportStream asks for, whose SetTrailer returns an error
// unlike that of grpc.ServerStream.
type transportStream struct{ *agentStream }

// SetTrailer implements grpc.ServerTransportStream.
func (transportStream) SetTrailer(metadata.MD) error { return errMetadata }

// SetTrailer implements grpc.ServerStream.
func (s *agentStream) SetTrailer(metadata.MD) {}

// streamContext ends with its stream.
type streamContext struct {
	value  func(key any) any
	stream *agentStream
}

// Deadline implements context.Context.
func (c *streamContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (c *streamContext) Done() <-chan struct{} { return c.stream.ended }

// Err implements context.Context.
func (c *streamContext) Err() error {
	select {
	case <-c.stream.ended:
		return context.Canceled
	default:
		return nil
	}
}

// Value implements context.Context.
func (c *streamContext) Value(key any) any { return c.value(key) }
