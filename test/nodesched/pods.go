package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windlass-dev/windlass/pkg/podagent"
)

// This file makes a node of its own for tenants that do as they like: a control group with the groups of
// pods, and a node agent in a process of its own, with the product's limits on what it reads. The harness
// speaks for the agents of the pods. The groups have a large weight, so that other work on the machine
// takes little from them.

// heavy is the weight of the harness's groups; others have 1,024.
const heavy = "262144"

// loadVariable tells a node agent that its node is calm or busy; otherwise it counts the threads of pods.
const loadVariable = "NODESCHED_LOAD"

// tokensVariable says that the pods of a node prove by a token who they are.
const tokensVariable = "NODESCHED_TOKENS"

// ownNode is that node.
type ownNode struct {
	group string // below the hierarchies
	agent *exec.Cmd
	stdin io.Closer
	addr  string
}

// startOwnNode makes the node and starts its node agent, which is told its load.
func startOwnNode(self, temp, load string) (_ *ownNode, err error) {
	n := &ownNode{group: groupOf(os.Getpid())}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop())
		}
	}()
	if err := n.makeGroups(); err != nil {
		return nil, err
	}
	dir := filepath.Join(temp, "own-node")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n.agent = exec.Command(self, "-node", dir, "-policies", "serpt", "-group", "/"+n.group+"/0")
	n.agent.Env = append(os.Environ(), loadVariable+"="+load, tokensVariable+"=true")
	n.agent.Stderr = os.Stderr
	n.agent.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	n.stdin, n.addr, err = startAndListen(n.agent)
	return n, err
}

// makeGroups makes the groups of the node, and of the harness beside it.
func (n *ownNode) makeGroups() error {
	for _, h := range hierarchies {
		if err := os.MkdirAll(filepath.Join(h, n.group, "0", "kubepods"), 0o755); err != nil {
			return fmt.Errorf("a node needs control groups of version 1 that can be written: %w", err)
		}
	}
	harness := filepath.Join(hierarchies[0], n.group, "harness")
	return errors.Join(os.MkdirAll(harness, 0o755),
		os.WriteFile(filepath.Join(hierarchies[0], n.group, "cpu.shares"), []byte(heavy), 0o644),
		os.WriteFile(filepath.Join(harness, "cgroup.procs"), []byte("0"), 0o644))
}

// startAndListen starts a program that prints one line, and returns that line.
func startAndListen(cmd *exec.Cmd) (stdin io.Closer, line string, err error) {
	if stdin, err = cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return stdin, "", err
	}
	// The thread that starts it must not end before: its end would be the signal to the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return stdin, "", err
	}
	line, err = bufio.NewReader(stdout).ReadString('\n')
	return stdin, strings.TrimSpace(line), err
}

// stop ends the node agent and removes the groups, whose pods have ended.
func (n *ownNode) stop() (err error) {
	if n.stdin != nil {
		_ = n.stdin.Close()
		err = n.agent.Wait()
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(hierarchies[0], "cgroup.procs"), []byte("0"), 0o644))
	for _, h := range hierarchies {
		err = errors.Join(err, removeGroups(filepath.Join(h, n.group)))
	}
	return err
}

// tenantPod is a pod: a control group with a process that computes what it is told. Its agent is the
// harness.
type tenantPod struct {
	namespace, function, name string
	uid                       string
	token                     string
	cmd                       *exec.Cmd
	stdin                     io.WriteCloser
	answers                   *bufio.Reader
	dialer                    podagent.Dialer // to the node agent
	node                      string          // its address
	talk                      *talk
}

// startPod makes a pod on the node.
func (n *ownNode) startPod(self, namespace, function, name string) (_ *tenantPod, err error) {
	p := &tenantPod{namespace: namespace, function: function, name: name, uid: podOf(namespace, name)}
	p.token = p.uid
	p.cmd = exec.Command(self, "-work")
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(stdout)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for _, h := range hierarchies {
		in := filepath.Join(h, n.group, "0", "kubepods", "pod"+p.uid)
		err = errors.Join(err, os.MkdirAll(in, 0o755), os.WriteFile(filepath.Join(in, "cgroup.procs"), fmt.Append(nil, p.cmd.Process.Pid), 0o644))
	}
	if err == nil {
		err = p.work(0, 0, 1) // it has started
	}
	return p, err
}

// work lets the pod's process compute for a time and sleep for a time, and again, and returns when it
// has.
func (p *tenantPod) work(cpu, sleep time.Duration, rounds int) error {
	if _, err := fmt.Fprintln(p.stdin, cpu.Microseconds(), sleep.Microseconds(), rounds); err != nil {
		return err
	}
	_, err := p.answers.ReadString('\n')
	return err
}

// used is the processor time of the pod.
func (p *tenantPod) used() time.Duration {
	used, _ := processTime(p.cmd.Process.Pid)
	return used
}

func (p *tenantPod) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

// serveWork is the process of a pod, until nothing more can be read.
func serveWork(in io.Reader, out io.Writer) error {
	if os.Getenv(pinnedVariable) == "" {
		return pin()
	}
	runtime.GOMAXPROCS(1)
	var attacks attacker
	defer attacks.end()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "{") {
			welcomed, err := attacks.round(lines.Bytes())
			if err != nil {
				return err
			}
			fmt.Fprintln(out, welcomed)
			continue
		}
		var cpu, sleep int64
		var rounds int
		if _, err := fmt.Sscan(lines.Text(), &cpu, &sleep, &rounds); err != nil {
			return err
		}
		for range rounds {
			until := clock(unix.CLOCK_PROCESS_CPUTIME_ID) + time.Duration(cpu)*time.Microsecond
			for clock(unix.CLOCK_PROCESS_CPUTIME_ID) < until {
				continue
			}
			if sleep > 0 {
				time.Sleep(time.Duration(sleep) * time.Microsecond)
			}
		}
		fmt.Fprintln(out)
	}
	return lines.Err()
}
