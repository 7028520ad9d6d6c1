package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/windlass-dev/windlass/internal/cli"
)

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
