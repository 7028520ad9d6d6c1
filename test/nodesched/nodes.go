package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	wireserve "github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// This file makes several nodes of one machine. A node is a control group with a part of a core, and
// in it each function has a group, by the name that a kubelet gives a pod's. Agents are outside, as in
// local mode, so that a node that has used its part is not slow to answer. A node agent in a process
// of its own orders the calls of each node.

// A node has nodeQuota of each nodePeriod: it is a slow machine of one core. The period is short, so
// that a node that has used its part goes on soon.
const (
	nodePeriod = 10 * time.Millisecond
	nodeQuota  = 4 * time.Millisecond
)

// speed is how fast a node is, with 1 for a core of this machine.
const speed = float64(nodeQuota) / float64(nodePeriod)

// hierarchies are where groups are made: the node agent finds them where they are mounted usually.
var hierarchies = []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"}

// nodes are the nodes of one measurement.
type nodes struct {
	dir   string // has what they know of each other
	group string // above those of the nodes
	n     int
	cmds  []*exec.Cmd
	stdin []io.Closer
}

// startNodes makes n nodes. Those of a policy without an order have no node agents.
func startNodes(self, temp string, n int, p policy) (_ *nodes, err error) {
	s := &nodes{dir: filepath.Join(temp, "nodes"), group: groupOf(os.Getpid()), n: n}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	for i := range n {
		if err := os.MkdirAll(filepath.Join(s.dir, strconv.Itoa(i)), 0o755); err != nil {
			return nil, err
		}
		for _, h := range hierarchies {
			if err := os.MkdirAll(filepath.Join(h, s.group, strconv.Itoa(i), "kubepods"), 0o755); err != nil {
				return nil, fmt.Errorf("nodes need control groups of version 1 that can be written: %w", err)
			}
		}
		for file, d := range map[string]time.Duration{"cpu.cfs_period_us": nodePeriod, "cpu.cfs_quota_us": nodeQuota} {
			path := filepath.Join(hierarchies[0], s.group, strconv.Itoa(i), file)
			if err := os.WriteFile(path, []byte(strconv.FormatInt(d.Microseconds(), 10)), 0o644); err != nil {
				return nil, fmt.Errorf("nodes need the quota of the cpu controller: %w", err)
			}
		}
		if err := s.startAgent(self, i, p); err != nil {
			return nil, err
		}
	}
	// Windlass starts this instead of the agent. It gets few variables, and no argument.
	place := fmt.Sprintf("#!/bin/sh\nexec %s -place %s\n", self, temp)
	return s, os.WriteFile(filepath.Join(temp, "placed"), []byte(place), 0o755)
}

// startAgent starts the node agent of a node, and writes down where it listens.
func (s *nodes) startAgent(self string, i int, p policy) error {
	addr := ""
	if p.order != "" {
		cmd := exec.Command(self, "-node", filepath.Join(s.dir, strconv.Itoa(i)), "-policies", p.name, "-group", "/"+s.group+"/"+strconv.Itoa(i))
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		s.cmds, s.stdin = append(s.cmds, cmd), append(s.stdin, stdin)
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			return fmt.Errorf("node agent %d did not start: %w", i, err)
		}
		addr = strings.TrimSpace(line)
	}
	meta := addr + "\n" + s.group + "/" + strconv.Itoa(i) + "\n"
	return os.WriteFile(filepath.Join(s.dir, strconv.Itoa(i), "node"), []byte(meta), 0o644)
}

// stop ends the node agents and removes the groups, whose processes have ended.
func (s *nodes) stop() (err error) {
	for _, stdin := range s.stdin {
		_ = stdin.Close()
	}
	for _, cmd := range s.cmds {
		err = errors.Join(err, cmd.Wait())
	}
	for _, h := range hierarchies {
		err = errors.Join(err, removeGroups(filepath.Join(h, s.group)))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// removeGroups removes a group and those below it. The kernel lets go of a group's last process a
// moment after its end.
func removeGroups(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeGroups(filepath.Join(dir, e.Name())))
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		failed := unix.Rmdir(dir)
		if failed == nil || time.Now().After(deadline) {
			return errors.Join(err, failed)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// place is an agent of Windlass: it chooses a node for its instance, puts the function into a group
// there, and becomes the agent. Instances of functions whose name begins with "hog" are on the first
// node, and those of each other function on all nodes in turn.
func place(temp string) error {
	dir, notes := filepath.Join(temp, "nodes"), filepath.Join(temp, notesFolder)
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	function := os.Getenv("WINDLASS_FUNCTION")
	node := 0
	if name := function[strings.IndexByte(function, '/')+1:]; !strings.HasPrefix(name, "hog") {
		if node, err = turn(notes, name, len(all)); err != nil {
			return err
		}
	}
	meta, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(node), "node"))
	if err != nil {
		return err
	}
	addr, group, _ := strings.Cut(strings.TrimSuffix(string(meta), "\n"), "\n")
	pod := podOf(function, os.Getenv("WINDLASS_INSTANCE"))
	of := unix.Getpgrp() // the function is the first of the process group
	for _, h := range hierarchies {
		in := filepath.Join(h, group, "kubepods", "pod"+pod)
		if err := os.MkdirAll(in, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(in, "cgroup.procs"), []byte(strconv.Itoa(of)), 0o644); err != nil {
			return err
		}
	}
	// On two cores, a call in the low band would use up the node's part beside one that has the ticket. The second time
	// is for threads that began meanwhile.
	core := colocate.Cores{First: node % runtime.NumCPU(), N: 1}
	if err := errors.Join(moveTo(of, core), moveTo(of, core)); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(dir, strconv.Itoa(node), wantsFile), wantsOf(notes, of)); err != nil {
		return err
	}
	environment := os.Environ()
	if addr != "" {
		environment = append(environment, "WINDLASS_NODE="+addr)
	}
	agent := filepath.Join(temp, "podagent")
	return unix.Exec(agent, []string{agent}, environment)
}

