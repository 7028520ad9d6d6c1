//go:build apiserver

package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestEtcdStarts runs etcd with the arguments, the names and the certificates of
// the chart. Each member has an address of its own on the loopback interface,
// which it finds in a file that takes the place of /etc/hosts for it alone. The chart's
// ports are fixed, so no other run of this test may have that address.
func TestEtcdStarts(t *testing.T) {
	program := binary(t, "etcd")
	if out, err := exec.Command("unshare", "--mount", "--map-root-user", "true").CombinedOutput(); err != nil {
		t.Skipf("unshare makes no mount namespace here, so members cannot have names: %v %s", err, out)
	}
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d members", members), func(t *testing.T) {
			objects := render(t, "--set", fmt.Sprintf("etcd.replicas=%d", members))
			dir := t.TempDir()
			hosts, certificates := writeHosts(t, dir, members), writeCertificates(t, dir, objects)
			ended := make(chan error, members)
			for i := range members {
				startMember(t, dir, hosts, certificates, program, objects, i, ended)
			}
			gateway := clientOf(t, objects, "gateway")
			for i := range members {
				address := memberAddress(i)
				eventually(t, "the member is ready", func(context.Context) (bool, error) {
					select {
					case err := <-ended:
						return false, err
					default:
						return probe(t, "http://"+address+":2381/livez") && probe(t, "http://"+address+":2381/readyz"), nil
					}
				})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			list, err := gateway.MemberList(ctx)
			if err != nil || len(list.Members) != members {
				t.Fatalf("the gateway sees %v, %v", list, err)
			}
			if _, err := gateway.Put(ctx, "/windlass/test", "value"); err != nil {
				t.Errorf("the gateway cannot write: %v", err)
			}
			if answer, err := clientOf(t, objects, "scheduler").Get(ctx, "/windlass/test"); err != nil || len(answer.Kvs) != 1 {
				t.Errorf("the scheduler reads %v, %v", answer, err)
			}
			refused(t, clientOf(t, objects, "controller"), "a controller, which has no business here")
			refused(t, clientOf(t, objects, ""), "a stranger without a certificate")
		})
	}
}

// TestEtcdTakesANewCA follows the chart's README: all members begin with the new CA at once. One that does so alone is never
// ready, so a StatefulSet that replaces one after the other would stop at the first.
func TestEtcdTakesANewCA(t *testing.T) {
	program := binary(t, "etcd")
	if out, err := exec.Command("unshare", "--mount", "--map-root-user", "true").CombinedOutput(); err != nil {
		t.Skipf("unshare makes no mount namespace here, so members cannot have names: %v %s", err, out)
	}
	const members = 3
	// The log level is only there for other keys: those of the same arguments are made once.
	before, after := render(t, "--set", "log.level=info"), render(t, "--set", "log.level=warn")
	dir, ended := t.TempDir(), make(chan error, 3*members)
	hosts, certificates := writeHosts(t, dir, members), writeCertificates(t, dir, before)
	stop := make([]func(), members)
	begin := func(i int) { stop[i] = startMember(t, dir, hosts, certificates, program, before, i, ended) }
	ready := func(i int) bool { return probe(t, "http://"+memberAddress(i)+":2381/readyz") }
	allReady := func(context.Context) (bool, error) { return ready(0) && ready(1) && ready(2), nil }
	for i := range members {
		begin(i)
	}
	eventually(t, "all members are ready", allReady)

	writeCertificates(t, dir, after)
	stop[2]()
	begin(2)
	// A member without a leader takes some seconds to say that it is not ready.
	joins := func(context.Context) (bool, error) { return ready(2), nil }
	if wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Second, true, joins) == nil {
		t.Fatal("a member with a new CA joins those with the old one: README.md may restart them one after the other")
	}
	for i := range members {
		stop[i]()
	}
	for i := range members {
		begin(i)
	}
	eventually(t, "all members are ready with the new CA", allReady)
}

// memberAddress differs from those of other processes: Linux has no more than 2^22 at a time.
func memberAddress(i int) string {
	n := os.Getpid()<<2 + i
	return fmt.Sprintf("127.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
}

func memberHost(i int) string {
	return fmt.Sprintf("windlass-etcd-%d.windlass-etcd.windlass.svc", i)
}

func writeHosts(t *testing.T, dir string, members int) string {
	t.Helper()
	text := "127.0.0.1 localhost\n"
	for i := range members {
		text += memberAddress(i) + " " + memberHost(i) + "\n"
	}
	return write(t, filepath.Join(dir, "hosts"), text)
}

// writeCertificates writes what the members' containers have mounted, and says where.
// Members read it while they run.
func writeCertificates(t *testing.T, dir string, objects []unstructured.Unstructured) string {
	t.Helper()
	certificates := filepath.Join(dir, "tls")
	if err := os.MkdirAll(certificates, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range secret(t, objects, "windlass-etcd-tls").Data {
		write(t, filepath.Join(certificates, name), string(text))
	}
	return certificates
}

// startMember runs a member as its container would be run, but for the folders
// and the addresses to listen on. It says so to ended if the member ends.
func startMember(t *testing.T, dir, hosts, certificates, program string, objects []unstructured.Unstructured, i int, ended chan<- error) (stop func()) {
	t.Helper()
	pod := as[appsv1.StatefulSet](t, find(t, objects, "StatefulSet", "windlass-etcd")).Spec.Template
	here := strings.NewReplacer(
		"$(POD_NAME)", fmt.Sprintf("windlass-etcd-%d", i),
		"/var/lib/etcd", filepath.Join(dir, fmt.Sprint(i)),
		"/etc/etcd/tls", certificates,
		"0.0.0.0", memberAddress(i))
	command := "mount --bind " + hosts + " /etc/hosts && exec " + program + " --log-level=warn"
	for _, arg := range pod.Spec.Containers[0].Args {
		command += " '" + here.Replace(arg) + "'"
	}
	log := &strings.Builder{}
	cmd := exec.Command("unshare", "--mount", "--map-root-user", "sh", "-c", command)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		ended <- fmt.Errorf("member %d has ended: %v", i, cmd.Wait())
	}()
	stop = func() {
		cmd.Process.Kill()
		<-waited
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the log of member %d:\n%s", i, log)
		}
	})
	return stop
}

// clientOf is a client with the certificate of a component, for which the name
// of the first member leads to its address.
func clientOf(t *testing.T, objects []unstructured.Unstructured, component string) *clientv3.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret(t, objects, "windlass-ca").Data["tls.crt"])
	config := &tls.Config{RootCAs: roots}
	if component != "" {
		data := secret(t, objects, "windlass-"+component+"-tls").Data
		pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", memberAddress(0)+":2379")
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + memberHost(0) + ":2379"}, TLS: config,
		Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// probe asks as the kubelet does.
func probe(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func refused(t *testing.T, client *clientv3.Client, who string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := client.Get(ctx, "/windlass/test"); err == nil {
		t.Errorf("%s may read", who)
	}
}
