//go:build apiserver

package chart

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/windlass-dev/windlass/internal/cli"
	roles "github.com/windlass-dev/windlass/internal/cluster"
)

// commands are those of the program, with their flags.
var commands = cli.NewCommand(cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, cli.Programs{Roles: roles.Commands()})

// command is one of the program's, such as gateway.
func command(t *testing.T, name string) *cobra.Command {
	t.Helper()
	found, _, err := commands.Find([]string{name})
	if err != nil || found == commands {
		t.Fatalf("windlass has no command %s: %v", name, err)
	}
	return found
}

var argument = regexp.MustCompile(`^--([a-z0-9-]+)=(.+)$`)

// arguments are a container's, by name. Each has a value.
func arguments(t *testing.T, c corev1.Container) map[string]string {
	t.Helper()
	args := c.Args
	if c.Name != "etcd" {
		args = args[1:]
	}
	all := map[string]string{}
	for _, arg := range args {
		parts := argument.FindStringSubmatch(arg)
		if parts == nil {
			t.Fatalf("the argument %q is not --name=value", arg)
		}
		if _, twice := all[parts[1]]; twice {
			t.Errorf("--%s is given twice", parts[1])
		}
		all[parts[1]] = parts[2]
	}
	return all
}

func TestCommandsHaveTheFlagsTheyAreGiven(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		c := pod.Spec.Containers[0]
		if c.Name == "etcd" {
			return
		}
		var program []string // the image's
		if c.Name == "node" {
			program = []string{"/windlass-node"}
		}
		if c.Args[0] != c.Name || !slices.Equal(c.Command, program) {
			t.Fatalf("the container %s runs %v %v", c.Name, c.Command, c.Args)
		}
		of := command(t, c.Name)
		for name, value := range arguments(t, c) {
			if of.Flag(name) == nil {
				t.Errorf("windlass %s has no flag --%s", c.Args[0], name)
			}
			if name := regexp.MustCompile(`\$\(([A-Z_]+)\)`).FindStringSubmatch(value); name != nil &&
				!slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name[1] }) {
				t.Errorf("%s is no variable of the container", name[1])
			}
		}
	})
}

