package cluster_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/test/cluster"
)

// checkout is the top of the sources, from this folder.
const checkout = "../../.."

// images are all that the specs need. The one of etcd is made of the machine's
// own etcd, because nodes of our cluster do not reach a registry.
var images = func() []string {
	all := []string{"windlass", "podagent", "test-functions", "etcd"}
	for _, name := range runtimes.Names() {
		all = append(all, "runtime-"+name)
	}
	return all
}()

// install makes the installation, and has it removed at the end.
func install(ctx context.Context) installation {
	GinkgoHelper()
	in := installation{Kubeconfig: os.Getenv("KUBECONFIG"), Dump: os.Getenv("WINDLASS_E2E_DUMP")}
	if in.Dump == "" {
		dir, err := os.MkdirTemp("", "windlass-e2e-dump-")
		Expect(err).NotTo(HaveOccurred())
		in.Dump = dir
		DeferCleanup(func() { _ = os.Remove(dir) }) // if nothing failed, it is empty
	}
	var version string
	if in.Kubeconfig != "" {
		in.Registry, in.Tag = os.Getenv("WINDLASS_E2E_REGISTRY"), os.Getenv("WINDLASS_E2E_TAG")
		Expect(in.Registry).NotTo(BeEmpty(), "WINDLASS_E2E_REGISTRY is missing: say where the cluster of KUBECONFIG gets the images")
		Expect(in.Tag).NotTo(BeEmpty(), "WINDLASS_E2E_TAG is missing: say which images to run")
		shared = in // for a dump
		if released(ctx) {
			return in
		}
		DeferCleanup(uninstall)
	} else {
		in.Registry, in.Tag = "windlass.test", "e2e"
		in.State, in.Kubeconfig, version = ownCluster(ctx, in.Tag)
		shared = in
		if version == "" {
			return in
		}
	}
	step("installing the chart", func() { release(ctx, in, version) })
	return in
}

// ownCluster starts a cluster with our images, or takes up the one that an
// earlier run has kept. The version tells the images from those of another run,
// and is empty if the release is to be used as it is.
func ownCluster(ctx context.Context, tag string) (state, kubeconfig, version string) {
	GinkgoHelper()
	if err := cluster.Missing(""); err != nil {
		Fail("this machine cannot run a cluster: " + err.Error())
	}
	keep := os.Getenv("WINDLASS_E2E_KEEP")
	if os.Getenv("WINDLASS_E2E_INSTALLED") == "1" {
		return keep, startCluster(ctx, keep, true).Kubeconfig(), ""
	}
	state = keep
	if keep == "" {
		dir, err := os.MkdirTemp("", "windlass-e2e-")
		Expect(err).NotTo(HaveOccurred())
		state = dir
	}
	archives, err := os.MkdirTemp("", "windlass-images-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, archives)

	built := make(chan error, 1)
	step("starting a cluster of three nodes, and building images meanwhile", func() {
		go func() {
			var err error
			version, err = buildImages(ctx, archives, tag)
			built <- err
		}()
		own := startCluster(ctx, state, keep != "")
		kubeconfig = own.Kubeconfig()
		shared.Kubeconfig = kubeconfig
		Expect(<-built).To(Succeed())
		step("loading images", func() {
			for _, name := range images {
				Expect(own.LoadImage(ctx, filepath.Join(archives, name+".tar"))).To(Succeed())
			}
		})
	})
	return state, kubeconfig, version
}

// own is the cluster if it is ours and this process has started or opened it.
var own *cluster.Cluster

func startCluster(ctx context.Context, state string, keep bool) *cluster.Cluster {
	GinkgoHelper()
	log := slog.New(slog.NewTextHandler(GinkgoWriter, nil))
	if kept, err := cluster.Open(state, log); err == nil && keep && len(kept.Status().Running) > 0 {
		own = kept
		return own
	}
	started, err := cluster.Start(ctx, cluster.Config{State: state, Nodes: cluster.Nodes(3), Detach: keep, Log: log})
	Expect(err).NotTo(HaveOccurred())
	own = started
	if !keep {
		DeferCleanup(func() {
			step("removing the cluster", func() {
				ctx, cancel := bounded(time.Minute)
				defer cancel()
				Expect(started.Stop(ctx)).To(Succeed())
			})
		})
	}
	return own
}

// buildImages writes the archives of all images; the version changes with what
// is in them.
func buildImages(ctx context.Context, folder, tag string) (version string, err error) {
	args := append([]string{"run", ".", "-out", folder, "-tag", tag, "-any-version"}, images...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(checkout, "images", "build")
	out, err := capture(cmd)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		// reference, image ID and path
		if fields := strings.Fields(line); len(fields) == 3 && strings.Contains(fields[0], "/windlass:") {
			version = fields[1]
		}
	}
	return version, nil
}

// values are the chart's for the specs: as many of each part as one would run,
// and nothing on disk.
func values(in installation, version string) map[string]any {
	image := func(name string) map[string]any {
		return map[string]any{"registry": in.Registry, "repository": name, "tag": in.Tag}
	}
	part := func(replicas int) map[string]any {
		// Nodes keep the tag, so that only an annotation starts the pods of a
		// kept cluster again.
		return map[string]any{"replicas": replicas, "podAnnotations": map[string]any{"windlass.test/image": version}}
	}
	gateway := part(2)
	gateway["problemDetail"] = "All" // Specs read in answers what went wrong.
	gateway["hosts"] = map[string]any{"domain": hostsDomain}
	languages := map[string]any{}
	for _, name := range runtimes.Names() {
		key := strings.ReplaceAll(name, ".", "") // as values are named
		languages[key] = map[string]any{"image": image("runtime-" + name)}
	}
	return map[string]any{
		"image":      image("windlass"),
		"agent":      map[string]any{"image": image("podagent")},
		"runtimes":   languages,
		"gateway":    gateway,
		"tenancy":    map[string]any{"default": map[string]any{"hosts": []string{"*." + grantedDomain}}},
		"scheduler":  part(3),
		"controller": part(2),
		"etcd":       map[string]any{"replicas": 3, "persistence": map[string]any{"enabled": false}},
	}
}

// release installs the chart, or upgrades what is there.
func release(ctx context.Context, in installation, version string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "values.yaml")
	text, err := json.Marshal(values(in, version)) // JSON is YAML
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	if _, err := tryKubectl(ctx, "get", "namespace", releaseNamespace); err != nil {
		kubectl(ctx, "create", "namespace", releaseNamespace)
	}
	kubectl(ctx, "label", "--overwrite", "namespace", releaseNamespace, "pod-security.kubernetes.io/enforce=restricted")
	_, err = helm(ctx, "upgrade", "--install", "windlass", filepath.Join(checkout, "charts", "windlass"),
		"--namespace", releaseNamespace, "--values", file, "--wait", "--timeout", "3m")
	if err != nil {
		dump("installing the chart")
	}
	Expect(err).NotTo(HaveOccurred())
}

// released tells whether somebody has installed the chart already.
func released(ctx context.Context) bool {
	_, err := helm(ctx, "status", "windlass", "--namespace", releaseNamespace)
	return err == nil
}

func uninstall() {
	ctx, cancel := bounded(3 * time.Minute)
	defer cancel()
	_, err := helm(ctx, "uninstall", "windlass", "--namespace", releaseNamespace, "--wait", "--timeout", "2m")
	Expect(err).NotTo(HaveOccurred())
}
