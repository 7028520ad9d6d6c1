// Command cost measures what it costs to look: the CPU time per warm call of a local
// Windlass that tells nothing, and of others that count and record, as ratios to it.
// All run at the same time and are called in turn, so that whatever else the machine
// does hits all alike: the shorter the rounds, the more so. It prints name=value lines with the median and the quartiles of
// the rounds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/internal/tracetest"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	rounds := flags.Int("rounds", 60, "how often each is measured")
	span := flags.Duration("for", 500*time.Millisecond, "how long each is called in a round")
	serving := flags.String("serve", "", "be the Windlass of this name, until the standard input ends")
	dir := flags.String("dir", "", "the folder with its programs, with -serve")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *serving != "" {
		return serve(*serving, *dir, os.Stdin, out)
	}
	if *rounds < 1 || *span <= 0 {
		return errors.New("-rounds and -for must be more than 0")
	}
	temp, err := os.MkdirTemp("", "windlass-cost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	collector, err := tracetest.StartSink()
	if err != nil {
		return err
	}
	defer collector.Stop()
	servers, err := startAll(temp, collector.URL())
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.stop())
		}
	}()
	if err != nil {
		return err
	}
	for _, clients := range []int{1, 16} {
		costs, err := measureAll(servers, clients, *rounds, *span)
		if err != nil {
			return err
		}
		report(out, clients, costs)
	}
	return nil
}

// startAll starts a Windlass of each kind, each with programs of its own, by which its
// processes are known. What they record goes to the collector.
func startAll(temp, collector string) ([]*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var servers []*server
	for _, v := range variants {
		dir := filepath.Join(temp, v.name)
		for name, pkg := range map[string]string{"podagent": "./cmd/podagent", "probe": "./test/e2e/probe"} {
			build := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", filepath.Join(dir, name), pkg)
			if said, err := build.CombinedOutput(); err != nil {
				return servers, fmt.Errorf("building %s: %w: %s", pkg, err, said)
			}
		}
		s, err := start(self, v.name, dir, collector)
		if err != nil {
			return servers, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// warmUp is how many rounds do not count.
const warmUp = 3

// measureAll measures all in turn, round by round, and returns what the calls of each
// cost in each round. Every round begins with another one.
func measureAll(servers []*server, clients, rounds int, span time.Duration) (map[string][]cost, error) {
	costs := make(map[string][]cost)
	for round := range rounds + warmUp {
		for i := range servers {
			s := servers[(i+round)%len(servers)]
			cost, err := s.measure(clients, span)
			if err != nil {
				return nil, fmt.Errorf("calling the Windlass %s: %w", s.name, err)
			}
			if round >= warmUp {
				costs[s.name] = append(costs[s.name], cost)
			}
		}
	}
	return costs, nil
}
