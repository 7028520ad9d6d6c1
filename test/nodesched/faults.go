package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// fault is something that happens to a node agent, as its agents see it.
type fault struct {
	name, what string
	begin      func(*relay)
}

// The node agent of a local Windlass is a part of it, so a relay does to the agents what a node
// agent would that was killed, stopped, and so on. That a killed Windlass leaves nobody in the low
// band is for package cgroups to test.
var faults = []fault{
	{"N1", "killed", func(r *relay) { r.become(refuses) }},
	{"N2", "stopped", func(r *relay) { r.become(stalls) }},
	{"N3", "restarted", func(r *relay) { r.cut() }},
	{"N4", "slow", func(r *relay) { r.become(drags) }},
}

const (
	// faultAfter is when the fault begins, and faultFor how long it lasts.
	faultAfter = 4 * time.Second
	faultFor   = 4 * time.Second
	// faultLoad is more than the core has: calls wait all the time.
	faultLoad = 1.05
)

// measureFaults lets each fault happen to a busy node.
func measureFaults(out io.Writer, self, temp string) error {
	var problems error
	for _, f := range faults {
		o, low, ended, err := measureFault(self, temp, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		failed, first := o.failed()
		given := sumOf(o.metrics, "windlass_agent_failed_open_total", "")
		fmt.Fprintf(out, "nodesched_fault_%s=%q calls=%d failed=%d asks=%.0f failed_open=%.0f connections_ended=%d low_after=%d\n", f.name, f.what,
			len(o.results), failed, sumOf(o.metrics, "windlass_agent_core_asks_total", ""), given, ended, low)
		switch {
		case failed > 0:
			problems = errors.Join(problems, fmt.Errorf("%s: %d calls failed; the first: %w", f.name, failed, first))
		case low > 0:
			problems = errors.Join(problems, fmt.Errorf("%s: %d instances are still in the low band", f.name, low))
		case given == 0 && ended == 0 && f.name != "N4":
			problems = errors.Join(problems, fmt.Errorf("%s: no call has failed open, and no connection ended: the fault did not happen", f.name))
		}
	}
	return problems
}

// measureFault replays a trace during which a fault happens, and looks three seconds after its end
// how many instances are in the low band. ended is how many connections the fault has ended.
func measureFault(self, temp string, f fault) (o outcome, low, ended int, err error) {
	r, err := startRelay(filepath.Join(temp, "node"))
	if err != nil {
		return o, 0, 0, err
	}
	defer r.stop()
	restore, err := wrapAgent(temp, r.addr())
	if err != nil {
		return o, 0, 0, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	p, err := policyByName("serpt")
	if err != nil {
		return o, 0, 0, err
	}
	t := two(rand.New(rand.NewPCG(1, 17)), faultLoad, faultAfter+faultFor+2*time.Second)
	s, err := startServer(self, temp, p, t)
	if err != nil {
		return o, 0, 0, err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(filepath.Join(temp, "data"))) }()
	faulty := time.AfterFunc(faultAfter, func() { f.begin(r) })
	defer faulty.Stop()
	healed := time.AfterFunc(faultAfter+faultFor, func() { r.become(passes) })
	defer healed.Stop()
	o.results = s.replay(t)
	time.Sleep(3 * time.Second)
	idle, globErr := filepath.Glob("/sys/fs/cgroup/cpu*/windlass-*/cpu.idle")
	for _, file := range idle {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 && text[0] == '1' {
			low++
		}
	}
	time.Sleep(3 * time.Second) // agents report every five seconds
	o.metrics, err = s.metrics()
	r.mu.Lock()
	defer r.mu.Unlock()
	return o, low, r.ended, errors.Join(err, globErr)
}

// wrapAgent puts a script in the place of the agent's program, which turns the agent to the relay
// and notes the address that it would have used.
func wrapAgent(dir, relay string) (restore func() error, err error) {
	agent, hidden := filepath.Join(dir, "podagent"), filepath.Join(dir, "hidden-podagent")
	if err := os.Rename(agent, hidden); err != nil {
		return nil, err
	}
	script := fmt.Sprintf("#!/bin/sh\necho \"$WINDLASS_NODE\" >%s/node.$$ && mv %s/node.$$ %s/node\nWINDLASS_NODE=%s exec %s \"$@\"\n", dir, dir, dir, relay, hidden)
	return func() error { return os.Rename(hidden, agent) }, os.WriteFile(agent, []byte(script), 0o700)
}
