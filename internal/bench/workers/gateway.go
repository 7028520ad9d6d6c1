package workers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Flags of gateway and scheduler.
const (
	FunctionsFlag = "functions"
	TLSFlag       = "tls-dir"
	SchedulerFlag = "scheduler"
	DataFlag      = "data-dir"
	AgentFlag     = "agent"
)

// Domain is that of the names in the certificates.
const Domain = mtls.Domain("bench.windlass")

const schedulerID = "bench"

// MostBody is the largest request in bytes; the bench sends 100 MiB.
const MostBody = 128 << 20

type roleFlags struct{ functions, tls, scheduler, data, agent string }

func (f *roleFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.functions, FunctionsFlag, "", "`folder` of functions")
	cmd.Flags().StringVar(&f.tls, TLSFlag, "", "`folder` with ca.crt, tls.crt and tls.key")
}

func gatewayCommand() *cobra.Command {
	var flags roleFlags
	cmd := workerCommand(GatewayCommand, "Be the gateway of windlass bench", func(p *program) (peers.Ready, error) {
		return p.startGateway(flags)
	})
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.scheduler, SchedulerFlag, "", "`address` of the scheduler")
	return cmd
}

func (p *program) startGateway(flags roleFlags) (peers.Ready, error) {
	store, err := file.Open(flags.functions)
	if err != nil {
		return peers.Ready{}, err
	}
	tls, err := mtls.Load(flags.tls, p.log)
	if err != nil {
		return peers.Ready{}, err
	}
	ops, err := p.serveOps()
	if err != nil {
		return peers.Ready{}, err
	}
	wire, err := peers.Listen()
	if err != nil {
		return peers.Ready{}, err
	}
	calls, err := peers.Listen()
	if err != nil {
		return peers.Ready{}, err
	}
	config := gateway.DefaultConfig()
	config.ClaimAddr, config.MaxBody = wire.Addr().String(), MostBody
	g, err := gateway.New(config, gateway.Deps{
		Catalog: store.Catalog(), Registry: p.registry, Log: p.log, Left: serve.ClientLeft, Linger: serve.Linger,
		Router:     ownership.NewStatic(ownership.Owner{ID: schedulerID, Addr: flags.scheduler}),
		Schedulers: tls.ClientCredentials(Domain.Scheduler()),
	})
	if err != nil {
		return peers.Ready{}, err
	}
	agents := serve.NewAgents(p.registry, tls.CallServer(), g)
	p.parts.Start("gateway", g.Run)
	p.parts.Start("agents", func(ctx context.Context) error { return serve.Agents(ctx, wire, agents) })
	p.parts.Start("calls", func(ctx context.Context) error { return serve.Calls(ctx, calls, g, 0, p.registry, p.log) })
	return peers.Ready{URL: peers.URLOf(calls), Ops: ops}, nil
}
