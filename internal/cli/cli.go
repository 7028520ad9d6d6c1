package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/internal/buildinfo"
)

// Streams are where the command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Programs are the programs that run inside the windlass process. They return when everything
// that they started has ended, with nil if ctx ended them.
type Programs struct {
	Up   func(ctx context.Context, config UpConfig) error
	Demo func(ctx context.Context, config DemoConfig) error
	// Sim runs experiments, of those that Experiments lists.
	Sim         func(config SimConfig) error
	Experiments []Experiment
	// Bench measures suites, of those that BenchSuites lists.
	Bench       func(ctx context.Context, config BenchConfig) error
	BenchSuites []BenchSuite
	// Roles are the programs of a cluster, and those that Bench starts, as subcommands.
	Roles []*cobra.Command
}

// Main runs the command with its arguments, without the program's name, prints its error, and
// returns the exit code. A program with the name kubectl-windlass is the plugin.
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

// NewCommand makes the windlass command for documentation, or as a subcommand of another one.
// It does not print its errors.
func NewCommand(streams Streams, programs Programs) *cobra.Command {
	return newApp(streams, programs).command()
}

// app is one run of the command.
type app struct {
	*finder
	programs Programs
}

func newApp(streams Streams, programs Programs) *app {
	h := &host{Streams: streams, now: time.Now, getenv: os.Getenv, exit: os.Exit}
	return &app{newFinder(h), programs}
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

Commands talk to the Windlass of --data-dir or $WINDLASS_DATA_DIR, or of the
cluster of --context or --kubeconfig. Without any of these, they talk to the
Windlass on this machine, or else to that of the kubeconfig's current context.

` + exitCodes,
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
		root.AddCommand(a.onThisMachine()...)
		root.AddCommand(a.roleCommands()...)
	}
	root.AddCommand(a.verbs()...)
	if a.plugin {
		asPlugin(root)
	}
	(&completer{a.finder, a.programs}).finishCompletion(root)
	finishHelp(root)
	return root
}

func versionCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command",
		Args:  noArgs,
		RunE: run(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(out, "windlass %s (%s, %s/%s)\n", buildinfo.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}

// onThisMachine are the commands that run something in this process.
func (a *app) onThisMachine() []*cobra.Command {
	reports := reporter{a.finder}
	runs := runner{reports, a.programs}
	return []*cobra.Command{
		runs.upCommand(),
		(&scaffolder{a.finder}).initCommand(),
		(&developer{deployer{reports}, &runs}).devCommand(),
		runs.demoCommand(),
		runs.benchCommand(),
		(&simulator{a.finder, a.programs}).simCommand(),
	}
}

// verbs are the commands about a Windlass.
func (a *app) verbs() []*cobra.Command {
	reports := reporter{a.finder}
	deploys, changes, decided := deployer{reports}, modifier{reports}, decisions{a.finder}
	rollouts := rollouter{a.finder}
	return []*cobra.Command{
		deploys.deployCommand(),
		deploys.diffCommand(),
		(&validator{a.finder}).validateCommand(),
		changes.scaleCommand(),
		changes.setCommand(),
		changes.editCommand(),
		rollouts.rolloutCommand(),
		(&remover{a.finder}).deleteCommand(),
		(&lister{a.finder}).listCommand(),
		(&describer{decided}).describeCommand(),
		decided.explainCommand(),
		(&overview{a.finder}).topCommand(),
		(&invoker{a.finder}).invokeCommand(),
		(&logPrinter{a.finder}).logsCommand(),
		(&keyring{a.finder}).keysCommand(),
		(&prober{a.finder}).checkCommand(),
		(&doctor{a.finder}).doctorCommand(),
		versionCommand(a.Out),
	}
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

func noArgs(cmd *cobra.Command, args []string) error {
	if err := valueApart(cmd, args); err != nil {
		return err
	}
	if len(args) > 0 {
		return usagef("unexpected argument %q: this command takes none", args[0])
	}
	return nil
}

// chooseCommand is what a command does that only has others below it: it says which.
func chooseCommand(choice string) func(*cobra.Command, []string) error {
	return run(func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("%q is no command of %s; write %s", args[0], cmd.Name(), choice)
		}
		return usagef("which? write %s", choice)
	})
}

// roleCommands are the programs of a cluster. They take none of the flags that say
// which Windlass a verb is about: they are one.
func (a *app) roleCommands() []*cobra.Command {
	for _, role := range a.programs.Roles {
		start := role.RunE
		role.RunE = run(func(cmd *cobra.Command, args []string) error {
			var foreign string
			cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
				if f.Changed {
					foreign = f.Name
				}
			})
			if foreign != "" {
				return usagef("--%s means nothing to %s; remove it, and set KUBECONFIG to run outside of a cluster", foreign, cmd.Name())
			}
			return start(cmd, args)
		})
	}
	return a.programs.Roles
}
