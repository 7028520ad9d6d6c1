package cluster

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/internal/cluster/node"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/processors"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/controller"
	"github.com/windlass-dev/windlass/pkg/gateway"
	gatewayaddress "github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Commands are the roles as subcommands. Every flag may also be given as an
// environment variable: --etcd-prefix as WINDLASS_ETCD_PREFIX.
func Commands() []*cobra.Command {
	return []*cobra.Command{gatewayCommand(), schedulerCommand(), controllerCommand(), node.NewCommand(), cleanupCommand()}
}

// asWide lets a role have as many of Go's processors as it uses.
func asWide(run func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error { return processors.While(ctx, run) }
}

func (c *Etcd) flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&c.Endpoints, "etcd-endpoints", nil, "`URLs` of etcd")
	flags.StringVar(&c.Prefix, "etcd-prefix", "/windlass", "`prefix` of all keys in etcd")
	flags.StringVar(&c.TLSDir, "etcd-tls-dir", "", "`folder` with ca.crt, tls.crt and tls.key for etcd")
	flags.StringVar(&c.Username, "etcd-username", "", "`name` of the user in etcd")
	flags.StringVar(&c.PasswordFile, "etcd-password-file", "", "`file` with the user's password")
}

func (c *HostsConfig) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.ExternalURL, "external-url", "", "`URL` at which clients reach the gateways; the functions' own hosts use its scheme and port")
	flags.StringVar(&c.Domain, "hosts-domain", "", "`domain` under which each function gets its own host, such as fn.example.com; none by default")
	flags.StringVar(&c.Template, "hosts-template", gatewayaddress.DefaultTemplate, "`template` of the functions' own hosts")
}

// advertiseFlag takes IPv6 addresses without brackets too: a pod's manifest can only write
// $(POD_IP):9443.
func advertiseFlag(flags *pflag.FlagSet, advertise *string, usage string) {
	flags.Func("advertise", usage, func(addr string) error {
		*advertise = bracketed(addr)
		return nil
	})
}

func gatewayCommand() *cobra.Command {
	c := GatewayConfig{MaxBodySize: 64 << 20, BodyMemory: 512 << 20, Tracing: tracing.DefaultConfig()}
	cmd := role.NewCommand("gateway", "Run a gateway of a cluster", asWide(func(ctx context.Context) error { return Gateway(ctx, c) }))
	flags := cmd.Flags()
	c.ServingFlags(flags)
	c.Etcd.flags(flags)
	flags.StringVar(&c.Listen, "listen", ":8080", "`address` at which functions are called")
	flags.StringVar(&c.WireListen, "wire-listen", ":9443", "`address` at which instances claim calls")
	advertiseFlag(flags, &c.Advertise, "`address` at which instances reach --wire-listen")
	flags.StringVar(&c.Schedulers, "schedulers", "", "`address` at which any scheduler answers")
	flags.Var(&c.MaxBodySize, "max-body-size", "largest request body, as an `amount`")
	flags.IntVar(&c.MaxInFlight, "max-in-flight", 20_000, "largest number of `calls` at a time")
	flags.Var(&c.BodyMemory, "body-memory", "largest `amount` of memory for the bodies of calls, at least 2Mi")
	c.Callers.flags(flags)
	flags.StringVar((*string)(&c.ProblemDetail), "problem-detail", string(gateway.DetailNone),
		"how much `detail` of internal failures callers see, such as log lines and node names: All or None")
	flags.StringSliceVar(&c.TrustedProxies, "trusted-proxies", nil,
		"`networks`, as CIDRs, of trusted proxies: their X-Forwarded- headers reach functions; none by default")
	c.Hosts.flags(flags)
	flags.StringVar((*string)(&c.LogCalls), "log-calls", string(gateway.LogFailed), "the `calls` to log, one line each: Failed, All or None")
	c.Tracing.Flags(flags)
	c.Tracing.ClientFlags(flags)
	flags.DurationVar(&c.DrainDelay, "drain-delay", 5*time.Second, "how `long` to keep taking calls after a signal to stop")
	flags.DurationVar(&c.DrainTimeout, "drain-timeout", time.Minute, "how `long` to wait for calls after that")
	return cmd
}