func TestArgumentsFollowValues(t *testing.T) {
	for name, test := range map[string]struct {
		values    string
		component string
		want      map[string]string // "" means left out
	}{
		"the defaults of a gateway": {"", "gateway", map[string]string{
			"listen": ":8080", "wire-listen": ":9443", "advertise": "$(POD_IP):9443", "ops-listen": ":8081",
			"etcd-tls-dir": "/etc/windlass/tls", "tls-dir": "/etc/windlass/tls", "watch-namespaces": "", "max-body-size": "64Mi", "max-in-flight": "20000", "body-memory": "512Mi",
			"drain-delay": "5s", "drain-timeout": "60s", "etcd-prefix": "/windlass", "etcd-username": "", "log-format": "json", "log-level": "info",
			"etcd-endpoints": "https://windlass-etcd-0.windlass-etcd.windlass.svc:2379,https://windlass-etcd-1.windlass-etcd.windlass.svc:2379,https://windlass-etcd-2.windlass-etcd.windlass.svc:2379"}},
		"limits of a gateway": {"gateway.maxBodySize=1Gi,gateway.maxInFlight=5000000,gateway.bodyMemory=0.5Gi", "gateway", map[string]string{
			"max-body-size": "1Gi", "max-in-flight": "5000000", "body-memory": "0.5Gi"}},
		"S15: trusted proxies": {"gateway.trustedProxies={10.42.0.0/16,fd00::/8}", "gateway", map[string]string{
			"trusted-proxies": "10.42.0.0/16,fd00::/8"}},
		"hosts of functions": {"gateway.hosts.domain=fn.example.com", "gateway", map[string]string{
			"hosts-domain": "fn.example.com", "hosts-template": "{name}--{namespace}.{domain}", "external-url": "http://windlass-gateway.windlass.svc"}},
		"hosts of functions in their statuses": {"gateway.hosts.domain=fn.example.com", "controller", map[string]string{
			"hosts-domain": "fn.example.com", "hosts-template": "{name}--{namespace}.{domain}"}},
		"no hosts of functions":   {"", "gateway", map[string]string{"hosts-domain": "", "hosts-template": ""}},
		"S15: no trusted proxies": {"", "gateway", map[string]string{"trusted-proxies": ""}},
		"the defaults of a scheduler": {"", "scheduler", map[string]string{
			"id": "$(POD_NAME)", "agent-image": "ghcr.io/windlass-dev/podagent:0.1.0", "agent-scheduler": "windlass-scheduler.windlass.svc:9443",
			"agent-cpu": "10m", "agent-memory": "32Mi", "agent-memory-limit": "256Mi", "user-namespaces": "", "user-id-base": "", "user-id-count": "", "image-pull-policy": "IfNotPresent"}},
		"the defaults of a controller": {"", "controller", map[string]string{
			"schedulers": "windlass-scheduler-peers", "external-url": "http://windlass-gateway.windlass.svc", "runtimes": "/etc/windlass/runtimes/runtimes.yaml",
			"functions-egress": "Open", "functions-egress-except": "169.254.169.254/32,168.63.129.16/32,100.100.100.200/32,fd00:ec2::254/128,fd20:ce::254/128"}},
		"nobody may be latency-critical": {"", "controller", map[string]string{"latency-critical-namespaces": ""}},
		"namespaces that may be latency-critical": {"nodeAgent.latencyCriticalNamespaces={shop,*}", "controller", map[string]string{
			"latency-critical-namespaces": "shop,*"}},
		"S12: the egress of functions": {"functions.egress.mode=Internet,functions.egress.except={169.254.0.0/16,fd00:ec2::/32}", "controller", map[string]string{
			"functions-egress": "Internet", "functions-egress-except": "169.254.0.0/16,fd00:ec2::/32"}},
		"no node agents":          {"", "scheduler", map[string]string{"node-agent": ""}},
		"node agents":             {"nodeAgent.enabled=true", "scheduler", map[string]string{"node-agent": "windlass-node.windlass.svc:9443"}},
		"S6: users of their own":  {"functions.hostUsers=false", "scheduler", map[string]string{"user-namespaces": "true"}},
		"S6: users of namespaces": {"functions.userIDs.count=800000000", "scheduler", map[string]string{"user-id-base": "1000000000", "user-id-count": "800000000"}},
		"another port":            {"gateway.service.port=8000", "controller", map[string]string{"external-url": "http://windlass-gateway.windlass.svc:8000"}},
		"a URL":                   {"gateway.externalURL=https://fn.example.com", "controller", map[string]string{"external-url": "https://fn.example.com"}},
		"an Ingress":              {"gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com},gateway.ingress.path=/fn/", "controller", map[string]string{"external-url": "http://fn.example.com/fn"}},
		"an Ingress and TLS":      {"gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com},gateway.ingress.tls[0].secretName=x", "controller", map[string]string{"external-url": "https://fn.example.com"}},
		"namespaces":              {"watchNamespaces={team-a,team-b}", "scheduler", map[string]string{"watch-namespaces": "team-a,team-b"}},
		"one member":              {"etcd.replicas=1", "scheduler", map[string]string{"etcd-endpoints": "https://windlass-etcd-0.windlass-etcd.windlass.svc:2379"}},
		"an etcd of one's own": {scenarios["an etcd of one's own"][1], "gateway", map[string]string{
			"etcd-endpoints": "https://etcd-0:2379,https://etcd-1:2379", "etcd-tls-dir": "/etc/windlass/etcd-tls",
			"etcd-username": "windlass", "etcd-password-file": "/etc/windlass/etcd-auth/password"}},
		"an etcd without TLS": {"etcd.enabled=false,etcd.endpoints={http://etcd:2379}", "gateway", map[string]string{
			"etcd-endpoints": "http://etcd:2379", "etcd-tls-dir": ""}},
	} {
		of := command(t, test.component) // which one test at a time may look for
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, _ := podOf(t, find(t, render(t, "--set", test.values), "Deployment", "windlass-"+test.component))
			got := arguments(t, pod.Spec.Containers[0])
			for name, want := range test.want {
				if of.Flag(name) == nil {
					t.Errorf("windlass %s has no flag --%s, so it is never given", test.component, name)
				}
				if got[name] != want {
					t.Errorf("--%s is %q, want %q", name, got[name], want)
				}
			}
		})
	}
}

func TestAGatewayHasTimeToDrain(t *testing.T) {
	pod, _ := podOf(t, find(t, render(t, "--set", "gateway.drainDelay=6500ms,gateway.drainTimeout=1m40s"), "Deployment", "windlass-gateway"))
	if got := *pod.Spec.TerminationGracePeriodSeconds; got != 7+100+10 {
		t.Errorf("the grace period is %d s, want the delay, the timeout and 10 s", got)
	}
}

func TestAnUpgradeTakesNoGatewayAwayBeforeAnotherIsThere(t *testing.T) {
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		for _, object := range objects {
			if object.GetKind() != "Deployment" {
				continue
			}
			update, _, _ := unstructured.NestedMap(object.Object, "spec", "strategy", "rollingUpdate")
			if update["maxUnavailable"] != float64(0) || update["maxSurge"] != float64(1) {
				t.Errorf("%s rolls with %v", title(object), update)
			}
		}
	})
}

// TestANewChartReplacesNoPod renders the chart with another version of its own,
// and wants the same pods.
func TestANewChartReplacesNoPod(t *testing.T) {
	newer := copyChart(t, func(text string) string {
		return strings.Replace(text, "\nversion: 0.1.0", "\nversion: 0.1.1", 1)
	})
	text, stderr, err := run(t, binary(t, "helm"), templateArgs(newer, nil)...)
	if err != nil {
		t.Fatal(stderr)
	}
	if !strings.Contains(text, "windlass-0.1.1") {
		t.Fatal("the chart's version has not changed")
	}
	before, after := render(t), parse(t, text)
	compared := 0
	for _, object := range before {
		if object.GetKind() != "Deployment" && object.GetKind() != "StatefulSet" {
			continue
		}
		compared++
		if diff := cmp.Diff(object.Object["spec"], find(t, after, object.GetKind(), object.GetName()).Object["spec"]); diff != "" {
			t.Errorf("%s changes with the chart's version:\n%s", title(object), diff)
		}
	}
	if compared != 4 {
		t.Errorf("compared %d workloads, want 4", compared)
	}
}
