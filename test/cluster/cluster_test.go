//go:build e2e

package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/test/cluster"
)

// world is a cluster under test.
type world struct {
	*cluster.Cluster
	t      *testing.T
	client kubernetes.Interface
}

func TestARealClusterFromStartToEnd(t *testing.T) {
	if err := cluster.Missing(""); err != nil {
		t.Fatal(err)
	}
	state, err := os.MkdirTemp("", "windlass-cluster")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	before := traces(t, state)

	c, err := cluster.Start(ctx, cluster.Config{
		State: state,
		Nodes: []cluster.Node{{Name: "large"}, {Name: "small", MilliCPU: 500, MemoryMiB: 256, MaxPods: 10, Labels: map[string]string{"size": "small"}}},
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop(context.WithoutCancel(ctx))
	config, err := c.REST()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{c, t, client}
	if len(ofRange(t, c.MachineAddress())) < 2 {
		t.Error("the cluster has neither an interface nor cgroups, so that nothing can be said about their end")
	}
	w.deploy(ctx)
	for _, check := range []struct {
		name string
		run  func(context.Context)
	}{
		{"nodes have the size asked for", w.sizes},
		{"services and names answer", w.services},
		{"a projected token is for us", w.tokens},
		{"strangers may not ask a kubelet", w.strangers},
		{"a second cluster needs its own folder", w.second},
		{"a node dies and comes back", w.powerCut},
	} {
		t.Run(check.name, func(t *testing.T) {
			w.t = t
			check.run(t.Context())
		})
	}
	for range 2 {
		if err := c.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, traces(t, state)); diff != "" {
		t.Errorf("the cluster has left traces (-before +after):\n%s", diff)
	}
	if left := ofRange(t, c.MachineAddress()); len(left) > 0 {
		t.Errorf("the cluster has left %v", left)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the state folder is still there")
	}
}

// deploy puts a pod of a static program on every node.
func (w *world) deploy(ctx context.Context) {
	w.t.Helper()
	program := filepath.Join(w.t.TempDir(), "hello")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./testdata/hello")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	archive := program + ".tar"
	if err := cluster.WriteImage(archive, "localhost/windlass-hello:1", "hello", program); err != nil {
		w.t.Fatal(err)
	}
	if err := w.LoadImage(ctx, archive); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl(ctx, "apply", "-f", "testdata/hello.yaml")
	w.kubectl(ctx, "rollout", "status", "daemonset/hello", "--timeout=60s")
}

func (w *world) kubectl(ctx context.Context, arguments ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(ctx, w.Program("kubectl"), arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig())
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("kubectl %v: %v: %s", arguments, err, &diagnostics)
	}
	return strings.TrimSpace(out.String())
}

// podOn names the pod on a node.
func (w *world) podOn(ctx context.Context, node string) string {
	return w.kubectl(ctx, "get", "pods", "--field-selector=spec.nodeName="+node, "-o=jsonpath={.items[0].metadata.name}")
}

func (w *world) sizes(ctx context.Context) {
	node, err := w.client.CoreV1().Nodes().Get(ctx, "small", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	got := []string{
		node.Status.Allocatable.Cpu().String(), node.Status.Allocatable.Memory().String(),
		node.Status.Allocatable.Pods().String(), node.Labels["size"],
	}
	// Memory is held back in whole MiB, of a machine that rarely has such.
	if got[0] != "500m" || got[2] != "10" || got[3] != "small" || node.Status.Allocatable.Memory().Value()>>20 != 256 {
		w.t.Errorf("the node small has %v, want 500m, 256Mi, 10 and small", got)
	}
}

func (w *world) services(ctx context.Context) {
	large, small := w.podOn(ctx, "large"), w.podOn(ctx, "small")
	if log := w.kubectl(ctx, "logs", large); log != "hello listens" {
		w.t.Errorf("the log is %q", log)
	}
	service := w.kubectl(ctx, "get", "service", "hello", "-o=jsonpath={.spec.clusterIP}")
	pod := w.kubectl(ctx, "get", "pod", small, "-o=jsonpath={.status.podIP}")
	for _, url := range []string{"http://" + service, "http://" + pod + ":8080", "http://" + w.NodeAddress() + ":30080"} {
		if got := w.get(ctx, url); !strings.HasPrefix(got, "hello from hello-") {
			w.t.Errorf("%s says %q to the machine", url, got)
		}
		if got := w.kubectl(ctx, "exec", large, "--", "/hello", "get", url); !strings.HasPrefix(got, "hello from hello-") {
			w.t.Errorf("%s says %q to a pod", url, got)
		}
	}
	if got := w.kubectl(ctx, "exec", large, "--", "/hello", "lookup", "hello"); got != service {
		w.t.Errorf("hello is at %q, want %s", got, service)
	}
	names := strings.Fields(w.kubectl(ctx, "exec", large, "--", "/hello", "lookup", "hello-pods.default.svc.cluster.local"))
	if len(names) != 2 || !slices.Contains(names, pod) {
		w.t.Errorf("the headless service is at %v, want both pods, such as %s", names, pod)
	}
}

func (w *world) get(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

func (w *world) tokens(ctx context.Context) {
	token := w.kubectl(ctx, "exec", w.podOn(ctx, "small"), "--", "/hello", "/token/token")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		w.t.Fatalf("not a token: %q", token)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		w.t.Fatal(err)
	}
	var got struct {
		Audience []string `json:"aud"`
		Issuer   string   `json:"iss"`
		Subject  string   `json:"sub"`
	}
	if err := json.Unmarshal(claims, &got); err != nil {
		w.t.Fatal(err)
	}
	if !slices.Equal(got.Audience, []string{"windlass-scheduler"}) || got.Subject != "system:serviceaccount:default:default" {
		w.t.Errorf("the token says %+v", got)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"windlass-scheduler"}}}
	review, err = w.client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		w.t.Errorf("the API server does not know its token: %v, %v", review.Status, err)
	}
	if keys := w.kubectl(ctx, "get", "--raw", "/openid/v1/jwks"); !strings.Contains(keys, `"alg":"RS256"`) {
		w.t.Errorf("the keys are %s", keys)
	}
}

