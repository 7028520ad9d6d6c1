package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// logPrinter prints the logs of instances and of single calls.
type logPrinter struct{ *finder }

func (l *logPrinter) logsCommand() *cobra.Command {
	var request logRequest
	var invocation string
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "logs {NAME [-f] [--tail N] [--since TIME] [--timestamps] [--agent] [-n NAMESPACE] | --invocation ID}",
		Short: "Print what a function's instances wrote",
		Long: `Print what the instances of a function wrote to their standard output and error,
in the order of time, each line after the instance's id.

With --invocation, print the timeline of one call, by the id that its answer had
in Windlass-Invocation-Id, and what its instance wrote meanwhile.`,
		Example: `  windlass logs hello --since 10m --timestamps
  windlass logs hello -f --tail 20`,
		Args: func(cmd *cobra.Command, args []string) error {
			if invocation == "" {
				return oneName(cmd, args)
			}
			if len(args) > 0 {
				return usagef("unexpected argument %q: --invocation ID alone finds the call", args[0])
			}
			return nil
		},
		ValidArgsFunction: l.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if request.tail < -1 {
				return usagef("--tail %d: write a number of lines, or -1 for all", request.tail)
			}
			if since < 0 {
				return usagef("--since %v: write how long ago, for example 10m", since)
			}
			if since > 0 {
				request.since = l.now().Add(-since)
			}
			if invocation != "" {
				if err := withoutEffect(cmd, "with --invocation", "follow", "tail", "since", "timestamps", "agent"); err != nil {
					return err
				}
				return l.printCall(cmd.Context(), invocation)
			}
			if err := withoutEffect(cmd, "without --invocation", "windlass-namespace"); err != nil {
				return err
			}
			key, err := l.key(args[0])
			if err != nil {
				return err
			}
			t, err := l.target(cmd.Context())
			if err != nil {
				return err
			}
			if err := t.clusterOnly("agent", request.agent); err != nil {
				return err
			}
			out := &counter{to: l.Out}
			request.key, request.out, request.notes = t.key(key), out, l.Err
			show := func(ctx context.Context) error { return t.Log(ctx, request) }
			if request.follow {
				show = l.whileRead(show)
			}
			err = show(cmd.Context())
			if err == nil && out.bytes == 0 && request.tail != 0 && !request.follow {
				l.noteSilence(request.key, since)
			}
			return l.explainNotFound(cmd.Context(), t, request.key, err)
		}),
	}
	cmd.Flags().BoolVarP(&request.follow, "follow", "f", false, "keep printing new lines until Ctrl-C")
	cmd.Flags().IntVar(&request.tail, "tail", -1, "print only the last `N` lines, of all instances together; -1 means all")
	cmd.Flags().DurationVar(&since, "since", 0, "print only what was written in the last `TIME`, for example 10m")
	cmd.Flags().BoolVar(&request.timestamps, "timestamps", false, "put the time (UTC) before each line")
	cmd.Flags().BoolVar(&request.agent, "agent", false, "print what the agents beside the function wrote (in a cluster)")
	cmd.Flags().StringVar(&invocation, "invocation", "", "show the timeline and logs of the call with this `ID`")
	cmd.Flags().StringVar(&l.flags.windlassNamespace, "windlass-namespace", "", "with --invocation, the `namespace` that Windlass runs in (default: windlass finds it)")
	return cmd
}

// withoutEffect refuses flags that do nothing in a case.
func withoutEffect(cmd *cobra.Command, when string, flags ...string) error {
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			return usagef("--%s has no effect %s; remove it", flag, when)
		}
	}
	return nil
}

// noteSilence says that nothing was printed because nothing was written.
func (l *logPrinter) noteSilence(key invocation.FunctionKey, since time.Duration) {
	lately := ""
	if since > 0 {
		lately = " in the last " + plainDuration(since)
	}
	fmt.Fprintf(l.Err, "the instances of function %s wrote nothing%s\n", key, lately)
}

// counter counts written bytes.
type counter struct {
	to    io.Writer
	bytes int
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes += n
	return n, err
}
