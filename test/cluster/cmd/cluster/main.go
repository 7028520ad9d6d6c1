// Command cluster starts, shows and ends the test cluster by hand.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/test/cluster"
)

const usage = `Usage: cluster up [--nodes 3] [--state DIR] [--programs DIR] [--attached]
       cluster status [--state DIR]
       cluster load [--state DIR] ARCHIVE...
       cluster pull-from [--state DIR] REGISTRY URL
       cluster stop-node|start-node [--state DIR] NODE
       cluster down [--state DIR]
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out, diagnostics io.Writer) error {
	if len(arguments) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	flags.SetOutput(diagnostics)
	flags.Usage = func() { fmt.Fprint(diagnostics, usage) }
	state := flags.String("state", cluster.DefaultState, "")
	nodes := flags.Int("nodes", 3, "")
	programs := flags.String("programs", cluster.ProgramsFolder(), "")
	attached := flags.Bool("attached", false, "")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(diagnostics, nil))
	if arguments[0] == "up" {
		return up(ctx, cluster.Config{
			State: *state, Programs: *programs, Nodes: cluster.Nodes(*nodes), Detach: !*attached, Log: log,
		}, out)
	}
	c, err := cluster.Open(*state, log)
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "status":
		return status(c, out)
	case "load":
		for _, archive := range flags.Args() {
			if err := c.LoadImage(ctx, archive); err != nil {
				return err
			}
		}
		return nil
	case "pull-from":
		if flags.NArg() != 2 {
			return fmt.Errorf("pull-from takes a registry and the URL that nodes reach it at\n%s", usage)
		}
		return c.PullFrom(flags.Arg(0), flags.Arg(1))
	case "stop-node":
		return c.StopNode(ctx, flags.Arg(0))
	case "start-node":
		return c.StartNode(ctx, flags.Arg(0))
	case "down":
		return c.Stop(ctx)
	default:
		return fmt.Errorf("no such command: %s\n%s", arguments[0], usage)
	}
}

func up(ctx context.Context, config cluster.Config, out io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	c, err := cluster.Start(limited, config)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", c.Kubeconfig())
	if config.Detach {
		return nil
	}
	<-ctx.Done()
	return c.Stop(context.WithoutCancel(ctx))
}

func status(c *cluster.Cluster, out io.Writer) error {
	s := c.Status()
	fmt.Fprintf(out, "state    %s\nmachine  %s\nrunning  %s\n", c.State(), c.MachineAddress(), strings.Join(s.Running, " "))
	if len(s.Ended) > 0 {
		fmt.Fprintf(out, "ended    %s\n", strings.Join(s.Ended, " "))
	}
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", c.Kubeconfig())
	if len(s.Ended) > 0 {
		return fmt.Errorf("not all of the cluster runs")
	}
	return nil
}
