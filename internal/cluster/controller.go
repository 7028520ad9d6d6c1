package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/internal/sleep"
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
	settings, err := config.settings(log)
	if err != nil {
		return err
	}
	api, err := restConfig()
	if err != nil {
		return err
	}
	var made atomic.Pointer[controller.Controller]
	unready := func() string {
		if c := made.Load(); c == nil || !c.Ready() {
			return role.Starting
		}
		return ""
	}
	if err := role.ServeOperations(parts, config.Common, serve.Operations(registry, unready), log); err != nil {
		return err
	}
	if err := awaitAPIServer(ctx, api, log); err != nil {
		return role.UnlessDone(ctx, err)
	}
	c, err := controller.New(settings, controller.Deps{
		REST: api, Registerer: registry, Log: log,
		Dial: []grpc.DialOption{grpc.WithTransportCredentials(tls.ClientCredentials(config.Domain().Scheduler()))},
	})
	if err != nil {
		return err
	}
	made.Store(c)
	parts.Start("controller", c.Run)
	return role.UntilDone(ctx, parts)
}

// settings are those of the controller itself, with what is in files.
func (c ControllerConfig) settings(log *slog.Logger) (controller.Config, error) {
	runtimes, err := readRuntimes(c.RuntimesFile)
	if err != nil {
		return controller.Config{}, err
	}
	urls, err := c.Hosts.urls()
	if err != nil {
		return controller.Config{}, err
	}
	permits, err := readPermits(c.PolicyFile, log)
	if err != nil {
		return controller.Config{}, err
	}
	return controller.Config{
		Namespace: c.Namespace, Namespaces: c.Namespaces, SchedulerService: c.Schedulers,
		Hosts: gatewayaddress.Rules{URLs: urls, Permits: permits}, Runtimes: runtimes, Egress: c.Egress, NodeAgents: c.NodeAgents,
		LatencyCritical: c.LatencyCritical, LeaderElection: c.LeaderElection,
	}, nil
}

// apiServerRetry is how long after a failure awaitAPIServer asks again.
const apiServerRetry = 2 * time.Second

// awaitAPIServer waits until the API server says what it knows of Windlass's kinds, or that it knows
// none or does not tell. A program that exited instead would be restarted less and less often, and
// would be away for minutes after an outage.
func awaitAPIServer(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	warned := false
	return sleep.Until(ctx, apiServerRetry, func() (bool, error) {
		err := api.RESTClient().Get().AbsPath("/apis", v1alpha1.GroupVersion.String()).Do(ctx).Error()
		var answer apierrors.APIStatus
		if err == nil || errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError {
			return true, nil
		}
		if !warned && ctx.Err() == nil {
			log.Warn("the API server does not answer; trying again until it does", "every", apiServerRetry, "err", err)
		}
		warned = true
		return false, nil
	})
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
	api, err := restConfig()
	if err != nil {
		return err
	}
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(api, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return controller.Cleanup(ctx, c, config.Namespace, config.Namespaces, log)
}
