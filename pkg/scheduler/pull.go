package scheduler

import (
	"cmp"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

type pullServer = grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]

// pullStream is the stream of pulls of one instance.
type pullStream struct {
	agentStream
	unit    *unit
	pulled  bool // has asked for work
	leaving bool // said goodbye, or may leave
	// node is where it runs, and nodeBusy what its agent says of it.
	node     string
	nodeBusy bool
	// event is reused for its pulls, done for the call that it has finished, and loans for
	// its loans to a few gateways.
	event core.Pulled
	done  [1]core.Done
	loans [4]queue.Loan

	// first is the call of the first ticket that was delivered, under the function's lock.
	first *invocation.ID
}

// sessions serves the streams of instances.
type sessions struct {
	shell *shell
	pools *warmPools
}

// Pull serves one instance's pulls.
func (s *sessions) Pull(server pullServer) error {
	end, ok := grpc.ServerTransportStreamFromContext(server.Context()).(ender)
	if !ok {
		return status.Error(codes.Internal, "the server cannot end its streams")
	}
	first, err := server.Recv()
	if err != nil {
		return err
	}
	if first.GetHello().GetSpare() {
		return s.pullSpare(server, end, first.GetHello())
	}
	p, err := s.hello(end, first.GetHello())
	if errors.Is(err, errMoved) {
		return server.Send(s.shell.movedReply(ownership.SlotOf(first.GetHello().GetFunctionUid(), 0)))
	}
	if err != nil {
		return err
	}
	p.startSending(server)
	return p.serveMessages(p.onMessage, p.onEnd)
}

// errMoved says that the function has another owner.
var errMoved = errors.New("scheduler: the function has another owner")

func (s *shell) movedReply(slot ownership.Slot) *agentwire.PullReply {
	to := s.slots.owner(slot)
	return &agentwire.PullReply{Kind: &agentwire.PullReply_Moved{Moved: &agentwire.Moved{Address: to.Addr, Epoch: to.Epoch}}}
}

// hello authenticates an instance and lets it join its function's queue. The error is errMoved
// or one for the agent.
func (s *sessions) hello(end ender, hello *agentwire.Hello) (*pullStream, error) {
	if hello == nil {
		return nil, status.Error(codes.InvalidArgument, "the first message must be a hello")
	}
	key := keyOf(hello.GetFunctionUid(), invocation.CID(hello.GetCid()))
	u := s.shell.lookup(key.FunctionUID)
	if u == nil {
		return nil, s.unknownUnitError(key.FunctionUID)
	}
	term, served := s.shell.syncOwnership(u)
	if !served {
		return nil, errMoved
	}
	instance, err := s.checkProof(u, key, hello.GetToken())
	if err != nil {
		return nil, err
	}
	capacity := int(u.fn().Spec.Template.Concurrency)
	of, kept := s.shell.negotiate(hello)
	p := &pullStream{unit: u, node: instance.Node}
	// A ticket or a recall for each call it can hold, in each second, a welcome, a drain, an answer,
	// its function's end, and one for each ping that may wait for one.
	p.prepare(s.shell, key, of, end, 2*capacity+9)
	if kept != core.AgentUnsupported {
		p.welcome(term.Epoch)
	}
	s.shell.streams.register(&p.agentStream)
	if err := p.join(instance, capacity, kept); err != nil {
		s.shell.streams.unregister(&p.agentStream)
		return nil, err
	}
	u.recordHello(key.CID, hello, s.shell.deps.Now())
	s.shell.deps.Log.Info("an instance joined", "function", u.fn().Key().String(), "cid", key.CID)
	return p, nil
}

// unknownUnitError refuses the hello of an instance of a unit that this scheduler does not have. Only if the
// unit was removed may the instance leave: the catalog may lag behind that of the scheduler that created it.
func (s *sessions) unknownUnitError(uid string) error {
	switch {
	case s.shell.slots.term(ownership.SlotOf(uid, 0)) == notServed:
		return errMoved
	case s.shell.units.wasRemoved(uid):
		return status.Error(codes.NotFound, "the function is gone")
	}
	return status.Error(codes.Unavailable, "no such function here yet")
}

