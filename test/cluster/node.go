package cluster

import (
	"context"
	_ "embed" // The script of a node.
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
)

//go:embed node.sh
var nodeScript string

// nodeProcess names the first process of a node.
func nodeProcess(node string) string { return "node-of-" + node }

// startRuntimes starts all nodes up to their containerd. The kubelets start when
// release is called, which may be called twice, or when this process ends.
func (c *Cluster) startRuntimes() (release func(), err error) {
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	release = sync.OnceFunc(func() { open.Close() })
	for i := range c.record.Nodes {
		if err := c.startNode(i, gate); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// startNode starts the processes of a node; its kubelet waits for the end of
// gate, unless that is nil.
func (c *Cluster) startNode(index int, gate *os.File) error {
	n := c.record.Nodes[index]
	group := strings.TrimPrefix(cgroup(c.record.Range), "/") + "/" + n.Name
	arguments := []string{c.layout.etc("node.sh"), "enter", c.layout.state, c.layout.node(n.Name), group, c.Program("kubelet")}
	arguments = append(arguments, kubeletArguments(c.layout, c.record.Range, index, n)...)
	cmd, err := c.inside(find("sh"), arguments...)
	if err != nil {
		return err
	}
	if gate != nil {
		cmd.Stdin = gate
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	_, err = c.launch(nodeProcess(n.Name), cmd)
	return err
}

// StopNode cuts a node's power: its kubelet, its runtime and its containers are
// killed at once, without a word to the API server, which marks the node as not
// ready within 14 seconds.
func (c *Cluster) StopNode(ctx context.Context, name string) error {
	if _, err := c.index(name); err != nil {
		return err
	}
	c.mu.Lock()
	p, ok := c.record.find(nodeProcess(name))
	c.mu.Unlock()
	if !ok || !p.alive() {
		return fmt.Errorf("node %s does not run", name)
	}
	return c.end(ctx, []process{p})
}

// StartNode starts a node that StopNode has stopped, with its images and the
// remains of its containers, and returns when it is ready.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	index, err := c.index(name)
	if err != nil {
		return err
	}
	if c.runs(nodeProcess(name)) {
		return fmt.Errorf("node %s runs already", name)
	}
	ctx, done := c.failing(ctx)
	defer done()
	// A machine loses its cgroups with its power. A kubelet that found those of
	// dead containers would ask for each, for three seconds.
	if err := removeCgroups(ctx, cgroup(c.record.Range)+"/"+name); err != nil {
		return err
	}
	began := time.Now()
	if err := c.startNode(index, nil); err != nil {
		return err
	}
	config, err := c.REST()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return c.await(ctx, name, func() error { return nodeBack(ctx, client, name, began) })
}

func (c *Cluster) index(name string) (int, error) {
	index := slices.Index(c.NodeNames(), name)
	if index < 0 {
		return 0, fmt.Errorf("there is no node %q: the cluster has %v", name, c.NodeNames())
	}
	return index, nil
}