func (w *world) strangers(ctx context.Context) {
	address := w.kubectl(ctx, "get", "node", "large", "-o=jsonpath={.status.addresses[0].address}")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+":10250/pods", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	anyone := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := anyone.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		w.t.Errorf("the kubelet answers %s", response.Status)
	}
}

func (w *world) second(ctx context.Context) {
	_, err := cluster.Start(ctx, cluster.Config{State: w.State(), Nodes: cluster.Nodes(1)})
	if err == nil || !strings.Contains(err.Error(), "use another folder") {
		w.t.Errorf("a second cluster in one folder gives the error %v", err)
	}
}

func (w *world) powerCut(ctx context.Context) {
	pod := w.podOn(ctx, "small")
	if err := w.StopNode(ctx, "small"); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl(ctx, "wait", "--for=condition=Ready=unknown", "node/small", "--timeout=40s")
	if err := w.StopNode(ctx, "small"); err == nil {
		w.t.Error("a node can be stopped twice")
	}
	if err := w.StartNode(ctx, "small"); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl(ctx, "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/"+pod, "--timeout=60s")
	w.kubectl(ctx, "wait", "--for=condition=Ready", "pod/"+pod, "--timeout=60s")
	if log := w.kubectl(ctx, "logs", pod); log != "hello listens" {
		w.t.Errorf("after the restart, the log is %q", log)
	}
}

// traces lists what a cluster could leave on a machine. Other clusters may come
// and go meanwhile; they share none of this.
func traces(t *testing.T, state string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, table := range []string{"filter", "nat", "mangle"} {
		rules, err := exec.Command("/usr/sbin/iptables", "--wait", "-t", table, "--list-rules").Output()
		if err != nil {
			t.Fatal(err)
		}
		found["rules of "+table] = strings.Split(string(rules), "\n")
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	found["mounts"] = strings.Split(string(mounts), "\n")
	for _, folder := range []string{
		"/run/containerd", "/run/netns", "/var/lib/containerd", "/var/lib/cni", "/var/lib/kubelet",
		"/var/log/containers", "/var/log/pods", "/usr/libexec/kubernetes", "/opt/containerd",
	} {
		if _, err := os.Stat(folder); err == nil {
			found["folders"] = append(found["folders"], folder)
		}
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(state)) {
			found["processes"] = append(found["processes"], strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// ofRange lists the interface and the cgroups of the cluster with an address.
func ofRange(t *testing.T, address string) []string {
	t.Helper()
	name := "windlass" + strings.Split(address, ".")[1]
	found, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.InterfaceByName(name); err == nil {
		found = append(found, "interface "+name)
	}
	return found
}
