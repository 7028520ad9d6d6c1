//go:build release

package main

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// signatures lets cosign verify what was pushed, and refuse each forgery of it. What verify
// says of the same, by the standard library alone, has to agree.
func (c *check) signatures(t *testing.T) {
	commands := c.page(t, "cosign verify ", "charts/windlass:")
	c.run(t, c.out, commands)
	public := publicKey(t, c.key)
	verified, refused := 0, 0
	for _, repository := range c.repositories {
		genuine := c.tag(t, "windlass", repository)
		if err := verify(genuine, public); err != nil {
			t.Errorf("%s: %v", repository, err)
		}
		said := c.run(t, c.out, cosignVerify+genuine.Name())
		if strings.Contains(said, get(t, genuine).Digest.String()) {
			verified++
		}
		for _, f := range forgeries {
			forged := c.tag(t, f.name, repository)
			f.forge(t, genuine, forged)
			if err := verify(forged, public); err == nil {
				t.Errorf("%s, %s: verify takes it", repository, f.name)
			}
			said, err := c.try(t, c.out, cosignVerify+forged.Name())
			if err == nil || !strings.Contains(said, "no signatures found") && !strings.Contains(said, "no matching signatures") {
				t.Errorf("%s, %s: cosign says (%v)\n%s", repository, f.name, err, said)
				continue
			}
			refused++
		}
	}
	figure("signatures_verified=%d/%d", verified, len(c.repositories))
	figure("tampered_refused=%d/%d", refused, len(c.repositories)*len(forgeries))
	if verified != len(c.repositories) {
		t.Errorf("cosign names %d digests, want %d", verified, len(c.repositories))
	}
}

const cosignVerify = "cosign verify --key release.pub --insecure-ignore-tlog=true "

// install installs the release on a cluster from the registry, by the commands of the page,
// and calls a function. The commands must install nothing if one signature is wrong.
func (c *check) install(t *testing.T) {
	cluster := startCluster(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cluster.do(t, "kubectl", "get", "pods,events", "--all-namespaces", "-o", "wide"))
		}
	})
	nodes := c.registry.forNodes(t, cluster)
	c.pushForTest(t)
	c.writeValues(t)
	commands := c.page(t, "helm install")

	refused := 0
	for i, forged := range c.repositories {
		prefix := fmt.Sprintf("forged-%d", i)
		for _, repository := range c.repositories {
			if repository != forged {
				copyTag(t, c.tag(t, "windlass", repository), c.tag(t, prefix, repository))
			}
		}
		forgeries[i%len(forgeries)].forge(t, c.tag(t, "windlass", forged), c.tag(t, prefix, forged))
		said, err := c.try(t, c.out, strings.ReplaceAll(commands, c.registry.address+"/windlass", c.registry.address+"/"+prefix), cluster.env())
		releases := cluster.do(t, "helm", "list", "--all-namespaces", "--all", "--short")
		if err == nil || releases != "" {
			t.Errorf("with a forged %s there are the releases %q:\n%s", forged, releases, said)
			continue
		}
		refused++
	}
	figure("tampered_installs_refused=%d/%d", refused, len(c.repositories))

	c.run(t, c.out, commands, cluster.env())
	if answer := cluster.callFunction(t, c.registry.address); !strings.Contains(answer, `"hello"`) {
		t.Errorf("the function answers %s", answer)
	}
	signed := c.runsSigned(t, cluster, nodes)
	figure("signed_digests_pulled_by_nodes=%d/2", signed)
	if signed != 2 || t.Failed() {
		figure("installed_from_registry=0")
		t.Fatal("the release was not installed as it should")
	}
	figure("installed_from_registry=1")
}

// runsSigned counts the images of the release whose signed digest some pod runs, and nodes
// have pulled from the registry. No pod may run another image of a release.
func (c *check) runsSigned(t *testing.T, cluster *testCluster, nodes *requests) (signed int) {
	t.Helper()
	var pods struct {
		Items []struct {
			Spec struct{ Containers []struct{ Image string } }
		}
	}
	text := cluster.do(t, "kubectl", "get", "pods", "--all-namespaces", "-o", "json")
	if err := json.Unmarshal([]byte(text), &pods); err != nil {
		t.Fatal(err)
	}
	running := map[string]bool{}
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			running[container.Image] = true
		}
	}
	for _, repository := range []string{"windlass", "podagent"} {
		tag := c.tag(t, "windlass", repository)
		digest := get(t, tag).Digest.String()
		want := tag.Repository.Name() + "@" + digest
		for image := range running {
			if strings.HasPrefix(image, tag.Repository.Name()) && image != want {
				t.Errorf("a pod runs %s, want %s", image, want)
			}
		}
		if running[want] && nodes.had("/v2/windlass/"+repository+"/manifests/"+digest) {
			signed++
		}
	}
	return signed
}

