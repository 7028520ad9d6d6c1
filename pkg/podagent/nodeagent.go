package podagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/windlass-dev/windlass/api/wire"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// Pauses between two tries to reach the node agent. Nothing waits for it, and most nodes that
// have none will not get one.
const (
	firstNodePause = time.Second
	lastNodePause  = 30 * time.Second
)

type computeStream = grpc.BidiStreamingClient[nodewire.ComputeRequest, nodewire.ComputeReply]

// nodeAgent is the connection to the node agent. The agent's lock guards it.
type nodeAgent struct {
	// stream is nil while there is none.
	stream computeStream
}

// say sends a message, if the node agent is there. Messages are few and small, and to one that gives no sign
// hardly any, so that the stream's buffer takes them without blocking while the agent's lock is held.
func (n *nodeAgent) say(m *nodewire.ComputeRequest) {
	if n.stream != nil {
		// An error ends the stream, which its reader sees.
		_ = n.stream.Send(m)
	}
}

// carryOutAtNode is carryOut for the effects about the node agent.
func (a *Agent) carryOutAtNode(e core.NodeEffect) {
	switch e := e.(type) {
	case core.AskCore:
		ask := &nodewire.Ask{Ask: uint64(e.Attempt)}
		if at := a.attempts[e.Attempt]; at != nil { // it came by a loan
			ask.WaitedNs = int64(at.waitedForCore())
		}
		a.nodeAgent.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: ask}})
	case core.GiveUpCore:
		a.nodeAgent.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_GaveUp{GaveUp: &nodewire.GaveUp{Ask: uint64(e.Attempt)}}})
	case core.ReportRunning:
		a.nodeAgent.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Running{Running: &nodewire.Running{
			ForNs: int64(time.Since(a.attempts[e.Attempt].since)),
		}}})
	case core.EndCore:
		a.nodeAgent.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ended{Ended: &nodewire.Ended{Refused: e.Refused}}})
	default:
		notCarriedOut(e)
	}
}

// keepNodeStream keeps a stream to the node agent until ctx ends, once the instance belongs to a
// function.
func (a *Agent) keepNodeStream(ctx context.Context) {
	select {
	case <-a.named:
	case <-ctx.Done():
		return
	}
	pauses := backoff.Backoff{First: firstNodePause, Last: lastNodePause}
	for {
		welcomed, err := a.runNodeStream(ctx)
		if ctx.Err() != nil {
			return
		}
		if welcomed {
			pauses.Reset()
			a.deps.Log.Warn("the node agent is lost; calls begin without it", "addr", a.config.Node, "err", err)
		} else {
			a.deps.Log.Debug("no node agent", "addr", a.config.Node, "err", err)
		}
		if !sleep.For(ctx, backoff.Jitter(pauses.Next())) {
			return
		}
	}
}

// runNodeStream serves one stream until it ends. Whether the node agent said welcome is the
// first result.
func (a *Agent) runNodeStream(ctx context.Context) (welcomed bool, err error) {
	connection, err := a.dialNode(a.config.Node)
	if err != nil {
		return false, err
	}
	defer func() { _ = connection.Close() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// A stream that is refused must fail, and not be opened again inside Send.
	stream, err := nodewire.NewNodeClient(connection).Compute(ctx, grpc.MaxRetryRPCBufferSize(0))
	if err != nil {
		return false, err
	}
	if err := a.greetNode(stream); err != nil {
		return false, err
	}
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.nodeAgent.stream = nil
		a.step(core.NodeLost{}, nil)
	}()
	for {
		reply, err := stream.Recv()
		if err != nil {
			return true, err
		}
		a.hearNode(reply)
	}
}

// greetNode says hello and waits for the welcome.
func (a *Agent) greetNode(stream computeStream) error {
	token, err := nodeToken(a.config)
	if err != nil {
		return err
	}
	a.mu.Lock()
	who := a.identity
	a.mu.Unlock()
	namespace, function, _ := strings.Cut(who.function, "/")
	speech := wire.NodeProtocols
	hello := &nodewire.Hello{
		Token: token, Namespace: namespace, Function: function, Instance: who.cid,
		ProtocolMin: speech.Min, ProtocolMax: speech.Max, Features: speech.Features, Release: buildinfo.Version,
		Class: who.class, SliceNs: int64(who.slice), Concurrency: uint32(who.concurrency), Cgroup: ownGroup("/"),
	}
	if err := stream.Send(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Hello{Hello: hello}}); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	welcome := first.GetWelcome()
	if welcome == nil {
		return errors.New("podagent: the node agent did not begin with a welcome")
	}
	if _, ok := speech.Accept(welcome); !ok {
		return fmt.Errorf("%w: it is of release %q and speaks protocol %d", errUnsupported, welcome.GetRelease(), welcome.GetProtocol())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodeAgent.stream = stream
	a.step(core.NodeWelcome{StillEvery: time.Duration(welcome.GetStillEveryNs())}, nil)
	return nil
}

// hearNode passes a message of the node agent to the core. What this release does not know means
// nothing to it.
func (a *Agent) hearNode(reply *nodewire.ComputeReply) {
	var e core.Event
	switch kind := reply.GetKind().(type) {
	case *nodewire.ComputeReply_Mode:
		ask := kind.Mode.GetAsk() // an older node agent says no more
		e = core.NodeMode{Busy: ask || kind.Mode.GetBusy(), Ask: ask}
	case *nodewire.ComputeReply_Grant:
		e = core.NodeGranted{Attempt: core.Attempt(kind.Grant.GetAsk())}
	case *nodewire.ComputeReply_Still:
		e = core.NodeStill{}
	case *nodewire.ComputeReply_Low:
		e = core.NodeLow{Low: kind.Low.GetLow()}
	default:
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(e, nil)
}
