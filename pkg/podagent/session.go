package podagent

import (
	"context"
	"errors"
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

var errEnded = errors.New("podagent: ended")

// converse keeps the stream to the scheduler until the agent ends. An agent
// that cannot reach the scheduler for as long as it would wait for a call gives
// up.
func (a *Agent) converse(ctx context.Context) {
	lastSeen := time.Now()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		connected, err := a.session(ctx)
		switch code := status.Code(err); {
		case ctx.Err() != nil || errors.Is(err, errEnded):
			return
		case code == codes.NotFound || code == codes.Unauthenticated:
			a.deps.Log.Info("the scheduler does not know this instance", "err", err)
			a.leave(wirev1.Goodbye_REASON_DONE, err.Error())
			return
		}
		if connected {
			lastSeen, pause = time.Now(), shortestPause
		}
		if time.Since(lastSeen) > a.config.BackoffAfter+a.config.IdleTimeout {
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

// session opens the stream, says hello and takes replies until it ends. It
// tells whether a reply ever came.
func (a *Agent) session(work context.Context) (connected bool, err error) {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	stream, err := wirev1.NewSchedulerClient(a.deps.Scheduler).Pull(ctx, grpc.WaitForReady(true))
	if err != nil {
		return false, err
	}
	if err := a.hello(stream); err != nil {
		return false, err
	}
	defer a.disconnected()
	for {
		reply, err := stream.Recv()
		if err != nil {
			select {
			case <-a.ended:
				return connected, errEnded
			default:
				return connected, err
			}
		}
		connected = true
		switch kind := reply.GetKind().(type) {
		case *wirev1.PullReply_Ticket:
			if cold, ok := a.begin(); ok {
				go a.attempt(work, kind.Ticket, cold)
			}
		case *wirev1.PullReply_Leave:
			a.mayLeave(kind.Leave)
		case *wirev1.PullReply_Retire:
			a.leave(wirev1.Goodbye_REASON_DONE, kind.Retire.GetReason())
		}
	}
}

// hello introduces the instance and, if its function is ready, asks for work.
func (a *Agent) hello(stream grpc.BidiStreamingClient[wirev1.PullRequest, wirev1.PullReply]) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := stream.Send(&wirev1.PullRequest{Kind: &wirev1.PullRequest_Hello{Hello: &wirev1.Hello{
		FunctionUid: a.config.FunctionUID,
		Generation:  a.config.Generation,
		Cid:         a.config.CID,
		Token:       a.config.Token,
	}}})
	if err != nil {
		return err
	}
	a.stream = stream
	a.helloed.Do(func() { close(a.connected) })
	if a.ready && !a.leaving {
		a.send(a.ask())
		a.idle.Asked = false
		a.timer.Reset(0)
	}
	return nil
}

func (a *Agent) disconnected() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream = nil
}

// hangUp ends the stream so that everything sent before arrives.
func (a *Agent) hangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stream != nil {
		_ = a.stream.CloseSend()
	}
}
