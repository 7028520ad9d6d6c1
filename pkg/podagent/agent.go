package podagent

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
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
	// FunctionEnd delivers how the function ended, once; nil if nothing watches its process.
	FunctionEnd <-chan FunctionEnd
	Log         *slog.Logger
}

// Agent is the agent of one instance.
type Agent struct {
	config   agentenv.Config
	deps     Deps
	gateways *gatewayPool
	// dialScheduler connects to the scheduler of an address; empty for any.
	dialScheduler func(addr string) (conn, error)
	// jitter is core.Params.Jitter.
	jitter   float64
	calls    *calls
	function *functionEnd
	// tasks are the goroutines that Run waits for. Only core effects start them, and none
	// after core.End.
	tasks sync.WaitGroup
	// assigned delivers the assignment of a spare instance.
	assigned chan *agentwire.Assignment
	// drained is closed when the instance drains and no call runs any more, and ended when the
	// agent has finished.
	drained, ended chan struct{}

	mu   sync.Mutex
	core *core.Core
	// identity changes once, when a spare instance is assigned.
	identity identity
	timer    *time.Timer
	session  *session // the latest
	attempts map[core.Attempt]*attempt
}

// New makes an Agent. It starts nothing.
func New(config agentenv.Config, deps Deps) *Agent {
	a := &Agent{
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
		function: newFunctionEnd(),
		identity: identity{spare: config.Spare, uid: config.FunctionUID, revision: config.Revision, cid: config.CID},
		assigned: make(chan *agentwire.Assignment, 1),
		drained:  make(chan struct{}),
		ended:    make(chan struct{}),
		attempts: make(map[core.Attempt]*attempt),
	}
	a.calls = &calls{
		adapter: deps.Adapter, gateways: a.gateways, function: a.function, watched: deps.FunctionEnd != nil,
		notify: a.notify, log: deps.Log,
	}
	return a
}

// Run serves until the instance has drained: its scheduler let it leave or told it to drain,
// its function failed, or ctx ended. It finishes the calls that run first. The error is nil
// unless the function, or the runtime of a spare instance, never became ready.
func (a *Agent) Run(ctx context.Context) error {
	params := core.Params{
		Spare: a.config.Spare, Owner: a.config.Owner, Concurrency: a.config.Concurrency,
		BackoffAfter: a.config.BackoffAfter, IdleTimeout: a.config.IdleTimeout, Jitter: a.jitter,
	}
	if err := params.Validate(); err != nil {
		return err
	}
	starting, abandon := context.WithCancel(ctx)
	defer abandon()
	a.startCore(core.New(params))
	var startErr error
	var awaiting, watching sync.WaitGroup
	watching.Go(a.awaitEnd)
	awaiting.Go(func() { startErr = a.awaitFunction(starting) })
	select {
	case <-a.drained:
	case <-ctx.Done():
		a.notify(core.Stop{Detail: "the agent was told to stop: " + context.Cause(ctx).Error()})
		<-a.drained
	}
	abandon()
	awaiting.Wait()
	<-a.ended
	watching.Wait()
	a.tasks.Wait()
	a.gateways.closeIdle()
	return startErr
}

func (a *Agent) startCore(c *core.Core) {
	a.mu.Lock()
	a.core = c
	a.timer = time.AfterFunc(time.Hour, func() { a.notify(core.Wake{}) })
	a.mu.Unlock()
	a.notify(core.Begin{})
}

// notify passes an event to the core, and carries out its effects.
func (a *Agent) notify(e core.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(e, nil)
}

// step is notify for callers that hold the lock. If the event is a scheduler's message,
// reply is that message.
func (a *Agent) step(e core.Event, reply *agentwire.PullReply) {
	for _, effect := range a.core.Step(time.Now(), e) {
		a.carryOut(effect, reply)
	}
}

// carryOut carries out one effect, or starts a goroutine that does. The caller holds the lock.
func (a *Agent) carryOut(e core.Effect, reply *agentwire.PullReply) {
	switch e := e.(type) {
	case core.Dial:
		a.dial(e)
	case core.Send:
		a.session.sendMessage(e.Message, a.identity)
	case core.HangUp:
		_ = a.session.stream.CloseSend()
	case core.Drop:
		a.session.cancel()
	case core.LoadFunction:
		a.applyAssignment(reply.GetAssignment())
	case core.Claim:
		a.startAttempt(e.Attempt, e.Ticket, (*attempt).claimAndRun)
	case core.Start:
		if !e.Unclaimed {
			a.attempts[e.Attempt].grant()
			return
		}
		request := reply.GetTicket().GetRequest()
		a.startAttempt(e.Attempt, e.Ticket, func(at *attempt, ctx, callCtx context.Context) { at.runUnclaimed(ctx, callCtx, request) })
	case core.Release:
		a.attempts[e.Attempt].release()
	case core.Cancel:
		a.attempts[e.Attempt].cancel(errUnwanted)
	case core.Cut:
		a.attempts[e.Attempt].cut(a.function.lostError())
	case core.RunAudit:
		a.tasks.Go(a.audit)
	case core.Quiet:
		a.tasks.Go(a.goQuiet)
	case core.WakeAt:
		a.timer.Reset(time.Until(e.Time))
	case core.Draining:
		a.deps.Log.Info("leaving", "reason", goodbyeReason(e.Reason).String(), "detail", e.Detail)
	case core.Drained:
		close(a.drained)
	case core.End:
		a.timer.Stop()
		close(a.ended)
	}
}

// startAttempt starts an attempt. Its contexts are not Run's, because calls outlive that one:
// they end by their own deadlines. ctx covers the call and the stream to the gateway, callCtx
// the call alone. The caller holds the lock.
func (a *Agent) startAttempt(n core.Attempt, t invocation.Ticket, run func(at *attempt, ctx, callCtx context.Context)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	callCtx, cut := context.WithCancelCause(ctx)
	at := &attempt{calls: a.calls, number: n, ticket: t, cid: a.identity.cid, cancel: cancel, cut: cut}
	a.attempts[n] = at
	a.tasks.Go(func() {
		defer a.attemptOver(at)
		run(at, ctx, callCtx)
	})
}

// attemptOver releases a finished attempt.
func (a *Agent) attemptOver(at *attempt) {
	at.close()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(core.Delivered{Attempt: at.number}, nil)
	delete(a.attempts, at.number)
}

// audit feeds the core the observed state.
func (a *Agent) audit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := core.Audit{Calls: slices.Collect(maps.Keys(a.attempts)), FunctionEnd: a.function.how()}
	if a.session != nil && !a.session.over {
		seen.Session = a.session.number
	}
	a.step(seen, nil)
}

// goQuiet closes unused connections and gives memory back. That takes milliseconds.
func (a *Agent) goQuiet() {
	a.gateways.closeIdle()
	runtime.GC() // what pools hold survives one collection
	debug.FreeOSMemory()
}
