package nodeagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

const (
	// Bounds on what agents say of their calls.
	maxWaited  = time.Minute
	maxRunning = 24 * time.Hour
	// An agent may send one message each messageEvery, and messageBurst more at a time. It is not read
	// for as long as it sends more. Instances of concurrency 1 have few calls in so short a time, and
	// each is one message.
	messageEvery = 500 * time.Microsecond
	messageBurst = 200
)

// computeStream is the server's end of an agent's stream.
type computeStream = nodewire.Node_ComputeServer

// Compute implements nodewire.NodeServer.
func (a *Agent) Compute(server computeStream) error {
	end, ok := grpc.ServerTransportStreamFromContext(server.Context()).(ender)
	if !ok {
		return errEndless
	}
	if !a.enter() {
		return errTooMany
	}
	defer a.exit()
	s, err := a.hello(server, end)
	if err != nil {
		return err
	}
	s.startSending()
	err = a.receive(s)
	a.mu.Lock()
	defer a.mu.Unlock()
	if failed := a.leaveLocked(s); failed != nil {
		a.deps.Log.Warn("an instance's group cannot be closed", "err", failed, "instance", s.name)
	}
	if s.why != nil {
		level := slog.LevelInfo
		if errors.Is(s.why, errReplaced) { // a pod may open streams as often as it likes
			level = slog.LevelDebug
		}
		a.deps.Log.Log(server.Context(), level, "the stream of an agent is given up", "err", s.why, "instance", s.name)
		return s.why
	}
	return err
}

// enter counts a stream, unless there are too many.
func (a *Agent) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.open >= a.config.MaxAgents {
		return false
	}
	a.state.open++
	return true
}

func (a *Agent) exit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.open--
}

// hello lets an instance join that says and proves who it is.
func (a *Agent) hello(server computeStream, end ender) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(server.Context(), a.config.HelloWithin, errLate)
	defer cancel()
	said, err := firstOf(ctx, server, end)
	if err != nil {
		return nil, err
	}
	agreed, ok := wire.NodeProtocols.Meet(wire.Heard(said))
	if !ok {
		return nil, status.Error(codes.FailedPrecondition, "the agent and the node agent have no protocol in common")
	}
	instance, err := a.deps.Instances.Identify(ctx, Hello{
		Token: said.GetToken(), Namespace: said.GetNamespace(), Function: said.GetFunction(), Name: said.GetInstance(),
		Concurrency: said.GetConcurrency(), Cgroup: said.GetCgroup(),
	}, addressOf(server.Context()))
	switch _, has := status.FromError(err); {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && !has:
		return nil, status.Error(codes.Unauthenticated, err.Error())
	case err != nil:
		return nil, err
	case instance.Group == nil:
		return nil, status.Error(codes.Internal, "the instance has no group")
	}
	s := newSession(instance)
	s.server, s.end = server, end
	s.class = classOf(said.GetClass(), instance.Namespace, a.config.LatencyCritical)
	s.ownSlice = clamp(said.GetSliceNs(), maxRunning)
	return a.join(s, agreed)
}

// firstOf returns the hello that a stream begins with. The stream ends with ctx.
func firstOf(ctx context.Context, server computeStream, end ender) (*nodewire.Hello, error) {
	defer context.AfterFunc(ctx, func() { end.End(context.Cause(ctx)) })()
	msg, err := server.Recv()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case msg.GetHello() == nil:
		return nil, errNoHello
	}
	return msg.GetHello(), nil
}

func addressOf(ctx context.Context) net.Addr {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr
	}
	return nil
}

// join welcomes an instance and tells it the mode.
func (a *Agent) join(s *session, agreed wire.Agreed) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.reply(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Welcome{Welcome: &nodewire.Welcome{
		Protocol: agreed.Protocol, Features: agreed.Features, Release: buildinfo.Version, StillEveryNs: int64(a.config.StillEvery),
	}}})
	if err := a.joinLocked(s); err != nil {
		_ = s.group.Close()
		return nil, err
	}
	s.setMode(a.state.mode.busy, a.state.mode.busy)
	a.deps.Log.Debug("an instance joined", "instance", s.name, "function", s.function.name, "class", s.class)
	return s, nil
}

