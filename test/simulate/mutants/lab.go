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

// patience is how much time of a processor the seeds of one mutant may take: some seconds,
// unless it never comes to an end. How long that is depends on what else runs: longest at most.
const (
	patience = 2 * time.Minute
	longest  = time.Hour
)

// mostMemory is how many KiB of addresses a simulator may have, which is far more than it needs. A mutant may never stop
// to collect something, and would take all memory of the machine.
const mostMemory = "8388608"

// noticed is how the simulator reports a violation.
var noticed = regexp.MustCompile(`(?m)^violation seed=(\d+) (.*) \(invocation \d+, at .*\)$`)

// catch says which seed notices a mutant first, and by which rule; the rule is empty if
// none does.
func (l *lab) catch(ctx context.Context, p patch) (seed uint64, rule string, err error) {
	simulate, err := l.build(ctx, p)
	if err != nil {
		return 0, "", err
	}
	seed, rule, err = firstViolation(ctx, patience, simulate, "-stop", "-seed", strconv.FormatUint(l.first, 10),
		"-seeds", strconv.FormatUint(l.seeds, 10))
	if err != nil {
		err = fmt.Errorf("mutant %s: %w", p.name, err)
	}
	return seed, rule, err
}

// firstViolation runs a simulator and reads what it says; the rule is empty if none was
// broken. It is an error if that takes more time of a processor than patience, in whole seconds.
func firstViolation(ctx context.Context, patience time.Duration, simulate string, args ...string) (seed uint64, rule string, err error) {
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	seconds := strconv.Itoa(int(patience.Seconds()))
	run := exec.CommandContext(limited, "sh", append([]string{"-c", `ulimit -t "$0" && ulimit -v "$1" && shift && exec "$@"`, seconds, mostMemory, simulate}, args...)...)
	printed, err := run.Output()
	if found := noticed.FindSubmatch(printed); found != nil {
		seed, err := strconv.ParseUint(string(found[1]), 10, 64)
		return seed, string(found[2]), err
	}
	var exit *exec.ExitError
	switch {
	case limited.Err() != nil:
		err = fmt.Errorf("its seeds do not come to an end: %w", limited.Err())
	case errors.As(err, &exit) && !exit.Exited():
		err = fmt.Errorf("its seeds do not come to an end within %v of a processor, or something else has killed it after %v: %w",
			patience, exit.UserTime()+exit.SystemTime(), err)
	case exit != nil:
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
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
