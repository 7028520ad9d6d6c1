package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/windlass-dev/windlass/api/wire"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// Limits of one connection between components.
const (
	// maxStreams is more than the calls of the instance with the most, and
	// handshakeWithin how long it may take to prove who one is.
	maxStreams      = 1100
	handshakeWithin = 10 * time.Second
	// maxWireHeaders bounds the headers of a stream, in bytes: the wire uses
	// none of its own.
	maxWireHeaders = 16 << 10
	// readBuffer is what each connection reads into, in bytes, and holds with TLS however long it
	// is idle. An idle agent has one, and few of its messages are larger. TLS itself holds the rest
	// of what was read, so a small buffer costs no system calls.
	readBuffer = 512
)

// Limits of HTTP.
const (
	// maxHeaders bounds the headers of a request in bytes, about.
	maxHeaders        = 64 << 10
	readHeadersWithin = 5 * time.Second
	idleFor           = 2 * time.Minute
	maxHTTP2Streams   = 250
	// streamBuffer, connBuffer and frameBytes bound what is in memory of the bodies that an HTTP/2
	// client sends before they are read. Nothing else counts them, and the defaults are 1 MiB each.
	// A body that waits for its instance fills the buffer of its stream, so the connection has room
	// for several: otherwise one of them would stop all uploads of a proxy.
	streamBuffer = 64 << 10
	connBuffer   = 16 * streamBuffer
	frameBytes   = 16 << 10
	// pingAfter is how long an HTTP/2 client may be silent before it is asked
	// whether it is there, and pingWithin how long it may take to say so.
	pingAfter  = 30 * time.Second
	pingWithin = 15 * time.Second
	// lookEvery is how often a server that shuts down looks whether handlers have ended that it waits for, and a message that
	// waits for its client whether the server shuts down.
	lookEvery = 20 * time.Millisecond
)

// WireServer serves the wire's services: streams of agents by a server of this package, which takes
// little for one that is idle, and all others by gRPC's.
type WireServer struct {
	*grpc.Server
	secure    credentials.TransportCredentials
	guard     *guard
	strangers *strangerLimiter
	agents    *streamServer
	others    *handedOver
}

// NewWire makes a server for Wire. It counts its rejections. Without credentials it does not
// encrypt.
func NewWire(reg prometheus.Registerer, secure credentials.TransportCredentials, more ...grpc.ServerOption) *WireServer {
	if secure == nil {
		secure = insecure.NewCredentials()
	}
	guard := newGuard(reg)
	server := grpc.NewServer(append([]grpc.ServerOption{
		// First, so that it counts what the others refuse.
		grpc.ChainStreamInterceptor(guard.stream),
		grpc.Creds(handshaken{secure}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(wire.StreamWindow),
		grpc.StaticConnWindowSize(wire.ConnWindow),
		grpc.ReadBufferSize(readBuffer),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxWireHeaders),
		grpc.MaxRecvMsgSize(wire.MaxMessage),
		grpc.ConnectionTimeout(handshakeWithin),
	}, more...)...)
	s := &WireServer{
		Server: server, secure: secure, guard: guard, strangers: newStrangerLimiter(reg),
		others: &handedOver{conns: make(chan net.Conn), closed: make(chan struct{})},
	}
	s.agents = &streamServer{wire: s, methods: make(map[string]streamMethod), conns: make(map[*streamConn]struct{})}
	return s
}

// Calls serves clients' calls, as HTTP does. It counts the requests that are no
// proper HTTP/1.1, and lets their answers say that no function ran. It bounds the connections
// without a request.
func Calls(ctx context.Context, l net.Listener, handler http.Handler, drain time.Duration, reg prometheus.Registerer, log *slog.Logger) error {
	return serveCalls(ctx, l, handler, drain, maxWaiting, reg, log)
}

func serveCalls(ctx context.Context, l net.Listener, handler http.Handler, drain time.Duration, mayWait int, reg prometheus.Registerer, log *slog.Logger) error {
	server := newHTTP(handler, log)
	all := clients{l, newImproper(reg), newWaitingConns(mayWait, reg)}
	all.attach(server)
	return serveHTTP(ctx, all, server, drain, log)
}

// HTTP serves HTTP/1.1 and unencrypted HTTP/2 until ctx ends. It then waits up to drain for
// running requests, also for those whose handlers have taken over their connections, and cuts off
// the rest.
func HTTP(ctx context.Context, l net.Listener, handler http.Handler, drain time.Duration, log *slog.Logger) error {
	return serveHTTP(ctx, l, newHTTP(handler, log), drain, log)
}

func newHTTP(handler http.Handler, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: readHeadersWithin,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeaders,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxHTTP2Streams, SendPingTimeout: pingAfter, PingTimeout: pingWithin,
			MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connBuffer, MaxReadFrameSize: frameBytes,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

func serveHTTP(ctx context.Context, l net.Listener, server *http.Server, drain time.Duration, log *slog.Logger) error {
	var running atomic.Int64
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		handler.ServeHTTP(w, r)
	})
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		limit, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		err := server.Shutdown(limit)
		if err == nil { // it waits for no connection that a handler has taken over
			err = sleep.Until(limit, lookEvery, func() (bool, error) { return running.Load() == 0, nil })
		}
		if err != nil {
			log.Warn("calls in flight did not finish in time and were cut off", "addr", l.Addr().String())
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
