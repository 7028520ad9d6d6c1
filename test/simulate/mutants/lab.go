package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// lab is where mutants are built and simulated.
type lab struct {
	// root is the module's folder, and dir one for what is built.
	root, dir    string
	first, seeds uint64
}

// patience is how long the seeds of one mutant may take: some seconds, unless it never
// comes to an end.
const patience = 2 * time.Minute

// noticed is how the simulator reports a violation.
var noticed = regexp.MustCompile(`(?m)^violation seed=(\d+) (.*) \(invocation \d+, at .*\)$`)

// catch says which seed notices a mutant first, and by which rule; the rule is empty if
// none does.
func (l *lab) catch(ctx context.Context, p patch) (seed uint64, rule string, err error) {
	simulate, err := l.build(ctx, p)
	if err != nil {
		return 0, "", err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	printed, err := exec.CommandContext(limited, simulate, "-stop", "-seed", strconv.FormatUint(l.first, 10),
		"-seeds", strconv.FormatUint(l.seeds, 10)).Output()
	if found := noticed.FindSubmatch(printed); found != nil {
		seed, err := strconv.ParseUint(string(found[1]), 10, 64)
		return seed, string(found[2]), err
	}
	if limited.Err() != nil {
		return 0, "", fmt.Errorf("mutant %s: its seeds do not come to an end: %w", p.name, limited.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("mutant %s: %w\n%s", p.name, err, exit.Stderr)
	}
	return 0, "", err
}

// build builds the simulator with a mutant of the product.
func (l *lab) build(ctx context.Context, p patch) (program string, err error) {
	files, err := p.apply(l.root)
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for file, text := range files {
		mutated := filepath.Join(l.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(l.root, file)] = mutated
	}
	replaced, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	list := filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(list, replaced, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(l.dir, "simulate")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-ldflags=-s -w", "-o", program, "./test/simulate")
	build.Dir = l.root
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s does not compile: %w\n%s", p.name, err, said)
	}
	return program, nil
}
