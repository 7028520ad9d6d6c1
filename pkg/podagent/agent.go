package podagent

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// Deps are what an Agent works with.
type Deps struct {
	Adapter adapter.Adapter
	// Spare is the same adapter if the instance is a spare one, and otherwise nil.
	Spare adapter.Spare
	// Dialer makes connections to schedulers and gateways.
	Dialer Dialer
	// FunctionEnd tells how the function ended, once; nil if nobody watches it.
	FunctionEnd <-chan FunctionEnd
	Log         *slog.Logger
}

// Agent is the agent of one instance.
type Agent struct {
	config   agentenv.Config
	deps     Deps
	gateways *gatewayPool
	// dialScheduler makes a connection to the scheduler of an address; empty for
	// any.
	dialScheduler func(addr string) (conn, error)
	// jitter is what core.Params says it is.
	jitter float64
	served atomic.Bool // was granted a call
	// tasks are what Run waits for. They grow only under the lock, and not after
	// the end.
	tasks sync.WaitGroup
	// assigned takes what a spare instance becomes.
	assigned chan *wirev1.Assignment
	// drained is closed when the instance is given up and no call runs any more,
	// and ended when there is nothing more to do.
	drained, ended chan struct{}

	// functionEnded is closed when the function's process has ended; then lost is
	// the error of the calls that it ran.
	functionEnded chan struct{}
	lost          error

	mu   sync.Mutex
	core *core.Core
	// identity is that of a function's instance, or of a spare one until it is
	// assigned.
	identity identity
	// work is the context of sessions and calls, which outlive that of Run.
	work     context.Context
	timer    *time.Timer
	session  *session // the last one
	attempts map[core.Attempt]*attempt
}

// New makes an Agent. It starts nothing.
func New(config agentenv.Config, deps Deps) *Agent {
	return &Agent{
		config:   config,
		deps:     deps,
		gateways: newGatewayPool(deps.Dialer),
		dialScheduler: func(addr string) (conn, error) {
			if addr == "" {
				addr = config.Scheduler
			}
			return deps.Dialer.Scheduler(addr)
		},
		jitter:   1 + rand.Float64()/10,
		identity: identity{spare: config.Spare, uid: config.FunctionUID, generation: config.Generation, cid: config.CID},
		assigned: make(chan *wirev1.Assignment, 1),
		drained:  make(chan struct{}),
		ended:    make(chan struct{}),

		functionEnded: make(chan struct{}),
		attempts:      make(map[core.Attempt]*attempt),
	}
}

// Run serves until the instance is of no more use: it may leave, was retired,
// its function failed, or ctx ended. Calls that run are finished first. The
// error is nil unless the function, or the runtime of a spare instance, never
// became ready.
func (a *Agent) Run(ctx context.Context) error {
	params := core.Params{
		Spare: a.config.Spare, Owner: a.config.Owner, Concurrency: a.config.Concurrency,
		BackoffAfter: a.config.BackoffAfter, IdleTimeout: a.config.IdleTimeout, Jitter: a.jitter,
	}
	if err := params.Validate(); err != nil {
		return err
	}
	// Calls outlive ctx: they end by their own deadlines.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	starting, abandon := context.WithCancel(ctx)
	defer abandon()
	a.begin(work, core.New(params))
	var startErr error
	var awaiting, watching sync.WaitGroup
	watching.Go(a.awaitEnd)
	awaiting.Go(func() { startErr = a.awaitFunction(starting) })
	select {
	case <-a.drained:
	case <-ctx.Done():
		a.tell(core.Stop{Detail: "the agent was told to stop: " + context.Cause(ctx).Error()})
		<-a.drained
	}
	abandon()
	awaiting.Wait()
	<-a.ended
	watching.Wait()
	cancel()
	a.tasks.Wait()
	a.gateways.closeIdle()
	return startErr
}

func (a *Agent) begin(work context.Context, c *core.Core) {
	a.mu.Lock()
	a.work, a.core = work, c
	a.timer = time.AfterFunc(time.Hour, func() { a.tell(core.Wake{}) })
	a.mu.Unlock()
	a.tell(core.Begin{})
}

