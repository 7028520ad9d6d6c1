//go:build apiserver

package chart

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windlass-dev/windlass/internal/apitest"
)

// cluster is a control plane without nodes: what the API server admits, stores
// and refuses is real, and no pod ever runs.
type cluster struct {
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
	helm       string
}

const adminToken = "admin-of-a-test"

// startCluster starts etcd, an API server and a controller manager, and ends
// them with the test.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	etcd, apiserver, manager := binary(t, "etcd"), binary(t, "kube-apiserver"), binary(t, "kube-controller-manager")
	c := &cluster{helm: binary(t, "helm")}
	dir := t.TempDir()
	ports := apitest.Ports(t, 3)
	clients, peers, api := ports[0], ports[1], ports[2]

	etcdURL := "http://127.0.0.1:" + clients
	peerURL := "http://127.0.0.1:" + peers
	start(t, dir, etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL)

	key := writeKey(t, filepath.Join(dir, "accounts.key"))
	tokens := write(t, filepath.Join(dir, "tokens.csv"), adminToken+",admin,admin,system:masters\n")
	start(t, dir, apiserver, "--etcd-servers="+etcdURL, "--bind-address=127.0.0.1", "--secure-port="+api,
		"--cert-dir="+filepath.Join(dir, "certificates"), "--token-auth-file="+tokens, "--authorization-mode=RBAC", "--allow-privileged=true",
		"--service-account-issuer=https://127.0.0.1:"+api, "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none")

	c.kubeconfig = write(t, filepath.Join(dir, "kubeconfig"), fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: admin}}]
clusters: [{name: test, cluster: {server: "https://127.0.0.1:%s", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: %s}}]
`, api, adminToken))
	c.connect(t)
	start(t, dir, manager, "--kubeconfig="+c.kubeconfig, "--service-account-private-key-file="+key, "--use-service-account-credentials=false",
		"--leader-elect=false", "--secure-port=0", "--root-ca-file="+filepath.Join(dir, "certificates", "apiserver.crt"))
	return c
}

// connect waits until the API server is ready.
func (c *cluster) connect(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = -1, 0
	c.config = config
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c.client = client
	eventually(t, "the API server is ready", func(ctx context.Context) (bool, error) {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
}

// as is a client that acts for a service account.
func (c *cluster) as(t *testing.T, account string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.impersonate(account))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (c *cluster) impersonate(account string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return config
}

// runHelm runs helm against the cluster.
func (c *cluster) runHelm(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	stdout, stderr, err := run(t, c.helm, append(args, "--kubeconfig", c.kubeconfig, "--namespace", namespace)...)
	if err != nil {
		return stdout, fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout, nil
}

func (c *cluster) mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	stdout, err := c.runHelm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return stdout
}

// eventually waits up to two minutes for a state of the cluster.
func eventually(t *testing.T, what string, check wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, check); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// start runs a program until the end of the test. Its log is shown if the test
// fails.
func start(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			t.Logf("the end of the log of %s:\n%s", filepath.Base(program), strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
	})
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeKey(t *testing.T, path string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
}
