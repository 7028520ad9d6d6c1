package role

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"

	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/serve"
)

// NewCommand makes a subcommand that runs until a signal stops it.
func NewCommand(use, short string, run func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Hidden: true, Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return FromEnvironment(cmd.Flags(), os.Getenv) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			return run(ctx)
		},
	}
}

// FromEnvironment sets the flags that were not given and have a variable.
func FromEnvironment(flags *pflag.FlagSet, getenv func(string) string) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "WINDLASS_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := getenv(name); value != "" && !f.Changed && err == nil {
			if setErr := flags.Set(f.Name, value); setErr != nil {
				err = fmt.Errorf("%s: %w", name, setErr)
			}
		}
	})
	return err
}

// opsDrain is how long a request for health or metrics may take at the end.
const opsDrain = time.Second

// NewLog makes the logger of a valid configuration, also for the libraries that
// have one of their own. Nobody who logs waits for the log to be read. What is
// still to be written is written by flush.
func NewLog(c Common, registerer prometheus.Registerer) (log *slog.Logger, flush func()) {
	l, _ := level(c.LogLevel)
	sink := newLogWriter(os.Stderr)
	registerer.MustRegister(linesDroppedTotal.Func(func() float64 { return float64(sink.Dropped()) }))
	options := &slog.HandlerOptions{Level: l}
	var handler slog.Handler = slog.NewJSONHandler(sink, options)
	if c.LogFormat == "text" {
		handler = slog.NewTextHandler(sink, options)
	}
	log = slog.New(handler)
	klog.SetSlogLogger(log.With("library", "client-go"))
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, sink))
	writing := lifecycle.New()
	writing.Start("log", sink.Run)
	return log, writing.Stop
}

// NewRegistry makes a registry with the metrics of every program.
func NewRegistry() *exposition.Registry {
	registry := exposition.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), serve.NewBuildInfo())
	return registry
}

// ServeOperations serves health checks, metrics and what else there is to ask on the
// port for that from now on.
func ServeOperations(parts *lifecycle.Lifecycle, c Common, handler http.Handler, log *slog.Logger) error {
	listener, err := net.Listen("tcp", c.OpsListen)
	if err != nil {
		return fmt.Errorf("--ops-listen: %w", err)
	}
	if c.Pprof {
		handler = serve.Profiles(handler)
	}
	parts.Start("operations", func(ctx context.Context) error { return serve.HTTP(ctx, listener, handler, opsDrain, log) })
	return nil
}

// Starting is the readiness of a program that has not all its parts yet.
const Starting = "starting"

// Readiness is why a program should get no work; empty if it should.
type Readiness struct{ why atomic.Pointer[string] }

// Set says why, from now on.
func (r *Readiness) Set(why string) { r.why.Store(&why) }

// Get is why.
func (r *Readiness) Get() string { return *r.why.Load() }

// UntilDone waits for the end, or for a failure.
func UntilDone(ctx context.Context, parts *lifecycle.Lifecycle) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-parts.Failed():
		return err
	}
}

// UnlessDone is the error, unless it is only that ctx ended.
func UnlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
