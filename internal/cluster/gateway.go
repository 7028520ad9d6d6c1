package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/catalog/kube"
	"github.com/windlass-dev/windlass/pkg/gateway"
)

// Gateway runs a gateway until ctx ends and its calls have been answered.
func Gateway(ctx context.Context, config GatewayConfig) error {
	if err := config.Validate(); err != nil {
		return err
	}
	registry, parts := role.NewRegistry(), lifecycle.New()
	log, flush := newLog(config.Common, registry)
	defer flush()
	defer parts.Stop()
	var state role.Readiness
	state.Set(role.Starting)
	if err := startGateway(ctx, config, parts, &state, registry, log); err != nil {
		return role.UnlessDone(ctx, err)
	}
	state.Set("")
	log.Info("ready", "listen", config.Listen)
	err := role.UntilDone(ctx, parts)
	if err == nil {
		// A balancer that routes calls needs a moment to notice.
		state.Set("stopping")
		log.Info("stopping", "delay", config.DrainDelay, "timeout", config.DrainTimeout)
		time.Sleep(config.DrainDelay)
	}
	return err
}

// closeWhenStopping asks clients to close their connections once the gateway is to
// stop, so that none of them sends a call on one that is being closed.
func closeWhenStopping(handler http.Handler, state *role.Readiness) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if state.Get() != "" && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// startGateway makes the parts and starts them in the order in which they need
// each other.
func startGateway(
	ctx context.Context, config GatewayConfig, parts *lifecycle.Lifecycle, state *role.Readiness, registry *exposition.Registry, log *slog.Logger,
) error {
	if err := role.ServeOperations(parts, config.Common, serve.Operations(registry, state.Get), log); err != nil {
		return err
	}
	tls, err := mtls.Load(config.TLSDir, log)
	if err != nil {
		return fmt.Errorf("--tls-dir: %w", err)
	}
	role.RegisterExpiry(registry, tls)
	// 1. Which functions there are, and who owns them.
	source, err := startCatalog(parts, config.Common, kube.Config{}, log)
	if err != nil {
		return err
	}
	schedulers := tls.ClientCredentials(config.Domain().Scheduler())
	watched, known, err := startSlots(parts, config, schedulers, registry, log)
	if err != nil {
		return err
	}
	if err := waitAll(ctx, parts, source.Synced(), known); err != nil {
		return err
	}
	// 2. The gateway, first for instances and then for calls.
	settings := gateway.DefaultConfig()
	settings.ClaimAddr, settings.MaxBody, settings.MaxInvocations = config.Advertise, int64(config.MaxBodySize), config.MaxInFlight
	settings.MaxBodyMemory, settings.LogCalls = int64(config.BodyMemory), config.LogCalls
	settings.ProblemDetail = config.ProblemDetail
	if settings.TrustedProxies, err = gateway.ParseProxies(config.TrustedProxies); err != nil {
		return err
	}
	if settings.URLs, err = config.Hosts.urls(); err != nil {
		return err
	}
	who, err := newCallers(config.Callers, registry, log)
	if err != nil {
		return err
	}
	parts.Start("callers", who.Run)
	traces, err := startTraces(parts, config.Tracing, "windlass-gateway", registry, log)
	if err != nil {
		return err
	}
	g, err := gateway.New(settings, gateway.Deps{
		Catalog: source.Catalog(), Router: watched, Callers: who, Registry: registry, Log: log, Traces: traces,
		Schedulers: schedulers, Left: serve.ClientLeft, Linger: serve.Linger,
	})
	if err != nil {
		return err
	}
	parts.Start("gateway", g.Run)
	if err := serveInstances(parts, config, tls, g, registry); err != nil {
		return err
	}
	calls, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	handler := closeWhenStopping(g, state)
	parts.Start("calls", func(ctx context.Context) error {
		return serve.Calls(ctx, calls, handler, config.DrainTimeout, registry, log)
	})
	// Before the calls end, which may take as long as the longest: others want the instances now.
	parts.OnStop(g.ReturnLoans)
	return nil
}

// serveInstances lets instances claim calls and run them.
func serveInstances(parts *lifecycle.Lifecycle, config GatewayConfig, tls *mtls.Credentials, g *gateway.Gateway, registry *exposition.Registry) error {
	listener, err := net.Listen("tcp", config.WireListen)
	if err != nil {
		return fmt.Errorf("--wire-listen: %w", err)
	}
	agents := serve.NewAgents(registry, tls.CallServer(), g)
	parts.Start("agents", func(ctx context.Context) error { return serve.Agents(ctx, listener, agents) })
	return nil
}

// startCatalog follows the cluster's Functions and their revisions.
func startCatalog(parts *lifecycle.Lifecycle, config role.Common, what kube.Config, log *slog.Logger) (*kube.Source, error) {
	rest, err := restConfig()
	if err != nil {
		return nil, err
	}
	informers, err := newInformers(rest, config.Namespaces, what.Transform())
	if err != nil {
		return nil, err
	}
	source := kube.New(what, kube.Deps{Informers: informers, Log: log})
	parts.Start("informers", informers.Start)
	parts.Start("catalog", source.Run)
	return source, nil
}
