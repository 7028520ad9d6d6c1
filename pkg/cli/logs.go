package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/buildinfo"
)

func (a *app) logsCommand() *cobra.Command {
	var request logRequest
	var invocation string
	cmd := &cobra.Command{
		Use:   "logs {NAME [-f] [--tail N] [--agent] [-n NAMESPACE] | --invocation ID}",
		Short: "Print what a function's instances wrote",
		Long: `Print what the instances of a function wrote to their standard output and error,
each line behind the instance's id.

With --invocation, print what is known of one call, by the id that its answer had
in X-Windlass-Invocation-Id: what became of it, what its time was spent on, and
what its instance wrote meanwhile.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if invocation == "" {
				return oneName(cmd, args)
			}
			if len(args) > 0 {
				return usagef("%q is too much: an invocation's id is enough to find it; remove it", args[0])
			}
			return nil
		},
		ValidArgsFunction: a.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if request.tail < -1 {
				return usagef("--tail %d: write a number of lines, or -1 for all", request.tail)
			}
			if invocation != "" {
				return a.tellStory(cmd.Context(), invocation)
			}
			key, err := a.key(args[0])
			if err != nil {
				return err
			}
			t, err := a.target(cmd.Context())
			if err != nil {
				return err
			}
			if err := t.clusterOnly("agent", request.agent); err != nil {
				return err
			}
			request.key, request.out, request.notes = t.key(key), a.Out, a.Err
			return a.explain(cmd.Context(), t, request.key, t.Log(cmd.Context(), request))
		}),
	}
	cmd.Flags().BoolVarP(&request.follow, "follow", "f", false, "go on with new lines until Ctrl-C")
	cmd.Flags().IntVar(&request.tail, "tail", -1, "print only the last `n` lines of each instance; -1 means all")
	cmd.Flags().BoolVar(&request.agent, "agent", false, "print what the agents beside the function wrote (in a cluster)")
	cmd.Flags().StringVar(&invocation, "invocation", "", "print what is known of the call with this `id`")
	cmd.Flags().StringVar(&a.flags.windlassNamespace, "windlass-namespace", "", "`namespace` that Windlass runs in (default: it is looked for)")
	return cmd
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command",
		Args:  noArgs,
		RunE: run(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "windlass %s (%s, %s/%s)\n", buildinfo.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q is too much: this command takes no arguments; remove it", args[0])
	}
	return nil
}
