// Command mutants breaks the product on purpose, in one way after the other, and prints
// within how many seeds the fault simulator notices each.
//
// A mutant is a file in the folder patches: which rule it breaks, and a few lines of the
// product with what replaces them. It is built with go build -overlay, so that the
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
	mutants, err := readPatches(filepath.Join(root, patches))
	if err != nil {
		return err
	}
	if mutants, err = chosen(mutants, names); err != nil {
		return err
	}
	for _, p := range mutants {
		if _, err := p.apply(root); err != nil {
			return err
		}
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
	mutants = slices.DeleteFunc(mutants, func(p patch) bool { return !names.MatchString(p.name) })
	if len(mutants) == 0 {
		return nil, fmt.Errorf("no file of %s has a name that matches %q", patches, names)
	}
	return mutants, nil
}

// catchAll prints what became of each mutant.
func (l *lab) catchAll(ctx context.Context, out io.Writer, mutants []patch) error {
	begun, caught := time.Now(), 0
	for _, p := range mutants {
		seed, rule, err := l.catch(ctx, p)
		switch {
		case err != nil:
			return err
		case rule == "":
			fmt.Fprintf(out, "mutant_%s=missed: %s\n", p.name, p.breaks)
		default:
			caught++
			fmt.Fprintf(out, "mutant_%s=%d %s\n", p.name, seed-l.first+1, rule)
		}
	}
	fmt.Fprintf(out, "mutants_caught=%d/%d\n", caught, len(mutants))
	fmt.Fprintf(out, "mutants_seconds=%.1f\n", time.Since(begun).Seconds())
	if caught < len(mutants) {
		return fmt.Errorf("%d mutants were not noticed within %d seeds: test/simulate/sim lacks a rule or a fault", len(mutants)-caught, l.seeds)
	}
	return nil
}
