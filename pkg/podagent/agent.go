package podagent

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// lastWords is how long an agent that ends waits for the scheduler to hear it.
const lastWords = 2 * time.Second

// leastPause is the least time between two requests to leave, however soon the
// scheduler wants to be asked again.
const leastPause = time.Second

type pullStream = grpc.BidiStreamingClient[wirev1.PullRequest, wirev1.PullReply]

// Deps are what an Agent works with.
type Deps struct {
	Adapter adapter.Adapter
	// Scheduler is a connection to any scheduler.
	Scheduler grpc.ClientConnInterface
	// Dialer makes connections to the function's owner and to gateways.
	Dialer Dialer
	Log    *slog.Logger
}

// Agent is the agent of one instance.
type Agent struct {
	config   agentenv.Config
	deps     Deps
	gateways *gatewayPool
	// dialOwner makes a connection to the scheduler of an address.
	dialOwner func(addr string) (conn, error)
	limits    idleLimits
	patience  time.Duration // with a scheduler that cannot be reached
	served    atomic.Bool   // was granted a call
	// busy counts what Run waits for. It grows only under the lock, and not
	// while leaving.
	busy sync.WaitGroup
	// ended is closed when the instance is given up and no call runs any
	// more.
	ended chan struct{}

	mu sync.Mutex
	// stream is nil while there is none.
	stream  pullStream
	ready   bool
	running int
	// leaving says that no ticket is taken any more, goodbye what is to be
	// said about it, if anything, and hungUp that it is all.
	leaving bool
	goodbye *wirev1.PullRequest
	hungUp  bool
	idle    idleness
	timer   *time.Timer // nil until ready
}

// New makes an Agent. It starts nothing.
func New(config agentenv.Config, deps Deps) *Agent {
	return &Agent{
		config:    config,
		deps:      deps,
		gateways:  newGatewayPool(deps.Dialer),
		dialOwner: func(addr string) (conn, error) { return deps.Dialer.Scheduler(addr) },
		limits: idleLimits{
			BackoffAfter: config.BackoffAfter,
			IdleTimeout:  config.IdleTimeout,
			Jitter:       1 + rand.Float64()/10,
		},
		patience: max(leastPatience, config.BackoffAfter+config.IdleTimeout),
		ended:    make(chan struct{}),
	}
}

// Run serves until the instance is of no more use: it may leave, was retired,
// its function failed, or ctx ended. Calls that run are finished first. The
// error is nil unless the function never became ready.
func (a *Agent) Run(ctx context.Context) error {
	// Calls outlive ctx: they end by their own deadlines.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	starting, abandon := context.WithCancel(ctx)
	var awaiting, conversing sync.WaitGroup
	var startErr error
	awaiting.Go(func() { startErr = a.awaitFunction(starting) })
	conversing.Go(func() { a.converse(work) })
	select {
	case <-a.ended:
	case <-ctx.Done():
		a.stopped(context.Cause(ctx))
		<-a.ended
	}
	abandon()
	awaiting.Wait()
	a.busy.Wait()
	// What was said last must arrive, but not at any price.
	if !a.hangUp() {
		cancel()
	}
	giveUp := time.AfterFunc(lastWords, cancel)
	conversing.Wait()
	giveUp.Stop()
	cancel()
	a.gateways.closeIdle()
	return startErr
}

// awaitFunction waits until the function can be called and then asks for work.
func (a *Agent) awaitFunction(ctx context.Context) error {
	startCtx, cancel := context.WithTimeout(ctx, a.config.StartupTimeout)
	defer cancel()
	err := a.deps.Adapter.WaitReady(startCtx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		a.deps.Log.Error("the function did not become ready", "err", err)
		reason := wirev1.Goodbye_REASON_START_FAILED
		if startCtx.Err() != nil {
			reason = wirev1.Goodbye_REASON_START_TIMED_OUT
		}
		a.leave(reason, err.Error())
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving {
		return nil
	}
	a.ready = true
	a.becomeIdle()
	a.send(a.ask())
	return nil
}

// ask is the pull for all that the instance can take. The caller holds the lock.
func (a *Agent) ask(done ...*wirev1.Done) *wirev1.PullRequest {
	credits := a.config.Concurrency - a.running
	if len(done) > 0 {
		credits = 1
	}
	return &wirev1.PullRequest{Kind: &wirev1.PullRequest_Pull{Pull: &wirev1.Pull{Credits: uint32(credits), Done: done}}}
}

// send sends to the scheduler if the stream is there; if not, the next hello
// says all. The caller holds the lock: messages are few and small, so that the
// stream's buffer of 64 KiB takes them without waiting.
func (a *Agent) send(msg *wirev1.PullRequest) {
	if a.stream != nil {
		// An error ends the stream, which converse sees.
		_ = a.stream.Send(msg)
	}
}

// begin takes a ticket; false if it must not be taken.
func (a *Agent) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving || a.running >= a.config.Concurrency {
		return false
	}
	a.running++
	a.busy.Add(1)
	a.idle = idleness{}
	return true
}

