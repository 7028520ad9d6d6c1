package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/gateway/table"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// reofferAfter is how long a ticket may go unclaimed before it is
	// offered again: a lost message costs a call at most this long.
	reofferAfter = time.Second
	// reofferEvery is how often such tickets are looked for, and reofferSoon
	// how soon if a scheduler has said that it cannot take one: another one
	// may not know yet that it can.
	reofferEvery = 250 * time.Millisecond
	reofferSoon  = 50 * time.Millisecond
	// runGrace is how much longer than the function's timeout the gateway
	// waits, since the instance reports a timeout better.
	runGrace = 2 * time.Second
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

	mu    sync.Mutex
	table *table.Table[*call]
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

		table: table.New[*call](config.MaxInvocations),
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

	tick := time.NewTicker(reofferEvery)
	defer tick.Stop()
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.turnedAway:
			if soon == nil {
				soon = time.After(reofferSoon)
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

// offer sends a ticket to the scheduler that serves the function's slot. If there
// is none now, or the stream to it is down, the ticket is sent again later.
func (g *Gateway) offer(in table.Invocation[*call], now time.Time, again bool) {
	g.metrics.offered(again)
	l := g.linkTo(in.Payload.slot)
	if l == nil {
		return
	}
	ticket := &wirev1.Ticket{
		InvocationId: in.ID[:],
		FunctionUid:  in.FunctionUID,
		Token:        in.Token[:],
		WaitedNs:     int64(now.Sub(in.Admitted)),
		RemainingNs:  int64(in.Deadline.Sub(now)),
		Request:      in.Payload.ride(in.Attempt + 1),
		Trace:        in.Payload.scope.Wire(),
	}
	if ticket.Request != nil {
		g.mu.Lock()
		g.table.Entrust(in.ID)
		g.mu.Unlock()
	}
	l.offer(ticket)
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
	before := now.Add(-reofferAfter)
	g.reoffer(now, func(_ *call, offered time.Time) bool { return offered.Before(before) })
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
		g.reoffer(now, func(c *call, _ time.Time) bool { return moved[c.slot] })
	}
}

// reoffer sends again the tickets that wait and are due. It answers those that
// nobody can take any more.
func (g *Gateway) reoffer(now time.Time, isDue func(c *call, offered time.Time) bool) {
	g.mu.Lock()
	due := g.table.Due(now, isDue)
	g.mu.Unlock()
	for _, in := range due {
		fn, exists := g.deps.Catalog.Get(in.Payload.function.Key())
		switch {
		case !exists || string(fn.UID) != in.FunctionUID:
			g.refuse(in.ID, newProblem(http.StatusNotFound, invoke.ExecutedNo, reasonDeleted, "the function was deleted while the call waited"))
		case now.After(in.Deadline):
			// It was claimed at its deadline, and given back.
			g.tooLate(in.Payload)
		default:
			g.offer(in, now, true)
		}
	}
}

// refuse answers a call that is still queued; one that is claimed goes on.
func (g *Gateway) refuse(id invoke.ID, p problem) {
	if c, executed, withdrawn := g.unqueue(id); withdrawn {
		c.failQueued(p, executed)
	}
}

// unqueue takes a call out of the table if it is queued, and says whether it may have
// run.
func (g *Gateway) unqueue(id invoke.ID) (c *call, executed invoke.Executed, withdrawn bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c, executed, withdrawn = g.table.Withdraw(id); withdrawn {
		c.stay.leave()
	}
	return c, executed, withdrawn
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
	g.refuse(id, fromRefusal(r))
}

// offerSoon lets a ticket that no queue has be offered again.
func (g *Gateway) offerSoon(id invoke.ID) {
	g.mu.Lock()
	g.table.Unoffer(id)
	g.mu.Unlock()
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
