package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// fakePeers are the roles that are not real. They speak the messages of a release, and
// nothing of today's.
type fakePeers struct {
	network *network
	release *release
	running sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
	conns   map[[2]string]*grpc.ClientConn
	servers []*grpc.Server

	mu sync.Mutex
	// arrived are the streams that real clients have opened and nobody has taken so far.
	arrived []*stream
}

func newFakePeers(n *network, r *release) *fakePeers {
	p := &fakePeers{network: n, release: r, conns: make(map[[2]string]*grpc.ClientConn)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *fakePeers) end() {
	p.cancel()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	for _, s := range p.servers {
		s.Stop()
	}
	p.running.Wait()
}

// stream is a stream between a fake peer and a real role, as the fake peer sees it.
type stream struct {
	opening
	method protoreflect.MethodDescriptor
	// send sends a message, one at a time; leave ends the stream.
	send  func(proto.Message) error
	leave func(how codes.Code)

	sending sync.Mutex

	mu    sync.Mutex
	heard []*dynamicpb.Message
	// pings counts what was said only to say that somebody is there.
	pings int
	// over says that the other side has ended it, and how.
	over bool
	how  codes.Code
}

// listens takes what the other side says, until it ends the stream.
func (s *stream) listens(receive func(any) error, kind protoreflect.MessageDescriptor) {
	for {
		m := dynamicpb.NewMessage(kind)
		err := receive(m)
		if err == nil && isPing(m) {
			s.pong()
			continue
		}
		s.mu.Lock()
		if err != nil {
			s.over, s.how = true, status.Code(err)
			if errors.Is(err, io.EOF) {
				s.how = codes.OK
			}
			s.mu.Unlock()
			return
		}
		s.heard = append(s.heard, m)
		s.mu.Unlock()
	}
}

// pong answers a ping, as schedulers of all releases do.
func (s *stream) pong() {
	s.mu.Lock()
	s.pings++
	s.mu.Unlock()
	pong := dynamicpb.NewMessage(s.method.Output())
	field := pong.Descriptor().Fields().ByName("pong")
	pong.Set(field, pong.NewField(field))
	_ = s.say(pong) // an error ends the stream, which its reader sees
}

func (s *stream) say(m proto.Message) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.send(m)
}

func (s *stream) pinged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pings
}

// next takes out the next message; false if there is none so far.
func (s *stream) next() (*dynamicpb.Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heard) == 0 {
		return nil, false
	}
	m := s.heard[0]
	s.heard = s.heard[1:]
	return m, true
}

// ended tells whether the other side has ended it, and everything was taken that it said.
func (s *stream) ended() (how codes.Code, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.how, s.over && len(s.heard) == 0
}

// pingsAllowed are those that servers of all releases allow.
var pingsAllowed = grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true})

// serve lets a fake peer take streams.
func (p *fakePeers) serve(role string) {
	server := grpc.NewServer(grpc.WaitForHandlers(true), pingsAllowed, grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
		return p.serveStream(role, ss)
	}))
	p.servers = append(p.servers, server)
	l := p.network.listen(role)
	p.running.Go(func() { _ = server.Serve(l) })
}

func (p *fakePeers) serveStream(role string, ss grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(ss)
	from, _ := peer.FromContext(ss.Context())
	method := p.release.method(full)
	if method == nil {
		return status.Error(codes.Unimplemented, "that release has no "+full)
	}
	left := make(chan codes.Code, 1)
	s := &stream{
		opening: opening{Client: from.Addr.String(), Server: role, Method: full}, method: method,
		send: func(m proto.Message) error { return ss.SendMsg(m) }, leave: func(how codes.Code) { left <- how },
	}
	p.mu.Lock()
	p.arrived = append(p.arrived, s)
	p.mu.Unlock()
	go s.listens(ss.RecvMsg, method.Input())
	select {
	case how := <-left:
		return status.Error(how, "as it was recorded")
	case <-ss.Context().Done():
		return ss.Context().Err()
	}
}

// taken takes out the first stream that was opened like that; nil if there is none.
func (p *fakePeers) taken(o opening) *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.arrived, func(s *stream) bool { return s.opening == o })
	if at < 0 {
		return nil
	}
	s := p.arrived[at]
	p.arrived = slices.Delete(p.arrived, at, at+1)
	return s
}

// open opens a fake peer's stream to a real role.
func (p *fakePeers) open(o opening) (*stream, error) {
	ends := [2]string{o.Client, o.Server}
	conn := p.conns[ends]
	if conn == nil {
		var err error
		conn, err = grpc.NewClient("passthrough:///"+p.network.addrs[o.Server],
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return p.network.dial(ctx, o.Client, addr) }),
		)
		if err != nil {
			return nil, err
		}
		p.conns[ends] = conn
	}
	ctx, cancel := context.WithCancel(p.ctx)
	cs, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, o.Method)
	if err != nil {
		cancel()
		return nil, err
	}
	method := p.release.method(o.Method)
	s := &stream{
		opening: o, method: method,
		send: func(m proto.Message) error {
			err := cs.SendMsg(m)
			if err == nil && !method.IsStreamingClient() {
				err = cs.CloseSend()
			}
			return err
		},
		leave: func(how codes.Code) {
			if how == codes.OK {
				_ = cs.CloseSend()
				return
			}
			cancel()
		},
	}
	p.running.Go(func() {
		defer cancel()
		s.listens(cs.RecvMsg, s.method.Output())
	})
	return s, nil
}
