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
	jitter   float64
	calls    *calls
	function *functionEnd
	// tasks are what Run waits for. They grow only while an event happens, and not
	// after the end.
	tasks sync.WaitGroup
	// assigned takes what a spare instance becomes.
	assigned chan *agentwire.Assignment
	// drained is closed when the instance is given up and no call runs any more,
	// and ended when there is nothing more to do.
	drained, ended chan struct{}

	mu   sync.Mutex
	core *core.Core
	// identity is that of a function's instance, or of a spare one until it is
	// assigned.
	identity identity
	timer    *time.Timer
	session  *session // the last one
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
		tell: a.tell, log: deps.Log,
	}
	return a
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
	starting, abandon := context.WithCancel(ctx)
	defer abandon()
	a.begin(core.New(params))
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
	a.tasks.Wait()
	a.gateways.closeIdle()
	return startErr
}

func (a *Agent) begin(c *core.Core) {
	a.mu.Lock()
	a.core = c
	a.timer = time.AfterFunc(time.Hour, func() { a.tell(core.Wake{}) })
	a.mu.Unlock()
	a.tell(core.Begin{})
}

// tell tells the core what happened, and does what it decides.
func (a *Agent) tell(e core.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(e, nil)
}

// step is tell for callers that hold the lock. If the event is what a scheduler said,
// said is all that came with it.
func (a *Agent) step(e core.Event, said *agentwire.PullReply) {
	for _, effect := range a.core.Step(time.Now(), e) {
		a.carryOut(effect, said)
	}
}

// carryOut carries out one effect, or starts what does. The caller holds the lock.
func (a *Agent) carryOut(e core.Effect, said *agentwire.PullReply) {
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
		a.launch(e.Attempt, e.Ticket, (*attempt).claimAndRun)
	case core.Start:
		if !e.Unclaimed {
			a.attempts[e.Attempt].grant()
			return
		}
		request := said.GetTicket().GetRequest()
		a.launch(e.Attempt, e.Ticket, func(at *attempt, ctx, callCtx context.Context) { at.runUnclaimed(ctx, callCtx, request) })
	case core.Release:
		a.attempts[e.Attempt].release()
	case core.Cancel:
		a.attempts[e.Attempt].cancel(errUnwanted)
	case core.Cut:
		a.attempts[e.Attempt].cut(a.function.lost())
	case core.Observe:
		a.tasks.Go(a.audit)
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

// launch begins an attempt. Its contexts are not that of Run, which calls outlive: they
// end by their own deadlines. The first is of the call and of the stream to the gateway;
// the second is of the call alone. The caller holds the lock.
func (a *Agent) launch(n core.Attempt, t invocation.Ticket, run func(at *attempt, ctx, callCtx context.Context)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	callCtx, cut := context.WithCancelCause(ctx)
	at := &attempt{calls: a.calls, number: n, ticket: t, cid: a.identity.cid, cancel: cancel, cut: cut}
	a.attempts[n] = at
	a.tasks.Go(func() {
		defer a.over(at)
		run(at, ctx, callCtx)
	})
}

// over ends an attempt: nothing more is to come of it.
func (a *Agent) over(at *attempt) {
	at.close()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(core.Delivered{Attempt: at.number}, nil)
	delete(a.attempts, at.number)
}

// audit tells the core what is really there.
func (a *Agent) audit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := core.Audit{Calls: slices.Collect(maps.Keys(a.attempts)), FunctionEnd: a.function.how()}
	if a.session != nil && !a.session.over {
		seen.Session = a.session.number
	}
	a.step(seen, nil)
}

// goQuiet closes what is not used and gives memory back. That takes milliseconds.
func (a *Agent) goQuiet() {
	a.gateways.closeIdle()
	runtime.GC() // what pools hold survives one collection
	debug.FreeOSMemory()
}
