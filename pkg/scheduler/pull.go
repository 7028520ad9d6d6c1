package scheduler

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue/broker"
)

type pullServer = grpc.BidiStreamingServer[wirev1.PullRequest, wirev1.PullReply]

// pullStream is the stream of pulls of one instance. It is the instance's Sink.
type pullStream struct {
	line
	function *function
	// adopted says that another scheduler has started the instance.
	adopted bool
	// revision is what it was started for.
	revision string
	// first is the call whose ticket was the first that was delivered.
	first atomic.Pointer[invoke.ID]
	// retired says that the instance was told to go.
	retired atomic.Bool

	pulled  bool // has asked for work
	leaving bool // said goodbye, or was let go
}

// Pull serves one instance's pulls.
func (s *Scheduler) Pull(server pullServer) error {
	first, err := server.Recv()
	if err != nil {
		return err
	}
	if first.GetHello().GetSpare() {
		return s.pullSpare(server, first.GetHello().GetToken())
	}
	p, err := s.hello(first.GetHello())
	if errors.Is(err, errMoved) {
		return server.Send(s.moved(ownership.SlotOf(first.GetHello().GetFunctionUid(), 0)))
	}
	if err != nil {
		return err
	}
	// It ends with the stream. To wait for it here would be to wait for an
	// agent that does not take its replies.
	go p.send(server)
	return p.attend(server, p.handle, p.end)
}

// errMoved says that the function has another owner.
var errMoved = errors.New("scheduler: the function has another owner")

func (s *Scheduler) moved(slot ownership.Slot) *wirev1.PullReply {
	to := s.owner(slot)
	return &wirev1.PullReply{Kind: &wirev1.PullReply_Moved{Moved: &wirev1.Moved{Address: to.Addr, Epoch: to.Epoch}}}
}

// hello checks who an instance is and lets it join its function's queue. The
// error is errMoved or one for the agent.
func (s *Scheduler) hello(hello *wirev1.Hello) (*pullStream, error) {
	if hello == nil {
		return nil, status.Error(codes.InvalidArgument, "the first message must be a hello")
	}
	key := keyOf(hello.GetFunctionUid(), invoke.CID(hello.GetCid()))
	f := s.lookup(key.FunctionUID)
	if f == nil {
		if s.term(ownership.SlotOf(key.FunctionUID, 0)) == none {
			return nil, errMoved
		}
		return nil, status.Error(codes.NotFound, "no such function")
	}
	term, served := s.serves(f)
	if !served {
		return nil, errMoved
	}
	instance, err := s.check(f, key, hello.GetToken())
	if err != nil {
		return nil, err
	}
	capacity := int(f.current().Spec.Concurrency)
	p := &pullStream{
		// A ticket for each call it can hold, a welcome, a retirement, an
		// answer, its function's end, and one for each ping that may wait for one.
		line: newLine(s, key, capacity+9), function: f, adopted: instance.Adopted, revision: instance.Revision,
	}
	p.welcome(term.Epoch)
	s.streams.enter(&p.line)
	if err := p.join(instance, capacity); err != nil {
		s.streams.leave(&p.line)
		return nil, err
	}
	f.greeted(key.CID, hello, s.deps.Now())
	s.deps.Log.Info("an instance joined", "function", f.current().Key().String(), "cid", key.CID)
	s.activate(f) // it may be one too many
	return p, nil
}

// check checks an agent's proof. An instance that was just started by the owner
// before may not have been seen when the function was taken over.
func (s *Scheduler) check(f *function, key provisioner.Key, proof string) (provisioner.Instance, error) {
	instance, err := s.deps.Instances.Check(key, proof)
	if err != nil {
		s.deps.Instances.Adopt(f.current())
		instance, err = s.deps.Instances.Check(key, proof)
	}
	switch {
	case errors.Is(err, provisioner.ErrUnknownInstance):
		return instance, status.Error(codes.NotFound, err.Error())
	case errors.Is(err, provisioner.ErrBadToken):
		return instance, status.Error(codes.Unauthenticated, err.Error())
	case err != nil:
		return instance, status.Error(codes.Unavailable, err.Error())
	}
	return instance, nil
}