// firstNodes are the nodes of the first instances of functions. They are one after the other, for functions with as many
// instances above all, so that no node has more places than another for calls of one kind.
func firstNodes(instances map[string]int, n int) map[string]int {
	first := map[string]int{}
	for i, name := range slices.SortedFunc(maps.Keys(instances), func(a, b string) int {
		return cmp.Or(cmp.Compare(instances[a], instances[b]), cmp.Compare(a, b))
	}) {
		first[name] = i % n
	}
	return first
}

// noteFirstNodes writes them down for instances.
func noteFirstNodes(notes string, instances map[string]int, n int) (err error) {
	for name, node := range firstNodes(instances, n) {
		err = errors.Join(err, os.WriteFile(filepath.Join(notes, "first-"+name), fmt.Append(nil, node), 0o644))
	}
	return err
}

// turn is the node of the next instance of a function.
func turn(notes, function string, n int) (int, error) {
	text, err := os.ReadFile(filepath.Join(notes, "first-"+function))
	if err != nil {
		return 0, err
	}
	node, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, err
	}
	for ; ; node++ {
		f, err := os.OpenFile(filepath.Join(notes, fmt.Sprintf("turn-%s-%d", function, node)), os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			return node % n, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
	}
}

// podOf is the UID of an instance's pod.
func podOf(function, cid string) string {
	sum := sha256.Sum256([]byte(function + " " + cid))
	return hex.EncodeToString(sum[:16])
}

// podsOfNode implements nodeagent.Identifier for the pods of one node. They are the harness's own, so
// it believes what they say.
type podsOfNode struct {
	tree    *cgroups.Tree
	journal *cgroups.Journal
	// tokens says that pods prove by a token which one they are.
	tokens bool
}

func (p podsOfNode) Identify(_ context.Context, hello nodeagent.Hello, _ net.Addr) (nodeagent.Instance, error) {
	uid := podOf(hello.Namespace+"/"+hello.Function, hello.Name)
	if p.tokens {
		// As in a cluster, the token says which pod of which namespace it is, and not the function.
		if uid = podOf(hello.Namespace, hello.Name); hello.Token != uid {
			return nodeagent.Instance{}, status.Error(codes.Unauthenticated, "that is the token of another pod")
		}
	}
	folder, err := p.tree.FindPod(uid)
	if err != nil {
		return nodeagent.Instance{}, err
	}
	group, err := p.tree.Open(folder, p.journal)
	if err != nil {
		return nodeagent.Instance{}, err
	}
	return nodeagent.Instance{
		Namespace: hello.Namespace, Function: hello.Function, Name: hello.Name, Key: uid, Group: group, MustAsk: hello.Concurrency == 1,
	}, nil
}

// serveNode is the node agent of a node whose control group is known, until nothing more can be read.
func serveNode(dir, group string, p policy, until io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(1) // as the product has
	tree := cgroups.Detect(cgroups.Options{Base: group})
	if !tree.Bands() {
		return fmt.Errorf("a node has no bands: %s", tree)
	}
	journal, err := cgroups.OpenJournal(filepath.Join(dir, "bands"))
	if err != nil {
		return err
	}
	defer journal.Close()
	config := nodeagent.DefaultConfig(1)
	config.Calls.Order, config.Calls.Slice = p.order, p.slice
	tokens := os.Getenv(tokensVariable) != ""
	if tokens {
		config.Calls.Unasked = callorder.UnaskedOfPods()
	} else {
		config.Breath.Share = 0 // no agent is in the group of its function
	}
	load, err := loadOf(dir)
	if err != nil {
		return err
	}
	agent, err := nodeagent.New(config, nodeagent.Deps{
		Instances: podsOfNode{tree, journal, tokens}, Runnable: load,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), Now: time.Now,
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := wireserve.NewWire(prometheus.NewRegistry(), nil)
	nodewire.RegisterNodeServer(server, agent)
	serving := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { serving <- wireserve.Wire(ctx, listener, server) }()
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	fmt.Fprintln(out, listener.Addr())
	_, _ = io.Copy(io.Discard, until)
	stop()
	return errors.Join(<-ended, <-serving)
}

// loadOf is how a node agent finds out how many threads want to run: functions compute with one, and what else they have
// wants to run for a moment. One whose node is set to calm or busy by its caller reads what it would read otherwise.
func loadOf(dir string) (func() (int, error), error) {
	told := os.Getenv(loadVariable)
	if told == "" {
		wants, err := openWants(filepath.Join(dir, wantsFile))
		return func() (int, error) { return int(wants.Load()), nil }, err
	}
	average, err := nodeagent.OpenLoadAvg("/proc/loadavg")
	return func() (int, error) {
		_, err := average.Runnable()
		return map[string]int{"busy": 1000}[told], err
	}, err
}
