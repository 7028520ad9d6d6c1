package cli

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/pkg/kubecontrol"
)

// Streams are where the command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Programs are what runs inside the windlass process. They return when all that
// they started has ended, and nil if that is because ctx ended.
type Programs struct {
	Up   func(ctx context.Context, config UpConfig) error
	Demo func(ctx context.Context, config DemoConfig) error
	// Sim runs experiments, of those that Experiments lists.
	Sim         func(config SimConfig) error
	Experiments []Experiment
	// Roles are the programs of a cluster, as subcommands.
	Roles []*cobra.Command
}

// Main runs the command with its arguments, without the program's name, and
// returns the exit code. It prints the error, if there is one. A program that is
// called kubectl-windlass is the plugin.
func Main(args []string, streams Streams, programs Programs) int {
	a := newApp(streams, programs)
	a.plugin, a.program = isPlugin(os.Args[0]), callName(os.Args[0])
	return a.main(args)
}

// PluginMain is Main of the kubectl plugin, whose verbs are about a cluster.
func PluginMain(args []string, streams Streams) int {
	a := newApp(streams, Programs{})
	a.plugin = true
	return a.main(args)
}

// NewCommand makes the windlass command, for those who want to document it or
// to put it below another one. Its errors are not printed.
func NewCommand(streams Streams, programs Programs) *cobra.Command {
	return newApp(streams, programs).command()
}

// app is one run of the command.
type app struct {
	Streams
	programs Programs
	now      func() time.Time
	getenv   func(string) string
	// exit ends the process at once.
	exit func(code int)
	// connect makes the client for a cluster.
	connect func(*kubecontrol.Access) (*kubecontrol.Client, error)
	// plugin means that kubectl runs this: it is about a cluster only.
	plugin bool
	// program is how this user starts this program; empty for windlass.
	program string
	// dataDir, namespace and flags are flags.
	dataDir   string
	namespace string
	flags     clusterFlags
	// settledContext is the context of the settings, where these say which Windlass.
	settledContext string
	// home is the namespace of functions that are named without one, inCluster
	// says that the verb is about a cluster, and byDefault that nothing but
	// what was there has made it so. They are known once there is a target.
	home      string
	inCluster bool
	byDefault bool
}

func newApp(streams Streams, programs Programs) *app {
	return &app{Streams: streams, programs: programs, now: time.Now, getenv: os.Getenv, exit: os.Exit,
		home: v1alpha1.DefaultNamespace,
		connect: func(access *kubecontrol.Access) (*kubecontrol.Client, error) {
			return kubecontrol.New(access, streams.Err)
		}}
}

func (a *app) main(args []string) int {
	root := a.command()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return exitOK
	}
	return a.report(cmd, err)
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "windlass COMMAND",
		Short: "Run serverless functions",
		Long: `Windlass runs serverless functions on Kubernetes or on this machine. Instances
pull calls from a queue.

Start it in one terminal, and use it from another:

  windlass up
  windlass deploy --name hello -- python3 app.py
  windlass invoke hello

The verbs are about the Windlass of --data-dir or $WINDLASS_DATA_DIR, or of the
cluster that --context or --kubeconfig name. Without any of them it is the one
that runs on this machine, or else that of the kubeconfig's current context.

Exit codes: 0 done; 1 the function answered with an error; 2 wrong flags,
arguments or manifest; 3 Windlass is not there, refused, or failed.`,
		Version:       buildinfo.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("windlass {{.Version}}\n")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	a.addFlags(root.PersistentFlags())
	if !a.plugin {
		root.AddCommand(a.upCommand(), a.initCommand(), a.devCommand(), a.demoCommand(), a.simCommand())
		root.AddCommand(a.roleCommands()...)
	}
	root.AddCommand(a.deployCommand(), a.diffCommand(), a.validateCommand(), a.scaleCommand(), a.setCommand(), a.editCommand(),
		a.deleteCommand(), a.listCommand(), a.describeCommand(), a.explainCommand(), a.topCommand(),
		a.invokeCommand(), a.logsCommand(), a.keysCommand(), a.checkCommand(), a.doctorCommand(), a.versionCommand())
	if a.plugin {
		asPlugin(root)
	}
	a.finishCompletion(root)
	a.finishHelp(root)
	return root
}

// addFlags adds those that say which Windlass a verb is about.
func (a *app) addFlags(flags *pflag.FlagSet) {
	if !a.plugin {
		flags.StringVar(&a.dataDir, "data-dir", "",
			"`folder` of the running Windlass (default $WINDLASS_DATA_DIR, or else windlass in $XDG_STATE_HOME or ~/.local/state)")
	}
	flags.StringVar(&a.flags.context, "context", "", "`name` of the kubeconfig's context, for a Windlass in a cluster")
	flags.StringVar(&a.flags.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default $KUBECONFIG, or else ~/.kube/config)")
	flags.StringVarP(&a.namespace, "namespace", "n", "",
		"`namespace` of the function (default: the context's, and \""+v1alpha1.DefaultNamespace+"\" on this machine)")
}

// run makes a command's RunE. An error that comes out of it and says nothing
// else of itself is the platform's; what cobra finds before is misuse.
func run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return classify(err)
		}
		return nil
	}
}