// pushForTest pushes the images that are no part of a release: a function's, and one with the etcd of
// this machine's test clusters.
func (c *check) pushForTest(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "-layout", "-out", folder, "-arch", runtime.GOARCH, "-tag", "test", "test-functions", "etcd")
	cmd.Dir = "../../images/build"
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, image := range []string{"test-functions", "etcd"} {
		index, err := indexIn(filepath.Join(folder, image))
		if err != nil {
			t.Fatal(err)
		}
		put(t, tagOf(t, c.registry.address+"/test/"+image+":test"), index)
	}
}

// writeValues writes values.yaml: where the images are, and one of each part.
func (c *check) writeValues(t *testing.T) {
	t.Helper()
	at := func(repository string) map[string]any {
		return map[string]any{"registry": c.registry.address, "repository": repository}
	}
	etcd := at("test/etcd")
	etcd["tag"] = "test"
	values, err := json.Marshal(map[string]any{ // JSON is YAML
		"image": at("windlass/windlass"),
		"agent": map[string]any{"image": at("windlass/podagent")},
		"runtimes": map[string]any{
			"python313": map[string]any{"enabled": false}, "nodejs22x": map[string]any{"enabled": false},
		},
		"gateway": map[string]any{"replicas": 1}, "scheduler": map[string]any{"replicas": 1}, "controller": map[string]any{"replicas": 1},
		"etcd": map[string]any{"replicas": 1, "persistence": map[string]any{"enabled": false}, "image": etcd},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.out, "values.yaml"), values, 0o600); err != nil {
		t.Fatal(err)
	}
}

// requests are the paths that nodes have asked the registry for.
type requests struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (r *requests) had(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths[path]
}

// forNodes serves the registry to the nodes of a cluster too, under the same name.
func (r *localRegistry) forNodes(t *testing.T, cluster *testCluster) *requests {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(cluster.machine, "0"))
	if err != nil {
		t.Fatal(err)
	}
	seen := &requests{paths: map[string]bool{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		seen.mu.Lock()
		seen.paths[request.URL.Path] = true
		seen.mu.Unlock()
		r.ServeHTTP(w, request)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	do(t, clusterCommand, "pull-from", "--state", cluster.state, r.address, server.URL)
	return seen
}

// testCluster is a cluster of test/cluster, which is in another module.
type testCluster struct {
	state string
	// machine is the address of this machine that nodes reach.
	machine string
}

const clusterCommand = "../../bin/cluster"

// startCluster starts a cluster of one node that ends with the test.
func startCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{state: filepath.Join(t.TempDir(), "cluster")}
	program, err := filepath.Abs(clusterCommand)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, "up", "--attached", "--nodes", "1", "--state", c.state)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var log strings.Builder
	cmd.Stderr = &log
	ready, told := io.Pipe()
	cmd.Stdout = told
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // The program ends with the thread that has started it.
		err := cmd.Run()
		_ = told.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	first := make([]byte, 256)
	if _, err := ready.Read(first); err != nil {
		t.Fatalf("no cluster: %v\n%s", err, &log)
	}
	go func() { _, _ = io.Copy(io.Discard, ready) }()
	for line := range strings.Lines(do(t, program, "status", "--state", c.state)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "machine" {
			c.machine = fields[1]
		}
	}
	return c
}

func (c *testCluster) env() string { return "KUBECONFIG=" + filepath.Join(c.state, "kubeconfig") }

func (c *testCluster) do(t *testing.T, program string, args ...string) string {
	t.Helper()
	return do(t, "env", append([]string{c.env(), clusterProgram(t, program)}, args...)...)
}

// callFunction applies a function and returns what it answers through the gateway.
func (c *testCluster) callFunction(t *testing.T, registry string) string {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "function.yaml")
	text := fmt.Sprintf(`apiVersion: windlass.dev/v1alpha1
kind: Function
metadata: {name: hello, namespace: default}
spec:
  template:
    image: %s/test/test-functions:test
    args: [httpd]
    env: [{name: GREETING, value: hello}]
`, registry)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"gateway", "scheduler", "controller"} {
		c.do(t, "kubectl", "-n", "windlass", "rollout", "status", "deployment/windlass-"+part, "--timeout=3m")
	}
	c.do(t, "kubectl", "apply", "-f", manifest)
	c.do(t, "kubectl", "wait", "--for=condition=Ready", "function/hello", "--timeout=2m")
	gateway := c.do(t, "kubectl", "-n", "windlass", "get", "service", "windlass-gateway", "-o", "jsonpath={.spec.clusterIP}")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		answer, err := call(ctx, "http://"+gateway+"/function/hello/")
		if err == nil {
			return answer
		}
		// The gateway may not know the function yet.
		select {
		case <-ctx.Done():
			t.Fatalf("the function does not answer: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func call(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func publicKey(t *testing.T, file string) *ecdsa.PublicKey {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := readKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}
