package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// DemoConfig is the configuration of windlass demo.
type DemoConfig struct {
	// TraceDir is a folder with a recorded trace, which exists; empty means
	// the built-in one.
	TraceDir string
	// Minutes of the trace are replayed, at least 1.
	Minutes int
	// Speed is how much faster than recorded the trace is replayed; more
	// than 0.
	Speed float64
	// Seed of everything random.
	Seed uint64
	// ExamplesDir holds the example functions; it exists.
	ExamplesDir string
	// Check makes the demo fail if a call failed or was lost, or if too many calls
	// were cold starts.
	Check bool
	// AgentPath is the absolute path of the agent's program, which exists.
	AgentPath string
	// Out receives the progress.
	Out io.Writer
}

func (r *runner) demoCommand() *cobra.Command {
	config := DemoConfig{Out: r.Out}
	cmd := &cobra.Command{
		Use:   "demo [--trace FOLDER] [--minutes N] [--speed FACTOR] [--seed N] [--check]",
		Short: "Show what Windlass does under load, on this machine",
		Long: `Start a separate Windlass, replay a trace against the example functions, and
report how every call ended. The demo does not touch any other Windlass. It ends
by itself, or with Ctrl-C. Without --trace it replays a synthetic trace, with the
durations of Table I of the SFS paper.`,
		Args: noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if err := r.localOnly("demo"); err != nil {
				return err
			}
			if err := config.validate(); err != nil {
				return err
			}
			var err error
			if config.AgentPath, err = findAgent(""); err != nil {
				return err
			}
			return r.interruptible(cmd.Context(), func(ctx context.Context) error { return r.programs.Demo(ctx, config) })
		}),
	}
	cmd.Flags().StringVar(&config.TraceDir, "trace", "", "`folder` of a recorded trace of Azure Functions (default: a synthetic one)")
	cmd.Flags().IntVar(&config.Minutes, "minutes", 2, "`minutes` of the trace to replay")
	cmd.Flags().Float64Var(&config.Speed, "speed", 3, "`factor` by which to speed up the trace")
	cmd.Flags().Uint64Var(&config.Seed, "seed", 1, "`number` that seeds everything random")
	cmd.Flags().BoolVar(&config.Check, "check", false, "fail if a call fails or is lost, or if too many are cold starts")
	cmd.Flags().StringVar(&config.ExamplesDir, "examples", "examples", "`folder` of the example functions")
	return cmd
}

func (c DemoConfig) validate() error {
	switch {
	case !(c.Speed > 0):
		return usagef("--speed %g must be more than 0; 1 is as recorded, 2 is twice as fast", c.Speed)
	case c.Minutes < 1:
		return usagef("--minutes %d must be at least 1", c.Minutes)
	case c.TraceDir != "" && !isFolder(c.TraceDir):
		return usagef("--trace %s: there is no such folder; check the path, or leave it out for the synthetic trace", c.TraceDir)
	case !isFolder(c.ExamplesDir):
		return usagef("--examples %s: there is no such folder; run this in the project's folder, or name that of its examples", c.ExamplesDir)
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
