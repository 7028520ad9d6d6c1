package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/kerneltimer"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// nodeEndsWithin is how long a node agent may take to set its groups to normal. It takes
// milliseconds, and one that hangs never does.
const nodeEndsWithin = 5 * time.Second

// garbage is how much garbage there may be, in percent of what is used. It has little of both, and Go's own number, 100,
// lets the memory of the node grow with it.
const garbage = 50

// Run runs the node agent of a node until ctx ends, and leaves all pods in the normal band. It
// does so in a second process, which may fail in any way.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return err
	}
	// It wakes up some hundred times a second for a few microseconds. With one processor of Go's that wakes one thread.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if config.Watched {
		return nodeAgent(ctx, config)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, append(slices.Clone(os.Args[1:]), "--watched")...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	return cgroups.Watch(ctx, child, config.journal(), nodeEndsWithin)
}

// journal is the file that has the pods in the low band.
func (c Config) journal() string { return filepath.Join(c.JournalDir, "bands") }

func nodeAgent(ctx context.Context, config Config) error {
	registry := role.NewRegistry()
	log, flush := role.NewLog(config.Common, registry)
	defer flush()
	n := &nodeRole{config: config, log: log, registry: registry, parts: lifecycle.New()}
	n.state.Set(role.Starting)
	defer n.parts.Stop()
	if err := n.start(); err != nil {
		return role.UnlessDone(ctx, err)
	}
	n.state.Set("")
	debug.FreeOSMemory() // what starting leaves behind, which would stay: little makes garbage from now on
	log.Info("ready", "wire-listen", config.WireListen)
	return role.UntilDone(ctx, n.parts)
}

// nodeRole is a node agent with its parts.
type nodeRole struct {
	config   Config
	log      *slog.Logger
	registry *exposition.Registry
	state    role.Readiness
	parts    *lifecycle.Lifecycle

	tls     *mtls.Credentials
	tree    *cgroups.Tree
	journal *cgroups.Journal // nil without bands
}

// start makes the parts and starts them in the order in which they need each other.
func (n *nodeRole) start() (err error) {
	if err := role.ServeOperations(n.parts, n.config.Common, serve.Operations(n.registry, n.state.Get), n.log); err != nil {
		return err
	}
	if n.tls, err = mtls.Load(n.config.TLSDir, n.log); err != nil {
		return fmt.Errorf("--tls-dir: %w", err)
	}
	role.RegisterExpiry(n.registry, n.tls)
	if err := n.openGroups(); err != nil {
		return err
	}
	verifier, err := n.startIdentity()
	if err != nil {
		return err
	}
	agent, err := n.startAgent(&podIdentifier{
		verify: verifier.Verify, namespaces: n.config.Namespaces, tree: n.tree, journal: n.journal,
	})
	if err != nil {
		return err
	}
	if err := n.startFillers(agent); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", n.config.WireListen)
	if err != nil {
		return fmt.Errorf("--wire-listen: %w", err)
	}
	server := serve.NewWire(n.registry, n.tls.ServerCredentials(), mtls.RequirePeer(mtls.NodeMethods())...)
	nodewire.RegisterNodeServer(server, agent)
	n.parts.Start("wire", func(ctx context.Context) error { return serve.Wire(ctx, listener, server) })
	return nil
}

// openGroups finds the groups of pods, and sets those to normal that an earlier node agent has left
// low. What is possible on this node is logged once.
func (n *nodeRole) openGroups() (err error) {
	n.tree = cgroups.Detect(cgroups.Options{Below: n.config.CgroupRoot, Base: "/"})
	if n.tree.Bands() {
		if n.journal, err = cgroups.OpenJournal(n.config.journal()); n.journal == nil {
			return fmt.Errorf("--journal-dir: %w", err)
		}
		if err != nil {
			n.log.Warn("some control groups could not be set to normal", "err", err)
		}
		n.parts.OnStop(func() { _ = n.journal.Close() })
	}
	settings := []any{"order", n.config.CallOrder, "slice", n.config.Slice, "cgroup-root", n.config.CgroupRoot}
	switch {
	case n.tree.Bands():
		n.log.Info("calls share the cores in order while this node is busy", append(settings, "bands", n.tree.String())...)
	case n.tree.Counts():
		n.log.Warn("calls begin in order while this node is busy, and none yields to shorter ones", append(settings, "bands", n.tree.String())...)
	default:
		n.log.Warn("calls are not ordered on this node: the control groups of pods are not below --cgroup-root; mount the node's /sys/fs/cgroup there",
			append(settings, "err", n.tree.String())...)
	}
	return nil
}

// startIdentity follows the keys by which tokens of pods are checked. Every service account may
// read them, and without --batch-namespaces this one has no right besides.
func (n *nodeRole) startIdentity() (*podtoken.Verifier, error) {
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	settings := podtoken.DefaultConfig()
	settings.Audience = podtoken.NodeAudience
	verifier, err := podtoken.New(settings, podtoken.Deps{
		Keys: podtoken.ClusterKeys{Client: client}, Log: n.log, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	n.parts.Start("identity", verifier.Run)
	return verifier, nil
}

// startAgent starts what orders the calls. When it stops, all groups become normal.
func (n *nodeRole) startAgent(instances *podIdentifier) (*nodeagent.Agent, error) {
	load, err := nodeagent.OpenLoadAvg("/proc/loadavg")
	if err != nil {
		return nil, fmt.Errorf("this node does not say how many threads want to run: %w", err)
	}
	n.parts.OnStop(func() { _ = load.Close() })
	settings, err := n.config.agent()
	if err != nil {
		return nil, err
	}
	if n.config.Cores == 0 {
		nodeagent.CheckCores(runtime.NumCPU(), nodeagent.OnlineCores, n.log)
	}
	if n.config.CoLocation {
		settings.SwitchOnCoLocation(runtime.NumCPU(), cgroups.OwnCores(), n.tree, n.log)
	}
	instances.holds = settings.CoLocation != nil
	// With one of Go's timers, more than half of the context switches of a program that wakes up every 5 ms and does little
	// are of the runtime's monitor thread.
	deps := nodeagent.Deps{Instances: instances, Runnable: load.Runnable, Registry: n.registry, Log: n.log, Now: time.Now, NewTimer: kerneltimer.NewOrGo}
	if n.journal != nil {
		life, err := cgroups.NewLife(n.journal)
		if err != nil {
			return nil, fmt.Errorf("--watched is for a process that another one watches: %w", err)
		}
		deps.Alive = func(instances bool) { life.Tell(time.Now(), instances) }
	}
	agent, err := nodeagent.New(settings, deps)
	if err != nil {
		return nil, err
	}
	n.parts.Start("node agent", func(ctx context.Context) error {
		err := agent.Run(ctx)
		if err != nil {
			n.log.Error("some pods could not be set to normal; the next node agent tries again", "err", err)
		}
		return err
	})
	return agent, nil
}
