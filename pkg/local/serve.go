package local

import (
	"context"
	"net"
	"net/http"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/serve"
)

// serveWire serves the scheduler's and the gateway's side of the wire.
func (w *Windlass) serveWire(parts *lifecycle.Lifecycle) {
	server := serve.NewWire(w.registry)
	wirev1.RegisterSchedulerServer(server, w.scheduler)
	wirev1.RegisterGatewayServer(server, w.gateway)
	parts.Start("wire", func(ctx context.Context) error { return serve.Wire(ctx, w.wireListener, server) })
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
		return serve.Calls(ctx, w.gatewayListener, w.gateway, w.config.DrainTimeout, w.registry, w.log)
	})
}

// unready is why no new calls are taken, or nothing.
func (w *Windlass) unready() string {
	if !w.gateway.Ready() {
		return "draining"
	}
	return ""
}
