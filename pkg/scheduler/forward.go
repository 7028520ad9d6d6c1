package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

const (
	// forwardWithin is how long a connection to the owner, or the sending of a message, may
	// take; forwardPause is how long an owner that took longer is left alone.
	forwardWithin = time.Second
	forwardPause  = time.Second
	// forwardBuffer bounds the messages that wait to be forwarded to one owner. Further ones
	// are refused, so that the gateway offers their tickets again.
	forwardBuffer = 16
	// maxReports bounds the reports of one message, as gateways do.
	maxReports = 1024
	// unusedForward is how long a stream to an owner is kept without messages for it.
	unusedForward = time.Minute
)

// A gateway that cannot reach the owner, or does not know it yet, offers its tickets to another
// scheduler, which forwards them. A scheduler never forwards a forwarded ticket, so no message
// can travel in circles.

// forwards are the streams that forward one gateway's tickets. Only the goroutine that serves
// the gateway uses them, and it never waits for one.
type forwards struct {
	shell   *shell
	from    *offerStream
	owners  map[string]*ownerStream // by address
	pending map[string]*controlwire.OfferRequest
	running sync.WaitGroup
}

// ownerStream forwards tickets to one owner.
type ownerStream struct {
	shell    *shell
	from     *offerStream
	addr     string
	requests chan *controlwire.OfferRequest
	// end ends it, and used is when it last got a message. Only forwards uses them.
	end     func()
	used    time.Time
	reports waitingReports
	// Only its goroutine uses the fields below. It opens no stream before notBefore.
	stream    grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply]
	hangUp    func()
	notBefore time.Time
	reading   sync.WaitGroup // for the stream's end
}

func newForwards(s *shell, from *offerStream) *forwards {
	return &forwards{
		shell: s, from: from,
		owners: make(map[string]*ownerStream), pending: make(map[string]*controlwire.OfferRequest),
	}
}

// to is the message that the next flush sends to an address.
func (f *forwards) to(addr string) *controlwire.OfferRequest {
	request := f.pending[addr]
	if request == nil {
		request = &controlwire.OfferRequest{}
		f.pending[addr] = request
	}
	return request
}

// flush forwards the pending messages. A message that cannot be forwarded is refused, so that
// the gateway offers its tickets again. Its reports go with a message that waits: the gateway may
// report no further change. The streams end with ctx.
func (f *forwards) flush(ctx context.Context) {
	for addr, request := range f.pending {
		delete(f.pending, addr)
		owner := f.ownerAt(ctx, addr)
		owner.reports.keep(request.GetReports())
		request.Reports = nil
		select {
		case owner.requests <- request:
		default:
			owner.refuseAll(request)
		}
	}
	f.endUnused()
}

// ownerAt is the stream to an owner, which it begins if there is none.
func (f *forwards) ownerAt(ctx context.Context, addr string) *ownerStream {
	owner := f.owners[addr]
	if owner == nil {
		ctx, end := context.WithCancel(ctx)
		owner = &ownerStream{
			shell: f.shell, from: f.from, addr: addr, requests: make(chan *controlwire.OfferRequest, forwardBuffer), end: end,
		}
		f.owners[addr] = owner
		f.running.Go(func() { owner.run(ctx) })
	}
	owner.used = f.shell.deps.Now()
	return owner
}

// endUnused ends the streams that have had no message for a while: a gateway's stream may live for
// months, and each restart of another scheduler brings an address of its own.
func (f *forwards) endUnused() {
	for addr, owner := range f.owners {
		if f.shell.deps.Now().Sub(owner.used) >= unusedForward {
			owner.end()
			delete(f.owners, addr)
		}
	}
}

// waitEnded returns when all streams have ended.
func (f *forwards) waitEnded() { f.running.Wait() }

// waitingReports are the latest reports on each function, until a message takes them along.
type waitingReports struct {
	mu    sync.Mutex
	byUID map[string]*controlwire.LoanReport
}

// keep replaces the reports on the same functions.
func (w *waitingReports) keep(reports []*controlwire.LoanReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byUID == nil {
		w.byUID = make(map[string]*controlwire.LoanReport)
	}
	for _, r := range reports {
		w.byUID[r.GetFunctionUid()] = r
	}
}

