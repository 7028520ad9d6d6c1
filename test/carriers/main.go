// Command carriers measures what it costs to carry a call between a gateway and an agent, by the
// CPU time of a call in all processes but the function: by the frames of package callwire, and by
// HTTP/1.1 backwards, on connections that agents have dialled and on which gateways send requests.
// It compares them with one hop through httputil.ReverseProxy, and with two.
//
// Gateways and agents are no more than a carrier needs: a list of places, and of calls that wait.
// They have no scheduler, no accounting, no access control and no TLS. All carriers bring the
// function the same request, with the call's id, and the agent the call's number in its place, its
// attempt and its time. On all of them the agent is the arbiter of its place, ends a call in time,
// and ends one that is cancelled.
//
// Each program is a process of its own, on this machine only. All run at the same time, and are
// called in turn, in rounds that each begin with another one. A round before the first one warms up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func main() {
	var err error
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		err = play(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Getenv)
	} else {
		err = run(os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "carriers:", err)
		os.Exit(1)
	}
}

// Bounds of what is measured, so that a run ends.
const (
	mostRounds = 100
	mostSpan   = 10 * time.Second
)

func run(args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("carriers", flag.ContinueOnError)
	rounds := flags.Int("rounds", 9, "how often each is measured")
	span := flags.Duration("for", 500*time.Millisecond, "how long each is called in a round")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *rounds < 1 || *rounds > mostRounds || *span <= 0 || *span > mostSpan {
		return fmt.Errorf("there are 1 to %d -rounds, of up to %v", mostRounds, mostSpan)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, err := openSite(self)
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return err
	}
	provenance(out, *rounds, *span)
	all := []int{1, 32}
	found, err := measureAll(s, all, *rounds, *span)
	if err != nil {
		return err
	}
	for _, connections := range all {
		report(out, connections, found[connections])
	}
	fmt.Fprintln(out)
	for _, v := range variants {
		fmt.Fprintf(out, "%s: %s", v.name, v.about)
		if v.lacks != "" {
			fmt.Fprintf(out, ". Without: %s", v.lacks)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// measureAll measures all in turn. It returns what the rounds found, by connections and variant.
func measureAll(s *site, all []int, rounds int, span time.Duration) (map[int]map[string][]sample, error) {
	found := make(map[int]map[string][]sample)
	for round := range rounds + 1 {
		for _, connections := range all {
			if found[connections] == nil {
				found[connections] = make(map[string][]sample)
			}
			for i := range variants {
				v := variants[(i+round)%len(variants)]
				m, err := s.measureOne(v, connections, span)
				if err != nil {
					return nil, fmt.Errorf("%s with %d connections: %w", v.name, connections, err)
				}
				if round > 0 {
					found[connections][v.name] = append(found[connections][v.name], m)
				}
			}
		}
	}
	return found, nil
}

// provenance says where figures are from.
func provenance(out io.Writer, rounds int, span time.Duration) {
	version := "of an unknown commit"
	if described, err := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output(); err == nil {
		version = strings.TrimSpace(string(described))
	}
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	fmt.Fprintf(out, "go run ./test/carriers -rounds %d -for %v\n", rounds, span)
	fmt.Fprintf(out, "Windlass %s, %s, %s, %d processors, load average %s before\n",
		version, runtime.Version(), time.Now().UTC().Format(time.RFC3339), runtime.GOMAXPROCS(0), load)
}
