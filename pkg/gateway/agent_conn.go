package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/wire"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// resumeWithin is how long the gateway waits for an instance whose connection broke to say
// which calls came to it. Calls that never came are not lost.
const resumeWithin = 300 * time.Millisecond

// AgentGuard watches over one connection of an agent. It is an alias, so that who serves agents need not
// import this package.
type AgentGuard = interface {
	// Prove says that the agent has proven that a scheduler trusts it.
	Prove()
	// CountToken counts a right or a wrong token.
	CountToken(right bool)
}

// errUnsupported says that an agent shares no protocol with this release.
var errUnsupported = errors.New("gateway: the agent's protocol is not spoken here")

// agentConn is the connection of one agent. Its reader is the goroutine of ServeAgent.
type agentConn struct {
	gateway *Gateway
	shell   *shell // the gateway's
	frames  *callwire.Conn
	guard   AgentGuard
	cid     invocation.CID
	resume  [16]byte
	claimed uint32 // the number of the last claim; the reader's

	mu sync.Mutex // guards everything below; below the locks of pools and calls
	// pool and lender are set by the first valid claim.
	pool   *pool
	lender *core.Lender[*agentConn]
	// nodeBusy says that the agent's node has more to do than cores.
	nodeBusy bool
	// running are the calls that the agent has, by their numbers, and last is that of the last
	// one that the gateway began.
	running map[uint32]*attempt
	last    uint32
	// ended says that nothing more is handed over.
	ended bool
	// resumed says that the agent has another connection by now, and seen is the highest number
	// of a call that came to it by this one.
	resumed bool
	seen    uint32
}

// ServeAgent serves the connection of an agent until it ends.
func (g *Gateway) ServeAgent(conn *callwire.Conn, guard AgentGuard) error {
	c := &agentConn{gateway: g, shell: g.shell, frames: conn, guard: guard, running: make(map[uint32]*attempt)}
	if err := c.greet(); err != nil {
		return err
	}
	g.shell.agents.add(c)
	err := c.serve()
	c.end()
	return err
}

// greet answers the agent's hello.
func (c *agentConn) greet() error {
	first, err := c.frames.Read()
	if err != nil {
		return err
	}
	hello, err := callwire.ParseHello(first)
	if err != nil {
		return err
	}
	c.cid = invocation.CID(hello.CID)
	agreed, ok := wire.AgentProtocols.Meet(wire.Speech{Min: hello.ProtocolMin, Max: hello.ProtocolMax, Features: hello.Features})
	_, _ = rand.Read(c.resume[:]) // never fails
	welcome := callwire.Welcome{Protocol: agreed.Protocol, Features: agreed.Features, Release: buildinfo.Version, Resume: c.resume}
	c.frames.Commit(welcome.Append(c.frames.Begin()))
	if !ok {
		c.gateway.metrics.claimRefused(errUnsupported)
		return errUnsupported
	}
	if hello.Resume != ([16]byte{}) {
		c.shell.agents.resume(hello.Resume, c.cid, hello.Seen)
	}
	return nil
}

// serve handles the agent's frames. What they cause to be written to this connection goes out
// together, once nothing more has come.
func (c *agentConn) serve() error {
	for {
		f, err := c.frames.Read()
		if err != nil {
			return err
		}
		if err := c.onFrame(f); err != nil {
			return err
		}
		if !c.frames.HasWholeFrame() {
			c.frames.Flush()
		}
	}
}

func (c *agentConn) onFrame(f callwire.Frame) error {
	switch f.Kind {
	case callwire.KindClaim:
		return c.onClaim(f)
	case callwire.KindLend, callwire.KindTakeBack:
		return c.onCredits(f)
	case callwire.KindNode:
		return c.onNode(f)
	case callwire.KindHead, callwire.KindBody, callwire.KindEnd, callwire.KindRelease, callwire.KindWindow, callwire.KindLongWait:
		c.mu.Lock()
		a := c.running[f.Call]
		c.mu.Unlock()
		if a == nil {
			return nil // it has ended, which the agent may not have known
		}
		return a.onFrame(f)
	}
	return fmt.Errorf("%w: an agent sends no frame of kind %d", callwire.ErrFrame, f.Kind)
}

