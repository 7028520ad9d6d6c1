package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/serve"
)

// Names of the subcommands.
const (
	FunctionCommand  = "bench-function"
	ProxyCommand     = "bench-proxy"
	LoadCommand      = "bench-load"
	GatewayCommand   = "bench-gateway"
	SchedulerCommand = "bench-scheduler"
)

// Ready is the line that a worker prints once it can be used.
type Ready struct {
	// URL is where it takes calls, and Ops where it serves metrics; empty if it does not.
	URL string `json:"url,omitempty"`
	Ops string `json:"ops,omitempty"`
	// Wire is where a scheduler takes gateways and agents, host:port.
	Wire string `json:"wire,omitempty"`
}

// Commands are the workers as subcommands.
func Commands() []*cobra.Command {
	return []*cobra.Command{functionCommand(), proxyCommand(), loadCommand(), gatewayCommand(), schedulerCommand()}
}

func workerCommand(use, short string, run func(cmd *cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
	}
}

// untilInputEnds is a context that ends with the standard input.
func untilInputEnds(cmd *cobra.Command) context.Context {
	ctx, cancel := context.WithCancel(cmd.Context())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, cmd.InOrStdin())
	}()
	return ctx
}

func printReady(cmd *cobra.Command, ready Ready) error {
	return json.NewEncoder(cmd.OutOrStdout()).Encode(ready)
}

// listenLoopback listens at a free port.
func listenLoopback() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func urlOf(l net.Listener) string { return "http://" + l.Addr().String() }

// plainServer is net/http's server without settings, as most who measure one use it.
func plainServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
}

// program is a worker with metrics and several parts.
type program struct {
	registry *exposition.Registry
	parts    *lifecycle.Lifecycle
	log      *slog.Logger
}

func newProgram() *program {
	p := &program{
		registry: exposition.NewRegistry(), parts: lifecycle.New(),
		log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	p.registry.MustRegister(collectors.NewGoCollector())
	return p
}

// serveOps serves metrics, and returns where.
func (p *program) serveOps() (url string, err error) {
	l, err := listenLoopback()
	if err != nil {
		return "", err
	}
	handler := serve.Operations(p.registry, func() string { return "" })
	p.parts.Start("operations", func(ctx context.Context) error { return serve.HTTP(ctx, l, handler, 0, p.log) })
	return urlOf(l), nil
}

// wait returns when ctx ends or a part fails.
func (p *program) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.parts.Failed():
		return err
	}
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, l net.Listener, server *http.Server) error {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving at %s: %w", l.Addr(), err)
	}
	return nil
}