// receive takes in an agent's messages until they end.
func (a *Agent) receive(s *session) error {
	pace := sleep.Pace{Every: messageEvery, Burst: messageBurst}
	for {
		msg, err := s.server.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.replies.Hold() {
			a.onMessage(s, msg)
			s.replies.Release() // a grant, mostly
		} else {
			a.onMessage(s, msg)
		}
		if pause := pace.Next(a.now()); pause > 0 && !sleep.For(s.server.Context(), pause) {
			return nil
		}
	}
}

func (a *Agent) onMessage(s *session, msg *nodewire.ComputeRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.sessions[s.id] != s {
		return // its stream is about to end
	}
	now := a.now()
	switch m := msg.GetKind().(type) {
	case *nodewire.ComputeRequest_Running:
		s.look(now)
		a.applyEvent(now, callorder.Running{Instance: s.id, For: clamp(m.Running.GetForNs(), maxRunning), Usage: s.usage})
	case *nodewire.ComputeRequest_Ask:
		s.look(now)
		a.metrics.asks.Inc()
		ended := a.endCall(now, s, false)
		s.call = askedCall{ask: m.Ask.GetAsk(), waits: s.class == callorder.Standard, asked: now}
		a.applyEvent(now, callorder.Asked{Instance: s.id, Ask: m.Ask.GetAsk(), Waited: clamp(m.Ask.GetWaitedNs(), maxWaited), Usage: s.usage})
		a.exempt(now, s, ended)
		s.sign = now
		a.state.remindBy(now + a.config.StillEvery)
	case *nodewire.ComputeRequest_Ended:
		s.look(now)
		ended := a.endCall(now, s, m.Ended.GetRefused())
		a.applyEvent(now, callorder.Ended{Instance: s.id, Usage: s.usage, Refused: m.Ended.GetRefused()})
		a.exempt(now, s, ended)
	case *nodewire.ComputeRequest_GaveUp:
		s.look(now)
		if s.call.ask == m.GaveUp.GetAsk() {
			a.endCall(now, s, true)
		}
		a.applyEvent(now, callorder.GaveUp{Instance: s.id, Ask: m.GaveUp.GetAsk(), Usage: s.usage})
	}
	a.lookIfDue(now)
}

// endCall counts the call that had a ticket, and reports whether there was one. One that was refused
// is none. If the call still waited, its wait counts: those that wait the longest are given up, or begin without a ticket.
func (a *Agent) endCall(now time.Duration, s *session, refused bool) (ended bool) {
	if s.call.waits {
		a.metrics.wait.Observe((now - s.call.asked).Seconds())
	}
	ended = s.call.granted && !refused
	if ended {
		a.metrics.countCall(s, now-s.call.since, s.usage-s.call.from, s.call.expected)
	}
	s.call = askedCall{}
	return ended
}

// exempt lets an instance stop asking after a call if its function's calls are very short. That
// lasts until the node is busy again or the instance has used the time that the core allows it, so a
// function that has become longer is noticed.
func (a *Agent) exempt(now time.Duration, s *session, ended bool) {
	if !ended {
		return
	}
	mean, known := a.state.core.Mean(s.function.namespace, s.function.name)
	if known && mean < a.config.ExemptBelow && a.state.core.MayBeExempt(now, s.id) {
		s.setMode(a.state.mode.busy, false)
		a.applyEvent(now, callorder.Exempted{Instance: s.id})
	}
}

// clamp bounds a duration that an agent has sent.
func clamp(ns int64, most time.Duration) time.Duration {
	return min(max(0, time.Duration(ns)), most)
}
