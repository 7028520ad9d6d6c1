package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/controller"
	"github.com/windlass-dev/windlass/pkg/gateway"
	gatewayaddress "github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// Etcd is how etcd is reached.
type Etcd struct {
	Endpoints []string
	// Prefix of all keys. Schedulers and gateways of one Windlass share it.
	Prefix string
	// TLSDir is a folder with ca.crt, tls.crt and tls.key; empty for etcd
	// without TLS.
	TLSDir string
	// Username and PasswordFile are for an etcd with authentication.
	Username, PasswordFile string
}

// GatewayConfig has the settings of a gateway.
type GatewayConfig struct {
	role.Common
	Etcd Etcd
	// Listen is where calls come in, and WireListen where instances claim
	// them; Advertise is the address of WireListen that instances can reach.
	Listen, WireListen, Advertise string
	// Schedulers is the address at which any scheduler answers: who owns which
	// slot is asked for there if etcd cannot be reached at the start.
	Schedulers string
	// MaxBodySize is the largest request body, and MaxInFlight bounds the calls
	// that are here.
	MaxBodySize Bytes
	MaxInFlight int
	// BodyMemory bounds the memory of request bodies.
	BodyMemory Bytes
	Callers    CallersConfig
	// LogCalls selects the calls to log, and Tracing those to record as traces.
	LogCalls gateway.LogCalls
	Tracing  tracing.Config
	// ProblemDetail is how much callers read about internal failures.
	ProblemDetail gateway.ProblemDetail
	// TrustedProxies are the networks, as CIDRs, of proxies in front of the gateways.
	TrustedProxies []string
	// Hosts are those of functions.
	Hosts HostsConfig
	// DrainDelay is how long a stopping gateway still accepts calls, and DrainTimeout how long
	// its calls may then take.
	DrainDelay, DrainTimeout time.Duration
}

// HostsConfig says which hosts functions have.
type HostsConfig struct {
	// ExternalURL is where clients reach the gateways.
	ExternalURL string
	// Domain is the one below which they are; empty gives them none. Template says which.
	Domain, Template string
}

// urls say where functions are called.
func (c HostsConfig) urls() (gatewayaddress.URLs, error) {
	hosts, err := gatewayaddress.NewHosts(c.Domain, c.Template)
	if err != nil {
		return gatewayaddress.URLs{}, err
	}
	return gatewayaddress.NewURLs(c.ExternalURL, hosts)
}

// SchedulerConfig has the settings of a scheduler.
type SchedulerConfig struct {
	role.Common
	Etcd Etcd
	// ID names the scheduler; no two that run have the same.
	ID string
	// WireListen is where gateways and instances come, and Advertise its
	// address that they can reach.
	WireListen, Advertise string
	// AgentImage is the agent's image, and AgentScheduler the address at which
	// agents find any scheduler.
	AgentImage, AgentScheduler string
	// AgentCPU and AgentMemory are what an agent requests, and AgentMemoryLimit is the
	// most memory that it may have.
	AgentCPU, AgentMemory, AgentMemoryLimit string
	// NodeAgent is the address at which an instance reaches the node agent of its node; empty if
	// there are none.
	NodeAgent string
	// UserNamespaces gives each pod users of its own.
	UserNamespaces bool
	// UserIDs are the users of functions, by namespace; none means the same for all.
	UserIDs podspec.UserIDs
	// ImagePullPolicy is that of functions and agents; empty leaves it to the
	// cluster.
	ImagePullPolicy string
	// CreateQPS bounds the pods that are created in a second.
	CreateQPS float64
	// LeaseTTL is how long a scheduler that vanished keeps its slots.
	LeaseTTL time.Duration
	// Decider is the algorithm of functions that name none.
	Decider string
	// HandoverDelay is how long a stopping scheduler, after it has handed off its slots, still
	// redirects gateways and agents.
	HandoverDelay time.Duration
	// Tracing says which starts of instances are recorded as traces.
	Tracing tracing.Config
}

// ControllerConfig has the settings of a controller.
type ControllerConfig struct {
	role.Common
	// Namespace is the one that the controller runs in.
	Namespace string
	// Schedulers is the headless Service of the schedulers, in Namespace.
	Schedulers string
	// Hosts are those of functions, and PolicyFile says who may have which of them; without
	// it nobody may.
	Hosts      HostsConfig
	PolicyFile string
	// RuntimesFile holds a list of ClusterRuntimes to install, in YAML.
	RuntimesFile string
	// Egress is where instances of functions may connect to.
	Egress controller.Egress
	// NodeAgents says that there are some, so that classes and slices have an effect.
	NodeAgents bool
	// LatencyCritical are the namespaces whose functions may have that class; "*" stands for all.
	LatencyCritical []string
	// LeaderElection makes only one of several controllers act.
	LeaderElection bool
}

