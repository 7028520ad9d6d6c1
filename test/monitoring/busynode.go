package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
)

// busyNode is a windlass up that orders calls, which Prometheus watches beside the lab, as the node
// agent of a cluster: the lab has none.
type busyNode struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// data is its data folder, and manifest the file of its functions. Without functions it has
	// no instances, and is calm, whatever else the machine does.
	data, manifest string
}

// Where it serves, in the lab's network.
const (
	nodeListen    = "127.0.0.1:9180"
	nodeOpsListen = "127.0.0.1:9181"
)

// nodeFunctions are one that computes its 36th number, which takes some hundredths of a second, and one of the class
// Batch, which nobody calls.
const nodeFunctions = `apiVersion: windlass.dev/v1alpha1
kind: Function
metadata: {name: fib}
spec: {template: {command: [%[1]q]}}
---
apiVersion: windlass.dev/v1alpha1
kind: Function
metadata: {name: backlog}
spec:
  scaling: {minInstances: 1}
  template: {command: [%[1]q], scheduling: {class: Batch}}
`

// startNode starts it, with program as the windlass command, in a folder. It ends with the lab at
// the latest.
func startNode(program, dir string) (*busyNode, error) {
	fib, err := filepath.Abs("bin/examples/fib")
	if err == nil {
		_, err = os.Stat(fib)
	}
	if err != nil {
		return nil, fmt.Errorf("the function of the busy node (make examples builds it): %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n := &busyNode{ended: make(chan struct{}), data: filepath.Join(dir, "data"), manifest: filepath.Join(dir, "fib.yaml")}
	if err := os.WriteFile(n.manifest, fmt.Appendf(nil, nodeFunctions, fib), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "windlass.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	n.cmd = exec.Command(program, "up", "--data-dir="+n.data, "--log-format=text", "--listen="+nodeListen,
		"--ops-listen="+nodeOpsListen, "--node-scheduling=auto")
	n.cmd.Stdout, n.cmd.Stderr = log, log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(n.ended)
		_ = n.cmd.Wait()
	}()
	return n, nil
}

// nodeEndsWithin bounds how long it may take to end before it is killed.
const nodeEndsWithin = 10 * time.Second

func (n *busyNode) close() {
	n.signal(syscall.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(nodeEndsWithin):
		n.signal(syscall.SIGKILL)
		<-n.ended
	}
}

func (n *busyNode) signal(signal syscall.Signal) { _ = n.cmd.Process.Signal(signal) }

// nodeName is what Prometheus calls the node.
const nodeName = "node-1"

func nodeTarget() prometheus.Target {
	return prometheus.Target{Addr: nodeOpsListen, Labels: map[string]string{"namespace": "local", "pod": "windlass-node-x7k2p", "component": "node", "node": nodeName}}
}

// nodeCallers is how many call it: more than a machine of a few cores can compute for at a time.
const nodeCallers = 8

// keepBusy makes the functions and has all callers call one without pause. Stop takes them away again.
func (n *busyNode) keepBusy(ctx context.Context) (stop func() error, err error) {
	if err := n.windlass(ctx, "deploy", "-f", n.manifest); err != nil {
		return nil, err
	}
	after := context.WithoutCancel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var callers sync.WaitGroup
	for range nodeCallers {
		callers.Go(func() {
			for ctx.Err() == nil {
				if err := callNode(ctx); err != nil {
					sleep.For(ctx, restAfterFailure)
				}
			}
		})
	}
	return func() error {
		cancel()
		callers.Wait()
		return n.windlass(after, "delete", "-f", n.manifest)
	}, nil
}

// windlass runs a command of its windlass.
func (n *busyNode) windlass(ctx context.Context, arguments ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, n.cmd.Path, append(arguments, "--data-dir="+n.data)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("windlass %s: %w: %s", arguments[0], err, said)
	}
	return nil
}

func callNode(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+nodeListen+"/function/fib?n=36", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

// nodeIsBusy has more calls compute than the machine has cores.
func nodeIsBusy(ctx context.Context, w *harness, _ string) (undo func() error, err error) {
	return w.node.keepBusy(ctx)
}

// nodeAgentStutters stops the process of a busy node agent again and again, for longer than calls wait
// for a sign.
func nodeAgentStutters(ctx context.Context, w *harness, _ string) (undo func() error, err error) {
	stop, err := w.node.keepBusy(ctx)
	if err != nil {
		return nil, err
	}
	goOn := stutter(ctx, w.node.signal, 450*time.Millisecond, 350*time.Millisecond)
	return func() error {
		goOn()
		return stop()
	}, nil
}
