package local

import (
	"context"
	"net"
	"net/http"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/sameuser"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/gateway"
)

// serveWire serves the scheduler's and the gateway's side of the wire.
func (w *Windlass) serveWire(parts *lifecycle.Lifecycle) {
	server := serve.NewWire(w.registry)
	agentwire.RegisterInstancesServer(server, w.scheduler)
	controlwire.RegisterSchedulerServer(server, w.scheduler)
	agentwire.RegisterGatewayServer(server, w.gateway)
	parts.Start("wire", func(ctx context.Context) error { return serve.Wire(ctx, sameuser.Listen(w.wire), server) })
}

// serveHTTP serves a handler.
func (w *Windlass) serveHTTP(parts *lifecycle.Lifecycle, name string, l net.Listener, handler http.Handler) {
	parts.Start(name+" listener", func(ctx context.Context) error {
		return serve.HTTP(ctx, l, handler, w.config.DrainTimeout, w.log)
	})
}

// serveCalls serves the gateway.
func (w *Windlass) serveCalls(parts *lifecycle.Lifecycle) {
	parts.Start("gateway listener", func(ctx context.Context) error {
		return serve.Calls(ctx, w.front, w.calls(), w.config.DrainTimeout, w.registry, w.log)
	})
}

// calls is the gateway. Who calls with a key is no page that came along.
func (w *Windlass) calls() http.Handler {
	if w.callers != nil {
		return w.gateway
	}
	return w.guarded(w.gateway)
}

// guarded keeps other people's web pages away from a handler.
func (w *Windlass) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		if why := w.config.WebGuard.Refuses(r); why != "" {
			gateway.Forbid(to, why+"; start windlass up with --allow-origin for each origin that may")
			return
		}
		next.ServeHTTP(to, r)
	})
}

// unready is why no new calls are taken, or nothing.
func (w *Windlass) unready() string {
	if !w.gateway.Ready() {
		return "draining"
	}
	return ""
}
