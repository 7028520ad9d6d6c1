package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The trace cost has a node agent with a hundred pods, each with a control group, a process and a stream of
// its own. Its node is calm, or busy with pods that make calls of 10 ms in turn.
const (
	costPods = 100
	costRate = 90.0 // calls of costCall a second on the busy node: nine tenths of a core
	costCall = 10 * time.Millisecond
)

// nodeCost is what a node agent took.
type nodeCost struct {
	cores               float64
	resident, anonymous float64 // MiB
	// messages are those both ways, a second.
	messages   float64
	calls      int
	failedOpen int
	switches   float64 // a second
}

// measureCost measures a node agent without pods, with a hundred on a calm node, and on a busy one.
func measureCost(out io.Writer, self, temp string, length time.Duration) error {
	for _, at := range []struct {
		name, load      string
		pods            int
		most, mostBytes float64
	}{
		{"alone", "calm", 0, 0.002, 20}, {"one", "calm", 1, 0.002, 20}, {"calm", "calm", costPods, 0.005, 30}, {"busy", "busy", costPods, 0.02, 30},
	} {
		c, err := measureNodeCost(self, temp, at.load, at.pods, length)
		if err != nil {
			return fmt.Errorf("%s: %w", at.name, err)
		}
		fmt.Fprintf(out, "cost_%s_pods=%d calls=%d failed_open=%d messages_per_second=%.1f switches_per_second=%.0f anonymous_mib=%.1f\n",
			at.name, at.pods, c.calls, c.failedOpen, c.messages, c.switches, c.anonymous)
		judgeMost(out, "cost_"+at.name+"_cores", c.cores, at.most)
		judgeMost(out, "cost_"+at.name+"_resident_mib", c.resident, at.mostBytes)
	}
	return nil
}

func measureNodeCost(self, temp, load string, pods int, length time.Duration) (c nodeCost, err error) {
	n, err := startOwnNode(self, temp, load)
	if err != nil {
		return c, err
	}
	s := &siege{addr: n.addr}
	defer func() { err = errors.Join(err, s.stop(), n.stop()) }()
	conn, err := grpc.NewClient(n.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return c, err
	}
	s.keep(conn)
	for i := range pods {
		p, err := s.join(n, self, fmt.Sprint("team-", i%5), fmt.Sprint("f", i%20), fmt.Sprint("pod-", i), attacks[0])
		if err != nil {
			return c, err
		}
		s.victims = append(s.victims, p)
	}
	time.Sleep(2 * time.Second) // what starting leaves behind
	before, said, switched, began := processTimeOf(n), s.messages(), switchesOf(n.agent.Process.Pid), time.Now()
	if load == "busy" {
		h := s.load(rand.New(rand.NewPCG(1, 17)), costRate, costCall, length)
		c.calls, c.failedOpen = len(h.took), h.failedOpen
		if h.errors > 0 {
			return c, fmt.Errorf("%d calls failed", h.errors)
		}
	} else {
		time.Sleep(length)
	}
	took := time.Since(began).Seconds()
	c.cores = (processTimeOf(n) - before).Seconds() / took
	c.messages = float64(s.messages()-said) / took
	c.switches = float64(switchesOf(n.agent.Process.Pid)-switched) / took
	c.resident, c.anonymous = memoryOf(n.agent.Process.Pid, "VmRSS:"), memoryOf(n.agent.Process.Pid, "RssAnon:")
	return c, nil
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
