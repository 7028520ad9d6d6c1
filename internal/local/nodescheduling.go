package local

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// NodeScheduling says how calls share the cores of this machine.
type NodeScheduling struct {
	// Order is the order in which calls compute while the machine is busy; empty for no order:
	// the kernel alone decides.
	Order callorder.Order
	Slice callorder.Slice
	// CoLocation keeps functions of class Batch back while those of class LatencyCritical wait for cores.
	CoLocation bool
	// Guardian is the command that restores all bands after this process was killed: it runs
	// cgroups.RunGuardian with the path of a journal, which is added as the last argument. Without
	// it, the next start restores them.
	Guardian []string
}

// nodeScheduler is the node agent of this machine, and the groups in which functions compute.
type nodeScheduler struct {
	config NodeScheduling
	log    *slog.Logger

	// These are set by open.
	agent   *nodeagent.Agent
	load    *nodeagent.LoadAvg
	tree    *cgroups.Tree
	journal *cgroups.Journal // nil without bands
	// holds says that batch is kept back.
	holds bool

	mu        sync.Mutex
	functions map[instanceName]functionProcess
	// failed says that it was logged that processes cannot be moved into groups.
	failed bool
	// closed says that close has done its work. It is called by run, and again when its Windlass
	// gives everything back.
	closed bool
}

type instanceName struct {
	function invocation.FunctionKey
	cid      invocation.CID
}

// functionProcess is the process of a function's instance.
type functionProcess struct {
	token string
	pid   int
	// asks says that its agent asks for core tickets.
	asks   bool
	folder *cgroups.Folder // nil if it is in no group of its own
}

func newNodeScheduler(c NodeScheduling, log *slog.Logger) *nodeScheduler {
	return &nodeScheduler{config: c, log: log, functions: make(map[instanceName]functionProcess)}
}

// open makes the node agent, and sets to normal what an earlier Windlass has left low. Without
// control groups calls are still ordered; what is possible here is logged once.
func (s *nodeScheduler) open(dataDir string, registry prometheus.Registerer) (err error) {
	if s.load, err = nodeagent.OpenLoadAvg("/proc/loadavg"); err != nil {
		return fmt.Errorf("--node-scheduling: this system does not say how many threads want to run (%w); use --node-scheduling=off", err)
	}
	if s.tree = cgroups.Detect(cgroups.Options{Create: true}); s.tree.Bands() {
		s.journal, err = cgroups.OpenJournal(filepath.Join(dataDir, "node", "bands"))
		if s.journal == nil {
			return err
		}
		if err != nil {
			s.log.Warn("some control groups could not be set to normal", "err", err)
		}
	}
	nodeagent.CheckCores(runtime.NumCPU(), nodeagent.OnlineCores, s.log)
	config := nodeagent.DefaultConfig(runtime.NumCPU())
	// Agents are not in the groups of their functions, so nobody has to breathe there.
	config.Breath.Share = 0
	// All functions here are of one person, who owns the machine.
	config.LatencyCritical = []string{wellknown.AllNamespaces}
	config.Calls.Order, config.Calls.Slice = s.config.Order, s.config.Slice
	if s.config.CoLocation {
		config.SwitchOnCoLocation(runtime.NumCPU(), cgroups.OwnCores(), s.tree, s.log)
	}
	s.holds = config.CoLocation != nil
	s.agent, err = nodeagent.New(config, nodeagent.Deps{
		Instances: s, Runnable: s.load.Runnable, Registry: registry, Log: s.log, Now: time.Now,
	})
	level := slog.LevelInfo
	if !s.tree.Bands() {
		level = slog.LevelWarn // it is less than what was asked for
	}
	s.log.Log(context.Background(), level, "calls share the cores in order while this machine is busy",
		"order", s.config.Order, "slice", s.config.Slice, "bands", s.tree.String())
	return err
}

// run runs the node agent under a guardian, and leaves all groups normal.
func (s *nodeScheduler) run(ctx context.Context) (err error) {
	if s.journal == nil || len(s.config.Guardian) == 0 {
		return errors.Join(s.agent.Run(ctx), s.close())
	}
	command := append(slices.Clone(s.config.Guardian), s.journal.Path())
	guardian, err := cgroups.StartGuardian(exec.Command(command[0], command[1:]...))
	if err != nil {
		return fmt.Errorf("the guardian of the low band cannot be started: %w", errors.Join(err, s.close()))
	}
	// The guardian restores what the journal still has when that is closed.
	return errors.Join(s.agent.Run(ctx), s.close(), guardian.Close())
}

// close gives back what open took, the first time.
func (s *nodeScheduler) close() (err error) {
	s.mu.Lock()
	before := s.closed
	s.closed = true
	s.mu.Unlock()
	if before {
		return nil
	}
	if s.load != nil {
		err = s.load.Close()
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	return err
}

// Started implements process.Groups: it moves a function's process into a group of its own.
func (s *nodeScheduler) Started(spec provisioner.InstanceSpec, pid int) {
	started := functionProcess{token: spec.Token, pid: pid, asks: spec.Function.Spec.Template.Concurrency == 1}
	if s.tree.Bands() {
		folder, err := s.tree.Create(string(spec.Function.UID) + "." + string(spec.CID))
		if err == nil {
			if err = folder.AddProcess(pid); err == nil {
				started.folder = &folder
			} else {
				_ = folder.Remove()
			}
		}
		s.logFailure(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.functions[nameOf(spec)] = started
}

// Ended implements process.Groups.
func (s *nodeScheduler) Ended(spec provisioner.InstanceSpec) {
	s.mu.Lock()
	ended := s.functions[nameOf(spec)]
	delete(s.functions, nameOf(spec))
	s.mu.Unlock()
	if ended.folder != nil {
		s.logFailure(ended.folder.Remove())
	}
}

func (s *nodeScheduler) logFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.failed {
		s.failed = true
		s.log.Warn("a function's control group could not be made or removed", "err", err)
	}
}

func nameOf(spec provisioner.InstanceSpec) instanceName {
	return instanceName{spec.Function.Key(), spec.CID}
}

// Identify implements nodeagent.Identifier: an agent proves by its instance's secret who it is.
func (s *nodeScheduler) Identify(_ context.Context, hello nodeagent.Hello, _ net.Addr) (nodeagent.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := instanceName{invocation.FunctionKey{Namespace: hello.Namespace, Name: hello.Function}, invocation.CID(hello.Name)}
	started, known := s.functions[name]
	if !known || subtle.ConstantTimeCompare([]byte(started.token), []byte(hello.Token)) != 1 {
		return nodeagent.Instance{}, status.Error(codes.Unauthenticated, "no instance of this machine has that name and token")
	}
	is := nodeagent.Instance{
		Namespace: hello.Namespace, Function: hello.Function, Name: hello.Name, Group: cgroups.ForProcess(started.pid), MustAsk: started.asks,
		// IDs of instances are unique for a function only.
		Key: hello.Namespace + "/" + hello.Function + "/" + hello.Name,
	}
	if started.folder == nil {
		return is, nil
	}
	group, err := s.tree.Open(*started.folder, s.journal)
	if err != nil {
		return nodeagent.Instance{}, err
	}
	is.Group = group
	if s.holds {
		// The group has the function's process only, so no agent has to say where it is.
		is.Waited, is.OpenHold = group.Waited, func() (nodeagent.Hold, error) { return s.tree.OpenHold(*started.folder, 0, s.journal) }
	}
	return is, nil
}
