package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/bench"
	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/bench/workers"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
)

// server is a path's programs while they run.
type server struct {
	// urls are the functions, without a query.
	urls []string
	// processes are all programs whose use counts.
	processes []process
	children  []*child
}

// process is a program of a part; ops is where it serves metrics, empty for nowhere.
type process struct {
	part bench.Part
	pid  int
	ops  string
	// scraped is when its metrics were last read.
	scraped time.Time
}

// stop ends the server's own programs.
func (s *server) stop() {
	for i := len(s.children) - 1; i >= 0; i-- {
		s.children[i].stop()
	}
}

// add takes over a program. It is the part itself, unless that is empty.
func (s *server) add(c *child, part bench.Part, ops string) {
	s.children = append(s.children, c)
	if part != "" {
		s.processes = append(s.processes, process{part: part, pid: c.cmd.Process.Pid, ops: ops})
	}
}

// site is where servers are started.
type site struct {
	spawner
	// Paths of the programs.
	self, agent, peer string
	dir               string
	authority         *Authority
	// function is that of the paths without Windlass.
	function peers.Ready
	// functionProcess is its process.
	functionProcess process
}

// start starts the programs of a path. After an error nothing is left of them.
func (s *site) start(ctx context.Context, of bench.Server) (_ *server, err error) {
	started := new(server)
	defer func() {
		if err != nil {
			started.stop()
		}
	}()
	switch of.Path {
	case bench.Local:
		err = s.startLocal(ctx, started, of.Deployment)
	case bench.Separate:
		err = s.startSeparate(ctx, started, of.Deployment)
	case bench.Balancer:
		err = s.startBalancer(ctx, started, of.Deployment)
	default:
		err = s.startProxies(ctx, started, of.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", of.Path, err)
	}
	return started, nil
}

// startProxies puts the path's proxies in front of the function.
func (s *site) startProxies(ctx context.Context, to *server, path bench.Path) error {
	hops := map[bench.Path]int{bench.Direct: 0, bench.Proxy: 1, bench.PooledProxy: 1, bench.TwoProxies: 2}[path]
	url := s.function.URL
	for range hops {
		kind := peers.ProxyArgument
		if path == bench.PooledProxy {
			kind = peers.PooledProxyArgument
		}
		proxy, ready, err := s.worker(ctx, s.peer, kind, url)
		if err != nil {
			return err
		}
		to.add(proxy, bench.PartProxy, ready.Ops)
		url = ready.URL
	}
	to.urls = []string{url + "/"}
	to.processes = append(to.processes, s.functionProcess)
	return nil
}

// startBalancer starts a process for each instance of a deployment, and the balancer in front.
func (s *site) startBalancer(ctx context.Context, to *server, d bench.Deployment) error {
	routes := make(peers.Routes, d.Functions)
	for i := range d.Functions {
		for range d.Instances {
			function, ready, err := s.worker(ctx, s.peer, peers.FunctionArgument)
			if err != nil {
				return err
			}
			to.add(function, bench.PartFunction, "")
			routes[functionPath(i)] = append(routes[functionPath(i)], ready.URL)
		}
	}
	text, err := json.Marshal(routes)
	if err != nil {
		return err
	}
	balancer, ready, err := s.worker(ctx, s.peer, peers.BalancerArgument, string(text))
	if err != nil {
		return err
	}
	to.add(balancer, bench.PartProxy, ready.Ops)
	to.urls = functionURLs(ready.URL, d)
	return nil
}

// manifest has the functions of a deployment.
func (s *site) manifest(d bench.Deployment) string {
	var b strings.Builder
	for i := range d.Functions {
		fmt.Fprintf(&b, `---
apiVersion: windlass.dev/v1alpha1
kind: Function
metadata: {name: %s}
spec:
  template:
    command: [%q, %q]
    concurrency: %d
    startupTimeout: 5m
    resources: {requests: {cpu: 1m, memory: 1Mi}}
  scaling: {minInstances: %d, maxInstances: %d}
`, functionName(i), s.peer, peers.FunctionArgument, d.Concurrency, d.Instances, d.Instances)
	}
	return b.String()
}

func functionName(i int) string { return fmt.Sprintf("bench-%d", i) }

// functionPath is where a gateway has a function.
func functionPath(i int) string { return "/function/" + functionName(i) + "/" }

func functionURLs(gateway string, d bench.Deployment) []string {
	urls := make([]string, d.Functions)
	for i := range urls {
		urls[i] = gateway + functionPath(i)
	}
	return urls
}

// What windlass up prints.
var (
	gatewayLine = regexp.MustCompile(`^\s+gateway\s+(http://\S+)`)
	metricsLine = regexp.MustCompile(`^\s+metrics\s+(http://\S+)/metrics`)
)

// startLocal starts windlass up with the functions, and waits for their instances.
func (s *site) startLocal(ctx context.Context, to *server, d bench.Deployment) error {
	dir, err := os.MkdirTemp(s.dir, "up-")
	if err != nil {
		return err
	}
	manifest := filepath.Join(dir, "functions.yaml")
	if err := os.WriteFile(manifest, []byte(s.manifest(d)), 0o600); err != nil {
		return err
	}
	up, err := s.spawner.start(s.self, "up", "--data-dir", filepath.Join(dir, "data"), "--agent", s.agent,
		"--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "warn",
		"--max-body-size", fmt.Sprint(workers.MostBody), "-f", manifest)
	if err != nil {
		return err
	}
	// Its process joins the others below, once its address for metrics is known.
	to.add(up, "", "")
	var gateway, ops string
	for gateway == "" || ops == "" {
		line, err := up.readLine(ctx)
		if err != nil {
			return fmt.Errorf("%w%s", err, up.errors)
		}
		if found := gatewayLine.FindStringSubmatch(line); found != nil {
			gateway = found[1]
		}
		if found := metricsLine.FindStringSubmatch(line); found != nil {
			ops = found[1]
		}
	}
	to.processes = append(to.processes, process{part: bench.PartLocal, pid: up.cmd.Process.Pid, ops: ops})
	to.urls = functionURLs(gateway, d)
	go func() { _, _ = io.Copy(io.Discard, up.stdout) }()
	return s.addInstances(ctx, to, up, ops, d)
}

// startSeparate starts a scheduler and a gateway with TLS, and waits for the instances.
func (s *site) startSeparate(ctx context.Context, to *server, d bench.Deployment) error {
	dir, err := os.MkdirTemp(s.dir, "tls-")
	if err != nil {
		return err
	}
	if err := s.writeFunctions(dir, d); err != nil {
		return err
	}
	for role, name := range map[string]string{"scheduler": workers.Domain.Scheduler(), "gateway": workers.Domain.Gateway()} {
		if err := s.authority.Write(filepath.Join(dir, role, "tls"), name); err != nil {
			return err
		}
	}
	flags := func(role string) []string {
		return []string{
			"--" + workers.FunctionsFlag, filepath.Join(dir, role, "functions"), "--" + workers.TLSFlag, filepath.Join(dir, role, "tls"),
		}
	}
	scheduler, decides, err := s.worker(ctx, s.self, append([]string{
		workers.SchedulerCommand, "--" + workers.DataFlag, filepath.Join(dir, "data"), "--" + workers.AgentFlag, s.agent,
	}, flags("scheduler")...)...)
	if err != nil {
		return err
	}
	to.add(scheduler, bench.PartScheduler, decides.Ops)
	gateway, takes, err := s.worker(ctx, s.self, append([]string{
		workers.GatewayCommand, "--" + workers.SchedulerFlag, decides.Wire,
	}, flags("gateway")...)...)
	if err != nil {
		return err
	}
	to.add(gateway, bench.PartGateway, takes.Ops)
	to.urls = functionURLs(takes.URL, d)
	return s.addInstances(ctx, to, scheduler, decides.Ops, d)
}

// writeFunctions keeps the same functions, with the same identities, for both roles.
func (s *site) writeFunctions(dir string, d bench.Deployment) error {
	functions, err := v1alpha1.Decode([]byte(s.manifest(d)), "manifest")
	if err != nil {
		return err
	}
	store, err := file.Open(filepath.Join(dir, "scheduler", "functions"))
	if err != nil {
		return err
	}
	for _, fn := range functions {
		v1alpha1.Default(fn)
		if _, err := store.Apply(fn); err != nil {
			return err
		}
	}
	return os.CopyFS(filepath.Join(dir, "gateway", "functions"), os.DirFS(filepath.Join(dir, "scheduler", "functions")))
}

// perInstance bounds, with startWithin, how long instances may take to start.
const (
	startWithin = time.Minute
	perInstance = 2 * time.Second
)

// addInstances waits until all instances of a deployment wait for calls, and counts their processes:
// functions and agents are the children of the process that starts them.
func (s *site) addInstances(ctx context.Context, to *server, parent *child, ops string, d bench.Deployment) error {
	want := d.Functions * d.Instances
	within := startWithin + time.Duration(want)*perInstance
	timed, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("its %d instances were not ready within %v%s", want, within, parent.errors))
	defer cancel()
	if err := sleep.Until(timed, time.Second, func() (bool, error) {
		numbers, err := scrape(timed, ops)
		if timed.Err() != nil {
			return false, context.Cause(timed)
		}
		return numbers.idle == want, err
	}); err != nil {
		return err
	}
	agents, functions := 0, 0
	children, err := childrenOf(parent.cmd.Process.Pid)
	if err != nil {
		return err
	}
	for _, pid := range children {
		name, err := programOf(pid)
		if err != nil {
			return err
		}
		part := bench.PartFunction
		if name == filepath.Base(s.agent) {
			part = bench.PartAgents
			agents++
		} else {
			functions++
		}
		to.processes = append(to.processes, process{part: part, pid: pid})
	}
	if agents != want || functions != want {
		return errors.New("its processes are not an agent and a function for each instance")
	}
	return nil
}
