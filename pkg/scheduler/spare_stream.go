package scheduler

import (
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

var errNotAssigned = status.Error(codes.Aborted, "the instance cannot become a function's")

// spareStream is the stream of one spare instance. It is in no queue and gets no ticket: its
// assignment is the only message for it.
type spareStream struct {
	agentStream
	pools    *warmPools
	revision string
	node     string
}

// pullSpare serves a spare instance until it is assigned to a function.
func (s *sessions) pullSpare(server pullServer, end ender, hello *agentwire.Hello) error {
	in, err := s.shell.deps.Instances.Recognize(hello.GetToken())
	switch {
	case errors.Is(err, provisioner.ErrBadToken):
		return status.Error(codes.Unauthenticated, err.Error())
	case err != nil:
		// It may not have been seen yet.
		return status.Error(codes.Unavailable, err.Error())
	}
	of, kept := s.shell.negotiate(hello)
	if kept == core.AgentUnsupported {
		if in.State != provisioner.Leaving { // otherwise an earlier stream of it was counted
			s.shell.metrics.agentReplaced("Unsupported")
		}
		s.shell.deps.Instances.End(in.Key, provisioner.Ending{Within: leaveGrace})
		return server.Send(drainReply(core.Drain{Reason: string(core.BecauseUnsupported), Unsupported: true}))
	}
	p := &spareStream{pools: s.pools, revision: in.Revision, node: in.Node}
	p.prepare(s.shell, in.Key, of, end, 8)
	p.welcome(0)
	s.shell.streams.register(&p.agentStream)
	if err := s.welcomeSpare(p, in); err != nil {
		s.shell.streams.unregister(&p.agentStream)
		return err
	}
	p.startSending(server)
	return p.serveMessages(p.onMessage, p.onEnd)
}

// welcomeSpare makes a spare instance available. If it was already assigned, and missed that
// because its stream broke, it gets its assignment again.
func (s *sessions) welcomeSpare(p *spareStream, in provisioner.Instance) error {
	if pool, ofPool := warmpool.PoolOf(in.FunctionUID); ofPool {
		s.shell.deps.Instances.Connect(p.key)
		if took, first := s.shell.deps.Instances.Pulled(p.key); first && took > 0 {
			s.shell.starts.observe(pool.Runtime, took)
		}
		s.pools.spares.addReady(p)
		return nil
	}
	u := s.shell.lookup(in.FunctionUID)
	if u == nil || in.State != provisioner.Creating {
		return errNotAssigned
	}
	fn := u.fn()
	rt, known := s.shell.deps.Runtimes.Get(string(fn.Spec.Template.RuntimeRef.Name))
	if !known || warmpool.Fits(fn, rt) != "" {
		return errNotAssigned
	}
	p.assign(assignment(fn, rt, in.CID))
	return nil
}

func (p *spareStream) onMessage(msg *agentwire.PullRequest) error {
	switch msg.GetKind().(type) {
	case *agentwire.PullRequest_Ping:
		p.pong()
		return nil
	case *agentwire.PullRequest_Goodbye:
		p.pools.spares.withhold(p.key)
		p.shell.deps.Instances.End(p.key, provisioner.Ending{Within: leaveGrace})
		p.pools.spares.markUnsettled(p.key.FunctionUID)
		return nil
	case nil:
		return nil // it means nothing to this release
	}
	return status.Error(codes.InvalidArgument, "the message makes no sense for a spare instance")
}

// onEnd handles the end of the stream. An assigned instance is no longer spare, and the
// inventory does not list it as one.
func (p *spareStream) onEnd(bool) {
	p.pools.spares.removeStream(p)
	p.shell.deps.Instances.Disconnect(p.key)
}

func (p *spareStream) assign(a *agentwire.Assignment) {
	p.reply(&agentwire.PullReply{Kind: &agentwire.PullReply_Assignment{Assignment: a}})
}

// addReady makes a spare instance available.
func (s *spares) addReady(p *spareStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.byUID[p.key.FunctionUID]; of != nil && !s.closed {
		of.ready[p.key.CID] = p
	}
}

// putBack undoes pick, unless the stream has ended meanwhile.
func (s *spares) putBack(p *spareStream) {
	select {
	case <-p.ended:
	default:
		s.addReady(p)
	}
}

// pick returns the oldest spare instance of a pool on a calm node or, without one, the oldest, or nil. No
// other function gets it.
func (s *spares) pick(uid string, busy func(node string) bool) *spareStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.byUID[uid]
	if of == nil {
		return nil
	}
	cids := of.assignable()
	if len(cids) == 0 {
		return nil
	}
	i := max(0, slices.IndexFunc(cids, func(cid invocation.CID) bool { return !busy(of.ready[cid].node) }))
	p := of.ready[cids[i]]
	delete(of.ready, cids[i])
	return p
}

// onCalmNode reports whether one that could be picked is on a calm node.
func (s *spares) onCalmNode(uid string, busy func(node string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.byUID[uid]
	return of != nil && slices.ContainsFunc(of.assignable(), func(cid invocation.CID) bool { return !busy(of.ready[cid].node) })
}

// available is how many could be picked.
func (s *spares) available(uid string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.byUID[uid]; of != nil {
		return len(of.assignable())
	}
	return 0
}

// assignable are the spare instances of the pool's revision, the oldest first.
func (p *warmPool) assignable() []invocation.CID {
	var cids []invocation.CID
	for cid, stream := range p.ready {
		if stream.revision == p.rev {
			cids = append(cids, cid)
		}
	}
	slices.Sort(cids)
	return cids
}

// withhold makes a spare instance unavailable.
func (s *spares) withhold(key provisioner.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.byUID[key.FunctionUID]; of != nil {
		delete(of.ready, key.CID)
	}
}

// removeStream is withhold, unless the instance has another stream already.
func (s *spares) removeStream(p *spareStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.byUID[p.key.FunctionUID]; of != nil && of.ready[p.key.CID] == p {
		delete(of.ready, p.key.CID)
	}
}

// functions are the functions that stand for the pools.
func (s *spares) functions() []*v1alpha1.Function {
	s.mu.Lock()
	defer s.mu.Unlock()
	functions := make([]*v1alpha1.Function, 0, len(s.byUID))
	for _, p := range s.byUID {
		functions = append(functions, p.fn)
	}
	return functions
}

// uids are the UIDs of all pools.
func (s *spares) uids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]string, 0, len(s.byUID))
	for uid := range s.byUID {
		list = append(list, uid)
	}
	return list
}
