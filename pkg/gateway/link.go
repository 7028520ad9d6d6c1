package gateway

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// maxBatch bounds the tickets of one message.
const maxBatch = 256

// link is the stream of tickets to one scheduler. What is offered while the
// stream is down is dropped: the gateway offers again what stays unclaimed.
type link struct {
	gateway *Gateway
	addr    string

	mu sync.Mutex
	// stream is nil while there is none.
	stream grpc.BidiStreamingClient[wirev1.OfferRequest, wirev1.OfferReply]
	// pending is what waits while sending is true: whoever sends takes it
	// along, so that under load many tickets share one message and one
	// wake-up. It holds at most what the gateway's table does.
	pending wirev1.OfferRequest
	sending bool
}

func newLink(g *Gateway, addr string) *link { return &link{gateway: g, addr: addr} }

func (l *link) offer(t *wirev1.Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil {
		l.pending.Offers = append(l.pending.Offers, t)
		l.flush()
	}
}

func (l *link) withdraw(id invoke.ID, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil {
		l.pending.Withdrawals = append(l.pending.Withdrawals, &wirev1.Withdrawal{InvocationId: id[:], FunctionUid: uid})
		l.flush()
	}
}

// flush sends what is pending unless somebody does already. The caller holds
// the lock, which is released while sending.
func (l *link) flush() {
	if l.sending {
		return
	}
	l.sending = true
	for l.stream != nil && len(l.pending.Offers)+len(l.pending.Withdrawals) > 0 {
		stream := l.stream
		batch := l.takeBatch()
		l.mu.Unlock()
		// An error ends the stream, which run sees.
		_ = stream.Send(batch)
		l.mu.Lock()
	}
	l.sending = false
}

func (l *link) takeBatch() *wirev1.OfferRequest {
	n, m := min(maxBatch, len(l.pending.Offers)), min(maxBatch, len(l.pending.Withdrawals))
	batch := &wirev1.OfferRequest{Offers: l.pending.Offers[:n:n], Withdrawals: l.pending.Withdrawals[:m:m]}
	l.pending.Offers, l.pending.Withdrawals = l.pending.Offers[n:], l.pending.Withdrawals[m:]
	return batch
}

// run keeps the stream until ctx ends.
func (l *link) run(ctx context.Context) {
	conn, err := grpc.NewClient(l.addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
	)
	if err != nil {
		l.gateway.deps.Log.Error("scheduler address is not usable", "addr", l.addr, "err", err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := wirev1.NewSchedulerClient(conn)
	const shortest, longest = 20 * time.Millisecond, time.Second
	for pause := shortest; ctx.Err() == nil; pause = min(2*pause, longest) {
		if l.converse(ctx, client) {
			pause = shortest
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// converse opens the stream and reads refusals until it ends. It tells whether
// it ever opened.
func (l *link) converse(ctx context.Context, client wirev1.SchedulerClient) bool {
	stream, err := client.Offer(ctx, grpc.WaitForReady(true))
	if err == nil {
		err = stream.Send(&wirev1.OfferRequest{Gateway: l.gateway.config.ClaimAddr})
	}
	if err != nil {
		return false
	}
	l.gateway.deps.Log.Debug("connected to scheduler", "addr", l.addr)
	l.open(stream)
	defer l.open(nil)
	for {
		reply, err := stream.Recv()
		if err != nil {
			if ctx.Err() == nil {
				l.gateway.deps.Log.Warn("lost the scheduler", "addr", l.addr, "err", err)
			}
			return true
		}
		for _, r := range reply.GetRefusals() {
			if id, err := invoke.IDFromBytes(r.GetInvocationId()); err == nil {
				l.gateway.refused(id, refusalFromWire(r))
			}
		}
	}
}

func (l *link) open(stream grpc.BidiStreamingClient[wirev1.OfferRequest, wirev1.OfferReply]) {
	l.mu.Lock()
	l.stream = stream
	l.pending = wirev1.OfferRequest{}
	l.mu.Unlock()
	if stream != nil {
		// Whatever was offered before may have been lost.
		now := time.Now()
		l.gateway.reoffer(now, now)
	}
}

var refusalReasons = map[wirev1.Refusal_Reason]invoke.RefusalReason{
	wirev1.Refusal_REASON_QUEUE_FULL:       invoke.RefusedQueueFull,
	wirev1.Refusal_REASON_UNKNOWN_FUNCTION: invoke.RefusedUnknownFunction,
	wirev1.Refusal_REASON_CANNOT_START:     invoke.RefusedCannotStart,
	wirev1.Refusal_REASON_NOT_OWNER:        invoke.RefusedNotOwner,
	wirev1.Refusal_REASON_NO_CAPACITY:      invoke.RefusedNoCapacity,
}

func refusalFromWire(r *wirev1.Refusal) invoke.Refusal {
	return invoke.Refusal{
		Reason:     refusalReasons[r.GetReason()],
		Detail:     r.GetDetail(),
		RetryAfter: time.Duration(r.GetRetryAfterNs()),
	}
}
