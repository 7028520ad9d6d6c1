package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// BenchSuite is a suite of measurements of windlass bench.
type BenchSuite struct {
	Name string
	// Shows says in a few words what it is for.
	Shows string
	// Takes is about how long it takes with the default rounds.
	Takes time.Duration
	// Stores says that it has ratios for --store and --check.
	Stores bool
}

// BenchConfig is the configuration of windlass bench.
type BenchConfig struct {
	// Suites are names of suites, at least one, or all.
	Suites []string
	// Rounds count, and each measurement makes calls for Span.
	Rounds int
	Span   time.Duration
	// Rates are the calls a second of open loops, each at least 1.
	Rates []int
	// JSON prints the report as JSON.
	JSON bool
	// StoreFile, if not empty, gets the figures, and CheckFile has some to compare with.
	StoreFile, CheckFile string
	// AgentPath is the absolute path of the agent's program, which exists.
	AgentPath string
	// Command is the command line, for the report.
	Command string
	// Out receives the report and Err the progress; Terminal says that Err is one.
	Out, Err io.Writer
	Terminal bool
}

// Defaults of windlass bench.
const (
	DefaultBenchRounds = 5
	DefaultBenchSpan   = time.Second
)

// DefaultBenchRates are calls a second.
var DefaultBenchRates = []int{100, 500, 1000, 2000}

func (r *runner) benchCommand() *cobra.Command {
	config := BenchConfig{Out: r.Out, Err: r.Err, Terminal: isTerminal(r.Err)}
	var agent string
	cmd := &cobra.Command{
		Use:   "bench [SUITE ...] [--rounds N] [--span TIME] [--rate N ...] [--json] [--store FILE] [--check FILE]",
		Short: "Measure what a call costs, on this machine",
		Long: `Measure what a call through Windlass costs beside a hop through a proxy, on this
machine. Without a name it lists the suites; "all" runs every one.

It starts a function, Go reverse proxies, a local Windlass, and a gateway and a
scheduler as separate processes with TLS, all on 127.0.0.1. It calls them in turn,
round by round. The unit is one hop through httputil.ReverseProxy to the same
function. Each round compares with its own proxy, and a figure is printed as
median (minimum to maximum) of the rounds. CPU time is that of the processes
between client and function; the process that makes the calls has a column.

8x1_c32 stands for eight instances of concurrency 1, called over 32 connections.

Times depend on this machine and its other load, ratios less so: measure on a
quiet machine. All processes end with the command, or with Ctrl-C. It needs Linux.`,
		Example: `  windlass bench warm
  windlass bench rates --rate 200 --rate 1000 --span 10s
  windlass bench warm --json | windlass-plot`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := r.localOnly("bench"); err != nil {
				return err
			}
			if len(args) == 0 {
				r.listSuites()
				return nil
			}
			config.Suites = args
			config.Command = strings.Join(append([]string{"windlass bench"}, benchArguments(cmd, args)...), " ")
			if err := config.validate(r.programs); err != nil {
				return err
			}
			var err error
			if config.AgentPath, err = findAgent(agent); err != nil {
				return err
			}
			return r.interruptible(cmd.Context(), func(ctx context.Context) error { return r.programs.Bench(ctx, config) })
		}),
	}
	cmd.Flags().IntVar(&config.Rounds, "rounds", DefaultBenchRounds, "`number` of rounds that count, 1 to 100; one more warms up")
	cmd.Flags().DurationVar(&config.Span, "span", DefaultBenchSpan, "`time` for which each measurement makes calls, 10ms to 1m")
	cmd.Flags().IntSliceVar(&config.Rates, "rate", DefaultBenchRates, "calls a second of the suite rates, as a `number`; repeatable")
	cmd.Flags().BoolVar(&config.JSON, "json", false, "print JSON; windlass-plot draws it")
	cmd.Flags().StringVar(&config.StoreFile, "store", "", "`file` to write the ratios of Windlass to, with where they are from, for --check")
	cmd.Flags().StringVar(&config.CheckFile, "check", "", "`file` that --store wrote: fail if a ratio is worse now by more than a quarter")
	cmd.Flags().StringVar(&agent, "agent", "", "`path` of the agent's program (default: podagent beside this program)")
	return cmd
}

// benchArguments are the suites and the flags that change what is measured.
func benchArguments(cmd *cobra.Command, suites []string) []string {
	arguments := append([]string{}, suites...)
	for _, name := range []string{"rounds", "span", "rate"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			arguments = append(arguments, "--"+name+" "+strings.Trim(flag.Value.String(), "[]"))
		}
	}
	return arguments
}

func (r *runner) listSuites() {
	rows := [][]cell{cells("SUITE", "SHOWS", "TAKES ABOUT")}
	var all time.Duration
	for _, s := range r.programs.BenchSuites {
		rows = append(rows, cells(s.Name, s.Shows, s.Takes.String()))
		all += s.Takes
	}
	r.table(r.Out, append(rows, cells(allSuites, "all of them", all.String())))
}

// allSuites names every suite.
const allSuites = "all"

// suiteNames are the names of all suites, and the one for all of them.
func (p Programs) suiteNames() []string {
	var names []string
	for _, s := range p.BenchSuites {
		names = append(names, s.Name)
	}
	return append(names, allSuites)
}

// storingSuites are the names of those that have ratios to store.
func (p Programs) storingSuites() []string {
	var names []string
	for _, s := range p.BenchSuites {
		if s.Stores {
			names = append(names, s.Name)
		}
	}
	return append(names, allSuites)
}

// validate checks the arguments.
func (c BenchConfig) validate(p Programs) error {
	known, storing := p.suiteNames(), p.storingSuites()
	stores := false
	for _, name := range c.Suites {
		if !slices.Contains(known, name) {
			return usagef("there is no suite %q; it is one of %s", name, strings.Join(known, ", "))
		}
		stores = stores || slices.Contains(storing, name)
	}
	switch {
	case c.Rounds < 1 || c.Rounds > 100:
		return usagef("--rounds %d must be 1 to 100", c.Rounds)
	case c.Span < 10*time.Millisecond || c.Span > time.Minute:
		return usagef("--span %v must be 10ms to 1m", c.Span)
	case c.StoreFile+c.CheckFile != "" && !stores:
		return usagef("--store and --check are about ratios, and %s measures none; add one of %s", strings.Join(c.Suites, ", "), strings.Join(storing, ", "))
	case c.CheckFile != "" && !isFile(c.CheckFile):
		return inputError(fmt.Errorf("--check %s: there is no such file; write one with windlass bench %s --store FILE", c.CheckFile, strings.Join(c.Suites, " ")))
	}
	for _, rate := range c.Rates {
		if rate < 1 || rate > 1_000_000 {
			return usagef("--rate %d must be 1 to 1000000 calls a second", rate)
		}
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
