package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/cli"
)

func TestAnInterruptedBenchFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// It never says that it is ready.
	peer := filepath.Join(filepath.Dir(self), peers.Program)
	if err := os.WriteFile(peer, []byte("#!/bin/sh\ncat >/dev/null\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(peer) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := filepath.Join(t.TempDir(), "ratios.json")
	c := cli.BenchConfig{Suites: []string{"warm"}, Rounds: 1, Span: 10 * time.Millisecond, StoreFile: store, Out: io.Discard, Err: io.Discard}
	if err := runBench(ctx, c); !errors.Is(err, errInterrupted) {
		t.Errorf("interrupted, it ends with %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(store)); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

func TestBenchLooksFirstWhetherItCanStore(t *testing.T) {
	c := cli.BenchConfig{Suites: []string{"warm"}, Rounds: 1, Span: time.Second, StoreFile: filepath.Join(t.TempDir(), "none", "ratios.json"), Err: io.Discard}
	if err := runBench(t.Context(), c); err == nil || !strings.Contains(err.Error(), "--store "+c.StoreFile) {
		t.Errorf("without a folder for --store: %v", err)
	}
}
