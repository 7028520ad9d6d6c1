//go:build apiserver

package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/internal/apitest"
)

const (
	chartDir  = "../../charts/windlass"
	release   = "windlass"
	namespace = "windlass"
)

// scenarios are values with which everything must hold that holds of the chart
// at all.
var scenarios = map[string][]string{
	"defaults":   nil,
	"dev":        {"-f", chartDir + "/values-dev.yaml"},
	"ha":         {"-f", chartDir + "/values-ha.yaml"},
	"namespaces": {"--set", "watchNamespaces={team-a,windlass}"},
	"an etcd of one's own": {"--set", "etcd.enabled=false,etcd.endpoints={https://etcd-0:2379,https://etcd-1:2379},etcd.existingSecret=etcd-client," +
		"etcd.auth.username=windlass,etcd.auth.existingSecret=etcd-password"},
	"node agents":  {"--set", "nodeAgent.enabled=true"},
	"batch pods":   {"--set", "nodeAgent.enabled=true,nodeAgent.batchNamespaces={reports}"},
	"cert-manager": {"--set", "tls.mode=CertManager,monitoring.podMonitor.enabled=true"},
	"an issuer":    {"--set", "tls.mode=CertManager,tls.certManager.issuerRef.name=vault,tls.certManager.issuerRef.kind=ClusterIssuer,tls.certManager.clusterIssuerIsRestricted=true"},
	"existing certificates": {"--set", "tls.mode=Existing,tls.existing.gatewaySecret=g,tls.existing.schedulerSecret=s," +
		"tls.existing.controllerSecret=c,tls.existing.etcdSecret=e"},
	"everything on": {"--set", "gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com},gateway.autoscaling.enabled=true," +
		"gateway.httpRoute.enabled=true,gateway.httpRoute.parentRefs[0].name=public,gateway.httpRoute.hostnames={fn.example.com}," +
		"nodeAgent.enabled=true,gateway.service.type=LoadBalancer,gateway.service.nodePort=30080,gateway.priorityClassName=high," +
		"monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,monitoring.dashboards.enabled=true," +
		"global.imageRegistry=mirror.example.com,global.imagePullSecrets[0].name=mirror,commonLabels.team=platform,gateway.maxBodySize=1Mi,gateway.maxInFlight=100," +
		"tracing.endpoint=http://tempo.monitoring:4317,tracing.sampleRatio=0.1,gateway.logCalls=All"},
	"callers": {"--set-json", `tenancy.default={"requestsPerSecond": 12.5, "burst": 50, "maxInFlight": 3000000, "bodyMemory": "64Mi", "hosts": ["*.example.com"]}`,
		"--set", "tenancy.namespaces.open.hosts={shop.example.org}", "--set-json", "tenancy.namespaces.closed.hosts=[]",
		"--set", "gateway.auth.default.mode=Required,gateway.auth.namespaces.open.mode=None,tenancy.namespaces.open.requestsPerSecond=0.5," +
			"gateway.auth.issuers.corp.issuer=https://login.example.com,gateway.auth.issuers.corp.audience=windlass," +
			"gateway.auth.issuers.corp.jwks=none,gateway.auth.issuers.corp.claim=functions,gateway.bodyMemory=64Mi"},
}

// binary finds a program of the cluster, or skips the test.
func binary(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(apitest.Programs(t, name), name)
}

// run runs a command and returns both of its streams.
func run(t *testing.T, program string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.Command(program, args...)
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	err = cmd.Run()
	return out.String(), diagnostics.String(), err
}

var rendered sync.Map

// template renders the chart as helm prints it. What helm makes by chance, such
// as keys, is made once for the same arguments.
func template(t *testing.T, args ...string) string {
	t.Helper()
	if text, ok := rendered.Load(strings.Join(args, " ")); ok {
		return text.(string)
	}
	text, stderr, err := run(t, binary(t, "helm"), templateArgs(chartDir, args)...)
	if err != nil {
		t.Fatalf("helm template %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	first, _ := rendered.LoadOrStore(strings.Join(args, " "), text)
	return first.(string)
}

// templateArgs are those of helm template. A helm that was built by hand takes
// the cluster that is not there for an ancient one, hence the version.
func templateArgs(chart string, args []string) []string {
	return append([]string{"template", release, chart, "--namespace", namespace, "--kube-version", "1.34.0"}, args...)
}

// render renders the chart into objects.
func render(t *testing.T, args ...string) []unstructured.Unstructured {
	t.Helper()
	return parse(t, template(t, args...))
}

func parse(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := sigsyaml.UnmarshalStrict(document, &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object) > 0 {
			objects = append(objects, unstructured.Unstructured{Object: object})
		}
	}
	if len(objects) == 0 {
		t.Fatal("nothing was rendered")
	}
	return objects
}

// eachScenario runs a check on all objects of every scenario.
func eachScenario(t *testing.T, check func(t *testing.T, objects []unstructured.Unstructured)) {
	t.Helper()
	for name, args := range scenarios {
		t.Run(name, func(t *testing.T) { check(t, render(t, args...)) })
	}
}

// title names an object in messages.
func title(object unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}

// find returns the only object of a kind and name, and fails without it.
func find(t *testing.T, objects []unstructured.Unstructured, kind, name string) unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return unstructured.Unstructured{}
}

// as converts an object to its Go type, strictly.
func as[T any](t *testing.T, object unstructured.Unstructured) T {
	t.Helper()
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
		t.Fatalf("%s: %v", title(object), err)
	}
	return typed
}
