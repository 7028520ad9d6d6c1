package podagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

type pullStream = grpc.BidiStreamingClient[agentwire.PullRequest, agentwire.PullReply]

// session is one try to talk to a scheduler.
type session struct {
	number core.Session
	cancel context.CancelFunc
	// stream and token, the instance's proof, are there once it is open.
	stream pullStream
	token  string
	// over says that the core was told of its end.
	over bool
}

// send says something. Messages are few and small, so that the stream's buffer of 64
// KiB takes them without waiting while the agent's lock is held.
func (s *session) send(m core.Message, who identity) {
	// An error ends the stream, which its reader sees.
	_ = s.stream.Send(toWire(m, who, s.token, wire.AgentProtocols))
}

// dial starts a session, which outlives the context of Run. The caller holds the lock.
func (a *Agent) dial(e core.Dial) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{number: e.Session, cancel: cancel}
	a.session = s
	a.tasks.Go(func() {
		defer cancel()
		err := a.converse(ctx, s, e.Addr)
		a.deps.Log.Debug("no stream to the scheduler", "addr", e.Addr, "err", err)
		a.closed(s, err)
	})
}

// why tells what the end of a session means.
func why(err error) core.Why {
	if errors.Is(err, io.EOF) {
		return core.WhyHeard
	}
	if code := status.Code(err); code == codes.NotFound || code == codes.Unauthenticated {
		return core.WhyUnknown
	}
	return core.WhyBroken
}

// converse opens the stream to a scheduler and takes its replies until it ends.
func (a *Agent) converse(ctx context.Context, s *session, addr string) error {
	connection, err := a.dialScheduler(addr)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	stream, err := agentwire.NewInstancesClient(connection).Pull(ctx,
		// A stream that a scheduler refuses must fail. By default it would
		// be opened anew inside Send, which would wait for a scheduler
		// while the agent's lock is held.
		grpc.MaxRetryRPCBufferSize(0))
	if err != nil {
		return err
	}
	token, err := proof(a.config)
	if err != nil {
		return err
	}
	a.opened(s, stream, token)
	for {
		reply, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := a.hear(s, reply); err != nil {
			return err
		}
	}
}

func (a *Agent) opened(s *session, stream pullStream, token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.stream, s.token = stream, token
	a.step(core.Opened{Session: s.number}, nil)
}

func (a *Agent) closed(s *session, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.over = true
	a.step(core.Lost{Session: s.number, Why: why(err), Detail: err.Error()}, nil)
}

// hear passes on what a scheduler says.
func (a *Agent) hear(s *session, said *agentwire.PullReply) error {
	reply, err := fromWire(said, wire.AgentProtocols)
	if err != nil {
		return err
	}
	if ended := said.GetEnded(); ended != nil {
		a.function.note(FunctionEnd{How: ended.GetHow(), LastLines: ended.GetLastLines()})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(core.Said{Session: s.number, Reply: reply}, said)
	return nil
}

// proof is the token of now: one in a file is replaced before it expires.
func proof(c agentenv.Config) (string, error) {
	if c.TokenFile == "" {
		return c.Token, nil
	}
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("podagent: the instance's token: %w", err)
	}
	return string(token), nil
}