// finish ends a ticket and asks for the next. If the call did not end as it
// should, the instance is given up instead.
func (a *Agent) finish(done *wirev1.Done, broken error) {
	if broken != nil {
		reason := wirev1.Goodbye_REASON_CALL_BROKEN
		if errors.Is(broken, adapter.ErrNotStarted) {
			reason = wirev1.Goodbye_REASON_FUNCTION_ENDED
		}
		a.leave(reason, broken.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	if a.leaving {
		a.endIfDone()
		return
	}
	if a.running == 0 {
		a.becomeIdle()
	}
	a.send(a.ask(done))
}

// leave gives up the instance: no ticket is taken from now on, and the agent
// ends when no call runs. Only the first reason counts.
func (a *Agent) leave(reason wirev1.Goodbye_Reason, detail string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving {
		return
	}
	a.deps.Log.Info("leaving", "reason", reason.String(), "detail", detail)
	a.leaving = true
	a.goodbye = &wirev1.PullRequest{Kind: &wirev1.PullRequest_Goodbye{Goodbye: &wirev1.Goodbye{Reason: reason, Detail: detail}}}
	a.send(a.goodbye)
	a.endIfDone()
}

// stopped handles the end of Run's context. An instance whose function was not
// ready yet says no goodbye: whoever stopped it knows better why it did not
// start.
func (a *Agent) stopped(cause error) {
	a.mu.Lock()
	if !a.ready && !a.leaving {
		a.leaving = true
		a.endIfDone()
	}
	a.mu.Unlock()
	a.leave(wirev1.Goodbye_REASON_STOPPED, "the agent was told to stop: "+cause.Error())
}

// endIfDone ends the agent once nothing runs. The caller holds the lock.
func (a *Agent) endIfDone() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.running > 0 {
		return
	}
	select {
	case <-a.ended:
	default:
		close(a.ended)
	}
}

// becomeIdle starts to count the waiting. The caller holds the lock.
func (a *Agent) becomeIdle() {
	a.idle = idleness{Since: time.Now()}
	if a.timer == nil {
		a.timer = time.AfterFunc(a.limits.BackoffAfter, a.idleTick)
		return
	}
	a.timer.Reset(a.limits.BackoffAfter)
}

// idleTick does what an idle agent does.
func (a *Agent) idleTick() {
	if a.idleStep() {
		defer a.busy.Done()
		a.gateways.closeIdle()
		runtime.GC() // what pools hold survives one collection
		debug.FreeOSMemory()
	}
}

// idleStep decides and, unless that is to go quiet, does it. Going quiet takes
// milliseconds, in which a call may come: the caller does it without the lock,
// and then takes itself off busy.
func (a *Agent) idleStep() (quiet bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving {
		return false
	}
	now := time.Now()
	step, again := a.idle.next(now, a.limits)
	switch step {
	case stepNone:
	case stepQuiet:
		a.idle.Quiet = true
		a.busy.Add(1)
	case stepAskToLeave:
		a.idle.Asked = true
		a.send(&wirev1.PullRequest{Kind: &wirev1.PullRequest_Leave{Leave: &wirev1.LeaveRequest{IdleNs: int64(now.Sub(a.idle.Since))}}})
	}
	if again > 0 {
		a.timer.Reset(again)
	}
	return step == stepQuiet
}

// mayLeave handles the scheduler's answer to a request to leave.
func (a *Agent) mayLeave(reply *wirev1.LeaveReply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving {
		return
	}
	if reply.GetGranted() {
		a.deps.Log.Info("leaving after waiting in vain")
		a.leaving = true
		a.endIfDone()
		return
	}
	if a.idle.Asked {
		a.idle.Asked = false
		a.idle.NotBefore = time.Now().Add(max(time.Duration(reply.GetAskAgainNs()), leastPause))
		a.timer.Reset(time.Until(a.idle.NotBefore))
	}
}
