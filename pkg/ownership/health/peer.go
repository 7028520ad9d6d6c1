package health

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// connectWithin bounds the time to connect to a scheduler.
	connectWithin = time.Second
	// catchUpAfter is how long the knowledge of another scheduler may take to arrive from
	// etcd.
	catchUpAfter = time.Second
	// retryPause is the pause before the next connection attempt after a refusal.
	retryPause = 200 * time.Millisecond
)

// peer is one watched scheduler.
type peer struct {
	id   string
	addr string
	stop func()
	all  *Peers
	log  *slog.Logger

	mu       sync.Mutex
	detector ownership.FailureDetector

	// behind is since when the scheduler has reported a higher epoch than this program knows;
	// zero while it does not. Only heartbeats uses it.
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

// Why a scheduler is silent, unless no stream to it can be opened.
var (
	errUnanswered = errors.New("it leaves heartbeats unanswered")
	errNotServing = errors.New("it starts or stops")
	errSlow       = fmt.Errorf("it does not accept a stream within %v", connectWithin)
)

// updateDetector changes the failure detector and signals a change of its verdict. why is the cause
// if the scheduler is silent now.
func (p *peer) updateDetector(change func(ownership.FailureDetector) ownership.FailureDetector, why error) {
	p.mu.Lock()
	before := p.detector.Silent()
	p.detector = change(p.detector)
	now := p.detector.Silent()
	p.mu.Unlock()
	switch {
	case now == before:
		return
	case now:
		p.log.Warn("a scheduler is silent", "err", why)
	default:
		p.log.Info("a scheduler answers again")
	}
	p.all.signalChange()
}

// run keeps a heartbeat stream open until ctx ends. It reopens a broken stream at once; if
// that fails, the scheduler does not listen.
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
		stood, err := p.heartbeats(ctx, client)
		if stood {
			continue
		}
		if ctx.Err() == nil {
			p.updateDetector(ownership.FailureDetector.Refused, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// heartbeats opens a stream and exchanges heartbeats until it breaks, or until the scheduler
// has been silent on it. stood says that the stream was ever open; otherwise the error says why not.
func (p *peer) heartbeats(ctx context.Context, client controlwire.SchedulerClient) (stood bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(connectWithin, cancel)
	stream, err := client.Heartbeat(ctx)
	if err == nil {
		err = stream.Send(p.request(0))
	}
	if !limit.Stop() {
		return false, errSlow
	}
	if errors.Is(err, io.EOF) { // the stream has ended, and says why to those who receive
		_, err = stream.Recv()
	}
	if err != nil {
		return false, err
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		for {
			var reply *controlwire.HeartbeatReply
			if reply, err = stream.Recv(); err != nil {
				return
			}
			if err = accepts(reply.GetWelcome()); err != nil {
				return
			}
			stood = true
			p.updateDetector(func(detector ownership.FailureDetector) ownership.FailureDetector {
				return detector.Answered(time.Now(), reply.GetServing())
			}, errNotServing)
			if exchange := p.all.exchange; exchange != nil {
				exchange.CapacityFreed(p.id, reply.GetCapacityFreed())
			}
			p.catchUp(ctx, client, reply.GetEpoch())
		}
	}()
	p.sendHeartbeats(stream, received)
	cancel()
	<-received
	return stood, err
}

// accepts returns an error if the scheduler does not support this program's protocol. A scheduler that
// names none counts as one that does.
func accepts(w *controlwire.Welcome) error {
	if w == nil || Accepts(w) {
		return nil
	}
	return fmt.Errorf("its release %s chose protocol %d, which this program does not speak", w.GetRelease(), w.GetProtocol())
}

// request is the heartbeat of that number, with requests for room.
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

// catchUp fetches the owners from the scheduler if it has known a higher epoch for a while.
// Until then the change is probably on its way from etcd.
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

// sendHeartbeats sends heartbeats until the stream ends, or until the last one has been
// unanswered for as long as it takes to be silent.
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

// unanswered reports whether to open another stream, as after a partition.
func (p *peer) unanswered(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.detector.ReconnectDue(now)
}

// Dial makes a connection to a scheduler for gateways and schedulers. It connects at its first
// use, fails within a second if the scheduler does not listen, and is usable again soon after
// the scheduler is back. Without credentials it is not encrypted.
func Dial(addr string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		// To adapt the windows, gRPC would send a ping after each message.
		grpc.WithStaticStreamWindowSize(wire.StreamWindow),
		grpc.WithStaticConnWindowSize(wire.ConnWindow),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: connectWithin,
		}),
	)
}
