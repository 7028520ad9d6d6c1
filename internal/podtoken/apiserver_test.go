//go:build apiserver

package podtoken_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windlass-dev/windlass/internal/apitest"
	"github.com/windlass-dev/windlass/internal/podtoken"
)

// TestTokensOfARealCluster asks a real API server for tokens, and for its keys as
// a service account that was granted nothing.
func TestTokensOfARealCluster(t *testing.T) {
	config := startAPIServer(t)
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	eventually(t, "the namespace is created", func() error {
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
		return err
	})
	eventually(t, "the service account is created", func() error {
		_, err := admin.CoreV1().ServiceAccounts("shop").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "resize"}}, metav1.CreateOptions{})
		return err
	})
	var pod *corev1.Pod
	eventually(t, "the pod is created", func() (err error) {
		pod, err = admin.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "resize-1"},
			Spec: corev1.PodSpec{
				ServiceAccountName: "resize",
				NodeName:           "n1",
				Containers:         []corev1.Container{{Name: "function", Image: "resize"}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	request := func(spec authenticationv1.TokenRequestSpec) authenticationv1.TokenRequestStatus {
		t.Helper()
		got, err := admin.CoreV1().ServiceAccounts("shop").CreateToken(ctx, "resize", &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Status
	}
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	tenMinutes := int64(600)

	own := rest.AnonymousClientConfig(config)
	own.BearerToken = request(authenticationv1.TokenRequestSpec{}).Token
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, podtoken.DefaultConfig(), podtoken.ClusterKeys{Client: client.CoreV1().RESTClient()})

	token := request(authenticationv1.TokenRequestSpec{Audiences: []string{podtoken.Audience}, ExpirationSeconds: &tenMinutes, BoundObjectRef: bound})
	got, err := v.Verify(token.Token)
	want := podtoken.Identity{
		Namespace: "shop", PodName: "resize-1", PodUID: string(pod.UID), ServiceAccount: "resize",
		Expires: token.ExpirationTimestamp.Time,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}

	for name, spec := range map[string]authenticationv1.TokenRequestSpec{
		"for the API server":  {BoundObjectRef: bound},
		"for another service": {BoundObjectRef: bound, Audiences: []string{"vault"}},
		"not of a pod":        {Audiences: []string{podtoken.Audience}},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, v, request(spec).Token, podtoken.ErrInvalid) })
	}

	nobody, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	anonymous := newVerifier(t, podtoken.DefaultConfig(), podtoken.ClusterKeys{Client: nobody.CoreV1().RESTClient()})
	if _, err := anonymous.Verify(token.Token); !errors.Is(err, podtoken.ErrUnavailable) || !strings.Contains(err.Error(), "jwks") {
		t.Errorf("without credentials the error is %v, want ErrUnavailable about the keys", err)
	}
}

// startAPIServer runs etcd and kube-apiserver until the test ends, and returns how
// to reach it as an administrator.
func startAPIServer(t *testing.T) *rest.Config {
	t.Helper()
	bin := apitest.Programs(t, "etcd", "kube-apiserver")
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ports := apitest.Ports(t, 3)
	etcd, peers, port := ports[0], ports[1], ports[2]
	start(t, filepath.Join(bin, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls=http://127.0.0.1:"+etcd, "--advertise-client-urls=http://127.0.0.1:"+etcd,
		"--listen-peer-urls=http://127.0.0.1:"+peers, "--initial-advertise-peer-urls=http://127.0.0.1:"+peers,
		"--initial-cluster=default=http://127.0.0.1:"+peers)
	key := write("signing.key", rsaSigner().private(t))
	start(t, filepath.Join(bin, "kube-apiserver"), "--etcd-servers=http://127.0.0.1:"+etcd,
		"--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+filepath.Join(dir, "certs"),
		"--authorization-mode=RBAC", "--token-auth-file="+write("tokens", "admin,admin,admin,system:masters\n"),
		"--service-account-issuer="+issuer, "--service-account-signing-key-file="+key, "--service-account-key-file="+key,
		"--service-cluster-ip-range=10.0.0.0/24")

	config := &rest.Config{
		Host:            "https://127.0.0.1:" + port,
		BearerToken:     "admin",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server is ready", func() error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	})
	return config
}

// start runs a program until the test ends.
func start(t *testing.T, path string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, path, args...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(path), tail(out.String()))
		}
	})
}

// eventually repeats what a cluster that has just started may refuse.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	late := time.After(time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("it never happened that %s: %v", what, err)
		}
	}
}

// tail is the end of what a program wrote.
func tail(text string) string { return text[max(0, len(text)-4000):] }

func (s signer) private(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
