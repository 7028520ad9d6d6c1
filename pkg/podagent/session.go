package podagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// errDropped ends a session that the core gives up.
var errDropped = errors.New("podagent: no answer in time")

type pullStream = grpc.BidiStreamingClient[agentwire.PullRequest, agentwire.PullReply]

// session is one connection attempt to a scheduler, and its stream.
type session struct {
	number core.Session
	cancel context.CancelCauseFunc
	// stream and the instance's token are set once it is open.
	stream pullStream
	token  string
	// answered says that the scheduler has sent something, and over that the core knows of the session's end.
	answered, over bool
}

// sendMessage sends a message. Messages are few and small, so that the stream's buffer of 64
// KiB takes them without blocking while the agent's lock is held.
func (s *session) sendMessage(m core.Message, who identity) {
	// An error ends the stream, which its reader sees.
	_ = s.stream.Send(toWire(m, who, s.token, wire.AgentProtocols))
}

// dial starts a session, which outlives the context of Run. The caller holds the lock.
func (a *Agent) dial(e core.Dial) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{number: e.Session, cancel: cancel}
	a.session = s
	a.tasks.Go(func() {
		defer cancel(nil)
		err := a.runSession(ctx, s, e.Addr)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		a.sessionClosed(s, e.Addr, err)
	})
}

// causeOf classifies the end of a session.
func causeOf(err error) core.Cause {
	if errors.Is(err, io.EOF) {
		return core.CauseClosed
	}
	if code := status.Code(err); code == codes.NotFound || code == codes.Unauthenticated {
		return core.CauseUnknown
	}
	return core.CauseBroken
}

// runSession opens the stream to a scheduler and handles its replies until it ends.
func (a *Agent) runSession(ctx context.Context, s *session, addr string) error {
	connection, err := a.dialScheduler(addr)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	stream, err := agentwire.NewInstancesClient(connection).Pull(ctx,
		// A stream that a scheduler refuses must fail. By default it would
		// be opened again inside Send, which would wait for a scheduler
		// while the agent's lock is held.
		grpc.MaxRetryRPCBufferSize(0))
	if err != nil {
		return err
	}
	token, err := instanceToken(a.config)
	if err != nil {
		return err
	}
	a.sessionOpened(s, stream, token)
	for {
		reply, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := a.receive(s, reply); err != nil {
			return err
		}
	}
}

func (a *Agent) sessionOpened(s *session, stream pullStream, token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.stream, s.token = stream, token
	a.step(core.Opened{Session: s.number}, nil)
}

func (a *Agent) sessionClosed(s *session, addr string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.over = true
	s.logEnd(a.deps.Log, addr, err, a.unanswered)
	a.unanswered = !s.answered
	a.step(core.Lost{Session: s.number, Cause: causeOf(err), Detail: err.Error()}, nil)
}

// logEnd warns of the first of several schedulers in a row that do not answer; again says that the one before did not,
// either. Agents try again and again, and a stream that ends later is normal: its scheduler stops, or passes the
// function on.
func (s *session) logEnd(log *slog.Logger, addr string, err error, again bool) {
	level := slog.LevelDebug
	if !s.answered && !again {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "no stream to the scheduler", "addr", addr, "err", err)
}

// receive passes a scheduler's message to the core.
func (a *Agent) receive(s *session, msg *agentwire.PullReply) error {
	reply, err := fromWire(msg, wire.AgentProtocols)
	if err != nil {
		return err
	}
	if ended := msg.GetEnded(); ended != nil {
		a.function.set(FunctionEnd{How: ended.GetHow(), LastLines: ended.GetLastLines()})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.answered = true
	a.step(core.Received{Session: s.number, Reply: reply}, msg)
	return nil
}

// instanceToken reads the current token: a token in a file is replaced before it expires.
func instanceToken(c agentenv.Config) (string, error) {
	if c.TokenFile == "" {
		return c.Token, nil
	}
	return readToken(c.TokenFile)
}

// nodeToken reads the current token for the node agent. In local mode it is the instance's own;
// in a cluster schedulers accept none that a node agent has seen.
func nodeToken(c agentenv.Config) (string, error) {
	if c.NodeTokenFile == "" {
		return instanceToken(c)
	}
	return readToken(c.NodeTokenFile)
}

func readToken(file string) (string, error) {
	token, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("podagent: the instance's token: %w", err)
	}
	return string(token), nil
}
