package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/internal/bench/workers"
	"github.com/windlass-dev/windlass/internal/cli"
	"github.com/windlass-dev/windlass/internal/cluster"
)

func TestNoFlagThatIsTrueOrFalseIsShownWithAValue(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(flag); flag.Value.Type() == "bool" && name != "" {
				t.Errorf("%s --%s is shown with the value %s", cmd.CommandPath(), flag.Name, name)
			}
		})
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(cli.NewCommand(cli.Streams{}, cli.Programs{Roles: slices.Concat(cluster.Commands(), workers.Commands())}))
}

func TestADemoThatIsInterruptedFailsOnlyIfItChecks(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "podagent")
	if err := os.WriteFile(agent, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := cli.DemoConfig{Minutes: 1, Speed: 1, ExamplesDir: "../../examples", AgentPath: agent, Out: io.Discard}
	if err := runDemo(ctx, c); err != nil {
		t.Errorf("interrupted, a demo ends with %v", err)
	}
	c.Check = true
	if err := runDemo(ctx, c); !errors.Is(err, errUnchecked) {
		t.Errorf("interrupted, a check ends with %v", err)
	}
}
