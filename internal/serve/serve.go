package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
)

// NewWire makes a gRPC server for the wire's services.
func NewWire(more ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(more,
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(wirev1.StreamWindow),
		grpc.StaticConnWindowSize(wirev1.ConnWindow),
	)...)
}

// Wire serves until ctx ends. Streams that are open then are cut.
func Wire(ctx context.Context, l net.Listener, server *grpc.Server) error {
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(l)
}

// HTTP serves HTTP/1.1 and unencrypted HTTP/2 until ctx ends. Requests in flight
// are waited for, for as long as drain says; then they are cut off.
func HTTP(ctx context.Context, l net.Listener, handler http.Handler, drain time.Duration, log *slog.Logger) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		limit, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		if server.Shutdown(limit) != nil {
			log.Warn("calls in flight did not finish in time and were cut off", "addr", l.Addr().String())
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
}

// Operations serves health checks and metrics. unready says why the program
// should get no work now; empty means that it should.
func Operations(gatherer prometheus.Gatherer, unready func() string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := unready(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}
