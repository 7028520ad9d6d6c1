package gateway

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
)

const (
	// openTimeout is how long a scheduler may take to be reached, and stallTimeout how
	// long it may leave messages unread: then the gateway drops the connection.
	openTimeout  = 5 * time.Second
	stallTimeout = 2 * time.Second
	// unusedLinkTimeout is how long a link to an unreachable scheduler is kept without
	// being used.
	unusedLinkTimeout = time.Minute
)

// link is the stream of tickets to one scheduler. Tickets that are offered while it is down
// are dropped: the gateway offers unclaimed calls again.
type link struct {
	links *links
	addr  string

	// wakeSender holds an element if something is pending that the sender may not have
	// seen.
	wakeSender chan struct{}

	mu sync.Mutex
	// open is the stream; nil while it is not open.
	open *linkStream
	// pending is what the sender has yet to send. So offering never waits for a scheduler, and
	// under load many tickets share one message and one wake-up. It holds at most as many
	// tickets, and as many cancellations, as the gateway has calls; further ones are dropped.
	// A dropped ticket is offered again, and a dropped cancellation costs an instance a
	// refused claim.
	pending outbox
	used    time.Time // when something was last to be sent
}

func newLink(links *links, addr string) *link {
	return &link{links: links, addr: addr, wakeSender: make(chan struct{}, 1), used: time.Now()}
}

// enqueueOffer reports whether the ticket is to be sent; otherwise it is dropped.
func (l *link) enqueueOffer(t *agentwire.Ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open == nil || len(l.pending.offers) >= l.links.config.MaxInvocations {
		return false
	}
	l.pending.addOffer(t)
	signal(l.wakeSender)
	return true
}

func (l *link) enqueueCancel(id invocation.ID, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open != nil && len(l.pending.cancels) < l.links.config.MaxInvocations {
		l.pending.addCancel(&controlwire.Cancellation{InvocationId: id[:], FunctionUid: uid})
		signal(l.wakeSender)
	}
}

// linkStream stands for one stream of a link.
type linkStream struct{ _ byte }

// stream is the present stream; nil if none is open.
func (l *link) stream() *linkStream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// enqueueReport lets a report be sent once the sender is woken. It replaces one on the same
// function that was not sent yet.
func (l *link) enqueueReport(r *controlwire.LoanReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.open != nil {
		l.pending.addReport(r)
	}
}

func (l *link) usedAfter(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used.After(t)
}

// nextBatch takes the next message; nil if nothing is pending.
func (l *link) nextBatch() *controlwire.OfferRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending.empty() {
		return nil
	}
	return l.pending.batch()
}

// sendPending sends pending messages until the stream ends. hangUp ends it.
func (l *link) sendPending(stream grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply], hangUp func()) {
	for {
		select {
		case <-stream.Context().Done():
			return
		case <-l.wakeSender:
		}
		for batch := l.nextBatch(); batch != nil; batch = l.nextBatch() {
			stalled := time.AfterFunc(stallTimeout, hangUp)
			err := stream.Send(batch)
			stalled.Stop()
			if err != nil {
				return // the stream has ended, which runStream sees
			}
		}
	}
}

// run keeps the stream open until ctx ends, or until the scheduler is no longer a member.
func (l *link) run(ctx context.Context) {
	const shortest, longest = 20 * time.Millisecond, time.Second
	conn, err := health.Dial(l.addr, l.links.deps.Schedulers)
	if err != nil {
		l.links.deps.Log.Error("scheduler address is not usable", "addr", l.addr, "err", err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := controlwire.NewSchedulerClient(conn)
	retry := backoff.Backoff{First: shortest, Last: longest}
	for ctx.Err() == nil {
		begun := time.Now()
		opened := l.runStream(ctx, client)
		now := time.Now()
		if opened && now.Sub(begun) > longest {
			retry.Reset()
		}
		if !opened && l.links.drop(l, now.Add(-unusedLinkTimeout)) {
			return
		}
		sleep.For(ctx, retry.Next())
	}
}

// runStream opens the stream and reads refusals until it ends. It reports whether the stream
// ever opened.
func (l *link) runStream(ctx context.Context, client controlwire.SchedulerClient) bool {
	var sending sync.WaitGroup
	defer sending.Wait()
	streamCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	limit := time.AfterFunc(openTimeout, hangUp)
	stream, err := client.Offer(streamCtx, grpc.WaitForReady(true))
	limit.Stop()
	if err == nil {
		err = stream.Send(&controlwire.OfferRequest{Gateway: l.links.config.ClaimAddr, Hello: health.Hello()})
	}
	if err != nil {
		return false
	}
	l.links.deps.Log.Debug("connected to scheduler", "addr", l.addr)
	l.setOpen(new(linkStream))
	defer l.setOpen(nil)
	sending.Go(func() { l.sendPending(stream, hangUp) })
	l.links.forgetRoutes(l.addr)
	for {
		reply, err := stream.Recv()
		if err != nil {
			if ctx.Err() == nil {
				l.links.deps.Log.Warn("lost the scheduler", "addr", l.addr, "err", err)
			}
			return true
		}
		if w := reply.GetWelcome(); w != nil && !health.Accepts(w) {
			l.links.deps.Log.Error("the scheduler does not speak this gateway's protocol", "addr", l.addr, "release", w.GetRelease())
			return true
		}
		for _, r := range reply.GetRefusals() {
			if id, err := invocation.IDFromBytes(r.GetInvocationId()); err == nil {
				l.links.onRefusal(id, r.GetFunctionUid(), health.RefusalFromWire(r))
			}
		}
	}
}

// setOpen records that a stream opened or ended. It drops what was pending.
func (l *link) setOpen(open *linkStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.pending = open, outbox{}
}
