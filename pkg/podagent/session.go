package podagent

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
)

// Pauses between two tries to reach the scheduler.
const (
	shortestPause = 20 * time.Millisecond
	longestPause  = 2 * time.Second
)

// leastPatience is how long an agent tries to reach the scheduler at least. Beyond
// it, it tries for as long as it would wait for a call.
const leastPatience = time.Minute

var errEnded = errors.New("podagent: ended")

// converse keeps the stream to the scheduler until the agent ends. An agent
// that cannot reach the scheduler for as long as its patience lasts gives up.
func (a *Agent) converse(ctx context.Context) {
	lastSeen := time.Now()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		seen, err := a.session(ctx, a.patience-time.Since(lastSeen))
		switch code := status.Code(err); {
		case ctx.Err() != nil || errors.Is(err, errEnded):
			return
		case code == codes.NotFound || code == codes.Unauthenticated:
			a.deps.Log.Info("the scheduler does not know this instance", "err", err)
			a.leave(wirev1.Goodbye_REASON_DONE, err.Error())
			return
		}
		if seen {
			lastSeen, pause = time.Now(), shortestPause
		}
		if time.Since(lastSeen) >= a.patience {
			a.leave(wirev1.Goodbye_REASON_DONE, "no scheduler could be reached")
			return
		}
		a.deps.Log.Debug("no stream to the scheduler", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// session opens the stream, within the given patience, says hello and takes
// replies until it ends. It tells whether the scheduler was there: a reply came,
// or the stream stood for longer than one that is refused would.
func (a *Agent) session(work context.Context, patience time.Duration) (seen bool, err error) {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	impatient := time.AfterFunc(patience, cancel)
	stream, err := wirev1.NewSchedulerClient(a.deps.Scheduler).Pull(ctx, grpc.WaitForReady(true),
		// A stream that a scheduler refuses must fail. By default it would
		// be opened anew inside Send, which would wait for a scheduler
		// while the agent's lock is held.
		grpc.MaxRetryRPCBufferSize(0))
	impatient.Stop()
	if err != nil {
		return false, err
	}
	opened := time.Now()
	a.hello(stream)
	defer a.disconnected()
	for {
		reply, err := stream.Recv()
		if err != nil {
			seen = seen || time.Since(opened) > longestPause
			if a.heard(err) {
				err = errEnded
			}
			return seen, err
		}
		seen = true
		switch kind := reply.GetKind().(type) {
		case *wirev1.PullReply_Ticket:
			if a.begin() {
				go a.attempt(work, kind.Ticket)
			}
		case *wirev1.PullReply_Leave:
			a.mayLeave(kind.Leave)
		case *wirev1.PullReply_Retire:
			a.leave(wirev1.Goodbye_REASON_DONE, kind.Retire.GetReason())
		}
	}
}

// hello introduces the instance and says how things stand: it asks for work, or
// leaves. Errors end the stream, which its reader sees.
func (a *Agent) hello(stream pullStream) {
	_ = stream.Send(&wirev1.PullRequest{Kind: &wirev1.PullRequest_Hello{Hello: &wirev1.Hello{
		FunctionUid: a.config.FunctionUID,
		Generation:  a.config.Generation,
		Cid:         a.config.CID,
		Token:       a.config.Token,
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
