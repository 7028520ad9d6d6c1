package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/mtls"
)

// Lab is a Windlass that runs.
type Lab struct {
	Config Config
	// API is the API server, with an etcd of its own.
	API, apiEtcd         *Member
	Etcd                 Etcd
	Schedulers, Gateways []*Member
	// Controller makes revisions of functions, and says which calls go to them.
	Controller *Member
	// Kubelet runs the pods of all nodes.
	Kubelet *Kubelet
	// Cluster is the way to the API server.
	Cluster *Cluster
	// probe asks members how they are, with a connection each time, since the
	// last one may have been cut.
	probe *http.Client
	// ca makes the certificates of the roles.
	ca *authority
	// RunLog is the file that every execution is written to.
	RunLog string
}

// openWithin is how long it may take to put a lab together.
const openWithin = 2 * time.Minute

// Open puts a lab together, and returns when everything in it is ready. It is to
// be called in the process that Enter makes.
func Open(ctx context.Context, config Config) (*Lab, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	if err := settle(config.data()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.file("logs"), 0o755); err != nil {
		return nil, err
	}
	if err := openBridge(ctx, ownAddr); err != nil {
		return nil, err
	}
	l := &Lab{Config: config, RunLog: config.data("ledger"), probe: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Domain is that of the certificates of a lab.
const Domain mtls.Domain = "lab.windlass"

// roleNames are the names in the certificates of roles.
var roleNames = map[string]string{
	"gateway": Domain.Gateway(), "scheduler": Domain.Scheduler(), "controller": Domain.Controller(),
}

// Certify gives a role (gateway, scheduler or controller) a new certificate that ends
// after life; 0 is 90 days. Members take it within some seconds.
func (l *Lab) Certify(role string, life time.Duration) error {
	return l.ca.folder(l.Config.TLSDir(role), identity{user: role, names: []string{roleNames[role]}, life: life})
}

// start starts the parts in the order in which they need each other.
func (l *Lab) start(ctx context.Context) error {
	var err error
	if l.ca, err = newAuthority("windlass-lab"); err != nil {
		return err
	}
	for role := range roleNames {
		if err := l.Certify(role, 0); err != nil {
			return err
		}
	}
	if err := l.startAPI(ctx); err != nil {
		return err
	}
	if err := l.startEtcd(ctx); err != nil {
		return err
	}
	if l.Kubelet, err = openKubelet(ctx, l); err != nil {
		return err
	}
	return l.startRoles(ctx)
}

// open makes a member, which does not run yet.
func (l *Lab) open(ctx context.Context, kind string, i int, path string, environ []string, arguments func(m *Member) []string) (*Member, error) {
	thirds := map[string]int{"api": 0, "etcd": 1, "scheduler": 2, "gateway": 3, "ctrl": 4}
	addr, name := at(thirds[kind], i), fmt.Sprintf("%s-%d", kind, i)
	space, err := openSpace(ctx, name, "lab-"+name, addr)
	if err != nil {
		return nil, err
	}
	m := &Member{Space: space, api: l.probe, ready: "http://" + hostPort(addr, opsPort) + "/readyz"}
	m.program = Program{Path: path, Arguments: arguments(m), Environ: environ, Log: l.Config.logOf(name)}
	return m, nil
}

func (l *Lab) startRoles(ctx context.Context) error {
	windlass := l.Config.Program("windlass")
	environ := append(os.Environ(), "KUBECONFIG="+l.Config.Kubeconfig())
	for i := range l.Config.Schedulers {
		m, err := l.open(ctx, "scheduler", i+1, windlass, environ, l.schedulerArguments)
		if err != nil {
			return err
		}
		l.Schedulers = append(l.Schedulers, m)
	}
	for i := range l.Config.Gateways {
		m, err := l.open(ctx, "gateway", i+1, windlass, environ, l.gatewayArguments)
		if err != nil {
			return err
		}
		if err := m.spread(ctx, serviceAddr, l.schedulerAddrs()); err != nil {
			return err
		}
		l.Gateways = append(l.Gateways, m)
	}
	if err := l.Cluster.endpoints(ctx, l.schedulerAddrs()); err != nil {
		return err
	}
	var err error
	if l.Controller, err = l.open(ctx, "ctrl", 1, windlass, environ, l.controllerArguments); err != nil {
		return err
	}
	return l.Heal(ctx)
}

// controllerArguments are those of the only controller: it need not be elected.
func (l *Lab) controllerArguments(*Member) []string {
	return []string{
		"controller", "--log-format=text", "--log-level=info", "--tls-dir=" + l.Config.TLSDir("controller"), "--tls-domain=" + string(Domain),
		"--schedulers=" + schedulersService, "--pod-namespace=" + Namespace, "--leader-elect=false",
	}
}

func (l *Lab) commonArguments(role string) []string {
	arguments := []string{role, "--log-format=text", "--log-level=info", "--tls-dir=" + l.Config.TLSDir(role), "--tls-domain=" + string(Domain)}
	for _, m := range l.Etcd.Members {
		arguments = append(arguments, "--etcd-endpoints=http://"+hostPort(m.Addr, etcdClientPort))
	}
	return arguments
}

func (l *Lab) schedulerArguments(m *Member) []string {
	arguments := append(l.commonArguments("scheduler"),
		"--id="+m.Name, "--advertise="+hostPort(m.Addr, wirePort),
		"--agent-image=podagent", "--agent-scheduler="+hostPort(serviceAddr, wirePort),
		"--lease-ttl="+l.Config.LeaseTTL.String(), "--handover-delay="+l.Config.Drain.String())
	return append(arguments, l.Config.SchedulerArguments...)
}

func (l *Lab) gatewayArguments(m *Member) []string {
	arguments := append(l.commonArguments("gateway"),
		"--advertise="+hostPort(m.Addr, wirePort), "--schedulers="+hostPort(serviceAddr, wirePort),
		"--drain-delay="+l.Config.Drain.String())
	return append(arguments, l.Config.GatewayArguments...)
}

// schedulerAddrs are the addresses behind the schedulers' service.
func (l *Lab) schedulerAddrs() []netip.Addr {
	var addrs []netip.Addr
	for i := range l.Config.Schedulers {
		addrs = append(addrs, at(2, i+1))
	}
	return addrs
}

// CallURL is where a gateway takes calls.
func (l *Lab) CallURL(gateway *Member) string { return "http://" + hostPort(gateway.Addr, callPort) }

// Targets are all gateways, for those who call.
func (l *Lab) Targets() []loadgen.Target {
	var targets []loadgen.Target
	for _, m := range l.Gateways {
		targets = append(targets, loadgen.Target{Name: m.Name, URL: l.CallURL(m), Ready: m.ready})
	}
	return targets
}

// Members are all that Heal revives.
func (l *Lab) Members() []*Member {
	all := append([]*Member{l.apiEtcd, l.API}, l.Etcd.Members...)
	all = append(append(all, l.Schedulers...), l.Gateways...)
	return append(all, l.Controller)
}

// Heal takes every fault of the network back, starts what does not run, lets go
// on what is paused, and returns when everything is ready.
func (l *Lab) Heal(ctx context.Context) error {
	var errs []error
	for _, m := range l.Members() {
		errs = append(errs, m.Mend(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, m := range l.Members() {
		if m.Alive() {
			m.Resume()
		} else if err := m.Start(); err != nil {
			return err
		}
	}
	for _, m := range l.Members() {
		if err := m.Revive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// closeWithin bounds how long the kubelet's pods may take to end.
const closeWithin = 5 * time.Second

// Close ends everything.
func (l *Lab) Close() error {
	if l.Kubelet != nil {
		l.Kubelet.close(closeWithin)
	}
	members := append(append([]*Member{}, l.Gateways...), l.Schedulers...)
	members = append(members, l.Etcd.Members...)
	for _, m := range append(members, l.Controller, l.API, l.apiEtcd) {
		if m == nil {
			continue
		}
		if m.Alive() {
			m.Kill()
		}
		m.Close()
	}
	return nil
}

// OpsAddr is where a member tells of itself, host:port.
func (l *Lab) OpsAddr(m *Member) string { return hostPort(m.Addr, opsPort) }

// MetricsURL is where a member tells its metrics.
func (l *Lab) MetricsURL(m *Member) string { return "http://" + l.OpsAddr(m) + "/metrics" }

// WireAddr is where instances and other members reach a gateway or scheduler.
func (l *Lab) WireAddr(m *Member) string { return hostPort(m.Addr, wirePort) }
