package gateway

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
)

// Gateway serves HTTP calls by ServeHTTP and agents by ServeAgent.
type Gateway struct {
	config   Config
	deps     Deps
	metrics  *metrics // nil if nobody counts
	admitter *admitter
	calls    *calls
	shell    *shell
	picker   *picker
	own      *ownHosts
	// draining says that new calls are refused.
	draining atomic.Bool
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
	if deps.Linger == nil {
		deps.Linger = func(*http.Request, time.Time) {}
	}
	admitter, calls := newAdmitter(config.capacity()), newCalls(config.MaxInvocations)
	picker := newPicker()
	metrics := newMetrics(deps.Registry, deps.Catalog, admitter)
	own := newOwnHosts(address.Rules{URLs: config.URLs, Permits: deps.Callers.Permits}, deps.Catalog)
	return &Gateway{
		config: config, deps: deps, metrics: metrics, admitter: admitter, calls: calls,
		shell: newShell(config, deps, calls, metrics, picker, own), picker: picker, own: own,
	}, nil
}

// Run keeps the streams to schedulers and offers tickets again that wait too long, until ctx
// ends.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	known := make(namespaces)
	watching.Go(func() {
		_ = g.deps.Catalog.Watch(ctx, func(e catalog.Event) { g.functionChanged(known, e) })
	})
	g.shell.run(ctx)
	return nil
}

// Drain refuses new calls from now on, and gives lent pulls back; present calls continue.
func (g *Gateway) Drain() {
	g.draining.Store(true)
	g.ReturnLoans()
}

// ReturnLoans gives lent pulls back, also those that come later. New calls are still taken: it is for a
// gateway whose server refuses them, and lets the present ones end.
func (g *Gateway) ReturnLoans() {
	g.shell.returnLoans()
}

// Ready reports whether new calls are admitted.
func (g *Gateway) Ready() bool { return !g.draining.Load() }

// functionChanged drops what the gateway keeps of functions, revisions and namespaces that are
// gone.
func (g *Gateway) functionChanged(known namespaces, e catalog.Event) {
	g.own.changed(e)
	last := known.changed(e)
	if e.Entry == nil {
		g.metrics.deleteFunction(e.Key, last)
	} else {
		g.metrics.deleteRevisions(e.Entry)
	}
	if last {
		g.admitter.dropNamespace(e.Key.Namespace)
	}
}

// namespaces are the functions of each namespace. What the gateway keeps of a namespace goes
// with its last function.
type namespaces map[string]map[string]bool

// changed applies a change. last says that a removed function was the last one of its
// namespace.
func (n namespaces) changed(e catalog.Event) (last bool) {
	of := n[e.Key.Namespace]
	if e.Entry != nil {
		if of == nil {
			of = make(map[string]bool)
			n[e.Key.Namespace] = of
		}
		of[e.Key.Name] = true
		return false
	}
	delete(of, e.Key.Name)
	if len(of) > 0 {
		return false
	}
	delete(n, e.Key.Namespace)
	return true
}