// CleanupConfig has the settings of the cleanup.
type CleanupConfig struct {
	role.Common
	// Namespace is the one that Windlass ran in.
	Namespace string
	// Timeout bounds it.
	Timeout time.Duration
}

func (c Etcd) validate() []error {
	if len(c.Endpoints) == 0 {
		return []error{errors.New("--etcd-endpoints is missing: write for example https://etcd-0.etcd:2379")}
	}
	return nil
}

// Validate returns an error that names the invalid settings.
func (c GatewayConfig) Validate() error {
	errs := append(c.ValidateServing(), c.Etcd.validate()...)
	errs = append(errs, role.Address("--listen", c.Listen)...)
	errs = append(errs, role.Address("--wire-listen", c.WireListen)...)
	errs = append(errs, reachable("--advertise", c.Advertise)...)
	errs = append(errs, reachable("--schedulers", c.Schedulers)...)
	errs = append(errs, c.Callers.validate()...)
	_, err := gateway.ParseProxies(c.TrustedProxies)
	errs = append(errs, err)
	_, err = c.Hosts.urls()
	errs = append(errs, err)
	errs = append(errs, c.LogCalls.Validate(), c.ProblemDetail.Validate(), c.Tracing.Validate())
	if c.DrainDelay < 0 || c.DrainTimeout < 0 {
		errs = append(errs, fmt.Errorf("--drain-delay %v and --drain-timeout %v must not be negative", c.DrainDelay, c.DrainTimeout))
	}
	return errors.Join(errs...)
}

// Validate returns an error that names the invalid settings.
func (c SchedulerConfig) Validate() error {
	errs := append(c.ValidateServing(), c.Etcd.validate()...)
	errs = append(errs, role.Address("--wire-listen", c.WireListen)...)
	errs = append(errs, reachable("--advertise", c.Advertise)...)
	errs = append(errs, reachable("--agent-scheduler", c.AgentScheduler)...)
	if c.NodeAgent != "" {
		errs = append(errs, reachable("--node-agent", c.NodeAgent)...)
	}
	errs = append(errs, c.Tracing.Validate())
	if c.ID == "" {
		errs = append(errs, errors.New("--id is missing: give the scheduler a name of its own, such as its pod's"))
	}
	if c.AgentImage == "" {
		errs = append(errs, errors.New("--agent-image is missing: name the image of the agent"))
	}
	for flag, amount := range map[string]string{
		"--agent-cpu": c.AgentCPU, "--agent-memory": c.AgentMemory, "--agent-memory-limit": c.AgentMemoryLimit,
	} {
		if _, err := resource.ParseQuantity(amount); err != nil {
			errs = append(errs, fmt.Errorf("%s %q is not an amount: write for example 10m or 32Mi", flag, amount))
		}
	}
	if c.CreateQPS <= 0 {
		errs = append(errs, fmt.Errorf("--create-qps %v must be positive", c.CreateQPS))
	}
	if err := c.UserIDs.Validate(c.UserNamespaces); err != nil {
		errs = append(errs, fmt.Errorf("--user-id-base and --user-id-count: %w", err))
	}
	if _, known := autoscaler.ByName(c.Decider); !known {
		errs = append(errs, fmt.Errorf("--algorithm %q is not known; write %s", c.Decider, autoscaler.Choice()))
	}
	switch c.ImagePullPolicy {
	case "", "Always", "IfNotPresent", "Never":
	default:
		errs = append(errs, fmt.Errorf("--image-pull-policy %q is none of Always, IfNotPresent and Never", c.ImagePullPolicy))
	}
	return errors.Join(errs...)
}

// Validate returns an error that names the invalid settings.
func (c ControllerConfig) Validate() error {
	errs := c.ValidateServing()
	if c.Namespace == "" {
		errs = append(errs, errors.New("--pod-namespace is missing: name the namespace that the controller runs in"))
	}
	if c.Schedulers == "" {
		errs = append(errs, errors.New("--schedulers is missing: name the headless Service of the schedulers"))
	}
	if err := c.Egress.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--functions-egress: %w", err))
	}
	_, err := c.Hosts.urls()
	return errors.Join(append(errs, err)...)
}

// reachable checks an address that other programs connect to.
func reachable(flag, addr string) []error {
	if host, _, err := net.SplitHostPort(addr); err != nil || host == "" {
		return []error{fmt.Errorf("%s %q is not host:port: write for example 10.0.0.7:9443", flag, addr)}
	}
	return nil
}

// bracketed puts brackets around the host of host:port if it is an IPv6 address without them.
func bracketed(addr string) string {
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return addr
	}
	if ip, err := netip.ParseAddr(addr[:colon]); err != nil || !ip.Is6() {
		return addr
	}
	return net.JoinHostPort(addr[:colon], addr[colon+1:])
}
