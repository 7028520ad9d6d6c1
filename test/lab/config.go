package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/test/cluster"
)

// Config says what to put together.
type Config struct {
	// Dir is the folder for everything that the lab writes. It is below that of a
	// Workspace, whose programs run.
	Dir string
	// Schedulers, Gateways and Nodes are how many of each there are, 1 to 9;
	// of etcd there are always three members.
	Schedulers, Gateways, Nodes int
	// LeaseTTL is for how long etcd keeps the slots of a silent scheduler.
	LeaseTTL time.Duration
	// Drain is how long a gateway that is told to stop goes on taking calls,
	// and a scheduler telling where its slots are.
	Drain time.Duration
	// GatewayArguments and SchedulerArguments are further ones of the programs.
	GatewayArguments, SchedulerArguments []string
}

// Validate says what is wrong with a Config.
func (c Config) Validate() error {
	var errs []error
	if !filepath.IsAbs(c.Dir) {
		errs = append(errs, fmt.Errorf("lab: Dir is %q: give an absolute path", c.Dir))
	}
	for name, n := range map[string]int{"Schedulers": c.Schedulers, "Gateways": c.Gateways, "Nodes": c.Nodes} {
		if n < 1 || n > 9 {
			errs = append(errs, fmt.Errorf("%s is %d: give 1 to 9", name, n))
		}
	}
	if c.LeaseTTL < time.Second || c.Drain < 0 {
		errs = append(errs, fmt.Errorf("LeaseTTL is %v and Drain %v: give at least 1s and 0s", c.LeaseTTL, c.Drain))
	}
	return errors.Join(errs...)
}

// etcdMembers is a number that can lose one.
const etcdMembers = 3

// Ports of the programs.
const (
	etcdClientPort = 2379
	etcdPeerPort   = 2380
	apiPort        = 6443
	callPort       = 8080
	opsPort        = 8081
	wirePort       = 9443
)

// The lab's addresses, all in one network:
//
//	10.88.0.1   the lab's own process, which calls
//	10.88.0.2   the API server
//	10.88.1.i   members of etcd
//	10.88.2.i   schedulers
//	10.88.3.i   gateways
//	10.88.4.1   the controller
//	10.88.255.1 any scheduler, as a Service would have it
//	others from 10.88.16.1 on are pods
func at(third, fourth int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 88, byte(third), byte(fourth)})
}

var (
	ownAddr     = at(0, 1)
	apiAddr     = at(0, 2)
	serviceAddr = at(255, 1)
)

// podAddr is the address of the n-th pod since the lab began. It comes round
// again after some tens of thousands.
func podAddr(n int) netip.Addr {
	n %= 200 * 250
	return at(16+n/250, 1+n%250)
}

func hostPort(addr netip.Addr, port int) string {
	return netip.AddrPortFrom(addr, uint16(port)).String()
}

func (c Config) file(names ...string) string {
	return filepath.Join(append([]string{c.Dir}, names...)...)
}

// data is in memory, and gone with the lab.
func (c Config) data(names ...string) string {
	return c.file(append([]string{"data"}, names...)...)
}

func (c Config) logOf(name string) string { return c.file("logs", name+".log") }

// crds is the folder with the definitions of Windlass's kinds, from the module's root.
const crds = "config/crd"

// kubernetesProgram is the path of a program that make cluster-binaries has built.
func kubernetesProgram(name string) string { return filepath.Join(cluster.ProgramsFolder(), name) }

// Program is the path of a program of the workspace: windlass, podagent or a function.
func (c Config) Program(name string) string {
	return filepath.Join(filepath.Dir(c.Dir), binFolder, name)
}

// Kubeconfig is the file by which the administrator reaches the API server.
func (c Config) Kubeconfig() string { return c.data("kubeconfig") }

// TLSDir is the folder with a role's certificate.
func (c Config) TLSDir(role string) string { return c.data("tls", role) }
