package attacks

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

type (
	pullStream    = grpc.BidiStreamingClient[agentwire.PullRequest, agentwire.PullReply]
	attemptStream = grpc.BidiStreamingClient[agentwire.AttemptRequest, agentwire.AttemptReply]
)

// work is the honest instance: it runs what it is given until the world ends.
func (w *platform) work(key provisioner.Key) {
	pulls := w.hello(w.asAgent(w.scheduler), key, w.token(podOf(key), nil))
	gateway := w.asAgent(w.gateway)
	done := &agentwire.Pull{Credits: 1}
	for {
		if pulls.Send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: done}}) != nil {
			return
		}
		ticket, err := nextTicket(pulls)
		if err != nil {
			return
		}
		if stream, granted, err := claim(gateway, ticket); err == nil && granted != nil {
			w.mu.Lock()
			w.executed = append(w.executed, granted)
			w.mu.Unlock()
			answer(stream, granted)
		}
		done = &agentwire.Pull{Credits: 1, Done: []*agentwire.Done{{InvocationId: ticket.GetInvocationId(), ExecNs: 1e6}}}
	}
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

// claim claims a ticket's call; granted is nil if it was refused.
func claim(gateway *grpc.ClientConn, ticket *agentwire.Ticket) (attemptStream, *agentwire.Granted, error) {
	stream, err := agentwire.NewGatewayClient(gateway).Attempt(context.Background())
	if err != nil {
		return nil, nil, err
	}
	_ = stream.Send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Claim{Claim: &agentwire.Claim{
		InvocationId: ticket.GetInvocationId(), Token: ticket.GetToken(), Cid: "00000001-000001",
	}}})
	reply, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	return stream, reply.GetGranted(), nil
}

// answer reads the body of a call, and repeats it as the answer.
func answer(stream attemptStream, granted *agentwire.Granted) {
	body := granted.GetWholeBody()
	for ended := granted.GetWhole(); !ended; {
		reply, err := stream.Recv()
		if err != nil {
			return
		}
		body = append(body, reply.GetBody()...)
		ended = reply.GetBodyEnd() != nil || reply.GetCancel() != nil
	}
	_ = stream.Send(whole(200, body))
	_ = stream.CloseSend()
	for {
		if _, err := stream.Recv(); err != nil {
			return
		}
	}
}

func whole(status int32, body []byte, headers ...*agentwire.Header) *agentwire.AttemptRequest {
	return &agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Head{Head: &agentwire.ResultHead{
		Status: status, Headers: headers, Whole: true, WholeBody: body,
	}}}
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
