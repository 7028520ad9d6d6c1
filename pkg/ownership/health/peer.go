package health

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/windlass-dev/windlass/api/wire"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// connectWithin is how long a scheduler may take to be connected to.
	connectWithin = time.Second
	// catchUpAfter is how long what another scheduler knows may take to come
	// from etcd.
	catchUpAfter = time.Second
	// retryPause is the pause before one that refused is connected to again.
	retryPause = 200 * time.Millisecond
)

// peer is one scheduler that is watched.
type peer struct {
	id   string
	addr string
	stop func()
	all  *Peers
	log  *slog.Logger

	mu       sync.Mutex
	detector ownership.FailureDetector

	// behind is since when the scheduler has known of a higher epoch than is
	// known here; zero while it does not. Only beats uses it.
	behind time.Time
}

func newPeer(id, addr string, stop func(), all *Peers) *peer {
	return &peer{
		id: id, addr: addr, stop: stop, all: all, log: all.deps.Log.With("scheduler", id, "addr", addr),
		detector: ownership.NewFailureDetector(time.Now()),
	}
}

func (p *peer) isSilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.detector.Silent()
}

// updateDetector changes the pulse and tells of it if that matters.
func (p *peer) updateDetector(change func(ownership.FailureDetector) ownership.FailureDetector) {
	p.mu.Lock()
	before := p.detector.Silent()
	p.detector = change(p.detector)
	now := p.detector.Silent()
	p.mu.Unlock()
	switch {
	case now == before:
		return
	case now:
		p.log.Warn("a scheduler is silent")
	default:
		p.log.Info("a scheduler answers again")
	}
	p.all.signalChange()
}

// run keeps a stream of beats until ctx ends. A stream that breaks is opened
// again at once; if that fails, nobody is there.
func (p *peer) run(ctx context.Context) {
	conn, err := Dial(p.addr, p.all.deps.Credentials)
	if err != nil {
		p.log.Error("scheduler address is not usable", "err", err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := controlwire.NewSchedulerClient(conn)
	for ctx.Err() == nil {
		conn.ResetConnectBackoff()
		if p.heartbeats(ctx, client) {
			continue
		}
		if ctx.Err() == nil {
			p.updateDetector(ownership.FailureDetector.Refused)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// heartbeats opens a stream and exchanges beats until it breaks, or until the
// scheduler has been silent on it. It tells whether the stream ever stood.
func (p *peer) heartbeats(ctx context.Context, client controlwire.SchedulerClient) (stood bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(connectWithin, cancel)
	stream, err := client.Heartbeat(ctx)
	if err == nil {
		err = stream.Send(p.request(0))
	}
	if err != nil || !limit.Stop() {
		return false
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		for {
			reply, err := stream.Recv()
			if err != nil {
				return
			}
			if !p.accepts(reply.GetWelcome()) {
				return
			}
			stood = true
			p.updateDetector(func(detector ownership.FailureDetector) ownership.FailureDetector {
				return detector.Answered(time.Now(), reply.GetServing())
			})
			if exchange := p.all.exchange; exchange != nil {
				exchange.CapacityFreed(p.id, reply.GetCapacityFreed())
			}
			p.catchUp(ctx, client, reply.GetEpoch())
		}
	}()
	p.sendHeartbeats(stream, received)
	cancel()
	<-received
	return stood
}

// accepts tells whether a scheduler speaks this program's protocol, unless it says
// nothing of it.
func (p *peer) accepts(w *controlwire.Welcome) bool {
	if w == nil || Accepts(w) {
		return true
	}
	p.log.Error("the scheduler does not speak this program's protocol", "release", w.GetRelease(), "protocol", w.GetProtocol())
	return false
}

// request is the beat of that number, with what is asked for.
func (p *peer) request(number uint64) *controlwire.HeartbeatRequest {
	request := &controlwire.HeartbeatRequest{Number: number}
	if number == 0 {
		request.Hello = Hello()
	}
	if exchange := p.all.exchange; exchange != nil {
		request.Scheduler, request.CapacityRequests = p.all.config.Self, exchange.CapacityRequests(p.id)
	}
	return request
}

// catchUp asks the scheduler for the slots if it has known more of them for a
// while: what is on its way here from etcd comes sooner.
func (p *peer) catchUp(ctx context.Context, client controlwire.SchedulerClient, epoch uint64) {
	switch {
	case epoch <= p.all.Map().LastEpoch():
		p.behind = time.Time{}
		return
	case p.behind.IsZero():
		p.behind = time.Now()
	}
	if time.Since(p.behind) < catchUpAfter {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	reported, err := fetch(ctx, client)
	if err != nil {
		p.log.Warn("a scheduler that knows more of the slots does not tell", "err", err)
		return
	}
	for slot := range ownership.Slot(ownership.Slots) {
		if owner, known := reported.Owner(slot); known {
			p.all.deps.Directory.Update(slot, owner)
		}
	}
	p.all.signalChange()
}

// sendHeartbeats sends beats until nothing is received any more, or what was sent last has
// not been answered for as long as it takes to be silent.
func (p *peer) sendHeartbeats(stream grpc.BidiStreamingClient[controlwire.HeartbeatRequest, controlwire.HeartbeatReply], received <-chan struct{}) {
	ticker := time.NewTicker(ownership.HeartbeatInterval)
	defer ticker.Stop()
	for number := uint64(1); ; number++ {
		select {
		case <-received:
			return
		case now := <-ticker.C:
			if p.unanswered(now) || stream.Send(p.request(number)) != nil {
				return
			}
		}
	}
}

// unanswered tells whether the stream is of no use any more: a new one may be,
// as after a partition.
func (p *peer) unanswered(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.detector.ReconnectDue(now)
}

// Dial makes a connection to a scheduler, as gateways and schedulers need it: it
// connects when it is first used, fails within a second if nobody is there, and
// is there again soon after its peer is. Without credentials it is not encrypted.
func Dial(addr string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		// Fixed windows: to adapt them, gRPC sends a ping after each message.
		grpc.WithStaticStreamWindowSize(wire.StreamWindow),
		grpc.WithStaticConnWindowSize(wire.ConnWindow),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: connectWithin,
		}),
	)
}
