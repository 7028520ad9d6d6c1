package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/podtoken"
)

// This file runs the node agent as a cluster runs it: the program of its image, its watcher and itself, with TLS
// and with tokens of pods. The harness is the API server that has the keys of the tokens.

// domain is what the names in the product's certificate end in.
const domain mtls.Domain = "cost.windlass"

// product is a node agent as users have it.
type product struct {
	keys     *ecdsa.PrivateKey
	api      *httptest.Server
	ca       []byte
	wire     string
	ops      string
	watcher  *exec.Cmd
	measured int // the process that orders the calls
}

// buildProduct builds the program of the image.
func buildProduct(temp string) (program string, err error) {
	program = filepath.Join(temp, "windlass-node")
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", program, "github.com/windlass-dev/windlass/cmd/windlass-node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the node agent: %w: %s", err, said)
	}
	return program, nil
}

// startProduct starts it on a node that is calm or busy, and waits until it is ready. One that is to be profiled serves
// its profiles.
func startProduct(program, temp string, busy, profiled bool) (_ *product, err error) {
	p := &product{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	dir, err := os.MkdirTemp(temp, "node-")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.certify(dir), p.serveKeys(dir)); err != nil {
		return nil, err
	}
	if p.wire, err = freeAddress(); err != nil {
		return nil, err
	}
	if p.ops, err = freeAddress(); err != nil {
		return nil, err
	}
	// The whole machine's threads count. More cores than they can want keep the node calm, and it is busy with one.
	cores := "1000"
	if busy {
		cores = "1"
	}
	p.watcher = exec.Command(program, "node", "--wire-listen="+p.wire, "--ops-listen="+p.ops, "--log-level=warn", fmt.Sprintf("--pprof=%t", profiled),
		"--tls-dir="+dir, "--tls-domain="+string(domain), "--cgroup-root=/sys/fs/cgroup", "--journal-dir="+filepath.Join(dir, "journal"), "--cores="+cores)
	p.watcher.Env = []string{"KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), "GOMEMLIMIT=" + strconv.Itoa(128<<20/10*9)}
	p.watcher.Stdout, p.watcher.Stderr = os.Stderr, os.Stderr
	p.watcher.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGTERM}
	if err := p.watcher.Start(); err != nil {
		return nil, err
	}
	return p, p.awaitReady()
}

// awaitReady waits until pods may come.
func (p *product) awaitReady() error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		answer, err := http.Get("http://" + p.ops + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("the node agent is not ready"), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.watcher.Process.Pid))
	for _, c := range children {
		text, readErr := os.ReadFile(c)
		err = errors.Join(err, readErr)
		for _, pid := range strings.Fields(string(text)) {
			p.measured, _ = strconv.Atoi(pid)
		}
	}
	if p.measured == 0 {
		return errors.Join(errors.New("the watcher has no child"), err)
	}
	return err
}

func (p *product) stop() (err error) {
	if p.watcher != nil && p.watcher.Process != nil {
		err = errors.Join(p.watcher.Process.Signal(unix.SIGTERM), p.watcher.Wait())
	}
	if p.api != nil {
		p.api.Close()
	}
	return err
}

// certify makes the folder of its TLS Secret. One certificate is the CA's and its own.
func (p *product) certify(dir string) (err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{domain.Node()}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	for name, content := range map[string][]byte{"ca.crt": p.ca, "tls.crt": p.ca, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return err
}

// serveKeys serves what an API server says of the keys of its tokens.
func (p *product) serveKeys(dir string) (err error) {
	if p.keys, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	document, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "1", Key: p.keys.Public(), Algorithm: string(jose.ES256), Use: "sig"}}})
	if err != nil {
		return err
	}
	p.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(document) }))
	config := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, p.api.URL)
	return os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(config), 0o600)
}

// token is what proves which pod it is.
func (p *product) token(pod *tenantPod) (string, error) {
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.keys}, (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", "1"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(with).Claims(map[string]any{
		"aud": []string{podtoken.NodeAudience}, "sub": "system:serviceaccount:" + pod.namespace + ":default", "exp": time.Now().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{
			"namespace": pod.namespace, "pod": map[string]string{"name": pod.name, "uid": pod.uid}, "serviceaccount": map[string]string{"name": "default", "uid": "1"},
		},
	}).Serialize()
}

// credentials are those of an agent in a pod.
func (p *product) credentials() (credentials.TransportCredentials, error) {
	return mtls.AgentCredentials(p.ca, domain.Node())
}

// profileInto writes where its processor time goes for a time, and then what its heap has; nothing without a name.
func (p *product) profileInto(name string, length time.Duration) error {
	if name == "" {
		return nil
	}
	seconds := max(1, int(length.Seconds())-1)
	return errors.Join(p.fetch(fmt.Sprint("profile?seconds=", seconds), name+".cpu"), p.fetch("heap?gc=1", name+".heap"))
}

func (p *product) fetch(what, path string) error {
	answer, err := http.Get("http://" + p.ops + "/debug/pprof/" + what)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, answer.Body)
	return errors.Join(err, file.Close())
}

// freeAddress is one at which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
