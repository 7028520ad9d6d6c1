package podagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
)

// Pauses between two tries to reach the scheduler: at most hopefulPause for as
// long as hopefulFor after it was there.
const (
	shortestPause = 20 * time.Millisecond
	hopefulPause  = 250 * time.Millisecond
	longestPause  = 2 * time.Second
	hopefulFor    = 10 * time.Second
)

// leastPatience is how long an agent tries to reach the scheduler at least. Beyond
// it, it tries for as long as it would wait for a call.
const leastPatience = time.Minute

var (
	errEnded = errors.New("podagent: ended")
	// errUnowned is the end of a session with a scheduler that knows of no
	// owner.
	errUnowned = errors.New("podagent: the function has no owner now")
)

// converse keeps the stream to the function's owner until the agent ends. An
// agent that cannot reach a scheduler for as long as its patience lasts gives up.
func (a *Agent) converse(ctx context.Context) {
	lastSeen := time.Now()
	owner := a.config.Owner
	for pause := shortestPause; ; pause = min(2*pause, pauseLimit(time.Since(lastSeen))) {
		end := a.session(ctx, owner, a.patience-time.Since(lastSeen))
		switch code := status.Code(end.err); {
		case ctx.Err() != nil || errors.Is(end.err, errEnded):
			return
		case code == codes.NotFound || code == codes.Unauthenticated:
			a.deps.Log.Info("the scheduler does not know this instance", "err", end.err)
			a.leave(wirev1.Goodbye_REASON_DONE, end.err.Error())
			return
		}
		if end.seen {
			lastSeen = time.Now()
		}
		if end.seen && !errors.Is(end.err, errUnowned) {
			pause = shortestPause
		}
		if time.Since(lastSeen) >= a.patience {
			a.leave(wirev1.Goodbye_REASON_DONE, "no scheduler could be reached")
			return
		}
		// Whoever does not answer is not asked again, but any scheduler is.
		owner = end.owner
		a.deps.Log.Debug("no stream to the scheduler", "err", end.err, "owner", owner)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// pauseLimit bounds the pause before the next try. A scheduler that was there
// just now is probably there again soon, and calls wait for it.
func pauseLimit(missed time.Duration) time.Duration {
	if missed < hopefulFor {
		return hopefulPause
	}
	return longestPause
}

// sessionEnd is how a session ended.
type sessionEnd struct {
	// seen says that the scheduler was there: a reply came, or the stream
	// stood for longer than one that is refused would.
	seen bool
	// owner is where to go on; empty if that is not known.
	owner string
	err   error
}

// ownerPatience is how long a scheduler that is said to be the function's owner
// may take to be reached.
const ownerPatience = 3 * time.Second

// session opens the stream to a scheduler, any if owner is empty, says hello and
// takes replies until it ends.
func (a *Agent) session(work context.Context, owner string, patience time.Duration) sessionEnd {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	scheduler := a.deps.Scheduler
	if owner != "" {
		connection, err := a.dialOwner(owner)
		if err != nil {
			return sessionEnd{err: err}
		}
		defer func() { _ = connection.Close() }()
		scheduler, patience = connection, min(patience, ownerPatience)
	}
	impatient := time.AfterFunc(patience, cancel)
	stream, err := wirev1.NewSchedulerClient(scheduler).Pull(ctx, grpc.WaitForReady(true),
		// A stream that a scheduler refuses must fail. By default it would
		// be opened anew inside Send, which would wait for a scheduler
		// while the agent's lock is held.
		grpc.MaxRetryRPCBufferSize(0))
	impatient.Stop()
	if err != nil {
		return sessionEnd{err: err}
	}
	if err := a.hello(stream); err != nil {
		return sessionEnd{err: err}
	}
	defer a.disconnected()
	return a.take(work, stream, time.Now())
}

// take takes a scheduler's replies until the stream ends.
func (a *Agent) take(work context.Context, stream pullStream, opened time.Time) sessionEnd {
	var end sessionEnd
	for {
		reply, err := stream.Recv()
		if err != nil {
			end.seen = end.seen || time.Since(opened) > longestPause
			if end.err = err; a.heard(err) {
				end.err = errEnded
			}
			return end
		}
		end.seen = true
		switch kind := reply.GetKind().(type) {
		case *wirev1.PullReply_Ticket:
			if a.begin() {
				go a.attempt(work, kind.Ticket)
			}
		case *wirev1.PullReply_Leave:
			a.mayLeave(kind.Leave)
		case *wirev1.PullReply_Retire:
			a.leave(wirev1.Goodbye_REASON_DONE, kind.Retire.GetReason())
		case *wirev1.PullReply_Moved:
			if end.owner = kind.Moved.GetAddress(); end.owner == "" {
				end.err = errUnowned
			}
			return end
		}
	}
}

// hello introduces the instance and says how things stand: it asks for work, or
// leaves. Errors of the stream end it, which its reader sees.
func (a *Agent) hello(stream pullStream) error {
	token, err := a.proof()
	if err != nil {
		return err
	}
	_ = stream.Send(&wirev1.PullRequest{Kind: &wirev1.PullRequest_Hello{Hello: &wirev1.Hello{
		FunctionUid: a.config.FunctionUID,
		Generation:  a.config.Generation,
		Cid:         a.config.CID,
		Token:       token,
	}}})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream = stream
	switch {
	case a.goodbye != nil:
		a.send(a.goodbye)
	case a.ready && !a.leaving:
		a.send(a.ask())
		// The answer to a request to leave may have been lost.
		a.idle.Asked = false
		a.timer.Reset(0)
	}
	if a.hungUp {
		_ = stream.CloseSend()
	}
	return nil
}

// proof is the token of now: one in a file is replaced before it expires.
func (a *Agent) proof() (string, error) {
	if a.config.TokenFile == "" {
		return a.config.Token, nil
	}
	token, err := os.ReadFile(a.config.TokenFile)
	if err != nil {
		return "", fmt.Errorf("podagent: the instance's token: %w", err)
	}
	return string(token), nil
}

func (a *Agent) disconnected() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream = nil
}

// hangUp ends the stream, behind everything that was said before. It tells
// whether there is anything for the scheduler to hear.
func (a *Agent) hangUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hungUp = true
	if a.stream != nil {
		_ = a.stream.CloseSend()
	}
	return a.stream != nil || a.goodbye != nil
}

// heard tells whether a stream that ended with err was the last one: a scheduler
// that ends it without an error has heard all.
func (a *Agent) heard(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hungUp && (a.goodbye == nil || errors.Is(err, io.EOF))
}
