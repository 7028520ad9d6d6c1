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

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// The trace cost has the node agent of the image with a hundred pods, each with a control group, a process and a
// stream of its own. Its node is calm, or busy with pods that make calls of 10 ms in turn, at random times. All its pods
// compute on one core, and it hands out one ticket: a node agent with more tickets reads more, and is asked more.
const (
	costPods = 100
	costRate = 90.0 // calls of costCall a second on the busy node: nine tenths of a core
	costCall = 10 * time.Millisecond
)

// costSpinners is how many processes always want to run on the busy node, beside its pods. They get what pods leave.
const costSpinners = 3

// costCase is a node.
type costCase struct {
	name string
	busy bool
	pods int
	// Of the pods, fillers are of class Batch and always compute, and sleepers are in calls that wait for something else.
	// The others make calls, if the node is busy.
	fillers, sleepers int
	// Goals: the most that the node agent may use of a core, and have in memory, in MiB.
	mostCores, mostMemory float64
}

var costCases = []costCase{
	{name: "alone", mostCores: 0.002, mostMemory: 20},
	{name: "one", pods: 1, mostCores: 0.002, mostMemory: 20},
	{name: "calm", pods: costPods, mostCores: 0.005, mostMemory: 30},
	{name: "busy", busy: true, pods: costPods, mostCores: 0.02, mostMemory: 30},
	{name: "sleeping", busy: true, pods: costPods, sleepers: costPods / 2, mostCores: 0.02, mostMemory: 30},
	{name: "batch", busy: true, pods: costPods, fillers: costPods / 5, mostCores: 0.02, mostMemory: 30},
}

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
	// What the node agent says: how many calls wait for something else, and how many instances are batch.
	blocked, batch int
}

// measureCost measures the node agent of the image in each case.
func measureCost(out io.Writer, self, temp string, p plan) error {
	program, err := buildProduct(temp)
	if err != nil {
		return err
	}
	for _, at := range costCases {
		if p.only != "" && p.only != at.name {
			continue
		}
		profile := p.profile
		if profile != "" {
			profile += "." + at.name
		}
		c, err := measureNodeCost(self, program, temp, profile, at, p.length)
		if err != nil {
			return fmt.Errorf("%s: %w", at.name, err)
		}
		fmt.Fprintf(out, "cost_%s_pods=%d blocked=%d batch=%d calls=%d failed_open=%d messages_per_second=%.1f switches_per_second=%.0f anonymous_mib=%.1f watcher_resident_mib=%.1f\n",
			at.name, at.pods, c.blocked, c.batch, c.calls, c.failedOpen, c.messages, c.switches, c.anonymous, c.watcher)
		judgeMost(out, "cost_"+at.name+"_cores", c.cores, at.mostCores)
		judgeMost(out, "cost_"+at.name+"_resident_mib", c.resident, at.mostMemory)
		if c.blocked < at.sleepers || c.batch < at.fillers {
			return fmt.Errorf("%s: the node agent knows %d calls that sleep and %d batch instances", at.name, c.blocked, c.batch)
		}
	}
	return nil
}

func measureNodeCost(self, program, temp, profile string, at costCase, length time.Duration) (c nodeCost, err error) {
	n := &ownNode{group: groupOf(os.Getpid())}
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
	if agent, err = startProduct(program, temp, at.busy, profile != ""); err != nil {
		return c, err
	}
	if s.creds, err = agent.credentials(); err != nil {
		return c, err
	}
	s.token, n.addr = agent.token, agent.wire
	if err := s.populate(n, self, at); err != nil {
		return c, err
	}
	time.Sleep(2 * time.Second) // what starting leaves behind
	profiling := make(chan error, 1)
	go func() { profiling <- agent.profileInto(profile, length) }()
	if c, err = s.cost(agent, at.busy, length); err != nil {
		return c, err
	}
	text, err := metricsOf("http://"+agent.ops, nil)
	c.blocked = int(sumOf(text, "windlass_node_calls", `state="blocked"`))
	c.batch = int(sumOf(text, "windlass_node_instances", `class="Batch"`))
	return c, errors.Join(err, <-profiling)
}

// populate makes the pods of a case, and lets them compute and sleep.
func (s *siege) populate(n *ownNode, self string, at costCase) error {
	var sleepers []*tenantPod
	for i := range at.pods {
		function, says := fmt.Sprint("f", i%20), attacks[0]
		if i < at.fillers {
			function, says = "filler", attack{says: &nodewire.Hello{Class: callorder.Batch.String()}}
		}
		p, err := s.join(n, self, fmt.Sprint("team-", i%5), function, fmt.Sprint("pod-", i), says)
		switch {
		case err != nil:
			return err
		case i < at.fillers:
			s.spinning = append(s.spinning, p)
			_, err = fmt.Fprintln(p.stdin, time.Hour.Microseconds(), 0, 1)
		case i < at.fillers+at.sleepers:
			s.spinning = append(s.spinning, p)
			sleepers = append(sleepers, p)
		default:
			s.victims = append(s.victims, p)
		}
		if err != nil {
			return err
		}
	}
	if !at.busy {
		return nil
	}
	if err := s.spin(n, self, costSpinners); err != nil {
		return err
	}
	time.Sleep(time.Second) // until the node is busy, so that their calls ask
	for _, p := range sleepers {
		go func() { _, _ = p.talk.call(p, costCall, time.Hour) }() // until the process is killed
	}
	return nil
}

// cost is what the node agent takes while the victims make calls, if its node is busy.
func (s *siege) cost(agent *product, busy bool, length time.Duration) (c nodeCost, err error) {
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
	return c, nil
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
