package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/monitor/console"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/internal/webguard"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// UpConfig is the configuration of windlass up.
type UpConfig struct {
	// DataDir is the absolute path of the data folder, which may not exist.
	DataDir string
	// Listen is the gateway's address and OpsListen that of health and
	// metrics: host:port, where port 0 takes a free one.
	Listen, OpsListen string
	// Pprof serves profiles at OpsListen.
	Pprof bool
	// AgentPath is the absolute path of the agent's program, which exists.
	AgentPath string
	// RequireKeys makes the gateway reject callers without an API key.
	RequireKeys bool
	// AllowOrigins are the origins whose web pages may call functions.
	AllowOrigins []string
	// Decider is the algorithm of functions that name none, as autoscaler.ByName knows
	// it.
	Decider string
	// NodeOrder is the order in which calls compute while the machine is busy, empty for none, and
	// NodeSlice how long a call computes before it yields.
	NodeOrder callorder.Order
	NodeSlice callorder.Slice
	// CoLocation keeps functions of class Batch back while those of class LatencyCritical wait.
	CoLocation bool
	// MaxBody is the largest body of a call in bytes, at least 1.
	MaxBody int64
	// LogCalls selects the calls to log, and Tracing those to record as traces.
	LogCalls gateway.LogCalls
	Tracing  tracing.Config
	// Functions are applied once calls can be made. They are valid in local mode and have no
	// defaults yet.
	Functions []*v1alpha1.Function
	Log       *slog.Logger
	// Printed receives each line that a function prints, with the function's name as
	// NAMESPACE/NAME and the instance's id; nil for none.
	Printed func(function, cid string, at time.Time, line string)
	// Ready is called once, when calls can be made and Functions are applied, with the
	// results.
	Ready func(info localapi.Info, applied []localapi.Applied)
	// KillWith takes the function that kills all instances. A second signal calls it before it ends
	// the process, because child processes of functions would outlive that.
	KillWith func(kill func())
}

// upFlags are the flags of up.
type upFlags struct {
	listen, opsListen, agent, maxBody string
	pprof                             bool
	decider                           string
	nodeScheduling, nodeSlice         string
	coLocation                        bool
	files, allowOrigins               []string
	logLevel, logFormat               string
	auth                              bool
	logCalls                          string
	tracing                           tracing.Config
}

// defaultUpFlags are what the flags of up are unless something else is said.
func defaultUpFlags() upFlags {
	return upFlags{
		listen: localapi.DefaultListen, opsListen: localapi.DefaultOpsListen, maxBody: "64Mi", decider: autoscaler.Default(),
		nodeScheduling: "off", nodeSlice: "auto", logLevel: "info", logFormat: "console", logCalls: string(gateway.LogFailed), tracing: tracing.DefaultConfig(),
	}
}

// runner runs a whole Windlass in this process.
type runner struct {
	reporter
	programs Programs
}

