package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stages are what kwok does with nodes and pods.
//
//go:embed stages.yaml
var stages []byte

// startKwok lets kwok play the kubelets of all nodes: nodes are ready, a pod runs
// as soon as it is seen, and is gone as soon as it is to end. It runs until stop,
// which waits for its end; if it ends before that, broke is told.
func startKwok(ctx context.Context, program string, kubeconfig []byte, broke context.CancelCauseFunc) (stop func() error, err error) {
	folder, err := os.MkdirTemp("", "windlass-scale-")
	if err != nil {
		return nil, err
	}
	config, rules, log := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "kwok.yaml"), filepath.Join(folder, "log")
	for name, content := range map[string][]byte{config: kubeconfig, rules: stages} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, err
		}
	}
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, "--kubeconfig", config, "--config", rules, "--manage-all-nodes", "--node-lease-duration-seconds", "40")
	command.Stdout, command.Stderr = out, out
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("kwok: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
		broke(fmt.Errorf("kwok has ended; its log is %s", log))
	}()
	return func() error {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = out.Close()
		return os.RemoveAll(folder)
	}, nil
}
