package gateway

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Gateway serves HTTP calls by ServeHTTP and claims by the Gateway service of
// the wire.
type Gateway struct {
	wirev1.UnimplementedGatewayServer

	config   Config
	deps     Deps
	metrics  *metrics // nil if nobody is to be told
	draining atomic.Bool
	door     *door
	// namespaces are of the goroutine that watches the catalog.
	namespaces namespaces
	// turnedAway holds an element if a ticket is to be offered again soon.
	turnedAway chan struct{}

	mu sync.Mutex
	// calls are those that wait or run, at most Config.MaxInvocations.
	calls map[invoke.ID]*call
	links map[string]*link
	// routes are the addresses that the slots' tickets went to when it was
	// last looked at.
	routes [ownership.Slots]string
	// ctx bounds the links; nil unless Run runs.
	ctx     context.Context
	running sync.WaitGroup
}

// New makes a Gateway. It starts nothing.
func New(config Config, deps Deps) (*Gateway, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if deps.Callers == nil {
		deps.Callers = everybody{}
	}
	if deps.Left == nil {
		deps.Left = func(*http.Request) bool { return false }
	}
	door := newDoor(config)
	return &Gateway{
		config:  config,
		door:    door,
		deps:    deps,
		metrics: newMetrics(deps.Registry, deps.Catalog, config, door),

		namespaces: make(namespaces),

		turnedAway: make(chan struct{}, 1),

		calls: make(map[invoke.ID]*call),
		links: make(map[string]*link),
	}, nil
}

// Run keeps the streams to schedulers and offers again what waits too long,
// until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer g.running.Wait()
	defer cancel()
	g.mu.Lock()
	g.ctx = ctx
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.ctx = nil
		g.mu.Unlock()
	}()
	g.running.Go(func() { _ = g.deps.Catalog.Watch(ctx, g.functionChanged) })

	tick := time.NewTicker(core.ReofferEvery)
	defer tick.Stop()
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.turnedAway:
			if soon == nil {
				soon = time.After(core.ReofferSoon)
			}
		case now := <-soon:
			soon = nil
			g.reofferOverdue(now)
		case now := <-tick.C:
			g.reofferOverdue(now)
		case <-g.deps.Router.Changed():
			g.rerouted(time.Now())
		}
	}
}

// Drain refuses new calls from now on; those that are here go on.
func (g *Gateway) Drain() { g.draining.Store(true) }

// Ready tells whether new calls are taken.
func (g *Gateway) Ready() bool { return !g.draining.Load() }

// keep takes a call in; false if there is no room for it.
func (g *Gateway) keep(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.calls) >= g.config.MaxInvocations {
		return false
	}
	g.calls[c.id] = c
	c.stay.enter()
	return true
}

// forget drops a call that is over.
func (g *Gateway) forget(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[c.id] == c {
		delete(g.calls, c.id)
		c.stay.leave()
	}
}

// find returns the call that waits or runs under an id, or nil.
func (g *Gateway) find(id invoke.ID) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[id]
}

// step lets an event happen to a call, and does what follows from it. If the call fails,
// p says why, unless it was late.
func (g *Gateway) step(c *call, e event, p problem) core.Decision {
	d := c.decide(e, p)
	g.carryOut(c, d)
	return d
}

// carryOut does what was decided about a call.
func (g *Gateway) carryOut(c *call, d core.Decision) {
	if d.End {
		g.forget(c)
	}
	if d.Withdraw {
		g.withdraw(c)
	}
	if d.Offer {
		g.offer(c)
	}
	if d.Cancel {
		c.cancel()
	}
}

// offer sends a call's ticket to the scheduler that serves the function's slot. If there
// is none now, or the stream to it is down, the ticket is sent again later.
func (g *Gateway) offer(c *call) {
	ticket, again, waits := c.ticket()
	if !waits {
		return
	}
	g.metrics.offered(again)
	if l := g.linkTo(c.slot); l != nil {
		l.offer(ticket)
	}
}

// withdraw tells the owner that nobody wants a call's ticket any more.
func (g *Gateway) withdraw(c *call) {
	if l := g.linkTo(c.slot); l != nil {
		l.withdraw(c.id, string(c.function.UID))
	}
}

// reofferOverdue sends again the tickets that have waited for so long that a
// message may have been lost.
func (g *Gateway) reofferOverdue(now time.Time) {
	g.audit(now, func(ownership.Slot) bool { return false })
}

// rerouted sends again the tickets of slots that another scheduler serves now.
func (g *Gateway) rerouted(now time.Time) {
	var moved [ownership.Slots]bool
	g.mu.Lock()
	for slot := range g.routes {
		to, _, _ := g.deps.Router.Route(ownership.Slot(slot))
		moved[slot] = g.routes[slot] != to.Addr
		g.routes[slot] = to.Addr
	}
	g.mu.Unlock()
	if slices.Contains(moved[:], true) {
		g.audit(now, func(slot ownership.Slot) bool { return moved[slot] })
	}
}

// audit compares what is believed of all calls with what is seen of them; moved are the
// slots whose tickets may be lost.
func (g *Gateway) audit(now time.Time, moved func(ownership.Slot) bool) {
	for _, c := range g.held() {
		if seen, due := c.observe(now, moved(c.slot)); due {
			fn, exists := g.deps.Catalog.Get(c.function.Key())
			seen.Deleted = !exists || fn.UID != c.function.UID
			g.carryOut(c, c.audit(now, seen))
		}
	}
}

// held are the calls that wait or run.
func (g *Gateway) held() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.calls))
}

// refused handles a scheduler's refusal of a ticket.
func (g *Gateway) refused(id invoke.ID, r invoke.Refusal) {
	switch r.Reason {
	case invoke.RefusedUnknownFunction, invoke.RefusedNotOwner:
		// The scheduler may not know yet, or another one does: the ticket
		// is offered again until the function is gone here too.
		g.offerSoon(id)
		return
	}
	if c := g.find(id); c != nil {
		g.step(c, (*core.Invocation).Refuse, fromRefusal(r))
	}
}

// offerSoon lets a ticket that no queue has be offered again.
func (g *Gateway) offerSoon(id invoke.ID) {
	if c := g.find(id); c != nil {
		c.decide(func(v *core.Invocation) core.Decision { v.NotQueued(); return core.Decision{} }, problem{})
	}
	select {
	case g.turnedAway <- struct{}{}:
	default:
	}
}

// linkTo returns the link to the scheduler that serves a slot, if there is one.
func (g *Gateway) linkTo(slot ownership.Slot) *link {
	owner, _, known := g.deps.Router.Route(slot)
	if !known {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil {
		return nil
	}
	l, known := g.links[owner.Addr]
	if !known {
		ctx := g.ctx
		l = newLink(g, owner.Addr)
		g.links[owner.Addr] = l
		g.running.Go(func() { l.run(ctx) })
	}
	return l
}

// unlink forgets a link that nobody has used since the given time; false if
// somebody has.
func (g *Gateway) unlink(l *link, since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.usedAfter(since) {
		return false
	}
	delete(g.links, l.addr)
	return true
}