func (r *runner) upCommand() *cobra.Command {
	flags := defaultUpFlags()
	cmd := &cobra.Command{
		Use:   "up [-f FILE|FOLDER ...]",
		Short: "Run Windlass on this machine",
		Long: `Run Windlass on this machine until Ctrl-C: gateway, scheduler and functions,
without Kubernetes and without root. Functions that
were deployed before start again.

After the first Ctrl-C, Windlass refuses new calls and waits for those in flight.
A second one ends it at once.`,
		Example: `  windlass up
  windlass up -f examples/ --listen 127.0.0.1:9000`,
		Args: noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if err := r.localOnly("up"); err != nil {
				return err
			}
			config, err := r.upConfig(flags)
			if err != nil {
				return err
			}
			return r.interruptible(cmd.Context(), func(ctx context.Context) error { return r.programs.Up(ctx, config) })
		}),
	}
	cmd.Flags().StringVar(&flags.listen, "listen", flags.listen, "`address` of the gateway, where functions are called")
	cmd.Flags().StringVar(&flags.opsListen, "ops-listen", flags.opsListen, "`address` of the status page, health checks and metrics")
	cmd.Flags().BoolVar(&flags.pprof, "pprof", false, "serve profiles of this program at --ops-listen, below /debug/pprof/")
	cmd.Flags().StringArrayVarP(&flags.files, "filename", "f", nil, "`file` or folder with manifests to deploy, or - for the standard input; repeatable")
	cmd.Flags().StringVar(&flags.agent, "agent", "", "`path` of the agent's program (default: podagent beside this program)")
	cmd.Flags().BoolVar(&flags.auth, "auth", false, "require API keys of callers, and print one that is valid for this run")
	cmd.Flags().StringArrayVar(&flags.allowOrigins, "allow-origin", nil, "`origin` whose web pages may call functions, such as http://localhost:3000; repeatable")
	cmd.Flags().StringVar(&flags.maxBody, "max-body-size", flags.maxBody, "largest `size` of a call's body in bytes, such as 512Ki or 64Mi")
	cmd.Flags().StringVar(&flags.decider, "algorithm", flags.decider, "`algorithm` that says how many instances a function needs: "+autoscaler.Choice())
	cmd.Flags().StringVar(&flags.nodeScheduling, "node-scheduling", flags.nodeScheduling, "`order` in which calls compute while this machine is busy: auto, off, or "+orderChoice())
	cmd.Flags().StringVar(&flags.nodeSlice, "node-slice", flags.nodeSlice, "processor `time` after which a call yields to others: auto, sfs, p95, off, or a time such as 50ms")
	cmd.Flags().BoolVar(&flags.coLocation, "co-location", false, "keep functions of the class Batch off cores, or stop them, while those of the class LatencyCritical wait for cores; needs --node-scheduling")
	cmd.Flags().StringVar(&flags.logLevel, "log-level", flags.logLevel, "minimum log `level`: debug, info, warn or error")
	cmd.Flags().StringVar(&flags.logFormat, "log-format", flags.logFormat, "`format` of the log: console for people, with what functions print; text or json for programs")
	cmd.Flags().StringVar(&flags.logCalls, "log-calls", flags.logCalls, "which `calls` to log: Failed, All or None")
	flags.tracing.Flags(cmd.Flags())
	flags.tracing.ClientFlags(cmd.Flags())
	return cmd
}

func (r *runner) upConfig(flags upFlags) (UpConfig, error) {
	config := UpConfig{Listen: flags.listen, OpsListen: flags.opsListen, Pprof: flags.pprof, RequireKeys: flags.auth, AllowOrigins: flags.allowOrigins, Decider: flags.decider, Ready: r.printReady,
		KillWith: func(kill func()) { r.kill.Store(&kill) }}
	if err := flags.checkAddresses(); err != nil {
		return config, err
	}
	if err := (webguard.Guard{Origins: flags.allowOrigins}).Validate(); err != nil {
		return config, usagef("--allow-origin %w", err)
	}
	if _, known := autoscaler.ByName(flags.decider); !known {
		return config, usagef("--algorithm %q is not known; write %s", flags.decider, autoscaler.Choice())
	}
	if err := config.setNodeScheduling(flags.nodeScheduling, flags.nodeSlice); err != nil {
		return config, err
	}
	if config.CoLocation = flags.coLocation; config.CoLocation && config.NodeOrder == "" {
		return config, usagef("--co-location needs --node-scheduling: write --node-scheduling=auto")
	}
	config.LogCalls, config.Tracing = gateway.LogCalls(flags.logCalls), flags.tracing
	err := errors.Join(config.LogCalls.Validate(), config.Tracing.Validate())
	if err != nil {
		return config, usagef("%w", err)
	}
	if config.MaxBody, err = parseSize(flags.maxBody); err != nil {
		return config, err
	}
	if config.DataDir, err = r.resolveDataDir(); err != nil {
		return config, err
	}
	if err := r.suggestDataDir(config.DataDir); err != nil {
		return config, err
	}
	if _, err := localapi.SocketPath(config.DataDir); err != nil {
		return config, usagef("%w", err)
	}
	if config.Functions, err = r.upFunctions(config.DataDir, flags.files); err != nil {
		return config, err
	}
	if err := r.logTo(&config, flags.logLevel, flags.logFormat); err != nil {
		return config, err
	}
	config.AgentPath, err = findAgent(flags.agent)
	return config, err
}