// awaitFunction waits until the function can be called; in a spare instance, as
// soon as there is one.
func (a *Agent) awaitFunction(ctx context.Context) error {
	if a.config.Spare {
		return a.awaitAssignment(ctx)
	}
	return a.await(ctx, a.config.StartupTimeout, a.deps.Adapter.WaitReady, core.FunctionReady{})
}

// await waits for a time and tells the core what came of it.
func (a *Agent) await(ctx context.Context, patience time.Duration, wait func(context.Context) error, came core.Event) error {
	startCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := wait(startCtx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		a.deps.Log.Error("the function did not become ready", "err", err)
		a.tell(core.FunctionFailed{TimedOut: startCtx.Err() != nil, Detail: err.Error()})
		return err
	}
	a.tell(came)
	return nil
}

// tell tells the core what happened, and does what it decides.
func (a *Agent) tell(e core.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(e, nil)
}

// step is tell for callers that hold the lock. If the event is what a scheduler said,
// said is all that came with it.
func (a *Agent) step(e core.Event, said *wirev1.PullReply) {
	for _, effect := range a.core.Step(time.Now(), e) {
		a.carryOut(effect, said)
	}
}

// carryOut carries out one effect, or starts what does. The caller holds the lock.
func (a *Agent) carryOut(e core.Effect, said *wirev1.PullReply) {
	switch e := e.(type) {
	case core.Dial:
		a.dial(e)
	case core.Send:
		a.session.send(e.Message, a.identity)
	case core.HangUp:
		_ = a.session.stream.CloseSend()
	case core.Drop:
		a.session.cancel()
	case core.Assume:
		a.assume(said.GetAssignment())
	case core.Claim:
		at := a.newAttempt(e.Attempt, e.Ticket)
		a.tasks.Go(func() { a.claimAndRun(at) })
	case core.Start:
		if !e.Unclaimed {
			a.attempts[e.Attempt].granted = true
			return
		}
		at := a.newAttempt(e.Attempt, e.Ticket)
		request := said.GetTicket().GetRequest()
		a.tasks.Go(func() { a.runUnclaimed(at, request) })
	case core.Release:
		a.attempts[e.Attempt].release()
	case core.Cancel:
		a.attempts[e.Attempt].cancel(errUnwanted)
	case core.Cut:
		a.attempts[e.Attempt].cut(a.lost)
	case core.Quiet:
		a.tasks.Go(a.goQuiet)
	case core.WakeAt:
		a.timer.Reset(time.Until(e.Time))
	case core.GaveUp:
		a.deps.Log.Info("leaving", "reason", goodbyeReason(e.Reason).String(), "detail", e.Detail)
	case core.Drained:
		close(a.drained)
	case core.End:
		a.timer.Stop()
		close(a.ended)
	}
}

// FunctionEnd is how a function's process ended.
type FunctionEnd struct {
	// How is for a person to read, such as "the function exited with status 3".
	How string
	// LastLines are the last that the function wrote.
	LastLines []string
}

// awaitEnd waits until it is known that the function has ended, or nothing depends on
// that any more.
func (a *Agent) awaitEnd() {
	select {
	case <-a.ended:
	case end := <-a.deps.FunctionEnd:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.noteEnd(end)
		a.step(core.FunctionEnded{Detail: end.How}, nil)
	}
}

// noteEnd keeps how the function ended, as it was first heard. The caller holds the lock.
func (a *Agent) noteEnd(end FunctionEnd) {
	if a.lost == nil {
		a.lost = &functionLost{end}
		close(a.functionEnded)
	}
}

// functionLost is the error of a call in the middle of which the function ended.
type functionLost struct{ end FunctionEnd }

func (e *functionLost) Error() string {
	text := e.end.How + " in the middle of the call"
	if len(e.end.LastLines) > 0 {
		text += "; its last log lines:\n" + strings.Join(e.end.LastLines, "\n")
	}
	return text
}

func (e *functionLost) Unwrap() error { return adapter.ErrFunctionLost }

// goQuiet closes what is not used and gives memory back. That takes milliseconds.
func (a *Agent) goQuiet() {
	a.gateways.closeIdle()
	runtime.GC() // what pools hold survives one collection
	debug.FreeOSMemory()
}
