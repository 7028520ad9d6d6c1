package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// allExperiments names all experiments, one after the other.
const allExperiments = "all"

// Experiment is an experiment that windlass sim runs.
type Experiment struct {
	Name string
	// Summary describes it in a few words.
	Summary string
	// NeedsData says that it replays recorded traces.
	NeedsData bool
	// NeedsFile is the file in the folder with traces that it replays, if it is always the same.
	NeedsFile string
	// CountsGateways says that it compares numbers of gateways itself, or has none.
	CountsGateways bool
}

// SimConfig is the configuration of windlass sim.
type SimConfig struct {
	// Experiments are the names of the experiments to run, in order; all are known.
	Experiments []string
	// Seed is the first seed, and Seeds the number of seeds; 0 means each experiment's
	// default.
	Seed  uint64
	Seeds int
	// Scale is the factor on calls or time, more than 0 and at most 1; 0 means each
	// experiment's default, and Quick its quick size.
	Scale float64
	Quick bool
	// DataDir is the folder with recorded traces, which exists if an experiment needs it.
	DataDir string
	// Gateways is to how many gateways calls come; 0 means one queue at the scheduler.
	Gateways int
	// Output is table, json or csv.
	Output string
	// Out receives results and Err, if Terminal, progress.
	Out, Err io.Writer
	Terminal bool
}

// simulator runs experiments in virtual time.
type simulator struct {
	*finder
	programs Programs
}

func (s *simulator) simCommand() *cobra.Command {
	config := SimConfig{Out: s.Out, Err: s.Err, Terminal: isTerminal(s.Err)}
	var asJSON, asCSV bool
	cmd := &cobra.Command{
		Use:   "sim [NAME] [--json | --csv] [--quick] [--seed N] [--seeds N] [--scale X] [--gateways N] [--data FOLDER]",
		Short: "Try provisioning in virtual time",
		Long: `Run an experiment on the scheduler's own queues and deciders in virtual time, and
print its assumptions, its results and its goals. Without a name it
lists the experiments; "all" runs every one. The same seed prints the same bytes.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("name one experiment, or none for the list of them")
			}
			return nil
		},
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := s.localOnly("sim"); err != nil {
				return err
			}
			if len(args) == 0 {
				s.listExperiments()
				return nil
			}
			if err := config.setFormat(asJSON, asCSV); err != nil {
				return err
			}
			if err := s.chooseExperiments(&config, args[0]); err != nil {
				return err
			}
			if err := config.validate(cmd.Flags().Changed); err != nil {
				return err
			}
			if err := s.programs.Sim(config); err != nil {
				// What is given to an experiment is all that can be wrong with it.
				return inputError(err)
			}
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&config.Output, "output", "o", "table", "`format`: table, json or csv")
	flags.BoolVar(&asJSON, "json", false, "print JSON, as -o json does; windlass-plot draws it")
	flags.BoolVar(&asCSV, "csv", false, "print CSV, as -o csv does")
	flags.Uint64Var(&config.Seed, "seed", 1, "first `number` that seeds everything random")
	flags.IntVar(&config.Seeds, "seeds", 0, "`number` of seeds (default: as many as the experiment has)")
	flags.Float64Var(&config.Scale, "scale", 0, "`factor` on calls or time, at most 1 (default 1)")
	flags.BoolVar(&config.Quick, "quick", false, "fewer seeds and cells, and a smaller scale")
	flags.IntVar(&config.Gateways, "gateways", 0, "`number` of gateways to which calls come (default: one queue at the scheduler)")
	flags.StringVar(&config.DataDir, "data", "", "`folder` with recorded traces, for the experiments that replay some")
	return cmd
}

func (s *simulator) listExperiments() {
	rows := [][]cell{cells("NAME", "SHOWS")}
	for _, e := range s.programs.Experiments {
		rows = append(rows, cells(e.Name, e.Summary))
	}
	s.table(s.Out, append(rows, cells(allExperiments, "all of them")))
}

// missing says what a folder lacks that the experiment replays; empty if it lacks nothing.
func (e Experiment) missing(folder string) string {
	if e.NeedsData && !isFolder(folder) {
		return fmt.Sprintf("is no folder; %s replays recorded traces: name a folder with %s", e.Name, cmp.Or(e.NeedsFile, "invocations.csv and durations.csv"))
	}
	if e.NeedsFile == "" {
		return ""
	}
	if _, err := os.Stat(filepath.Join(folder, e.NeedsFile)); err != nil {
		return fmt.Sprintf("has no %s, which %s replays: name another folder", e.NeedsFile, e.Name)
	}
	return ""
}

// setFormat reads the flags that choose an output format.
func (c *SimConfig) setFormat(asJSON, asCSV bool) error {
	if asJSON && asCSV {
		return usagef("--json and --csv exclude each other; remove one")
	}
	if asJSON {
		c.Output = "json"
	}
	if asCSV {
		c.Output = "csv"
	}
	return checkOutput(c.Output, "table", "json", "csv")
}

// chooseExperiments finds the experiments of a name. Without recorded traces "all" are those
// that do without, and with a number of gateways those that do not compare such numbers.
func (s *simulator) chooseExperiments(c *SimConfig, name string) error {
	var names []string
	for _, e := range s.programs.Experiments {
		names = append(names, e.Name)
		if name != e.Name && name != allExperiments {
			continue
		}
		if missing := e.missing(c.DataDir); missing != "" {
			if name != allExperiments {
				return inputError(fmt.Errorf("--data %q %s; see docs/simulator.md", c.DataDir, missing))
			}
			fmt.Fprintf(s.Err, "%s is left out: it replays recorded traces, and --data names no folder with some\n", e.Name)
			continue
		}
		if e.CountsGateways && c.Gateways > 0 {
			if name != allExperiments {
				return usagef("%s compares numbers of gateways itself, or has none; remove --gateways", e.Name)
			}
			fmt.Fprintf(s.Err, "%s is left out: it compares numbers of gateways itself, or has none, and --gateways gives one\n", e.Name)
			continue
		}
		c.Experiments = append(c.Experiments, e.Name)
	}
	if len(c.Experiments) == 0 {
		return usagef("there is no experiment %q; it is one of %s, or %s", name, strings.Join(names, ", "), allExperiments)
	}
	return nil
}

// validate checks the numbers; given reports which flags were given.
func (c SimConfig) validate(given func(flag string) bool) error {
	switch {
	case c.Quick && (given("seeds") || given("scale")):
		return usagef("--quick says how many seeds there are, and what scale; remove it, or --seeds and --scale")
	case given("scale") && !(c.Scale > 0 && c.Scale <= 1):
		return usagef("--scale %g must be more than 0 and at most 1, which is full size", c.Scale)
	case given("gateways") && c.Gateways < 1:
		return usagef("--gateways %d must be at least 1; without it there is one queue at the scheduler", c.Gateways)
	case given("seeds") && c.Seeds < 1:
		return usagef("--seeds %d must be at least 1", c.Seeds)
	}
	return nil
}
