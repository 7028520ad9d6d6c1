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
	// lies says that the relay turns to a liar, and grants that it grants everything.
	lies, grants bool
	// longest bounds what calls wait for the fault in addition; 0 if they wait in order, too.
	longest time.Duration
}

// The node agent of a local Windlass is a part of it, so a relay does to the agents what a node
// agent would that was killed, stopped, and so on. That a killed Windlass leaves nobody in the low
// band is for package cgroups to test.
var faults = []fault{
	{name: "N1", what: "killed", begin: func(r *relay) { r.become(refuses) }, longest: extraWait},
	// It slows those down that compute and say nothing, as it must, so calls wait for longer than for one that is stopped
	// itself, which is the trace hang.
	{name: "N2", what: "hears nothing, and goes on", begin: func(r *relay) { r.become(stalls) }},
	{name: "N3", what: "restarted", begin: func(r *relay) { r.cut() }},
	{name: "N4", what: "slow", begin: func(r *relay) { r.become(drags) }},
	{name: "N5a", what: "grants nothing, and says Still", begin: func(r *relay) { r.become(lies) }, lies: true},
	{name: "N5b", what: "grants everything", begin: func(r *relay) { r.become(lies) }, lies: true, grants: true, longest: extraWait},
}

const (
	// faultAfter is when the fault begins, and faultFor how long it lasts.
	faultAfter = 4 * time.Second
	faultFor   = 4 * time.Second
	// extraWait is how long a call may wait for a node agent that grants nothing or everything.
	extraWait = 300 * time.Millisecond
	// faultLoad is more than the core has: calls wait all the time, and those are left out that no instance
	// is free for.
	faultLoad = 1.05
)

// measureFaults lets each fault happen to a busy node.
func measureFaults(out io.Writer, self, temp string, load float64) error {
	var problems error
	for _, f := range faults {
		o, low, ended, err := measureFault(self, temp, load, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		failed, first := o.failed()
		longest := longestWait(o.results, faultAfter, faultAfter+faultFor)
		given := sumOf(o.metrics, "windlass_agent_failed_open_total", "")
		fmt.Fprintf(out, "nodesched_fault_%s=%q calls=%d failed=%d asks=%.0f failed_open=%.0f connections_ended=%d low_after=%d longest_extra_wait_ms=%.0f\n", f.name, f.what,
			len(o.results), failed, sumOf(o.metrics, "windlass_agent_core_asks_total", ""), given, ended, low, longest.Seconds()*1e3)
		switch {
		case f.longest > 0 && longest > f.longest && load <= faultLoad: // beyond, calls without an order wait for each other, too
			problems = errors.Join(problems, fmt.Errorf("%s: a call waited for %v", f.name, longest))
		case failed > 0:
			problems = errors.Join(problems, fmt.Errorf("%s: %d calls failed; the first: %w", f.name, failed, first))
		case low > 0:
			problems = errors.Join(problems, fmt.Errorf("%s: %d instances are still in the low band", f.name, low))
		case given == 0 && ended == 0 && f.name != "N4":
			problems = errors.Join(problems, fmt.Errorf("%s: no call has failed open, and no connection ended: the fault did not happen", f.name))
		}
	}
	return errors.Join(problems, measureDamage(out, self, temp), measureChain(out, self, temp))
}

// measureFault replays a trace during which a fault happens, and looks three seconds after its end
// how many instances are in the low band. ended is how many connections the fault has ended.
func measureFault(self, temp string, load float64, f fault) (o outcome, low, ended int, err error) {
	r, err := startRelay(filepath.Join(temp, "node"))
	if err != nil {
		return o, 0, 0, err
	}
	defer r.stop()
	if f.lies {
		addr, stop, err := startLiar(f.grants)
		if err != nil {
			return o, 0, 0, err
		}
		defer stop()
		r.liar = addr
	}
	restore, err := wrapAgent(temp, r.addr())
	if err != nil {
		return o, 0, 0, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	p, err := policyByName("serpt")
	if err != nil {
		return o, 0, 0, err
	}
	t := two(rand.New(rand.NewPCG(1, 17)), load, faultAfter+faultFor+2*time.Second)
	s, err := startServer(self, temp, p, t)
	if err != nil {
		return o, 0, 0, err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(filepath.Join(temp, "data"))) }()
	faulty := time.AfterFunc(faultAfter, func() { f.begin(r) })
	defer faulty.Stop()
	healed := time.AfterFunc(faultAfter+faultFor, func() { r.become(passes) })
	defer healed.Stop()
	// Calls for which no instance is free would wait for that, and not for the fault.
	faulted, _ := s.replayAtMost(t, t.instances)
	o.results = faulted.results
	time.Sleep(bandsWithin)
	low = lowGroups()
	time.Sleep(3 * time.Second) // agents report every five seconds
	o.metrics, err = s.metrics()
	r.mu.Lock()
	defer r.mu.Unlock()
	return o, low, r.ended, err
}

// longestWait is the longest time that calls waited before they began, of those that came while a
// fault lasted or waited when it began. What they waited before does not count.
func longestWait(results []result, from, until time.Duration) (longest time.Duration) {
	for _, r := range results {
		began := r.at + r.began - r.due
		if r.err == nil && r.at < until && began > from {
			longest = max(longest, began-max(r.at, from))
		}
	}
	return longest
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