// upFunctions reads the functions to deploy, each with the namespace that deploy would put it in.
func (r *runner) upFunctions(dataDir string, files []string) ([]*v1alpha1.Function, error) {
	t := localTarget(dataDir)
	if err := r.adopt(t); err != nil {
		return nil, err
	}
	manifests, err := readManifests(files, r.In)
	if err == nil {
		err = r.enforceNamespace(manifests)
	}
	if err != nil {
		return nil, err
	}
	var functions []*v1alpha1.Function
	for _, m := range manifests {
		m.function.Namespace = cmp.Or(m.function.Namespace, t.namespace)
		functions = append(functions, m.function)
	}
	return functions, checkLocal(manifests)
}

// checkAddresses refuses addresses that local mode does not listen on.
func (f upFlags) checkAddresses() error {
	if err := webguard.CheckListen(f.listen); err != nil {
		return usagef("--listen %w", err)
	}
	if err := webguard.CheckListen(f.opsListen); err != nil {
		return usagef("--ops-listen %w", err)
	}
	return nil
}

// orderNames are the orders of calls, and orderChoice lists them.
func orderNames() (names []string) {
	for _, o := range callorder.Orders() {
		names = append(names, string(o))
	}
	return names
}

func orderChoice() string { return strings.Join(orderNames(), ", ") }

func (c *UpConfig) setNodeScheduling(order, slice string) (err error) {
	switch order {
	case "off":
	case "auto":
		c.NodeOrder = callorder.DefaultParams(1).Order
	default:
		if c.NodeOrder, err = callorder.ParseOrder(order); err != nil {
			return usagef("--node-scheduling %q is not known; write auto, off, or one of %s", order, orderChoice())
		}
	}
	if c.NodeSlice, err = callorder.ParseSlice(slice); err != nil {
		return usagef("--node-slice: %w", err)
	}
	return nil
}

// logTo makes the log. People also see what functions print.
func (r *runner) logTo(config *UpConfig, level, format string) error {
	var options slog.HandlerOptions
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
		return usagef("--log-level %q is not known; write debug, info, warn or error", level)
	}
	options.Level = parsed
	switch format {
	case "console":
		people := console.New(r.Err, console.Config{Level: parsed, Colours: r.colours(r.Err), Home: r.home})
		config.Log, config.Printed = slog.New(people), people.Printed
	case "text":
		config.Log = slog.New(slog.NewTextHandler(r.Err, &options))
	case "json":
		config.Log = slog.New(slog.NewJSONHandler(r.Err, &options))
	default:
		return usagef("--log-format %q is not known; write console, text or json", format)
	}
	return nil
}

func parseSize(size string) (int64, error) {
	q, err := resource.ParseQuantity(size)
	if err != nil || q.Value() < 1 {
		return 0, usagef("--max-body-size %q is no size; write a number of bytes, for example 64Mi", size)
	}
	return q.Value(), nil
}

// findAgent is the absolute path of the agent's program.
func findAgent(flag string) (string, error) {
	path, otherwise := flag, "name it with --agent"
	if path == "" {
		// Not every command has the flag.
		otherwise = "copy it there"
		self, err := os.Executable()
		if err != nil {
			return "", inputError(fmt.Errorf("cannot tell where this program is, and so where the agent's: %w", err))
		}
		path = filepath.Join(filepath.Dir(self), "podagent")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", inputError(fmt.Errorf("the agent's program is not at %s; build it with make build, or %s", path, otherwise))
	case err != nil:
		return "", inputError(fmt.Errorf("cannot look at the agent's program: %w; name another with --agent", err))
	case info.IsDir() || info.Mode()&0o111 == 0:
		return "", inputError(fmt.Errorf("%s is not a program; name the agent's with --agent", path))
	}
	return path, nil
}

// printReady says what runs and what to do now.
func (r *runner) printReady(info localapi.Info, applied []localapi.Applied) {
	fmt.Fprintf(r.Out, "Windlass %s is up\n", info.Version)
	rows := [][]cell{
		cells("  gateway", info.GatewayURL),
		cells("  status", info.OpsURL+"/"),
		cells("  metrics", info.OpsURL+"/metrics"),
		cells("  data", info.DataDir),
	}
	if info.Key != "" {
		rows = append(rows, cells("  key", info.Key))
	}
	r.table(r.Out, rows)
	for _, one := range applied {
		r.printApplied(one, false)
	}
	next := "windlass list"
	if len(applied) > 0 {
		next = "windlass invoke " + r.shortName(applied[0].Function.Key())
	}
	fmt.Fprintf(r.Out, "Try in another terminal: %s. Stop with Ctrl-C.\n", r.rewriteCommands(next))
}