// onClaim grants or refuses the claim of a ticket.
func (c *agentConn) onClaim(f callwire.Frame) error {
	claim, err := callwire.ParseClaim(f)
	switch {
	case err != nil:
		return err
	case callwire.ByGateway(f.Call):
		return fmt.Errorf("%w: a claim has an even number", callwire.ErrFrame)
	case f.Call <= c.claimed:
		return fmt.Errorf("%w: the number of a claim was used before", callwire.ErrFrame)
	}
	c.claimed = f.Call
	err = c.claim(f.Call, claim)
	g := c.gateway
	if err == nil {
		g.metrics.claimGranted()
		c.guard.CountToken(true)
		c.guard.Prove()
		c.frames.Trust()
		return nil
	}
	g.metrics.claimRefused(err)
	why := callwire.RefusedNotWaiting
	if errors.Is(err, core.ErrBadToken) {
		why = callwire.RefusedBadToken
		c.guard.CountToken(false)
	}
	c.frames.CommitLater(callwire.AppendRefused(c.frames.Begin(), f.Call, why))
	return nil
}

// claim gives the call of a ticket to the agent, or says why not.
func (c *agentConn) claim(number uint32, claim callwire.Claim) error {
	g := c.gateway
	call := g.calls.find(claim.Invocation)
	if call == nil {
		return core.ErrNotWaiting
	}
	if !call.client.body.ended.Load() && g.deps.Left(call.client.request) {
		c.shell.step(call, (*core.Invocation).ClientLeftEarly, problem{})
	}
	at := call.destination()
	if !c.belongsTo(at) {
		return call.refusal(claim.Token)
	}
	now := time.Now()
	a := &attempt{conn: c, call: call, wire: number, unit: at.unit}
	grant, err := call.claim(a, func(v *core.Invocation) (core.Grant, error) { return v.Claim(now, claim.Token, c.cid) }, now)
	if err != nil {
		return err
	}
	p := c.shell.pools.locked(at, call.function.Key())
	c.lendTo(p)
	if a.lent = !at.unit.Spec.Calls.Limited(); a.lent {
		p.core.Began(c.lender)
	}
	p.mu.Unlock()
	a.pool = p
	c.shell.taken(call)
	if grant.CancelTicket {
		c.shell.cancelTicket(call)
	}
	c.start(a)
	return nil
}

// belongsTo reports whether the agent may claim calls of a unit: an instance has one.
func (c *agentConn) belongsTo(at destination) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool == nil || c.pool.uid == string(at.unit.UID)
}

// lendTo makes the agent a lender of its unit's pool. The caller holds the pool's lock. Only
// the reader calls it.
func (c *agentConn) lendTo(p *pool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool != p {
		c.pool, c.lender = p, core.NewLender(c.cid, c)
		p.core.SetBusy(c.lender, c.nodeBusy)
	}
}

// onNode notes whether the agent's node is busy.
func (c *agentConn) onNode(f callwire.Frame) error {
	busy, err := callwire.ParseNode(f)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.nodeBusy = busy
	p, lender := c.pool, c.lender
	c.mu.Unlock()
	if p != nil {
		c.shell.change(p, c, func(pulls *lentPulls) { pulls.SetBusy(lender, busy) })
	}
	return nil
}

// askToGiveUp asks the agent for a call that has not begun. The frame is not written yet.
func (c *agentConn) askToGiveUp(number uint32) {
	c.frames.CommitLater(callwire.AppendFrame(c.frames.Begin(), callwire.KindGiveUp, 0, number, nil))
}

// taking is how it went to hand a call to an agent by a credit.
type taking int

const (
	takeDone       taking = iota
	takeNotWaiting        // the call no longer waits, or waits for another revision
	takeGone              // the connection has ended
)

// lastNumber is the highest number of a call. Agents open another connection long before.
const lastNumber = math.MaxUint32 - 1

// take hands a waiting call to the agent by a credit. The frame is not written yet. The caller
// holds the pool's lock.
func (c *agentConn) take(call *call, p *pool, now time.Time) taking {
	c.mu.Lock()
	if c.ended || c.last > lastNumber-2 {
		c.mu.Unlock()
		return takeGone
	}
	c.last += 2
	a := &attempt{conn: c, call: call, wire: c.last, pool: p, byLoan: true, lent: true}
	a.longWait = core.LongWait[*agentConn]{At: c.lender, Number: c.last}
	c.mu.Unlock()
	grant, err := call.claim(a, func(v *core.Invocation) (core.Grant, error) {
		if a.unit = call.to.unit; string(a.unit.UID) != p.uid {
			return core.Grant{}, core.ErrNotWaiting // it has moved, and will leave this pool
		}
		return v.ClaimByLoan(now)
	}, now)
	if err != nil {
		return takeNotWaiting
	}
	if grant.CancelTicket {
		c.shell.cancelTicket(call)
		c.gateway.metrics.ticketOvertaken()
	}
	c.start(a)
	return takeDone
}