// takeSome takes as many as one message has, and says whether there are more.
func (w *waitingReports) takeSome() (some []*controlwire.LoanReport, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, r := range w.byUID {
		if len(some) == maxReports {
			return some, true
		}
		some = append(some, r)
		delete(w.byUID, uid)
	}
	return some, false
}

// run forwards until ctx ends. While the owner cannot be reached, it refuses messages at once:
// one message pays for the wait, not each of them.
func (f *ownerStream) run(ctx context.Context) {
	defer f.disconnect()
	for {
		select {
		case <-ctx.Done():
			return
		case request := <-f.requests:
			f.forward(ctx, request)
		}
	}
}

// forward forwards a message with all reports that wait, or refuses it. If it fails, the owner
// forgets the earlier reports, too.
func (f *ownerStream) forward(ctx context.Context, request *controlwire.OfferRequest) {
	for more := true; more; request = new(controlwire.OfferRequest) {
		request.Reports, more = f.reports.takeSome()
		if len(request.GetOffers())+len(request.GetCancellations())+len(request.GetReports()) == 0 {
			return // the message before took its reports along
		}
		if err := f.forwardRequest(ctx, request); err != nil {
			f.refuseAll(request)
			return
		}
	}
}

var (
	errBackingOff    = errors.New("scheduler: the owner could not be reached just now")
	errOtherProtocol = errors.New("scheduler: the owner does not speak this scheduler's protocol")
)

func (f *ownerStream) forwardRequest(ctx context.Context, request *controlwire.OfferRequest) error {
	now := f.shell.deps.Now
	if f.stream == nil && now().Before(f.notBefore) {
		return errBackingOff
	}
	begun, fresh := now(), f.stream == nil
	err := f.connect(ctx)
	if err == nil {
		stalled := time.AfterFunc(forwardWithin, f.hangUp)
		err = f.stream.Send(request)
		stalled.Stop()
	}
	if err != nil {
		f.disconnect()
		if ctx.Err() != nil {
			return err // the gateway has left
		}
		if fresh || now().Sub(begun) >= forwardWithin {
			f.notBefore = now().Add(forwardPause) // it did not just hang up
		}
		f.shell.deps.Log.Warn("cannot forward tickets to the owner", "gateway", f.from.gateway, "owner", f.addr, "err", err)
	}
	return err
}

// refuseAll refuses all tickets of a message, so that the gateway offers them again.
func (f *ownerStream) refuseAll(request *controlwire.OfferRequest) {
	for _, t := range request.GetOffers() {
		if id, err := invocation.IDFromBytes(t.GetInvocationId()); err == nil {
			f.from.refuse(id, t.GetFunctionUid(), core.NotOwner)
		}
	}
}

// connect opens the stream unless it is open.
func (f *ownerStream) connect(ctx context.Context) error {
	if f.stream != nil {
		return nil
	}
	conn, err := health.Dial(f.addr, f.shell.deps.Schedulers)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	f.hangUp = func() {
		cancel()
		_ = conn.Close()
	}
	limit := time.AfterFunc(forwardWithin, cancel)
	defer limit.Stop()
	stream, err := controlwire.NewSchedulerClient(conn).Offer(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&controlwire.OfferRequest{Gateway: f.from.gateway, Forwarded: true, Hello: health.Hello()}); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if !health.Accepts(first.GetWelcome()) {
		return errOtherProtocol
	}
	f.stream = stream
	f.reading.Go(func() { f.from.returnRefusals(stream) })
	return nil
}

func (f *ownerStream) disconnect() {
	if f.hangUp != nil {
		f.hangUp()
	}
	f.reading.Wait()
	f.stream, f.hangUp = nil, nil
}

// returnRefusals passes the owner's refusals back to the gateway until the stream ends.
func (o *offerStream) returnRefusals(stream grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply]) {
	for {
		reply, err := stream.Recv()
		if err != nil {
			return
		}
		for _, refusal := range reply.GetRefusals() {
			o.enqueue(refusal)
		}
	}
}