func schedulerCommand() *cobra.Command {
	c := SchedulerConfig{Tracing: tracing.DefaultConfig()}
	cmd := role.NewCommand("scheduler", "Run a scheduler of a cluster", asWide(func(ctx context.Context) error { return Scheduler(ctx, c) }))
	flags := cmd.Flags()
	c.ServingFlags(flags)
	c.Etcd.flags(flags)
	flags.StringVar(&c.ID, "id", "", "`name` of this scheduler")
	flags.StringVar(&c.WireListen, "wire-listen", ":9443", "`address` for gateways and instances")
	advertiseFlag(flags, &c.Advertise, "`address` at which others reach --wire-listen")
	flags.StringVar(&c.AgentImage, "agent-image", "", "`image` of the agent")
	flags.StringVar(&c.AgentScheduler, "agent-scheduler", "", "`address` at which agents find any scheduler")
	flags.StringVar(&c.AgentCPU, "agent-cpu", "10m", "CPU `amount` that an agent requests")
	flags.StringVar(&c.AgentMemory, "agent-memory", "32Mi", "memory `amount` that an agent requests")
	flags.StringVar(&c.AgentMemoryLimit, "agent-memory-limit", "256Mi", "memory limit of an agent, as an `amount`")
	flags.StringVar(&c.NodeAgent, "node-agent", "", "`address` at which an instance reaches the node agent of its node; none by default")
	flags.BoolVar(&c.UserNamespaces, "user-namespaces", false, "run each pod in a user namespace of its own, which all nodes must support")
	flags.Int64Var(&c.UserIDs.Base, "user-id-base", 0, "first `user` ID for functions, at least 65536; 0 runs all functions as user 65532")
	flags.Int64Var(&c.UserIDs.Count, "user-id-count", 0, "`number` of user IDs for functions; the name of a namespace selects one of them")
	flags.StringVar(&c.ImagePullPolicy, "image-pull-policy", "", "`policy` for the images of pods")
	flags.Float64Var(&c.CreateQPS, "create-qps", 100, "largest number of pods to create in a `second`")
	flags.StringVar(&c.Decider, "algorithm", autoscaler.Default(), "`algorithm` that says how many instances a function needs: "+autoscaler.Choice())
	flags.DurationVar(&c.LeaseTTL, "lease-ttl", 10*time.Second, "how `long` a scheduler that vanished keeps its slots")
	c.Tracing.Flags(flags)
	flags.DurationVar(&c.HandoverDelay, "handover-delay", ownership.HandoverDelay, "how `long` to redirect gateways and agents after a signal to stop")
	return cmd
}

func controllerCommand() *cobra.Command {
	var c ControllerConfig
	cmd := role.NewCommand("controller", "Run the controller of a cluster", asWide(func(ctx context.Context) error { return Controller(ctx, c) }))
	flags := cmd.Flags()
	c.ServingFlags(flags)
	flags.StringVar(&c.Namespace, "pod-namespace", os.Getenv("POD_NAMESPACE"), "`namespace` that the controller runs in")
	flags.StringVar(&c.Schedulers, "schedulers", "", "headless `Service` of the schedulers")
	c.Hosts.flags(flags)
	flags.StringVar(&c.PolicyFile, "policy-file", "", "`file` that says which further hosts functions may have; none by default")
	flags.StringVar(&c.RuntimesFile, "runtimes", "", "`file` with a list of ClusterRuntimes to install")
	flags.StringVar((*string)(&c.Egress.Mode), "functions-egress", string(controller.EgressOpen), "`mode` that says where functions may connect: Open, Internet or None")
	flags.StringSliceVar(&c.Egress.Except, "functions-egress-except", nil, "`networks` to which functions may not connect, as CIDRs")
	flags.BoolVar(&c.NodeAgents, "node-agents", false, "say that there are node agents, so that classes and slices of functions have an effect")
	flags.StringSliceVar(&c.LatencyCritical, "latency-critical-namespaces", nil, "`namespaces` whose functions may have the class LatencyCritical; * means all")
	flags.BoolVar(&c.LeaderElection, "leader-elect", true, "let only one of several controllers act")
	return cmd
}

func cleanupCommand() *cobra.Command {
	var c CleanupConfig
	cmd := role.NewCommand("cleanup", "Remove what an uninstalled Windlass left in a cluster",
		asWide(func(ctx context.Context) error { return Cleanup(ctx, c) }))
	c.CommonFlags(cmd.Flags())
	cmd.Flags().StringVar(&c.Namespace, "pod-namespace", os.Getenv("POD_NAMESPACE"), "`namespace` that Windlass ran in")
	cmd.Flags().DurationVar(&c.Timeout, "timeout", 5*time.Minute, "how `long` it may take")
	return cmd
}
