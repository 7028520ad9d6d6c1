package scheduler

import (
	"context"
	"time"

	"google.golang.org/grpc"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/peers"
)

// forwardWithin is how long the owner may take to be reached, or leave unread what
// it is sent. The gateway's next messages wait that long.
const forwardWithin = time.Second

// A gateway that cannot reach the owner, or does not know it yet, offers its
// tickets to another scheduler, which passes them on. What was passed on is not
// passed on again, so no message can travel in circles.

// forwards are the streams by which one gateway's tickets are passed on. Only the
// goroutine that serves the gateway uses them.
type forwards struct {
	scheduler *Scheduler
	from      *offerStream
	streams   map[string]*forward // by the owner's address
	pending   map[string]*wirev1.OfferRequest
}

type forward struct {
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[wirev1.OfferRequest, wirev1.OfferReply]
	hangUp context.CancelFunc
}

func newForwards(s *Scheduler, from *offerStream) *forwards {
	return &forwards{scheduler: s, from: from, streams: make(map[string]*forward), pending: make(map[string]*wirev1.OfferRequest)}
}

// to is what is to be passed on to an address with the next flush.
func (f *forwards) to(addr string) *wirev1.OfferRequest {
	request := f.pending[addr]
	if request == nil {
		request = &wirev1.OfferRequest{}
		f.pending[addr] = request
	}
	return request
}

// flush passes on what is pending. What cannot be passed on is refused, so that
// the gateway offers it again.
func (f *forwards) flush(ctx context.Context) {
	for addr, request := range f.pending {
		delete(f.pending, addr)
		one, err := f.open(ctx, addr)
		if err == nil {
			stalled := time.AfterFunc(forwardWithin, one.hangUp)
			err = one.stream.Send(request)
			stalled.Stop()
		}
		if err != nil {
			f.scheduler.deps.Log.Warn("tickets could not be passed on to the owner", "gateway", f.from.gateway, "owner", addr, "err", err)
			f.close(addr)
			f.refuse(request)
		}
	}
}

// refuse lets the gateway offer again what could not be passed on.
func (f *forwards) refuse(request *wirev1.OfferRequest) {
	for _, t := range request.GetOffers() {
		if id, err := invoke.IDFromBytes(t.GetInvocationId()); err == nil {
			f.from.refuse(id, notOwner)
		}
	}
}

// open is the stream to an address, which is opened if it is not there.
func (f *forwards) open(ctx context.Context, addr string) (*forward, error) {
	if one := f.streams[addr]; one != nil {
		return one, nil
	}
	conn, err := peers.Dial(addr, f.scheduler.deps.Schedulers)
	if err != nil {
		return nil, err
	}
	ctx, hangUp := context.WithCancel(ctx)
	one := &forward{conn: conn, hangUp: hangUp}
	f.streams[addr] = one
	limit := time.AfterFunc(forwardWithin, hangUp)
	defer limit.Stop()
	if one.stream, err = wirev1.NewSchedulerClient(conn).Offer(ctx); err != nil {
		return nil, err
	}
	if err := one.stream.Send(&wirev1.OfferRequest{Gateway: f.from.gateway, Forwarded: true}); err != nil {
		return nil, err
	}
	go f.from.passBack(one.stream)
	return one, nil
}

// passBack passes the owner's refusals back to the gateway until the stream ends.
func (o *offerStream) passBack(stream grpc.BidiStreamingClient[wirev1.OfferRequest, wirev1.OfferReply]) {
	for {
		reply, err := stream.Recv()
		if err != nil {
			return
		}
		for _, refusal := range reply.GetRefusals() {
			o.put(refusal)
		}
	}
}

func (f *forwards) close(addr string) {
	if one := f.streams[addr]; one != nil {
		one.hangUp()
		_ = one.conn.Close()
		delete(f.streams, addr)
	}
}

func (f *forwards) closeAll() {
	for addr := range f.streams {
		f.close(addr)
	}
}
