package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// BenchmarkWarmCall measures what a warm call costs: CPU time of all Windlass
// processes per call, and time, each as a ratio to one hop through a Go reverse
// proxy to the same function, which is measured in turn within the same run. It
// prints name=value lines with the median and the range of the rounds.
//
//	go test -run '^$' -bench WarmCall -benchtime 1x ./test/e2e
func BenchmarkWarmCall(b *testing.B) {
	dir := b.TempDir()
	for _, name := range []string{"windlass", "podagent"} {
		build(b, dir, name, "../../cmd/"+name)
	}
	build(b, dir, "probe", "./probe")
	windlass, stop := benchWindlass(b, dir)
	defer stop()
	proxy, stopProxy := benchProxy(b, dir)
	defer stopProxy()
	b.ResetTimer()
	for _, clients := range []int{1, 32} {
		var cpu, wall []float64
		for range 6 {
			ours, theirs := windlass.measure(b, clients), proxy.measure(b, clients)
			cpu = append(cpu, ours.cpu/theirs.cpu)
			wall = append(wall, ours.p50/theirs.p50)
		}
		for name, ratios := range map[string][]float64{"cpu": cpu[1:], "p50": wall[1:]} { // the first warms up
			slices.Sort(ratios)
			fmt.Fprintf(os.Stdout, "warm_call_%s_over_proxy_%d_clients=%.2f (%.2f to %.2f)\n",
				name, clients, ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
		}
	}
}

func build(b *testing.B, dir, name, pkg string) {
	b.Helper()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
		b.Fatal(err, string(out))
	}
}

// server is what is measured: a URL, and the processes whose time counts.
type server struct {
	url      string
	programs []string
}

type cost struct{ cpu, p50 float64 } // seconds

// measure calls the server in closed loops for a while.
func (s server) measure(b *testing.B, clients int) cost {
	b.Helper()
	transport := loadgen.NewTransport(clients)
	defer transport.CloseIdleConnections()
	client, request := loadgen.Client{Transport: transport}, loadgen.Request{Method: http.MethodGet, URL: s.url, Resend: true}
	before := s.cpu()
	l := loadgen.Start(b.Context(), loadgen.Config[time.Duration]{
		Clients: clients,
		Next: func(loadgen.Turn) func(context.Context) time.Duration {
			return func(ctx context.Context) time.Duration {
				call := client.Do(ctx, request)
				if call.Err != nil || call.Status != http.StatusOK {
					b.Error(call.Status, call.Err)
				}
				return call.Took()
			}
		},
	})
	sleep.For(b.Context(), 2*time.Second)
	all := l.Stop()
	slices.Sort(all)
	return cost{cpu: (s.cpu() - before) / float64(len(all)), p50: all[len(all)/2].Seconds()}
}

// cpu is the time in seconds that the server's processes have used.
func (s server) cpu() (seconds float64) {
	for _, program := range s.programs {
		for _, p := range processesOf(program) {
			stat, err := os.ReadFile(filepath.Join(filepath.Dir(strings.Fields(p)[0]), "stat"))
			if err != nil {
				continue
			}
			fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
			for _, ticks := range fields[11:13] {
				n, _ := strconv.ParseFloat(ticks, 64)
				seconds += n / 100
			}
		}
	}
	return seconds
}

func benchWindlass(b *testing.B, dir string) (server, func()) {
	b.Helper()
	data, err := os.MkdirTemp("", "windlass-bench-")
	if err != nil {
		b.Fatal(err)
	}
	manifest := filepath.Join(data, "probe.yaml")
	text := fmt.Sprintf("apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: probe}\nspec:\n  template: {command: [%s/probe]}\n  scaling: {maxInstances: 8}\n", dir)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	output := &lines{}
	cmd := exec.Command(filepath.Join(dir, "windlass"), "up", "--data-dir", filepath.Join(data, "data"),
		"--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "-f", manifest)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	gateway := regexp.MustCompile(`gateway\s+(http://\S+)`)
	NewWithT(b).Eventually(output.String, "20s").Should(ContainSubstring("Stop with Ctrl-C"))
	return server{
			url:      gateway.FindStringSubmatch(output.String())[1] + "/function/probe/work",
			programs: []string{filepath.Join(dir, "windlass"), filepath.Join(dir, "podagent")},
		}, func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			_ = os.RemoveAll(data)
		}
}

// benchProxy runs the probe behind a reverse proxy in a process of its own,
// which is this test binary under another name.
func benchProxy(b *testing.B, dir string) (server, func()) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	proxy := filepath.Join(dir, "proxy")
	if err := os.Link(self, proxy); err != nil {
		if out, err := exec.Command("cp", self, proxy).CombinedOutput(); err != nil {
			b.Fatal(err, string(out))
		}
	}
	ports := [2]string{}
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		_, ports[i], _ = net.SplitHostPort(l.Addr().String())
		_ = l.Close()
	}
	function := exec.Command(filepath.Join(dir, "probe"))
	function.Env = append(os.Environ(), "PORT="+ports[0])
	hop := exec.Command(proxy)
	hop.Env = append(os.Environ(), proxyTo+"=http://127.0.0.1:"+ports[0], "PORT="+ports[1])
	for _, cmd := range []*exec.Cmd{function, hop} {
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
	}
	NewWithT(b).Eventually(func() error {
		c, err := net.Dial("tcp", "127.0.0.1:"+ports[1])
		if err == nil {
			_ = c.Close()
		}
		return err
	}, "10s").Should(Succeed())
	return server{url: "http://127.0.0.1:" + ports[1] + "/work", programs: []string{proxy}}, func() {
		for _, cmd := range []*exec.Cmd{function, hop} {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}

const proxyTo = "WINDLASS_BENCH_PROXY_TO"

func TestMain(m *testing.M) {
	if target := os.Getenv(proxyTo); target != "" {
		u, err := url.Parse(target)
		if err != nil {
			panic(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(u)
		proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
		panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), proxy))
	}
	os.Exit(m.Run())
}
