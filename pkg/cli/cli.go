package cli

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/pkg/control"
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
}

// Main runs the command with its arguments, without the program's name, and
// returns the exit code. It prints the error, if there is one.
func Main(args []string, streams Streams, programs Programs) int {
	a := newApp(streams, programs)
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
	// dataDir and namespace are flags.
	dataDir   string
	namespace string
}

func newApp(streams Streams, programs Programs) *app {
	return &app{Streams: streams, programs: programs, now: time.Now, getenv: os.Getenv, exit: os.Exit}
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
		Short: "Run functions that pull their work",
		Long: `Windlass runs functions whose instances pull their calls.

Start it in one terminal, and use it from another:

  windlass up
  windlass deploy --name hello -- python3 app.py
  windlass invoke hello

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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%v", err) })
	root.PersistentFlags().StringVar(&a.dataDir, "data-dir", "",
		"`folder` of the running Windlass (default $WINDLASS_DATA_DIR, or else windlass in $XDG_STATE_HOME or ~/.local/state)")
	root.AddCommand(a.upCommand(), a.demoCommand(),
		a.deployCommand(), a.deleteCommand(), a.listCommand(), a.describeCommand(),
		a.invokeCommand(), a.logsCommand(), a.versionCommand())
	return root
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

// client talks to the Windlass that the flags name.
func (a *app) client() (*control.Client, error) {
	dir, err := a.resolveDataDir()
	if err != nil {
		return nil, err
	}
	return control.NewClient(dir), nil
}
