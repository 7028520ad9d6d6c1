package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
)

// serveWire serves the scheduler's and the gateway's side of the wire.
func (w *Windlass) serveWire(parts *lifecycle) {
	server := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(wirev1.StreamWindow),
		grpc.StaticConnWindowSize(wirev1.ConnWindow),
	)
	wirev1.RegisterSchedulerServer(server, w.scheduler)
	wirev1.RegisterGatewayServer(server, w.gateway)
	parts.start("wire", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, server.Stop)
		defer stop()
		return server.Serve(w.wireListener)
	})
}

// serveHTTP serves a handler; when it is stopped, requests in flight are waited
// for.
func (w *Windlass) serveHTTP(parts *lifecycle, name string, l net.Listener, handler http.Handler) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	parts.start(name+" listener", func(ctx context.Context) error {
		drained := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(drained)
			limit, cancel := context.WithTimeout(context.Background(), w.config.DrainTimeout)
			defer cancel()
			if server.Shutdown(limit) != nil {
				w.log.Warn("calls in flight did not finish in time and were cut off", "addr", l.Addr().String())
				_ = server.Close()
			}
		})
		err := server.Serve(l)
		if !stop() {
			<-drained
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
}

// operations serves health checks and metrics.
func (w *Windlass) operations() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if !w.gateway.Ready() {
			http.Error(rw, "draining", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(rw, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}
