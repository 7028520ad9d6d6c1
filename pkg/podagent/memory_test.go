package podagent

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// memoryConn is a connection to a fake server that needs no network, so that it
// works under testing/synctest. While it is down, streams wait to be opened.
type memoryConn struct {
	serve func(grpc.ServerStream) error

	mu sync.Mutex
	up chan struct{} // closed while the connection is up
}

// newMemoryConn is one to the fake scheduler.
func newMemoryConn(s *fakeScheduler) *memoryConn {
	return newMemoryConnTo(func(stream grpc.ServerStream) error {
		return s.Pull(&grpc.GenericServerStream[agentwire.PullRequest, agentwire.PullReply]{ServerStream: stream})
	})
}

func newMemoryConnTo(serve func(grpc.ServerStream) error) *memoryConn {
	up := make(chan struct{})
	close(up)
	return &memoryConn{serve: serve, up: up}
}

func (c *memoryConn) takeDown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = make(chan struct{})
}

func (c *memoryConn) putUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.up)
}

func (c *memoryConn) Close() error { return nil }

func (c *memoryConn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return errors.New("there are only streams")
}

func (c *memoryConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	serving, stopServing := context.WithCancel(context.Background())
	s := &memoryStream{
		ctx: ctx, serving: serving,
		toServer: newMailbox(), toClient: newMailbox(),
	}
	stop := context.AfterFunc(ctx, func() {
		s.toServer.close(status.Error(codes.Canceled, "the client is gone"))
		s.toClient.fail(status.FromContextError(ctx.Err()).Err())
		stopServing()
	})
	go func() {
		err := c.serve(serverEnd{memoryStream: s})
		if err == nil {
			err = io.EOF
		}
		stop()
		stopServing()
		s.toServer.fail(status.Error(codes.Canceled, "the server has ended the stream"))
		s.toClient.close(err)
	}()
	return clientEnd{memoryStream: s}, nil
}

// memoryStream is one stream of a memoryConn.
type memoryStream struct {
	ctx, serving       context.Context
	toServer, toClient *mailbox
}

type clientEnd struct {
	grpc.ClientStream // the rest is not used
	*memoryStream
}

func (c clientEnd) Context() context.Context { return c.ctx }
func (c clientEnd) SendMsg(m any) error      { return c.toServer.put(m.(proto.Message)) }
func (c clientEnd) RecvMsg(m any) error      { return c.toClient.take(m.(proto.Message)) }
func (c clientEnd) CloseSend() error         { c.toServer.close(io.EOF); return nil }

type serverEnd struct {
	*memoryStream
}

func (s serverEnd) SetHeader(metadata.MD) error  { return nil }
func (s serverEnd) SendHeader(metadata.MD) error { return nil }
func (s serverEnd) SetTrailer(metadata.MD)       {}
func (s serverEnd) Context() context.Context     { return s.serving }
func (s serverEnd) SendMsg(m any) error          { return s.toClient.put(m.(proto.Message)) }
func (s serverEnd) RecvMsg(m any) error          { return s.toServer.take(m.(proto.Message)) }

// mailbox is one direction of a stream.
type mailbox struct {
	mu       sync.Mutex
	changed  *sync.Cond
	messages []proto.Message
	end      error // what take returns behind the messages, once it is set
}

func newMailbox() *mailbox {
	b := &mailbox{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

func (b *mailbox) put(m proto.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != nil {
		return io.EOF
	}
	b.messages = append(b.messages, proto.Clone(m))
	b.changed.Broadcast()
	return nil
}

// close ends the direction behind what was put; fail drops that.
func (b *mailbox) close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.end = err
		b.changed.Broadcast()
	}
}

func (b *mailbox) fail(err error) {
	b.close(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages, b.end = nil, err
	b.changed.Broadcast()
}

func (b *mailbox) take(into proto.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.messages) == 0 && b.end == nil {
		b.changed.Wait()
	}
	if len(b.messages) == 0 {
		return b.end
	}
	proto.Reset(into)
	proto.Merge(into, b.messages[0])
	b.messages = b.messages[1:]
	return nil
}
