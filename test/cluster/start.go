package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// networkProcess holds the network namespace; it does nothing else.
const networkProcess = "network"

// Start starts a cluster and returns when its nodes are ready, services answer
// and names resolve. If it fails, or ctx ends before, nothing is left, and the error
// holds the end of the log that says why. The caller calls Stop, unless the cluster
// is to outlive it.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := Missing(config.programs()); err != nil {
		return nil, err
	}
	c := newCluster(layout{config.state()}, config.log(), config.Detach)
	programs, err := filepath.Abs(config.programs())
	if err != nil {
		return nil, err
	}
	c.record = record{Programs: programs, Nodes: config.Nodes}
	if err := c.claim(ctx); err != nil {
		return nil, err
	}

	starting, done := c.failing(ctx)
	defer done()
	if err := c.start(starting); err != nil {
		if cause := context.Cause(starting); cause != nil && ctx.Err() == nil {
			err = cause // A process has ended, and all else follows from that.
		}
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	if config.Detach {
		c.lock.Close()
		c.lock = nil
	}
	return c, nil
}

// claim makes the state folder ours, and clears what a cluster has left in it.
func (c *Cluster) claim(ctx context.Context) error {
	if err := os.MkdirAll(c.layout.state, 0o755); err != nil {
		return err
	}
	lock, err := acquire(c.layout)
	if err != nil {
		return err
	}
	c.lock = lock
	old, err := readRecord(c.layout)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	if old != nil {
		if len(old.running()) > 0 {
			return errors.Join(fmt.Errorf("a cluster runs in %s already: end it first, or use another folder", c.layout.state), lock.Close())
		}
		c.log.Info("Clearing what an earlier cluster has left.", "folder", c.layout.state)
		return sweep(ctx, c.layout, *old)
	}
	entries, err := os.ReadDir(c.layout.state)
	if err != nil || len(entries) > 1 {
		return errors.Join(fmt.Errorf("%s is not empty, and no cluster's: name another folder", c.layout.state), err, lock.Close())
	}
	return nil
}

func (c *Cluster) start(ctx context.Context) error {
	began := time.Now()
	if err := c.startNetwork(ctx); err != nil {
		return err
	}
	if err := writeFiles(c.layout, c.record.Range, c.record); err != nil {
		return err
	}
	// The nodes' runtimes start while the API server does; the kubelets wait for it.
	release, err := c.startRuntimes()
	if err != nil {
		return err
	}
	defer release()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := c.startProgram(name); err != nil {
			return err
		}
	}
	config, err := c.REST()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := c.await(ctx, "the API server", func() error { return ready(ctx, client) }); err != nil {
		return err
	}
	release()
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		if err := c.startProgram(name); err != nil {
			return err
		}
	}
	if err := allowDNS(ctx, client); err != nil {
		return err
	}
	if err := c.startProgram("coredns"); err != nil {
		return err
	}
	if err := c.awaitAll(ctx, client); err != nil {
		return err
	}
	c.log.Info("The cluster is ready.", "seconds", time.Since(began).Round(100*time.Millisecond).Seconds())
	return nil
}

func (c *Cluster) startNetwork(ctx context.Context) error {
	if err := os.MkdirAll(c.layout.logs(), 0o755); err != nil {
		return err
	}
	holder := exec.Command(find("sleep"), "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	p, err := c.launch(networkProcess, holder)
	if err != nil {
		return err
	}
	a, err := takeRange(ctx, p.PID)
	if err != nil {
		return err
	}
	c.record.Range = a
	if err := c.record.write(c.layout); err != nil {
		return err
	}
	return setUpNetwork(ctx, a, p.PID, len(c.record.Nodes))
}

// arguments of the programs that run once.
func (c *Cluster) arguments(name string) []string {
	l, a := c.layout, c.record.Range
	switch name {
	case "etcd":
		return etcdArguments(l)
	case "kube-apiserver":
		return apiserverArguments(l, a)
	case "kube-controller-manager":
		return controllerManagerArguments(l)
	case "kube-scheduler":
		return schedulerArguments(l)
	case "kube-proxy":
		return []string{"--config=" + l.etc("kube-proxy.json")}
	default:
		return []string{"-conf", l.etc("Corefile")}
	}
}

func (c *Cluster) startProgram(name string) error {
	cmd, err := c.inside(c.Program(name), c.arguments(name)...)
	if err != nil {
		return err
	}
	_, err = c.launch(name, cmd)
	return err
}

// await asks until there is no error. It gives up with the context, and says
// what the last answer was.
func (c *Cluster) await(ctx context.Context, what string, ask func() error) error {
	began := time.Now()
	for {
		err := ask()
		if err == nil {
			c.log.Info("A part of the cluster is ready.", "part", what, "after", time.Since(began).Round(time.Millisecond))
			return nil
		}
		if !sleep.For(ctx, 100*time.Millisecond) {
			gone := context.Cause(ctx)
			return fmt.Errorf("waiting for %s: %w; the last answer was: %w", what, gone, err)
		}
	}
}

func (c *Cluster) awaitAll(ctx context.Context, client kubernetes.Interface) error {
	a := c.record.Range
	var group tasks
	for _, name := range c.NodeNames() {
		group.add(func() error {
			err := c.await(ctx, name, func() error { return nodeReady(ctx, client, name) })
			if err != nil {
				return fmt.Errorf("%w; the end of the kubelet's log:\n%s", err, tail(c.layout.nodeFile(name, "kubelet.log")))
			}
			return nil
		})
	}
	group.add(func() error {
		return c.await(ctx, "services", func() error { return answers(ctx, fmt.Sprintf("https://%s/version", a.apiService())) })
	})
	group.add(func() error {
		return c.await(ctx, "names", func() error { return answers(ctx, fmt.Sprintf("http://%s:%d/ready", a.control(), dnsReady)) })
	})
	group.add(func() error {
		return c.await(ctx, "service accounts", func() error {
			_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
			return err
		})
	})
	return group.wait()
}

// ready asks the API server whether it has started all of itself.
func ready(ctx context.Context, client kubernetes.Interface) error {
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// answers reports whether a server says anything but that it is not ready.
func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := probe.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%s says %s", url, response.Status)
	}
	return nil
}

// tail returns the last lines of a log.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const size = 3000
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-size), size))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}
