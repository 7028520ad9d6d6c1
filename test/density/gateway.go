package main

import (
	"context"
	"crypto/tls"

	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// schedulerID is also the name of the node.
const schedulerID = "density"

func (p *program) startGateway(scheduler string) (peers.Ready, error) {
	wire, err := peers.Listen()
	if err != nil {
		return peers.Ready{}, err
	}
	calls, err := peers.Listen()
	if err != nil {
		return peers.Ready{}, err
	}
	config := gateway.DefaultConfig()
	config.ClaimAddr = wire.Addr().String()
	deps := gateway.Deps{
		Catalog: p.catalog, Registry: p.registry, Log: p.log, Left: serve.ClientLeft, Linger: serve.Linger,
		Router: ownership.NewStatic(ownership.Owner{ID: schedulerID, Addr: scheduler}),
	}
	var secure *tls.Config
	if p.tls != nil {
		secure, deps.Schedulers = p.tls.CallServer(), p.tls.ClientCredentials(domain.Scheduler())
	}
	g, err := gateway.New(config, deps)
	if err != nil {
		return peers.Ready{}, err
	}
	agents := serve.NewAgents(p.registry, secure, g)
	p.parts.Start("gateway", g.Run)
	p.parts.Start("agents", func(ctx context.Context) error { return serve.Agents(ctx, wire, agents) })
	p.parts.Start("calls", func(ctx context.Context) error { return serve.Calls(ctx, calls, g, 0, p.registry, p.log) })
	return peers.Ready{URL: peers.URLOf(calls)}, nil
}
