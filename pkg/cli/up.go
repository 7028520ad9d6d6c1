package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/control"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/tracing"
)

// UpConfig is what windlass up was told.
type UpConfig struct {
	// DataDir is the absolute path of the data folder, which may not exist.
	DataDir string
	// Listen is the gateway's address and OpsListen that of health and
	// metrics: host:port, where port 0 takes a free one.
	Listen, OpsListen string
	// AgentPath is the absolute path of the agent's program, which exists.
	AgentPath string
	// RequireKeys lets nobody call functions who has no API key.
	RequireKeys bool
	// Decider is the algorithm of functions that name none, as fpcs.ByName knows
	// it.
	Decider string
	// MaxBody is the largest body of a call in bytes, at least 1.
	MaxBody int64
	// LogCalls says of which calls a line is logged, and Tracing which of them are
	// recorded as traces.
	LogCalls gateway.LogCalls
	Tracing  tracing.Config
	// Functions are to be applied once calls can be made. They are valid in
	// local mode and have no defaults yet.
	Functions []*v1alpha1.Function
	Log       *slog.Logger
	// Ready is to be called once, when calls can be made and Functions are
	// applied, with what became of them.
	Ready func(info control.Info, applied []control.Applied)
}

// upFlags are the flags of up.
type upFlags struct {
	listen, opsListen, agent, maxBody string
	decider                           string
	files                             []string
	logLevel, logFormat               string
	auth                              bool
	logCalls                          string
	tracing                           tracing.Config
}

func (a *app) upCommand() *cobra.Command {
	flags := upFlags{tracing: tracing.DefaultConfig()}
	cmd := &cobra.Command{
		Use:   "up [-f FILE|FOLDER ...]",
		Short: "Run Windlass on this machine",
		Long: `Run Windlass on this machine until Ctrl-C: gateway, scheduler and functions,
without Kubernetes and without root. Functions that were deployed before are
there again.

The first Ctrl-C takes no new calls and waits for those in flight, a second one
ends at once.`,
		Example: `  windlass up
  windlass up -f examples/ --listen 127.0.0.1:9000`,
		Args: noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if err := a.localOnly("up"); err != nil {
				return err
			}
			config, err := a.upConfig(flags)
			if err != nil {
				return err
			}
			return a.interruptible(cmd.Context(), func(ctx context.Context) error { return a.programs.Up(ctx, config) })
		}),
	}
	cmd.Flags().StringVar(&flags.listen, "listen", "127.0.0.1:8080", "`address` of the gateway, where functions are called")
	cmd.Flags().StringVar(&flags.opsListen, "ops-listen", "127.0.0.1:8081", "`address` of the status page, health checks and metrics")
	cmd.Flags().StringArrayVarP(&flags.files, "filename", "f", nil, "`file` or folder with manifests to deploy, or - for the standard input; repeatable")
	cmd.Flags().StringVar(&flags.agent, "agent", "", "`path` of the agent's program (default: podagent beside this program)")
	cmd.Flags().BoolVar(&flags.auth, "auth", false, "require API keys of callers, and print one that counts for this run")
	cmd.Flags().StringVar(&flags.maxBody, "max-body", "64Mi", "largest `size` of a call's body in bytes, such as 512Ki or 64Mi")
	cmd.Flags().StringVar(&flags.decider, "decider", "horizon", "`algorithm` that creates instances of functions which name none: horizon, listing1 or staleness")
	cmd.Flags().StringVar(&flags.logLevel, "log-level", "info", "least `level` that is logged: debug, info, warn or error")
	cmd.Flags().StringVar(&flags.logFormat, "log-format", "text", "`format` of the log: text or json")
	cmd.Flags().StringVar(&flags.logCalls, "log-calls", string(gateway.LogFailed), "of which `calls` a line is logged: failed, all or none")
	flags.tracing.Flags(cmd.Flags())
	return cmd
}

func (a *app) upConfig(flags upFlags) (UpConfig, error) {
	config := UpConfig{Listen: flags.listen, OpsListen: flags.opsListen, RequireKeys: flags.auth, Decider: flags.decider, Ready: a.printReady}
	for flag, addr := range map[string]string{"--listen": flags.listen, "--ops-listen": flags.opsListen} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return config, usagef("%s %q is no address: write host:port, for example 127.0.0.1:8080", flag, addr)
		}
	}
	if _, known := fpcs.ByName(flags.decider); !known {
		return config, usagef("--decider %q is not known; write horizon, listing1 or staleness", flags.decider)
	}
	config.LogCalls, config.Tracing = gateway.LogCalls(flags.logCalls), flags.tracing
	err := errors.Join(config.LogCalls.Validate(), config.Tracing.Validate())
	if err != nil {
		return config, usagef("%w", err)
	}
	if config.Log, err = newLogger(a.Err, flags.logLevel, flags.logFormat); err != nil {
		return config, err
	}
	if config.MaxBody, err = parseSize(flags.maxBody); err != nil {
		return config, err
	}
	if config.DataDir, err = a.resolveDataDir(); err != nil {
		return config, err
	}
	if _, err := control.SocketPath(config.DataDir); err != nil {
		return config, usagef("%w", err)
	}
	manifests, err := readManifests(flags.files, a.In)
	if err != nil {
		return config, err
	}
	if err := checkLocal(manifests); err != nil {
		return config, err
	}
	for _, m := range manifests {
		config.Functions = append(config.Functions, m.function)
	}
	config.AgentPath, err = findAgent(flags.agent)
	return config, err
}

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
		return nil, usagef("--log-level %q is not known; write debug, info, warn or error", level)
	}
	options.Level = parsed
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, &options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &options)), nil
	}
	return nil, usagef("--log-format %q is not known; write text or json", format)
}

func parseSize(size string) (int64, error) {
	q, err := resource.ParseQuantity(size)
	if err != nil || q.Value() < 1 {
		return 0, usagef("--max-body %q is no size; write a number of bytes, for example 64Mi", size)
	}
	return q.Value(), nil
}

// findAgent is the absolute path of the agent's program.
func findAgent(flag string) (string, error) {
	path := flag
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", inputError(fmt.Errorf("cannot tell where this program is: %w; name the agent's with --agent", err))
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
		return "", inputError(fmt.Errorf("the agent's program is not at %s; build it with make build, or name it with --agent", path))
	case err != nil:
		return "", inputError(fmt.Errorf("cannot look at the agent's program: %w; name another with --agent", err))
	case info.IsDir() || info.Mode()&0o111 == 0:
		return "", inputError(fmt.Errorf("%s is not a program; name the agent's with --agent", path))
	}
	return path, nil
}

// printReady says what runs and what to do now.
func (a *app) printReady(info control.Info, applied []control.Applied) {
	fmt.Fprintf(a.Out, "Windlass %s is up\n", info.Version)
	rows := [][]cell{
		cells("  gateway", info.GatewayURL),
		cells("  status", info.OpsURL+"/"),
		cells("  metrics", info.OpsURL+"/metrics"),
		cells("  data", info.DataDir),
	}
	if info.Key != "" {
		rows = append(rows, cells("  key", info.Key))
	}
	a.table(a.Out, rows)
	for _, one := range applied {
		a.printApplied(one, false)
	}
	next := "windlass list"
	if len(applied) > 0 {
		next = "windlass invoke " + a.short(applied[0].Function.Key())
	}
	fmt.Fprintf(a.Out, "Try in another terminal: %s. Stop with Ctrl-C.\n", next)
}
