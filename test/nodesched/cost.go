package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The trace cost has the node agent of the image with a hundred pods, each with a control group, a process and a
// stream of its own. Its node is calm, or busy with pods that make calls of 10 ms in turn.
const (
	costPods = 100
	costRate = 90.0 // calls of costCall a second on the busy node: nine tenths of a core
	costCall = 10 * time.Millisecond
)

// costSpinners is how many processes always want to run on the busy node, beside its pods. They get what pods leave.
const costSpinners = 3

// nodeCost is what a node agent took. It is two processes: the one that orders calls, and its watcher.
type nodeCost struct {
	cores float64 // both
	// What the first has of memory, and what its watcher has, in MiB.
	resident, anonymous, watcher float64
	// messages are those both ways, a second.
	messages   float64
	calls      int
	failedOpen int
	switches   float64 // a second
}

// measureCost measures the node agent of the image without pods, with one, with a hundred on a calm node, and on a
// busy one.
func measureCost(out io.Writer, self, temp string, p plan) error {
	program, err := buildProduct(temp)
	if err != nil {
		return err
	}
	for _, at := range []struct {
		name            string
		busy            bool
		pods            int
		most, mostBytes float64
	}{
		{"alone", false, 0, 0.002, 20}, {"one", false, 1, 0.002, 20}, {"calm", false, costPods, 0.005, 30}, {"busy", true, costPods, 0.02, 30},
	} {
		if p.only != "" && p.only != at.name {
			continue
		}
		profile := p.profile
		if profile != "" {
			profile += "." + at.name
		}
		c, err := measureNodeCost(self, program, temp, profile, at.busy, at.pods, p.length)
		if err != nil {
			return fmt.Errorf("%s: %w", at.name, err)
		}
		fmt.Fprintf(out, "cost_%s_pods=%d calls=%d failed_open=%d messages_per_second=%.1f switches_per_second=%.0f anonymous_mib=%.1f watcher_resident_mib=%.1f\n",
			at.name, at.pods, c.calls, c.failedOpen, c.messages, c.switches, c.anonymous, c.watcher)
		judgeMost(out, "cost_"+at.name+"_cores", c.cores, at.most)
		judgeMost(out, "cost_"+at.name+"_resident_mib", c.resident, at.mostBytes)
	}
	return nil
}

func measureNodeCost(self, program, temp, profile string, busy bool, pods int, length time.Duration) (c nodeCost, err error) {
	n := &ownNode{group: fmt.Sprintf("nodesched-%d", os.Getpid())}
	s := &siege{}
	var agent *product
	defer func() {
		err = errors.Join(err, s.stop())
		if agent != nil {
			err = errors.Join(err, agent.stop())
		}
		err = errors.Join(err, n.stop())
	}()
	if err := n.makeGroups(); err != nil {
		return c, err
	}
	if agent, err = startProduct(program, temp, busy, profile != ""); err != nil {
		return c, err
	}
	if s.creds, err = agent.credentials(); err != nil {
		return c, err
	}
	s.token, n.addr = agent.token, agent.wire
	for i := range pods {
		p, err := s.join(n, self, fmt.Sprint("team-", i%5), fmt.Sprint("f", i%20), fmt.Sprint("pod-", i), attacks[0])
		if err != nil {
			return c, err
		}
		s.victims = append(s.victims, p)
	}
	if busy {
		if err := s.spin(n, self, costSpinners); err != nil {
			return c, err
		}
	}
	time.Sleep(2 * time.Second) // what starting leaves behind
	profiling := make(chan error, 1)
	go func() { profiling <- agent.profileInto(profile, length) }()
	before, said, began := agent.spent(), s.messages(), time.Now()
	if busy {
		h := s.load(rand.New(rand.NewPCG(1, 17)), costRate, costCall, length)
		c.calls, c.failedOpen = len(h.took), h.failedOpen
		if h.errors > 0 {
			return c, fmt.Errorf("%d calls failed", h.errors)
		}
	} else {
		time.Sleep(length)
	}
	took, after := time.Since(began).Seconds(), agent.spent()
	c.cores = (after.used - before.used).Seconds() / took
	c.switches = float64(after.switches-before.switches) / took
	c.messages = float64(s.messages()-said) / took
	c.resident, c.anonymous, c.watcher = memoryOf(agent.measured, "VmRSS:"), memoryOf(agent.measured, "RssAnon:"), memoryOf(agent.watcher.Process.Pid, "VmRSS:")
	return c, <-profiling
}

// looked is what the processes of a node agent have used so far.
type looked struct {
	used     time.Duration
	switches int64
}

func (p *product) spent() (all looked) {
	for _, pid := range []int{p.measured, p.watcher.Process.Pid} {
		used, _ := processTime(pid)
		all.used += used
		all.switches += switchesOf(pid)
	}
	return all
}

// spin starts processes that always want to run, and get next to nothing of the core beside others.
func (s *siege) spin(n *ownNode, self string, count int) error {
	for i := range count {
		p, err := n.startPod(self, "spin", "spin", fmt.Sprint("spin-", i))
		if err != nil {
			return err
		}
		s.spinning = append(s.spinning, p)
		group := filepath.Join(hierarchies[0], n.group, "0", "kubepods", "pod"+p.uid)
		if err := os.WriteFile(filepath.Join(group, "cpu.shares"), []byte("2"), 0o644); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.stdin, time.Hour.Microseconds(), 0, 1); err != nil {
			return err
		}
	}
	return nil
}

// messages is how many all pods have said and heard.
func (s *siege) messages() (sum int64) {
	for _, p := range s.pods {
		sum += p.talk.said.Load() + p.talk.heard.Load()
	}
	return sum
}

// memoryOf is a kind of memory of a process in MiB; 0 if it cannot be read.
func memoryOf(pid int, kind string) float64 { return float64(statusOf(pid, kind)) / 1024 }

// switchesOf is how often the main thread's process waited for something. All threads count.
func switchesOf(pid int) (sum int64) {
	threads, _ := threadsOf(pid)
	for _, t := range threads {
		sum += statusOf(t, "voluntary_ctxt_switches:")
	}
	return sum
}

// statusOf is a number of a thread's status.
func statusOf(tid int, kind string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == kind {
			number, _ := strconv.ParseInt(f[1], 10, 64)
			return number
		}
	}
	return 0
}
