package cluster_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/cluster"
)

// access is how one process reaches the cluster.
type access struct {
	// config and api are an administrator's.
	config *rest.Config
	api    client.Client
	// gateway is the URL of the gateways, without a slash at the end.
	gateway string
	// http calls functions.
	http *http.Client
}

func connect(ctx context.Context, in installation) *access {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", in.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 200, 400
	log.SetLogger(GinkgoLogr)
	scheme := clientgoscheme.Scheme
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	api, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	a := &access{
		config: config, api: api,
		http: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 300}},
	}
	if in.State != "" && own == nil {
		own, err = cluster.Open(in.State, nil)
		Expect(err).NotTo(HaveOccurred())
	}
	a.gateway = gatewayURL(ctx, api)
	DeferCleanup(a.http.CloseIdleConnections)
	return a
}

// gatewayURL is the ClusterIP of the gateways if it can be reached from here,
// as it can in a cluster of our own, or else a port-forward to one of them.
func gatewayURL(ctx context.Context, api client.Client) string {
	GinkgoHelper()
	var service corev1.Service
	key := client.ObjectKey{Namespace: releaseNamespace, Name: "windlass-gateway"}
	Expect(api.Get(ctx, key, &service)).To(Succeed())
	address := net.JoinHostPort(service.Spec.ClusterIP, "80")
	if reachable(address) {
		return "http://" + address
	}
	return "http://" + forward(releaseNamespace, "service/windlass-gateway", "80")
}

// directly skips a spec that ends gateways where calls go through a port-forward,
// which ends with its gateway.
func directly() {
	GinkgoHelper()
	if strings.HasPrefix(world.gateway, "http://127.0.0.1:") {
		Skip("ends gateways, to one of which calls are forwarded: run it where ClusterIPs answer")
	}
}

func reachable(address string) bool {
	conn, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

var forwarded = regexp.MustCompile(`^Forwarding from 127\.0\.0\.1:(\d+)`)

// forward keeps a port-forward until the node that asked for it ends, and
// returns the address of its near end. It begins again when its pod has ended.
func forward(namespace, target, port string) string {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	DeferCleanup(func() {
		cancel()
		work.Wait()
	})
	begun := make(chan string, 1)
	work.Go(func() {
		near := ""
		for ctx.Err() == nil {
			cmd := program(ctx, "kubectl", "--namespace", namespace, "port-forward", target, near+":"+port)
			out, err := cmd.StdoutPipe()
			if err != nil || cmd.Start() != nil {
				return
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				if match := forwarded.FindStringSubmatch(lines.Text()); match != nil && near == "" {
					near = match[1]
					begun <- "127.0.0.1:" + near
				}
			}
			_ = cmd.Wait() // it was killed, or has lost its pod
			sleep.For(ctx, 200*time.Millisecond)
		}
	})
	var address string
	Eventually(begun, "20s").Should(Receive(&address), "no port-forward to %s", target)
	return address
}