// join takes the instance's place in the queue. One that was let go while it had
// no stream, or whose function was changed, is told so.
func (p *pullStream) join(instance provisioner.Instance, capacity int) error {
	err := p.function.broker.Join(p.key.CID, capacity, p)
	switch {
	case errors.Is(err, broker.ErrClosed):
		return status.Error(codes.NotFound, "the function is gone")
	case err != nil:
		return status.Error(codes.Unavailable, err.Error())
	}
	if _, served := p.scheduler.serves(p.function); !served {
		p.function.broker.Leave(p.key.CID)
		return errMoved
	}
	// Only now: a stream before this one has noted its end before it left.
	p.scheduler.deps.Instances.Connect(p.key)
	// Whoever changes the function after this line finds the instance.
	fn := p.function.current()
	switch {
	case instance.Revision != p.function.revision():
		p.function.broker.Retire(p.key.CID, reasonChanged)
		p.scheduler.letGo(instance, finishTime(fn))
	case instance.State == provisioner.Leaving:
		p.function.broker.Retire(p.key.CID, "it was let go before")
	}
	return nil
}

func (p *pullStream) handle(msg *wirev1.PullRequest) error {
	switch kind := msg.GetKind().(type) {
	case *wirev1.PullRequest_Pull:
		return p.pull(kind.Pull)
	case *wirev1.PullRequest_Leave:
		return p.requestLeave(time.Duration(kind.Leave.GetIdleNs()))
	case *wirev1.PullRequest_Goodbye:
		p.goodbye(kind.Goodbye)
		return nil
	case *wirev1.PullRequest_Ping:
		p.report(kind.Ping.GetReport())
		p.pong()
		return nil
	}
	return status.Error(codes.InvalidArgument, "the message makes no sense here")
}

func (p *pullStream) pull(pull *wirev1.Pull) error {
	asked := p.scheduler.deps.Now()
	first := !p.pulled && p.firstPull()
	done := p.settle(pull.GetDone())
	if p.leaving {
		return nil
	}
	if err := p.function.broker.Pull(p.key.CID, int(pull.GetCredits()), done...); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	if first {
		p.scheduler.started(p.function, p.key, asked, p.first.Load())
	}
	if len(done) > 0 && p.function.beginsToIdle() {
		p.scheduler.activate(p.function) // which plans what to keep from now on
	}
	return nil
}

// firstPull notes that the instance asks for work on this stream. It tells whether it
// does so for the first time in its life.
func (p *pullStream) firstPull() (first bool) {
	p.pulled = true
	s := p.scheduler
	took, first := s.deps.Instances.Pulled(p.key)
	if first {
		s.learnStart(p.function, took)
		p.function.note(instanceStarted, 1)
		p.function.startedOf(p.revision)
		s.deps.Log.Info("an instance is ready", "function", p.function.current().Key().String(), "cid", p.key.CID, "took", took)
		s.activate(p.function)
	}
	return first
}

// settle learns from attempts that ended, and returns those that the instance is done
// with. A ticket whose gateway it could not reach goes to another one.
func (p *pullStream) settle(ended []*wirev1.Done) []invoke.ID {
	done := make([]invoke.ID, 0, 1)
	for _, d := range ended {
		p.function.observe(time.Duration(d.GetExecNs()))
		id, err := invoke.IDFromBytes(d.GetInvocationId())
		if err != nil {
			continue
		}
		if d.GetUnclaimed() {
			p.function.broker.GiveBack(p.key.CID, id)
		} else {
			done = append(done, id)
		}
	}
	return done
}

