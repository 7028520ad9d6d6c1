package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

var unsafe = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// dump writes what is known of a failure into a folder, and prints the folder.
func dump(failed string) {
	if shared.Kubeconfig == "" {
		return // nothing to ask
	}
	name := unsafe.ReplaceAllString(failed, "-")
	folder := filepath.Join(shared.Dump, name[:min(len(name), 60)])
	if err := os.MkdirAll(folder, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, "no dump:", err)
		return
	}
	ctx, cancel := bounded(30 * time.Second)
	defer cancel()
	for file, args := range map[string][]string{
		"pods":        {"get", "pods", "-A", "-o", "wide"},
		"pods.yaml":   {"get", "pods", "-A", "-o", "yaml", "-l", "app.kubernetes.io/managed-by=windlass"},
		"events":      {"get", "events", "-A", "--sort-by=.lastTimestamp"},
		"functions":   {"get", "functions,functionrevisions,clusterruntimes", "-A", "-o", "yaml"},
		"nodes":       {"describe", "nodes"},
		"gateways":    {"-n", releaseNamespace, "logs", "--tail=400", "--prefix", "-l", "app.kubernetes.io/component=gateway"},
		"schedulers":  {"-n", releaseNamespace, "logs", "--tail=400", "--prefix", "-l", "app.kubernetes.io/component=scheduler"},
		"node-agents": {"-n", releaseNamespace, "logs", "--tail=400", "--prefix", "-l", "app.kubernetes.io/component=node"},
		"controllers": {"-n", releaseNamespace, "logs", "--tail=400", "--prefix", "-l", "app.kubernetes.io/component=controller"},
	} {
		out, err := tryKubectl(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		_ = os.WriteFile(filepath.Join(folder, file), []byte(out), 0o644) // the next may work
	}
	fmt.Fprintf(os.Stderr, "What is known of the failure of %q is in %s\n", failed, folder)
	AddReportEntry("dump", folder)
}
