package workers

import (
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/processors"
	"github.com/windlass-dev/windlass/internal/serve"
)

// Names of the subcommands.
const (
	GatewayCommand   = "bench-gateway"
	SchedulerCommand = "bench-scheduler"
)

// Commands are the workers as subcommands.
func Commands() []*cobra.Command {
	return []*cobra.Command{gatewayCommand(), schedulerCommand()}
}

// workerCommand is a program that runs, once it has started, until its input ends.
func workerCommand(use, short string, start func(p *program) (peers.Ready, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := peers.UntilEnd(cmd.Context(), cmd.InOrStdin())
			p := newProgram()
			defer p.parts.Stop()
			ready, err := start(p)
			if err != nil {
				return err
			}
			if err := ready.Print(cmd.OutOrStdout()); err != nil {
				return err
			}
			return processors.While(ctx, p.wait)
		},
	}
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
	l, err := peers.Listen()
	if err != nil {
		return "", err
	}
	handler := serve.Operations(p.registry, func() string { return "" })
	p.parts.Start("operations", func(ctx context.Context) error { return serve.HTTP(ctx, l, handler, 0, p.log) })
	return peers.URLOf(l), nil
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
