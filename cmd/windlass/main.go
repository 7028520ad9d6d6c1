// Command windlass runs functions on this machine, and talks to what it runs.
package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	// Windows of schedules have time zones, and its image holds no other file.
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/bench/workers"
	"github.com/windlass-dev/windlass/internal/cli"
	"github.com/windlass-dev/windlass/internal/cluster"
	"github.com/windlass-dev/windlass/internal/demo"
	"github.com/windlass-dev/windlass/internal/local"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/processors"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

func main() {
	programs := cli.Programs{
		Up: up, Demo: runDemo, Sim: runSim, Experiments: knownExperiments(), Bench: runBench, BenchSuites: benchSuites(),
		Roles: slices.Concat(cluster.Commands(), workers.Commands(), []*cobra.Command{guardCommand()}),
	}
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, programs))
}

func up(ctx context.Context, c cli.UpConfig) error {
	config := local.DefaultConfig()
	config.DataDir, config.AgentPath = c.DataDir, c.AgentPath
	config.Listen, config.OpsListen, config.Pprof = c.Listen, c.OpsListen, c.Pprof
	config.Gateway.MaxBody = c.MaxBody
	config.Gateway.LogCalls, config.Tracing = c.LogCalls, c.Tracing
	config.RequireKeys, config.WebGuard.Origins = c.RequireKeys, c.AllowOrigins
	config.Scheduler.Decider = c.Decider
	config.NodeScheduling = local.NodeScheduling{Order: c.NodeOrder, Slice: c.NodeSlice, CoLocation: c.CoLocation}
	if self, err := os.Executable(); err == nil {
		config.NodeScheduling.Guardian = []string{self, guardCommand().Name()}
	}
	w, err := local.Open(config, c.Log)
	if err != nil {
		return err
	}
	c.KillWith(w.Kill)
	if c.Printed != nil {
		w.OnPrinted(func(l instancelog.Line) { c.Printed(l.Function.String(), string(l.CID), l.At, l.Text) })
	}
	var applied []localapi.Applied
	for _, fn := range c.Functions {
		v1alpha1.Default(fn)
		result, err := w.Store().Apply(fn)
		if err != nil {
			w.Close()
			return err
		}
		registered, _ := w.Store().Get(fn.Key())
		applied = append(applied, localapi.Applied{Result: result, Function: registered})
	}
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-w.Ready():
			c.Ready(w.Info(), withStatus(w, applied))
		case <-ended:
		}
	})
	err = processors.While(ctx, w.Run)
	close(ended)
	telling.Wait()
	return err
}

// withStatus adds what is observed, which is where each function can be called.
func withStatus(w *local.Windlass, applied []localapi.Applied) []localapi.Applied {
	for i, a := range applied {
		fn := a.Function.DeepCopy()
		fn.Status = w.Status(fn)
		applied[i].Function = fn
	}
	return applied
}

// guardCommand is what windlass up starts beside it: should it be killed, no function stays in the
// low band.
func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "guard-bands JOURNAL", Short: "Restore the bands of functions once windlass up is gone",
		Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return cgroups.RunGuardian(os.Stdin, args[0]) },
	}
}

// errUnchecked is an error, though who interrupts a demo that only shows something has just seen enough.
var errUnchecked = errors.New("interrupted: nothing was checked")

func runDemo(ctx context.Context, c cli.DemoConfig) error {
	err := demo.Run(ctx, demo.Config{
		TraceDir: c.TraceDir, Minutes: c.Minutes, Speed: c.Speed, Seed: c.Seed,
		ExamplesDir: c.ExamplesDir, Check: c.Check, AgentPath: c.AgentPath, Out: c.Out, Terminal: term.IsTerminal(int(os.Stdout.Fd())),
	})
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case c.Check:
		return errUnchecked
	}
	return nil
}
