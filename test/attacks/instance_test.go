package attacks

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

type pullStream = grpc.BidiStreamingClient[agentwire.PullRequest, agentwire.PullReply]

// work is the honest instance: it runs what it is given until the world ends.
func (w *platform) work(key provisioner.Key) {
	pulls := w.hello(w.asAgent(), key, w.token(podOf(key), nil))
	gateway := w.toGateway()
	defer func() { gateway.close() }()
	done := &agentwire.Pull{Credits: 1}
	for {
		if pulls.Send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: done}}) != nil {
			return
		}
		ticket, err := nextTicket(pulls)
		if err != nil {
			return
		}
		a, err := gateway.claim(ticket)
		if err != nil { // nobody has answered pings while it was idle
			gateway.close()
			if gateway = w.connected(); gateway.greet() != nil {
				return
			}
			if a, err = gateway.claim(ticket); err != nil {
				return
			}
		}
		if a != nil {
			w.executes(a)
		}
		done = &agentwire.Pull{Credits: 1, Done: []*agentwire.Done{{InvocationId: ticket.GetInvocationId(), ExecNs: 1e6}}}
	}
}

// executes runs a call: its answer is its body.
func (w *platform) executes(a *attempt) {
	w.mu.Lock()
	w.executed = append(w.executed, a.call)
	w.mu.Unlock()
	if a.call.Upgrade != "" { // its body comes once the protocol has changed
		a.send(whole(200, nil))
		return
	}
	content, err := a.body()
	if err != nil {
		a.send(end(callwire.End{Failure: callwire.FailureFunctionLost}))
		return
	}
	a.send(whole(200, content))
}

// hello opens a stream of pulls.
func (w *platform) hello(conn *grpc.ClientConn, key provisioner.Key, token string) pullStream {
	w.Helper()
	stream := w.pulls(conn)
	_ = stream.Send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{
		FunctionUid: key.FunctionUID, Cid: string(key.CID), Token: token, Revision: "1",
	}}})
	return stream
}

// pulls opens a stream of pulls that has said nothing yet.
func (w *platform) pulls(conn *grpc.ClientConn) pullStream {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.Cleanup(cancel)
	stream, err := agentwire.NewInstancesClient(conn).Pull(ctx)
	if err != nil {
		w.Fatal(err)
	}
	return stream
}

func pull(credits uint32, done ...*agentwire.Done) *agentwire.PullRequest {
	return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: credits, Done: done}}}
}

func nextTicket(stream pullStream) (*agentwire.Ticket, error) {
	for {
		reply, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if ticket := reply.GetTicket(); ticket != nil {
			return ticket, nil
		}
		if reply.GetMoved() != nil || reply.GetDrain() != nil {
			return nil, fmt.Errorf("was sent away: %v", reply)
		}
	}
}

// ends is the error with which a stream ends; it fails if it does not, or well.
func ends[Reply any](w *platform, recv func() (*Reply, error)) error {
	w.Helper()
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := recv(); err != nil {
				ended <- err
				return
			}
		}
	}()
	err := receive(w.T, ended, "the end of a stream")
	if errors.Is(err, io.EOF) {
		w.Error("the stream ended well")
	}
	return err
}
