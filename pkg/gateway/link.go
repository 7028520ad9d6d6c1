package gateway

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/peers"
)

const (
	// openWithin is how long a scheduler may take to be reached, and
	// stalledAfter how long it may leave unread what it is sent: then it is
	// taken for dead.
	openWithin   = 5 * time.Second
	stalledAfter = 2 * time.Second
	// forgetAfter is how long a scheduler that cannot be reached is kept in
	// mind when nobody asks for it any more.
	forgetAfter = time.Minute
)

// link is the stream of tickets to one scheduler. What is offered while the
// stream is down is dropped: the gateway offers again what stays unclaimed.
type link struct {
	gateway *Gateway
	addr    string

	// said holds an element if something is pending that the sender may not have
	// seen.
	said chan struct{}

	mu sync.Mutex
	// open says that there is a stream.
	open bool
	// pending is what the stream's sender has yet to send: so nobody who offers
	// waits for a scheduler, and under load many tickets share one message and one
	// wake-up. It holds no more tickets, and no more withdrawals, than the
	// gateway's table does calls; more are dropped. A ticket is offered
	// again, and one that was not withdrawn costs an instance a refused
	// claim.
	pending said
	used    time.Time // when something was last to be sent
}

func newLink(g *Gateway, addr string) *link {
	return &link{gateway: g, addr: addr, said: make(chan struct{}, 1), used: time.Now()}
}

func (l *link) offer(t *wirev1.Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open && len(l.pending.offers) < l.gateway.config.MaxInvocations {
		l.pending.offer(t)
		l.wake()
	}
}

func (l *link) withdraw(id invoke.ID, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open && len(l.pending.withdrawals) < l.gateway.config.MaxInvocations {
		l.pending.withdraw(&wirev1.Withdrawal{InvocationId: id[:], FunctionUid: uid})
		l.wake()
	}
}

func (l *link) usedAfter(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used.After(t)
}

// wake lets the sender look for what is pending.
func (l *link) wake() {
	select {
	case l.said <- struct{}{}:
	default:
	}
}

// next takes out the next message; nil if nothing is pending.
func (l *link) next() *wirev1.OfferRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending.offers)+len(l.pending.withdrawals) == 0 {
		return nil
	}
	return l.pending.batch()
}

// send sends what is pending until the stream ends. hangUp ends it.
func (l *link) send(stream grpc.BidiStreamingClient[wirev1.OfferRequest, wirev1.OfferReply], hangUp func()) {
	for {
		select {
		case <-stream.Context().Done():
			return
		case <-l.said:
		}
		for batch := l.next(); batch != nil; batch = l.next() {
			stalled := time.AfterFunc(stalledAfter, hangUp)
			err := stream.Send(batch)
			stalled.Stop()
			if err != nil {
				return // the stream has ended, which converse sees
			}
		}
	}
}

// run keeps the stream until ctx ends, or until the scheduler is gone and
// forgotten.
func (l *link) run(ctx context.Context) {
	const shortest, longest = 20 * time.Millisecond, time.Second
	conn, err := peers.Dial(l.addr, l.gateway.deps.Schedulers)
	if err != nil {
		l.gateway.deps.Log.Error("scheduler address is not usable", "addr", l.addr, "err", err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := wirev1.NewSchedulerClient(conn)
	retry := backoff.Backoff{First: shortest, Last: longest}
	for ctx.Err() == nil {
		begun := time.Now()
		opened := l.converse(ctx, client)
		now := time.Now()
		if opened && now.Sub(begun) > longest {
			retry.Reset()
		}
		if !opened && l.gateway.unlink(l, now.Add(-forgetAfter)) {
			return
		}
		sleep.For(ctx, retry.Next())
	}
}

// converse opens the stream and reads refusals until it ends. It tells whether
// it ever opened.
func (l *link) converse(ctx context.Context, client wirev1.SchedulerClient) bool {
	var sending sync.WaitGroup
	defer sending.Wait()
	streamCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	limit := time.AfterFunc(openWithin, hangUp)
	stream, err := client.Offer(streamCtx, grpc.WaitForReady(true))
	limit.Stop()
	if err == nil {
		err = stream.Send(&wirev1.OfferRequest{Gateway: l.gateway.config.ClaimAddr})
	}
	if err != nil {
		return false
	}
	l.gateway.deps.Log.Debug("connected to scheduler", "addr", l.addr)
	l.begin(true)
	defer l.begin(false)
	sending.Go(func() { l.send(stream, hangUp) })
	// Whatever was offered before may have been lost.
	l.gateway.audit(time.Now(), func(slot ownership.Slot) bool {
		to, _, _ := l.gateway.deps.Router.Route(slot)
		return to.Addr == l.addr
	})
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

// begin notes that a stream begins or has ended. What was pending is dropped.
func (l *link) begin(open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.pending = open, said{}
}

var refusalReasons = map[wirev1.Refusal_Reason]invoke.RefusalReason{
	wirev1.Refusal_REASON_QUEUE_FULL:          invoke.RefusedQueueFull,
	wirev1.Refusal_REASON_UNKNOWN_FUNCTION:    invoke.RefusedUnknownFunction,
	wirev1.Refusal_REASON_CANNOT_START:        invoke.RefusedCannotStart,
	wirev1.Refusal_REASON_NOT_OWNER:           invoke.RefusedNotOwner,
	wirev1.Refusal_REASON_NO_CAPACITY:         invoke.RefusedNoCapacity,
	wirev1.Refusal_REASON_RATE_LIMITED:        invoke.RefusedRate,
	wirev1.Refusal_REASON_CONCURRENCY_LIMITED: invoke.RefusedConcurrency,
	wirev1.Refusal_REASON_WAIT_TOO_LONG:       invoke.RefusedWait,
}

func refusalFromWire(r *wirev1.Refusal) invoke.Refusal {
	return invoke.Refusal{
		Reason:     refusalReasons[r.GetReason()],
		Detail:     r.GetDetail(),
		RetryAfter: time.Duration(r.GetRetryAfterNs()),
	}
}
