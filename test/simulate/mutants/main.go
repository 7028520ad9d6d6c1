// Command mutants breaks the product on purpose, in one way after the other, and prints
// within how many seeds the fault simulator notices each.
//
// A mutant is a file in the folder patches: what it breaks, which rules of the simulator may
// notice it, and a few lines of the product with what replaces them. It is built with go build -overlay, so that the
// product's files stay as they are. One that no seed notices names a rule or a fault that
// test/simulate/sim lacks.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// patches is the folder of the mutants, from the module's.
const patches = "test/simulate/mutants/patches"

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	first := flags.Uint64("seed", 1, "the first seed")
	seeds := flags.Uint64("seeds", 1000, "within how many seeds each mutant must be noticed")
	only := flags.String("only", "", "a regular expression that the names of mutants must match")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return err
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	all, err := readPatches(filepath.Join(root, patches))
	if err != nil {
		return err
	}
	mutants, err := chosen(all, names)
	if err != nil {
		return err
	}
	for _, p := range mutants {
		if _, err := p.apply(root); err != nil {
			return err
		}
	}
	if err := printUnnamed(out, root, all); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "windlass-mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l := &lab{root: root, dir: dir, first: *first, seeds: *seeds}
	return l.catchAll(ctx, out, mutants)
}

// chosen are the mutants whose names match.
func chosen(mutants []patch, names *regexp.Regexp) ([]patch, error) {
	mutants = slices.DeleteFunc(slices.Clone(mutants), func(p patch) bool { return !names.MatchString(p.name) })
	if len(mutants) == 0 {
		return nil, fmt.Errorf("no file of %s has a name that matches %q", patches, names)
	}
	return mutants, nil
}

// catchAll prints what became of each mutant.
func (l *lab) catchAll(ctx context.Context, out io.Writer, mutants []patch) error {
	begun, found := time.Now(), outcomes{}
	for _, p := range mutants {
		seed, rule, err := l.catch(ctx, p)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, found.add(p, seed-l.first+1, rule))
	}
	fmt.Fprintf(out, "mutants_caught=%d/%d\n", found.caught, len(mutants))
	fmt.Fprintf(out, "mutants_caught_by_other_rules=%d\n", found.otherwise)
	fmt.Fprintf(out, "mutants_seconds=%.1f\n", time.Since(begun).Seconds())
	return found.err(l.seeds)
}

// outcomes counts mutants: caught ones, those that no seed notices and, of the caught ones, those that first broke a rule
// which their patches do not name. These are no error, as which of several rules comes first changes with the product.
type outcomes struct{ caught, missed, otherwise int }

// add counts a mutant and says what became of it: the rule is empty if no seed noticed it.
func (o *outcomes) add(p patch, seeds uint64, rule string) string {
	if rule == "" {
		o.missed++
		return fmt.Sprintf("mutant_%s=missed: %s", p.name, p.breaks)
	}
	o.caught++
	if !slices.Contains(p.rules, rule) {
		o.otherwise++
		return fmt.Sprintf("mutant_%s=%d by a rule that its patch does not name: %s", p.name, seeds, rule)
	}
	return fmt.Sprintf("mutant_%s=%d %s", p.name, seeds, rule)
}

func (o *outcomes) err(seeds uint64) error {
	if o.missed == 0 {
		return nil
	}
	return fmt.Errorf("%d mutants were not noticed within %d seeds: test/simulate/sim lacks a rule or a fault", o.missed, seeds)
}
