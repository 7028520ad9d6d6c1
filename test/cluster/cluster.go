package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a running cluster. Its methods may be called concurrently, but not
// StartNode and StopNode for one node.
type Cluster struct {
	layout   layout
	log      *slog.Logger
	launcher *launcher
	// lock is held by who may stop the cluster; nil in one that Open returned.
	lock *os.File

	stopping sync.Mutex // Held by Stop.
	stopped  bool

	mu     sync.Mutex
	record record
	// failed ends a start under way if a process ends before its time.
	failed context.CancelCauseFunc
	// expected are the processes that we end ourselves.
	expected map[int]bool
}

// Open returns the cluster in a state folder, running or not; it does not start
// anything. The error says so if there is none.
func Open(state string, log *slog.Logger) (*Cluster, error) {
	config := Config{State: state, Log: log}
	l := layout{config.state()}
	r, err := readRecord(l)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fmt.Errorf("there is no cluster in %s", l.state)
	}
	c := newCluster(l, config.log(), true)
	c.record = *r
	return c, nil
}

func newCluster(l layout, log *slog.Logger, detach bool) *Cluster {
	return &Cluster{
		layout:   l,
		log:      log,
		launcher: newLauncher(detach),
		failed:   func(error) {},
		expected: map[int]bool{},
	}
}

// State is the folder with everything the cluster writes.
func (c *Cluster) State() string { return c.layout.state }

// Kubeconfig is the path of an administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.layout.kubeconfig() }

// REST returns an administrator's access to the API server.
func (c *Cluster) REST() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	// A test's client must not be what a test waits for.
	config.QPS, config.Burst = 200, 400
	return config, nil
}

// Program is the path of a program of the release, such as kubectl.
func (c *Cluster) Program(name string) string { return filepath.Join(c.record.Programs, name) }

// MachineAddress is where pods reach servers on this machine that listen on it
// or on every address.
func (c *Cluster) MachineAddress() string { return c.record.Range.machine().String() }

// NodeAddress is where this machine reaches node ports, and pods on the host network.
func (c *Cluster) NodeAddress() string { return c.record.Range.control().String() }

// NodeNames lists the nodes in the order of Config.Nodes.
func (c *Cluster) NodeNames() []string {
	names := make([]string, len(c.record.Nodes))
	for i, n := range c.record.Nodes {
		names[i] = n.Name
	}
	return names
}

// Status is what runs of a cluster.
type Status struct {
	// Running and Ended name the cluster's processes.
	Running, Ended []string
}

// Status looks at the processes, not at the API.
func (c *Cluster) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s Status
	for _, p := range c.record.Processes {
		if p.alive() {
			s.Running = append(s.Running, p.Name)
		} else {
			s.Ended = append(s.Ended, p.Name)
		}
	}
	return s
}

// LoadImage imports an archive in OCI or Docker format into every node that runs.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	var group tasks
	for _, name := range c.NodeNames() {
		if !c.runs(nodeProcess(name)) {
			continue
		}
		group.add(func() error {
			err := run(ctx, "ctr", "--address", c.layout.socket(name), "-n", "k8s.io", "images", "import", archive)
			if err != nil {
				return fmt.Errorf("loading an image into %s: %w", name, err)
			}
			return nil
		})
	}
	return group.wait()
}

// PullFrom makes nodes pull the images of a registry, host[:port], from a URL such as
// http://ADDRESS:PORT, which nodes reach: Cluster.MachineAddress, for one.
func (c *Cluster) PullFrom(registry, url string) error {
	folder := filepath.Join(c.layout.registries(), registry)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "hosts.toml"), []byte(registryConfig(url)), 0o600)
}

func (c *Cluster) runs(name string) bool {
	c.mu.Lock()
	p, ok := c.record.find(name)
	c.mu.Unlock()
	return ok && p.alive()
}

// launch starts a process and puts it on record.
func (c *Cluster) launch(name string, cmd *exec.Cmd) (process, error) {
	cmd.Env = []string{"PATH=" + searchPath, "HOME=/root", "LANG=C.UTF-8"}
	cmd.Dir = "/"
	log, err := os.OpenFile(c.layout.log(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return process{}, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log

	c.mu.Lock()
	defer c.mu.Unlock()
	p, ended, err := c.launcher.start(name, cmd)
	if err != nil {
		return process{}, err
	}
	go c.watch(p, ended)
	c.record.set(p)
	return p, c.record.write(c.layout)
}

// watch tells of a process that ends although nobody asked it to.
func (c *Cluster) watch(p process, ended <-chan struct{}) {
	<-ended
	c.mu.Lock()
	expected, failed := c.expected[p.PID], c.failed
	c.mu.Unlock()
	if expected {
		return
	}
	c.log.Error("A process of the cluster has ended.", "process", p.Name, "log", c.layout.log(p.Name))
	failed(fmt.Errorf("%s has ended; the end of %s:\n%s", p.Name, c.layout.log(p.Name), tail(c.layout.log(p.Name))))
}

// failing returns a context that ends when a process does, until done is called.
func (c *Cluster) failing(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	c.failed = cancel
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		c.failed = func(error) {}
		c.mu.Unlock()
		cancel(nil)
	}
}

// inside returns a command that runs in the cluster's network namespace.
func (c *Cluster) inside(program string, arguments ...string) (*exec.Cmd, error) {
	c.mu.Lock()
	network, ok := c.record.find(networkProcess)
	c.mu.Unlock()
	if !ok || !network.alive() {
		return nil, errors.New("the cluster's network is gone: end the cluster and start another")
	}
	return exec.Command(find("nsenter"), within(network.PID, append([]string{program}, arguments...)...)...), nil
}

// end kills processes, and returns when the kernel has taken them down.
func (c *Cluster) end(ctx context.Context, processes []process) error {
	c.mu.Lock()
	for _, p := range processes {
		c.expected[p.PID] = true
	}
	c.mu.Unlock()
	var group tasks
	for _, p := range processes {
		group.add(func() error { return p.kill(ctx) })
	}
	return group.wait()
}

// acquire takes the lock of a state folder, which ends with its holder.
func acquire(l layout) (*os.File, error) {
	f, err := os.OpenFile(l.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("the cluster in %s belongs to a running process: interrupt that one, or use another folder", l.state)
	}
	return f, nil
}

// tasks runs functions side by side.
type tasks struct {
	group sync.WaitGroup
	mu    sync.Mutex
	errs  []error
}

func (t *tasks) add(f func() error) {
	t.group.Go(func() {
		if err := f(); err != nil {
			t.mu.Lock()
			t.errs = append(t.errs, err)
			t.mu.Unlock()
		}
	})
}

func (t *tasks) wait() error {
	t.group.Wait()
	return errors.Join(t.errs...)
}
