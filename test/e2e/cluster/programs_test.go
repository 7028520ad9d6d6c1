package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/test/cluster"
)

// kubectl runs what a user would type, fails the spec if it fails, and returns
// its standard output.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := tryKubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// tryKubectl is kubectl for commands that may fail; the error has all that
// kubectl printed.
func tryKubectl(ctx context.Context, args ...string) (string, error) {
	return capture(program(ctx, "kubectl", args...))
}

func helm(ctx context.Context, args ...string) (string, error) {
	return capture(program(ctx, "helm", args...))
}

// program is a command with access to the cluster.
func program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, locate(name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig)
	return cmd
}

// locate finds a program among those for clusters, or else in PATH.
func locate(name string) string {
	path := filepath.Join(cluster.ProgramsFolder(), name)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return path
	}
	return name
}

// capture runs a command. An error holds both of its streams.
func capture(cmd *exec.Cmd) (string, error) {
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, &out, &diagnostics)
	}
	return out.String(), err
}