// start sends the call of an attempt; the frame is not written yet. If the connection has ended
// meanwhile, the agent never saw the call.
func (c *agentConn) start(a *attempt) {
	// Once it is among the running ones, the end of the connection may give the body to the next attempt.
	a.takeBody()
	c.mu.Lock()
	ended := c.ended
	if !ended {
		c.running[a.wire] = a
	}
	c.mu.Unlock()
	if ended {
		go a.neverCame()
		return
	}
	a.send()
	c.mu.Lock()
	a.frames.sent = true
	cancel := a.frames.cancelled
	c.mu.Unlock()
	if cancel {
		a.cancel()
	}
}

// mayCancel reports whether an attempt's call was sent, so that a Cancel comes behind it. If it
// was not, start sends the Cancel.
func (c *agentConn) mayCancel(a *attempt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.frames.cancelled = true
	return a.frames.sent
}

// resumedAt notes that the agent has another connection, and which calls came by this one.
func (c *agentConn) resumedAt(seen uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resumed, c.seen = true, seen
}

// cameUpTo is the highest number of a call that came to the agent, if it has said so.
func (c *agentConn) cameUpTo() (seen uint32, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen, c.resumed
}

// removeAttempt removes an attempt that has ended, and reports whether it was running.
func (c *agentConn) removeAttempt(a *attempt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[a.wire] != a {
		return false
	}
	delete(c.running, a.wire)
	return true
}

// onCredits takes a Lend or a TakeBack. An instance has as many places as its unit's concurrency, so
// what an agent lends beyond that is nothing.
func (c *agentConn) onCredits(f callwire.Frame) error {
	count, err := callwire.ParseCount(f)
	if err != nil {
		return err
	}
	if c.lender == nil {
		return fmt.Errorf("%w: an agent without a valid claim has no credits", callwire.ErrFrame)
	}
	places := int(c.pool.unit.Spec.Template.Concurrency)
	n := int(min(count, uint32(places)))
	c.shell.change(c.pool, c, func(pulls *lentPulls) {
		if f.Kind == callwire.KindTakeBack {
			n = -n
		} else {
			n = min(n, max(0, places-c.lender.Held()))
		}
		pulls.Lend(c.lender, n)
	})
	return nil
}

// lendsTo is the pool whose lender the agent is; nil if it is none.
func (c *agentConn) lendsTo() *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool
}

// returnPlaces gives places back to the agent. The frame is not written yet.
func (c *agentConn) returnPlaces(n int) {
	c.frames.CommitLater(callwire.AppendCount(c.frames.Begin(), callwire.KindReturn, 0, uint32(n)))
}

// end ends the loans of a broken connection, and the calls that the agent has. Calls that the
// gateway began wait a moment for the agent to say whether they came.
func (c *agentConn) end() {
	c.mu.Lock()
	c.ended = true
	p, lender := c.pool, c.lender
	var unsure bool
	var lost []*attempt
	for number, a := range c.running {
		if a.mayNotHaveCome() {
			unsure = true
			continue
		}
		delete(c.running, number)
		lost = append(lost, a)
	}
	c.mu.Unlock()
	c.shell.agents.drop(c, unsure)
	if p != nil {
		c.shell.change(p, c, func(pulls *lentPulls) { pulls.Gone(lender) })
	}
	for _, a := range lost {
		a.instanceLost()
	}
	if unsure {
		c.settleSoon()
	}
}

// settleSoon settles the calls that may not have come to the agent, once it has said which did
// or has had time to say so.
func (c *agentConn) settleSoon() {
	settle := func(seen uint32) {
		if c.shell.agents.takeBroken(c) {
			c.settle(seen)
		}
	}
	if seen, known := c.cameUpTo(); known {
		settle(seen)
		return
	}
	time.AfterFunc(resumeWithin, func() { settle(c.last) })
}

// settle ends the calls that a broken connection has left. Those with numbers up to seen came
// to the agent.
func (c *agentConn) settle(seen uint32) {
	c.mu.Lock()
	left := c.running
	c.running = make(map[uint32]*attempt)
	c.mu.Unlock()
	for number, a := range left {
		if number > seen {
			a.neverCame()
		} else {
			a.instanceLost()
		}
	}
}
