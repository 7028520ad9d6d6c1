package workers

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/process"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// room is more than the instances of any scenario request: the bench has bounded them.
var room = placement.Amount{MilliCPU: 1 << 30, Memory: 1 << 50}

func schedulerCommand() *cobra.Command {
	var flags roleFlags
	cmd := workerCommand(SchedulerCommand, "Be the scheduler of windlass bench", func(p *program) (peers.Ready, error) {
		return p.startScheduler(flags)
	})
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.data, DataFlag, "", "`folder` for instances")
	cmd.Flags().StringVar(&flags.agent, AgentFlag, "", "`path` of the agent's program")
	return cmd
}

func (p *program) startScheduler(flags roleFlags) (peers.Ready, error) {
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
	driver, err := newDriver(flags, wire, p)
	if err != nil {
		return peers.Ready{}, err
	}
	instances := provisioner.New(
		provisioner.Config{Nodes: []placement.Node{{Name: schedulerID, Allocatable: room}}},
		provisioner.Deps{Driver: driver, StartObserver: driver, Lister: driver, Now: time.Now, Log: p.log},
	)
	s, err := scheduler.New(scheduler.DefaultConfig(), scheduler.Deps{
		Catalog: store.Catalog(), Instances: instances,
		Ownership: ownership.NewStatic(ownership.Owner{ID: schedulerID, Addr: wire.Addr().String()}),
		Registry:  p.registry, Log: p.log, Now: time.Now,
	})
	if err != nil {
		return peers.Ready{}, err
	}
	server := serve.NewWire(p.registry, tls.ServerCredentials(), mtls.RequirePeer(mtls.SchedulerMethods(Domain))...)
	agentwire.RegisterInstancesServer(server, s)
	controlwire.RegisterSchedulerServer(server, s)
	p.parts.OnStop(func() { _ = driver.Close() })
	p.parts.Start("process driver", driver.Run)
	p.parts.Start("provisioner", func(ctx context.Context) error { return instances.Run(ctx, s) })
	p.parts.Start("scheduler", s.Run)
	p.parts.Start("wire", func(ctx context.Context) error { return serve.Wire(ctx, wire, server) })
	return peers.Ready{Ops: ops, Wire: wire.Addr().String()}, nil
}

// newDriver starts instances as processes, whose agents speak TLS with a scheduler at wire.
func newDriver(flags roleFlags, wire net.Listener, p *program) (*process.Driver, error) {
	ca, err := os.ReadFile(filepath.Join(flags.tls, "ca.crt"))
	if err != nil {
		return nil, err
	}
	return process.New(
		process.Config{
			DataDir: flags.data, AgentPath: flags.agent, SchedulerAddr: wire.Addr().String(),
			CA: string(ca), TLSDomain: string(Domain),
		},
		process.Deps{Launcher: process.LauncherFunc(runtimes.Launch), Logger: p.log},
	)
}