func (p *pullStream) requestLeave(idle time.Duration) error {
	if p.leaving {
		return nil
	}
	s := p.scheduler
	policy := leavePolicy(p.function.current(), s.upkeepNow(p.function), idle, s.deps.Now())
	answer, err := p.function.broker.RequestLeave(p.key.CID, idle, policy)
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	p.function.note(pulledInVain, 1)
	if answer.Granted {
		p.leaving = true
		p.scheduler.deps.Instances.Leaving(p.key, leaveGrace)
		if !p.retired.Load() {
			p.function.note(instanceExpired, 1)
		}
	}
	p.reply(&wirev1.PullReply{Kind: &wirev1.PullReply_Leave{Leave: &wirev1.LeaveReply{
		Granted: answer.Granted, AskAgainNs: int64(max(answer.AskAgain, shortestAskAgain)),
	}}})
	return nil
}

// shortestAskAgain keeps instances whose timeouts are next to nothing from
// asking all the time.
const shortestAskAgain = 100 * time.Millisecond

// goodbye takes the instance out of the queue. Calls that it has claimed go on
// until it closes the stream.
func (p *pullStream) goodbye(g *wirev1.Goodbye) {
	p.leaving = true
	instances, within := p.scheduler.deps.Instances, finishTime(p.function.current())
	detail := invoke.Excerpt(g.GetDetail())
	switch g.GetReason() {
	case wirev1.Goodbye_REASON_START_FAILED:
		instances.StartFailed(p.key, v1alpha1.ReasonStartFailed, detail)
	case wirev1.Goodbye_REASON_START_TIMED_OUT:
		instances.StartFailed(p.key, v1alpha1.ReasonStartTimeout, detail)
	case wirev1.Goodbye_REASON_FUNCTION_ENDED:
		instances.Broken(p.key, v1alpha1.ReasonFunctionExited, detail, within)
	case wirev1.Goodbye_REASON_CALL_BROKEN:
		instances.Broken(p.key, v1alpha1.ReasonCallBroken, detail, within)
	default:
		instances.Leaving(p.key, within)
	}
	p.depart(g.GetReason() != wirev1.Goodbye_REASON_DONE)
}

// depart leaves the queue. An instance that held calls was needed, and is
// replaced if it went neither by choice nor because it was told to.
func (p *pullStream) depart(involuntary bool) {
	if held := p.function.broker.Leave(p.key.CID); held > 0 && involuntary && !p.retired.Load() {
		p.function.loseOne()
	}
	p.scheduler.activate(p.function)
}

// end settles the end of the stream. An instance that was to go and has ended the
// stream has nothing more to do. If only the connection broke, it may still run
// calls, and has until its time to leave is over.
func (p *pullStream) end(orderly bool) {
	if !p.leaving {
		p.scheduler.deps.Instances.Disconnect(p.key)
		p.depart(true)
	}
	if orderly && (p.leaving || p.retired.Load()) {
		p.scheduler.deps.Instances.Stop(p.key)
	}
	if !p.scheduler.deps.Instances.Has(p.key) {
		p.function.ended(p.key.CID)
	}
}

// Deliver implements broker.Sink.
func (p *pullStream) Deliver(t invoke.Ticket) {
	if p.first.Load() == nil {
		id := t.ID // a copy, so that only this one is kept
		p.first.Store(&id)
	}
	p.reply(&wirev1.PullReply{Kind: &wirev1.PullReply_Ticket{Ticket: &wirev1.Ticket{
		InvocationId: t.ID[:],
		Gateway:      t.Gateway,
		Token:        t.Token[:],
		RemainingNs:  int64(t.Deadline.Sub(p.scheduler.deps.Now())),
		Request:      requestOf(&t),
	}}})
}

// Dismiss implements broker.Sink.
func (p *pullStream) Dismiss() { p.reply(p.scheduler.moved(p.function.slot)) }

// Retire implements broker.Sink.
func (p *pullStream) Retire(reason string) {
	p.retired.Store(true)
	p.reply(&wirev1.PullReply{Kind: &wirev1.PullReply_Retire{Retire: &wirev1.Retire{Reason: reason}}})
}
