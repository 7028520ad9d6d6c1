package podagent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/kerneltimer"
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
	// NewTimer makes what wakes it up, not set yet; nil for kerneltimer.Go. Run stops it.
	NewTimer func(due func()) kerneltimer.Waker
}

// Agent is the agent of one instance.
type Agent struct {
	config agentenv.Config
	deps   Deps
	// dialScheduler connects to the scheduler of an address; empty for any. dialGateway
	// connects to a gateway.
	dialScheduler func(addr string) (conn, error)
	// dialNode connects to the node agent.
	dialNode    func(addr string) (conn, error)
	dialGateway func(ctx context.Context, addr string) (net.Conn, error)
	// jitter is core.Params.Jitter.
	jitter   float64
	function *functionEnd
	// tasks are the goroutines that Run waits for. Only core effects start them, and none
	// after core.End.
	tasks     sync.WaitGroup
	nodeAgent nodeAgent
	// assigned delivers the assignment of a spare instance.
	assigned chan *agentwire.Assignment
	// named is closed once the instance belongs to a function.
	named chan struct{}
	// drained is closed when the instance drains and no call runs any more, and ended when the
	// agent has finished.
	drained, ended chan struct{}

	mu   sync.Mutex
	core *core.Core
	// identity changes once, when a spare instance is assigned.
	identity identity
	timer    kerneltimer.Waker
	session  *session // the latest
	// unanswered says that the scheduler of the session before has sent nothing.
	unanswered bool
	attempts   map[core.Attempt]*attempt
	conns      map[core.Conn]*gatewayConn
	// resumables are the connections that broke recently, by their gateways' addresses.
	resumables map[string]resumable
	workers    workers
	served     bool // has run a call
	// arrived is the call of the core.Called that is being handled.
	arrived *attempt
	// deadlines ends calls whose time is over, at deadline; zero if it is not set.
	deadlines *time.Timer
	deadline  time.Time
}

// conn is a connection to a scheduler.
type conn interface {
	grpc.ClientConnInterface
	io.Closer
}

// New makes an Agent. It starts nothing.
func New(config agentenv.Config, deps Deps) *Agent {
	if deps.NewTimer == nil {
		deps.NewTimer = kerneltimer.Go
	}
	a := &Agent{
		config:      config,
		deps:        deps,
		dialGateway: deps.Dialer.Gateway,
		dialScheduler: func(addr string) (conn, error) {
			if addr == "" {
				addr = config.Scheduler
			}
			return deps.Dialer.Scheduler(addr)
		},
		dialNode:   func(addr string) (conn, error) { return deps.Dialer.Node(addr) },
		jitter:     1 + rand.Float64()/10,
		function:   newFunctionEnd(),
		identity:   identityOf(config),
		assigned:   make(chan *agentwire.Assignment, 1),
		named:      make(chan struct{}),
		drained:    make(chan struct{}),
		ended:      make(chan struct{}),
		attempts:   make(map[core.Attempt]*attempt),
		conns:      make(map[core.Conn]*gatewayConn),
		resumables: make(map[string]resumable),
	}
	a.workers.agent = a
	if !config.Spare {
		close(a.named)
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
	joining, leave := context.WithCancel(context.Background())
	defer leave()
	if a.config.Node != "" {
		watching.Go(func() { a.keepNodeStream(joining) })
	}
	awaiting.Go(func() { startErr = a.awaitFunction(starting) })
	select {
	case <-a.drained:
	case <-ctx.Done():
		a.notify(core.Stop{Detail: "the agent received a stop signal: " + context.Cause(ctx).Error()})
		<-a.drained
	}
	abandon()
	awaiting.Wait()
	<-a.ended
	a.timer.Stop()
	leave()
	watching.Wait()
	a.tasks.Wait()
	return startErr
}

func (a *Agent) startCore(c *core.Core) {
	a.mu.Lock()
	a.core = c
	a.timer = a.deps.NewTimer(func() { a.notify(core.Wake{}) })
	a.deadlines = time.AfterFunc(time.Hour, a.checkDeadlines)
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
		a.session.cancel(errDropped)
	case core.LoadFunction:
		a.applyAssignment(reply.GetAssignment())
	case core.RunAudit:
		a.tasks.Go(a.audit)
	case core.Quiet:
		a.tasks.Go(a.goQuiet)
	case core.WakeAt:
		a.timer.Reset(time.Until(e.Time))
	case core.Draining:
		a.deps.Log.Info("draining", "reason", e.Reason.String(), "detail", e.Detail)
	case core.Drained:
		close(a.drained)
	case core.End:
		a.deadlines.Stop()
		a.workers.release(true)
		close(a.ended)
	case core.GatewayEffect:
		a.carryOutAtGateway(e)
	case core.NodeEffect:
		a.carryOutAtNode(e)
	default:
		notCarriedOut(e)
	}
}

// notCarriedOut panics: an effect that nobody carries out would break a promise of the core.
func notCarriedOut(e core.Effect) {
	panic(fmt.Sprintf("podagent: nothing carries out the effect %T", e))
}

// carryOutAtGateway is carryOut for the effects about gateways and their calls.
func (a *Agent) carryOutAtGateway(e core.GatewayEffect) {
	switch e := e.(type) {
	case core.Accept:
		at := a.arrived
		at.number, at.waiting = e.Attempt, true
		a.attempts[e.Attempt], at.conn.calls[at.wire] = at, at
	case core.Start:
		a.attempts[e.Attempt].start(e.CoreWait)
	case core.Deliver:
		if at := a.attempts[e.Attempt]; at != nil {
			at.deliver(e)
		}
	case core.Connect:
		a.connect(e)
	case core.Disconnect:
		a.conns[e.Conn].disconnect()
	case core.Claim:
		a.claim(e)
	case core.Release:
		a.attempts[e.Attempt].release()
	case core.Decline:
		a.conns[e.Conn].decline(e.Call)
	case core.Lend:
		a.conns[e.Conn].sendCount(callwire.KindLend, e.Credits)
	case core.TellNode:
		a.conns[e.Conn].tellNode(e.Busy)
	case core.TellWait:
		a.attempts[e.Attempt].tellWait(e.Waits)
	case core.TakeBack:
		a.conns[e.Conn].sendCount(callwire.KindTakeBack, e.Credits)
	case core.Cancel:
		a.attempts[e.Attempt].cancelCall(errUnwanted)
	case core.Cut:
		a.attempts[e.Attempt].cancelCall(a.function.lostError())
	default:
		notCarriedOut(e)
	}
}

// audit feeds the core the observed state.
func (a *Agent) audit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := core.Audit{Conns: slices.Collect(maps.Keys(a.conns)), FunctionEnd: a.function.how()}
	for n, at := range a.attempts {
		if !at.waiting {
			seen.Calls = append(seen.Calls, n)
		}
	}
	if a.session != nil && !a.session.over {
		seen.Session = a.session.number
	}
	a.step(seen, nil)
}

// goQuiet gives memory back. That takes milliseconds.
func (a *Agent) goQuiet() {
	a.mu.Lock()
	a.workers.release(false)
	a.mu.Unlock()
	runtime.GC() // what pools hold survives one collection
	debug.FreeOSMemory()
}
