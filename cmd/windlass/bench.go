package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/bench"
	"github.com/windlass-dev/windlass/internal/bench/measure"
	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/cli"
)

// benchSuites are those that bench knows.
func benchSuites() []cli.BenchSuite {
	var suites []cli.BenchSuite
	for _, s := range bench.Suites(cli.DefaultBenchRates) {
		// The defaults are within the bounds.
		plan, _ := bench.NewPlan([]bench.Suite{s}, cli.DefaultBenchRounds, cli.DefaultBenchSpan)
		suites = append(suites, cli.BenchSuite{Name: s.Name, Shows: s.Shows, Takes: plan.Takes(), Stores: s.Stores()})
	}
	return suites
}

// errInterrupted is an error, unlike with servers: who runs bench in a script would take its end for a
// comparison that passed.
var errInterrupted = errors.New("interrupted: nothing was compared or stored")

func runBench(ctx context.Context, c cli.BenchConfig) error {
	suites, err := bench.FindSuites(bench.Suites(c.Rates), c.Suites)
	if err != nil {
		return err
	}
	plan, err := bench.NewPlan(suites, c.Rounds, c.Span)
	if err != nil {
		return err
	}
	if err := probeStore(c.StoreFile); err != nil {
		return err
	}
	stored, err := readStored(c.CheckFile)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	peer := filepath.Join(filepath.Dir(self), peers.Program)
	if _, err := os.Stat(peer); err != nil {
		return fmt.Errorf("the program with the proxies is not there: %w; build it with make build, or copy it there", err)
	}
	from := provenance(c)
	if c.StoreFile != "" {
		for _, doubt := range from.Doubts() {
			fmt.Fprintf(c.Err, "warning: --store: %s\n", doubt)
		}
	}
	fmt.Fprintf(c.Err, "This takes about %v, with at most %d instances at a time.\n", plan.Takes(), plan.Instances())
	progress := benchProgress(c)
	all, err := measure.Run(ctx, measure.Config{Self: self, Agent: c.AgentPath, Peer: peer, Progress: progress}, plan)
	progress("")
	if err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	report := bench.Summarize(from, all)
	checked := c.Out
	if c.JSON {
		checked = c.Err
		err = report.WriteJSON(c.Out)
	} else {
		_, err = io.WriteString(c.Out, report.String())
	}
	if err != nil {
		return err
	}
	if err := report.Failed(); err != nil {
		return err
	}
	return errors.Join(storeBench(c.StoreFile, report), checkBench(checked, c.CheckFile, report, stored))
}

// probeStore reports before minutes of measuring that their figures could not be kept.
func probeStore(file string) error {
	if file == "" {
		return nil
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".windlass-bench-")
	if err != nil {
		return fmt.Errorf("--store %s: %w", file, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// readStored reads what to compare with, if there is a file of it.
func readStored(file string) (bench.Report, error) {
	if file == "" {
		return bench.Report{}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return bench.Report{}, err
	}
	stored, err := bench.ReadJSON(bytes.NewReader(text))
	if err != nil {
		return bench.Report{}, fmt.Errorf("--check %s: %w", file, err)
	}
	return stored, nil
}

// storeBench keeps a report's figures, if there is a file for them.
func storeBench(file string, report bench.Report) error {
	if file == "" {
		return nil
	}
	var text bytes.Buffer
	if err := report.Stored().WriteJSON(&text); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// checkBench compares a report with a stored one, if there is a file of it.
func checkBench(out io.Writer, file string, report, stored bench.Report) error {
	if file == "" {
		return nil
	}
	comparisons, err := bench.Check(report, stored)
	text, ok := bench.CheckTable(comparisons, report, stored)
	fmt.Fprintf(out, "\n%s", text)
	if !ok {
		err = errors.Join(err, fmt.Errorf("a figure is worse than %s allows; measure again on a quiet machine before you believe it", file))
	}
	return err
}

// benchProgress tells on a terminal what is measured, in a line that it rewrites.
func benchProgress(c cli.BenchConfig) func(string) {
	if !c.Terminal {
		return func(string) {}
	}
	return func(text string) { fmt.Fprintf(c.Err, "\r\x1b[K%s", text) }
}

// provenance is that of a report that begins now.
func provenance(c cli.BenchConfig) bench.Provenance {
	load, _ := strconv.ParseFloat(firstWord("/proc/loadavg"), 64)
	return bench.Provenance{
		Command: c.Command, Windlass: buildinfo.Version, Go: runtime.Version(), Date: time.Now().UTC().Truncate(time.Second),
		Machine: processor(), Processors: runtime.GOMAXPROCS(0), Kernel: firstWord("/proc/sys/kernel/osrelease"), Load: load,
		Rounds: c.Rounds, Span: c.Span.String(),
	}
}

// firstWord of a file; empty if it cannot be read.
func firstWord(path string) string {
	text, _ := os.ReadFile(path)
	word, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return word
}

// processor is its model, or else its architecture.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, model, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return runtime.GOARCH
}
