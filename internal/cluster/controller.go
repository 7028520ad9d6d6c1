package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"google.golang.org/grpc"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/controller"
	gatewayaddress "github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// Controller runs a controller until ctx ends.
func Controller(ctx context.Context, config ControllerConfig) error {
	if err := config.Validate(); err != nil {
		return err
	}
	registry, parts := role.NewRegistry(), lifecycle.New()
	log, flush := newLog(config.Common, registry)
	defer flush()
	defer parts.Stop()
	tls, err := mtls.Load(config.TLSDir, log)
	if err != nil {
		return fmt.Errorf("--tls-dir: %w", err)
	}
	role.RegisterExpiry(registry, tls)
	runtimes, err := readRuntimes(config.RuntimesFile)
	if err != nil {
		return err
	}
	rest, err := restConfig()
	if err != nil {
		return err
	}
	urls, err := config.Hosts.urls()
	if err != nil {
		return err
	}
	permits, err := readPermits(config.PolicyFile, log)
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Config{
		Namespace: config.Namespace, Namespaces: config.Namespaces, SchedulerService: config.Schedulers,
		Hosts: gatewayaddress.Rules{URLs: urls, Permits: permits}, Runtimes: runtimes, Egress: config.Egress, NodeAgents: config.NodeAgents, LatencyCritical: config.LatencyCritical, LeaderElection: config.LeaderElection,
	}, controller.Deps{
		REST: rest, Registerer: registry, Log: log,
		Dial: []grpc.DialOption{grpc.WithTransportCredentials(tls.ClientCredentials(config.Domain().Scheduler()))},
	})
	if err != nil {
		return err
	}
	unready := func() string {
		if !c.Ready() {
			return role.Starting
		}
		return ""
	}
	if err := role.ServeOperations(parts, config.Common, serve.Operations(registry, unready), log); err != nil {
		return err
	}
	parts.Start("controller", c.Run)
	return role.UntilDone(ctx, parts)
}

// readPermits reads which hosts functions of a namespace may have; none if no file is named.
func readPermits(file string, log *slog.Logger) (func(namespace, host string) bool, error) {
	if file == "" {
		return auth.Everybody().Permits, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--policy-file: %w", err)
	}
	policy, unknown, err := auth.ReadPolicy(text)
	if err != nil {
		return nil, fmt.Errorf("--policy-file %s: %w", file, err)
	}
	if len(unknown) > 0 {
		log.Warn("the policy says what this release does not know, which means nothing", "unknown", unknown)
	}
	return policy.Permits, nil
}

// readRuntimes reads a list of Runtimes; none if no file is named.
func readRuntimes(file string) ([]v1alpha1.ClusterRuntime, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--runtimes: %w", err)
	}
	var runtimes []v1alpha1.ClusterRuntime
	if err := yaml.UnmarshalStrict(text, &runtimes); err != nil {
		return nil, fmt.Errorf("--runtimes %s is not a list of ClusterRuntimes: %w", file, err)
	}
	return runtimes, nil
}

// Cleanup removes what an uninstalled Windlass left behind.
func Cleanup(ctx context.Context, config CleanupConfig) error {
	ctx, cancel := context.WithTimeout(ctx, config.Timeout)
	defer cancel()
	log, flush := newLog(config.Common, role.NewRegistry())
	defer flush()
	rest, err := restConfig()
	if err != nil {
		return err
	}
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return controller.Cleanup(ctx, c, config.Namespace, config.Namespaces, log)
}