// checkProof verifies an agent's proof. At a takeover, the scheduler may not yet have seen an
// instance that the previous owner launched just before.
func (s *sessions) checkProof(u *unit, key provisioner.Key, proof string) (provisioner.Instance, error) {
	instance, err := s.shell.deps.Instances.Check(key, proof)
	if err != nil {
		s.shell.deps.Instances.Adopt(u.fn())
		instance, err = s.shell.deps.Instances.Check(key, proof)
		s.shell.releaseIfUnserved(u)
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

// join lets the instance join the queue. An instance that was drained while it had no stream,
// or whose agent is unsupported, is asked to leave.
func (p *pullStream) join(instance provisioner.Instance, capacity int, kept core.Agent) error {
	s, u := p.shell, p.unit
	term := s.slots.term(u.slot)
	u.mu.Lock()
	defer u.mu.Unlock()
	s.syncOwnershipLocked(u, term) // the slot may have gone meanwhile
	before := u.streams[p.key.CID]
	u.streams.replace(p.key.CID, p)
	effects := s.stepLocked(u, core.Joined{
		CID: p.key.CID, Capacity: capacity, Draining: instance.State == provisioner.Leaving, Agent: kept,
	})
	if refused, is := core.AnswerOf[core.JoinRefused](effects); is {
		u.streams.replace(p.key.CID, before)
		return joinError(refused.Why)
	}
	if _, let := core.AnswerOf[core.Terminate](effects); let {
		s.terminate(instance, drainTime(u.unitSpec.fn))
	}
	return nil
}

// joinError is why an instance could not join, for its agent.
func joinError(why error) error {
	switch {
	case errors.Is(why, core.ErrUnserved):
		return errMoved
	case errors.Is(why, core.ErrClosed):
		return status.Error(codes.NotFound, "the function is gone")
	}
	return status.Error(codes.Unavailable, why.Error())
}

func (p *pullStream) onMessage(msg *agentwire.PullRequest) error {
	switch kind := msg.GetKind().(type) {
	case *agentwire.PullRequest_Pull:
		return p.pull(kind.Pull)
	case *agentwire.PullRequest_Leave:
		return p.requestLeave(time.Duration(kind.Leave.GetIdleNs()))
	case *agentwire.PullRequest_Goodbye:
		p.goodbye(kind.Goodbye)
		return nil
	case *agentwire.PullRequest_Ping:
		p.recordReport(kind.Ping.GetReport())
		p.pong()
		return nil
	case *agentwire.PullRequest_Hello:
		return status.Error(codes.InvalidArgument, "a stream has one hello")
	}
	return nil // it means nothing to this release
}

func (p *pullStream) pull(pull *agentwire.Pull) error {
	s, u := p.shell, p.unit
	asked := s.deps.Now()
	first := !p.pulled && p.firstPull()
	p.hearOfNode(pull.GetNodeBusy())
	p.event = core.Pulled{
		CID: p.key.CID, Wants: !p.leaving, Credits: int(pull.GetCredits()), Done: doneOf(p.done[:0], pull.GetDone()),
		Loans: loansOf(p.loans[:0], pull.GetLoans()), Idle: clampAge(pull.GetIdleNs()),
		NodeBusy: pull.GetNodeBusy(), AwaitsCore: pull.GetCoreWait() != nil || pull.GetLow(),
	}
	if w := pull.GetCoreWait(); w != nil && !w.GetByLoan() {
		p.event.Awaits, _ = invocation.IDFromBytes(w.GetInvocationId())
	}
	refused, is := s.pulled(u, &p.event)
	if w := pull.GetCoreWait(); w != nil && !is {
		u.recordCoreWait(decisionlog.CoreWait{At: asked, Instance: string(p.key.CID), Node: p.node, Waited: clampAge(w.GetWaitedNs()).Seconds()})
	}
	p.event.Done, p.event.Loans = nil, nil // they may be as long as an agent likes
	if is {
		return status.Error(codes.FailedPrecondition, refused.Why.Error())
	}
	if first && !p.leaving {
		s.finishStart(p, asked)
	}
	return nil
}

func (u *unit) recordCoreWait(w decisionlog.CoreWait) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stats.coreWait = &w
}

// hearOfNode notes what the agent says of its node.
func (p *pullStream) hearOfNode(busy bool) {
	if busy != p.nodeBusy {
		p.nodeBusy = busy
		p.shell.busyNodes.hear(p.node, busy)
	}
}

// pulled passes a pull to the function's core, and counts the executions that it reports.
func (s *shell) pulled(u *unit, e *core.Pulled) (refused core.PullRefused, is bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, d := range e.Done { // their agent is not trusted
		u.stats.observeExecutions(min(d.Execution, u.specLocked().fn.Spec.Template.Timeout.Duration), 1)
	}
	return core.AnswerOf[core.PullRefused](s.stepLocked(u, e))
}

const reasonStopped = "it was stopped before it was ready"

// firstPull records that the instance asks for work on this stream, and reports whether it
// never did before. One that was stopped meanwhile gets no call, which it had no time to finish.
func (p *pullStream) firstPull() (first bool) {
	p.pulled = true
	s, u := p.shell, p.unit
	took, first := s.deps.Instances.Pulled(p.key)
	in, _ := s.deps.Instances.Lookup(p.key)
	if in.Stopping() {
		s.step(u, core.DrainRequested{CID: p.key.CID, Reason: cmp.Or(in.Cause, reasonStopped)})
	}
	if !first {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	s.starts.observe(kindOf(u.unitSpec.fn), min(took, u.unitSpec.fn.Spec.Template.StartupTimeout.Duration))
	s.stepLocked(u, core.Started{Took: took})
	u.stats.started = true
	if in.Adopted && in.Ran {
		return true // it started when another scheduler served the function, which counted it
	}
	u.stats.counters[instanceStarted]++
	s.deps.Log.Info("an instance is ready", "function", u.unitSpec.fn.Key().String(), "cid", p.key.CID, "took", took)
	return true
}

// doneOf appends finished attempts.
func doneOf(done []core.Done, ended []*agentwire.Done) []core.Done {
	for _, d := range ended {
		// A call without a valid id still reports its execution time.
		id, _ := invocation.IDFromBytes(d.GetInvocationId())
		done = append(done, core.Done{ID: id, Execution: time.Duration(d.GetExecNs()), CoreWait: time.Duration(d.GetCoreWaitNs()), Unclaimed: d.GetUnclaimed()})
	}
	return done
}

// loansOf appends loans.
func loansOf(loans []queue.Loan, lent []*agentwire.Loan) []queue.Loan {
	for _, l := range lent {
		loans = append(loans, queue.Loan{Gateway: l.GetGateway(), Calls: int(l.GetCalls())})
	}
	return loans
}

func (p *pullStream) requestLeave(idle time.Duration) error {
	if p.leaving {
		return nil
	}
	answer := p.decideLeave(idle)
	if answer.Err != nil {
		return status.Error(codes.FailedPrecondition, answer.Err.Error())
	}
	if answer.Granted {
		p.leaving = true
		p.shell.deps.Instances.End(p.key, provisioner.Ending{Within: leaveGrace})
	}
	r := &leaveReply{}
	r.leave.Granted, r.leave.AskAgainNs = answer.Granted, int64(max(answer.RetryAfter, minLeaveRetry))
	r.kind.Leave = &r.leave
	r.reply.Kind = &r.kind
	p.reply(&r.reply)
	return nil
}

// leaveReply is like ticketReply, for a request to leave.
type leaveReply struct {
	leave agentwire.LeaveReply
	kind  agentwire.PullReply_Leave
	reply agentwire.PullReply
}

// decideLeave asks the function whether the instance may leave, and applies the answer.
func (p *pullStream) decideLeave(idle time.Duration) core.LeaveAnswered {
	s, u := p.shell, p.unit
	u.mu.Lock()
	defer u.mu.Unlock()
	answer, _ := core.AnswerOf[core.LeaveAnswered](s.stepLocked(u, core.LeaveRequested{
		CID: p.key.CID, Idle: idle, KindStart: s.kindStart(u),
	}))
	if answer.Err != nil {
		return answer
	}
	u.stats.counters[leaveRequested]++
	if answer.Granted {
		u.streams.replace(p.key.CID, nil)
		if !answer.Drained {
			u.stats.counters[instanceExpired]++
		}
	}
	return answer
}

// minLeaveRetry keeps instances with tiny timeouts from asking all the time.
const minLeaveRetry = 100 * time.Millisecond

// goodbye removes the instance from the queue. Its claimed calls continue until it closes the
// stream. Of its node it says nothing more.
func (p *pullStream) goodbye(g *agentwire.Goodbye) {
	p.leaving = true
	p.hearOfNode(false)
	ending := provisioner.Ending{Within: drainTime(p.unit.fn())}
	switch g.GetReason() {
	case agentwire.Goodbye_REASON_START_FAILED:
		ending = provisioner.Ending{Code: v1alpha1.ReasonStartFailed, Finished: true}
	case agentwire.Goodbye_REASON_START_TIMED_OUT:
		ending = provisioner.Ending{Code: v1alpha1.ReasonStartTimeout, Finished: true}
	case agentwire.Goodbye_REASON_FUNCTION_ENDED:
		ending.Code = v1alpha1.ReasonFunctionExited
	case agentwire.Goodbye_REASON_CALL_BROKEN:
		ending.Code = v1alpha1.ReasonCallBroken
	case agentwire.Goodbye_REASON_UNSUPPORTED:
		p.shell.metrics.agentReplaced("Unsupported")
	}
	if ending.Code != "" {
		ending.Reason = invocation.Excerpt(g.GetDetail())
	}
	p.shell.deps.Instances.End(p.key, ending)
	p.leaveQueue(g.GetReason() != agentwire.Goodbye_REASON_DONE)
}

// leaveQueue leaves the queue, and reports whether the instance had been asked to leave.
func (p *pullStream) leaveQueue(involuntary bool) (retired bool) {
	u := p.unit
	u.mu.Lock()
	defer u.mu.Unlock()
	retired = u.core.Draining(p.key.CID)
	p.shell.stepLocked(u, core.Left{CID: p.key.CID, Involuntary: involuntary})
	if u.streams[p.key.CID] == p {
		u.streams.replace(p.key.CID, nil)
	}
	return retired
}

// onEnd handles the end of the stream. An instance that was asked to leave and has ended the
// stream has finished. If only the connection broke, it may still run calls, until its time to
// leave is over.
func (p *pullStream) onEnd(orderly bool) {
	toGo := p.leaving
	p.hearOfNode(false)
	if !p.leaving {
		p.shell.deps.Instances.Disconnect(p.key)
		toGo = p.leaveQueue(true)
	}
	if orderly && toGo {
		p.shell.deps.Instances.End(p.key, provisioner.Ending{Finished: true})
	}
	if _, there := p.shell.deps.Instances.Lookup(p.key); !there {
		p.unit.dropInstance(p.key.CID)
	}
}

// deliver sends a ticket to the instance. Like recall, redirect and drain it runs under the
// function's lock and only fills a buffer.
func (p *pullStream) deliver(h *core.HandOut, now time.Time) {
	t := &h.Ticket
	if p.first == nil {
		id := t.ID // a copy, so that only this one is kept
		p.first = &id
	}
	r := &ticketReply{id: t.ID, token: t.Token}
	r.ticket.InvocationId, r.ticket.Token = r.id[:], r.token[:]
	r.ticket.Gateway = t.Gateway
	r.ticket.RemainingNs = int64(t.Deadline.Sub(now))
	r.ticket.Lent = h.Lent
	r.kind.Ticket = &r.ticket
	r.reply.Kind = &r.kind
	p.reply(&r.reply)
}

// ticketReply is a reply with everything that it points to, in one allocation: each call has
// one.
type ticketReply struct {
	id     invocation.ID
	token  invocation.Token
	ticket agentwire.Ticket
	kind   agentwire.PullReply_Ticket
	reply  agentwire.PullReply
}

// recall takes places back that the instance has lent to a gateway.
func (p *pullStream) recall(e core.Recall) {
	p.reply(&agentwire.PullReply{Kind: &agentwire.PullReply_Recall{Recall: &agentwire.Recall{
		Gateway: e.Gateway, Calls: uint32(e.Calls), TermNs: int64(e.Term),
	}}})
}

// redirect sends the instance to the function's owner.
func (p *pullStream) redirect() { p.reply(p.shell.movedReply(p.unit.slot)) }

// drain asks the instance to finish its calls and leave.
func (p *pullStream) drain(e core.Drain) { p.reply(drainReply(e)) }
