//go:build apiserver

package chart

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// foreign are the groups whose types are not among those of Kubernetes itself.
var foreign = []string{"apiextensions.k8s.io", "cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com"}

func TestLint(t *testing.T) {
	for name, args := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := append([]string{"lint", "--strict", chartDir, "--kube-version", "1.34.0"}, args...)
			if out, _, err := run(t, binary(t, "helm"), all...); err != nil {
				t.Error(out)
			}
		})
	}
}

func TestObjectsHaveTheFieldsOfTheirKind(t *testing.T) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Strict: true})
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		for _, object := range objects {
			if slices.Contains(foreign, object.GroupVersionKind().Group) {
				continue
			}
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := strict.Decode(text, nil, nil); err != nil {
				t.Errorf("%s: %v", title(object), err)
			}
		}
	})
}

func TestObjectsAreNamedOnce(t *testing.T) {
	clusterWide := []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		seen := map[string]bool{}
		for _, object := range objects {
			if seen[title(object)] {
				t.Errorf("%s is there twice", title(object))
			}
			seen[title(object)] = true
			if global := slices.Contains(clusterWide, object.GetKind()); global != (object.GetNamespace() == "") {
				t.Errorf("%s has the namespace %q", title(object), object.GetNamespace())
			}
			if object.GetLabels()["app.kubernetes.io/instance"] != release || object.GetLabels()["helm.sh/chart"] == "" {
				t.Errorf("%s has the labels %v", title(object), object.GetLabels())
			}
		}
	})
}

// TestSelectorsMeetTheirPods wants every selector to find the pods of one
// component, and every port of a Service to be one of theirs.
func TestSelectorsMeetTheirPods(t *testing.T) {
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		pods := map[string]corev1.PodTemplateSpec{}
		for _, object := range objects {
			if pod, ok := podOf(t, object); ok {
				pods[pod.Labels["app.kubernetes.io/component"]] = pod
			}
		}
		selected := func(object unstructured.Unstructured, selector labels.Selector) []corev1.PodTemplateSpec {
			var found []corev1.PodTemplateSpec
			for _, pod := range pods {
				if selector.Matches(labels.Set(pod.Labels)) {
					found = append(found, pod)
				}
			}
			if len(found) != 1 && object.GetName() != "windlass-metrics" {
				t.Errorf("%s selects the pods of %d components", title(object), len(found))
			}
			return found
		}
		for _, object := range objects {
			switch object.GetKind() {
			case "Service":
				service := as[corev1.Service](t, object)
				found := selected(object, labels.SelectorFromSet(service.Spec.Selector))
				for _, port := range service.Spec.Ports {
					if !slices.ContainsFunc(found, func(p corev1.PodTemplateSpec) bool { return hasPort(p, port.TargetPort.StrVal) }) {
						t.Errorf("%s leads to the port %q, which no pod has", title(object), port.TargetPort.StrVal)
					}
				}
			case "PodDisruptionBudget":
				selected(object, selector(t, as[policyv1.PodDisruptionBudget](t, object).Spec.Selector))
			case "NetworkPolicy":
				policy := as[networkingv1.NetworkPolicy](t, object)
				selected(object, selector(t, &policy.Spec.PodSelector))
			}
		}
	})
}

func selector(t *testing.T, s *metav1.LabelSelector) labels.Selector {
	t.Helper()
	compiled, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func hasPort(pod corev1.PodTemplateSpec, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
}

// An autoscaler may have made many of the one gateway, and a drain of some nodes would evict all of theirs at once.
func TestGatewaysThatScaleFromOneHaveADisruptionBudget(t *testing.T) {
	budget := as[policyv1.PodDisruptionBudget](t, find(t, render(t, "--set", "gateway.autoscaling.enabled=true,gateway.autoscaling.minReplicas=1"),
		"PodDisruptionBudget", release+"-gateway"))
	if got := budget.Spec.MaxUnavailable.IntValue(); got != 1 {
		t.Errorf("%d gateways may be down at a time", got)
	}
}

func TestOneReplicaHasNoDisruptionBudget(t *testing.T) {
	budgets := func(args ...string) (names []string) {
		for _, object := range render(t, args...) {
			if object.GetKind() == "PodDisruptionBudget" {
				names = append(names, object.GetName())
			}
		}
		slices.Sort(names)
		return names
	}
	if got := budgets(scenarios["dev"]...); len(got) != 0 {
		t.Errorf("with one of each there are %v, which would stop every drain of a node", got)
	}
	want := []string{"windlass-controller", "windlass-etcd", "windlass-gateway", "windlass-scheduler"}
	if diff := cmp.Diff(want, budgets()); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
}

func TestCRDsAreThoseOfTheProject(t *testing.T) {
	generated, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(generated) != 3 {
		t.Fatalf("config/crd has %v, %v", generated, err)
	}
	objects := render(t)
	for _, path := range generated {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(chartDir, "files", "crds", filepath.Base(path)))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not the copy in the chart: run make generate", filepath.Base(path))
		}
		var crd unstructured.Unstructured
		if err := sigsyaml.Unmarshal(want, &crd.Object); err != nil {
			t.Fatal(err)
		}
		found := find(t, objects, "CustomResourceDefinition", crd.GetName())
		if found.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s would be deleted with the release, and every object of it", crd.GetName())
		}
		if diff := cmp.Diff(crd.Object["spec"], found.Object["spec"]); diff != "" {
			t.Errorf("%s is rendered as something else (-generated +rendered):\n%s", crd.GetName(), diff)
		}
	}
	without := template(t, "--set", "crds.enabled=false")
	if strings.Contains(without, "CustomResourceDefinition") {
		t.Error("crds.enabled=false leaves CRDs")
	}
	if strings.Contains(template(t, "--set", "crds.keep=false"), "resource-policy") {
		t.Error("crds.keep=false keeps them")
	}
}

// TestA19SingleRuntimesAreChanged sets what --set can reach of one, and wants the rest to
// stay as it is.
func TestA19SingleRuntimesAreChanged(t *testing.T) {
	python3 := v1alpha1.ClusterRuntimeSpec{Image: "ghcr.io/windlass-dev/runtime-python3.13:0.1.0", Protocol: v1alpha1.ProtocolLambdaRuntime, FileExtension: "py"}
	nodejs := v1alpha1.ClusterRuntimeSpec{Image: "ghcr.io/windlass-dev/runtime-nodejs22.x:0.1.0", Protocol: v1alpha1.ProtocolLambdaRuntime, FileExtension: "js"}
	pooled := python3
	pooled.WarmPools = []v1alpha1.WarmPool{{Name: "default", Size: 3}}
	several := python3
	several.WarmPools = []v1alpha1.WarmPool{
		{Name: "large", Size: 1, Resources: v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceMemory: quantities.MustParse("1Gi")}},
			NamespaceSelector: &v1alpha1.NamespaceSelector{
				MatchLabels:      map[string]string{"team": "payments"},
				MatchExpressions: []v1alpha1.NamespaceRequirement{{Key: "stage", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test"}}},
			}},
		{Name: "small", Size: 3},
	}
	for name, test := range map[string]struct {
		values string
		want   map[string]v1alpha1.ClusterRuntimeSpec
	}{
		"the defaults": {"", map[string]v1alpha1.ClusterRuntimeSpec{"python3.13": python3, "nodejs22.x": nodejs}},
		"a warm pool":  {"runtimes.python313.warmPools.default.size=3", map[string]v1alpha1.ClusterRuntimeSpec{"python3.13": pooled, "nodejs22.x": nodejs}},
		"pools by their names": {"runtimes.python313.warmPools.small.size=3,runtimes.python313.warmPools.large.size=1,runtimes.python313.warmPools.large.resources.requests.memory=1Gi," +
			"runtimes.python313.warmPools.large.namespaceSelector.matchLabels.team=payments,runtimes.python313.warmPools.large.namespaceSelector.matchExpressions[0].key=stage," +
			"runtimes.python313.warmPools.large.namespaceSelector.matchExpressions[0].operator=NotIn,runtimes.python313.warmPools.large.namespaceSelector.matchExpressions[0].values={test}",
			map[string]v1alpha1.ClusterRuntimeSpec{"python3.13": several, "nodejs22.x": nodejs}},
		"disabled":     {"runtimes.nodejs22x.enabled=false", map[string]v1alpha1.ClusterRuntimeSpec{"python3.13": python3}},
		"renamed":      {"runtimes.nodejs22x.name=node", map[string]v1alpha1.ClusterRuntimeSpec{"python3.13": python3, "node": nodejs}},
		"one left out": {"runtimes.nodejs22x=null", map[string]v1alpha1.ClusterRuntimeSpec{"python3.13": python3}},
		"all of one's own": {"runtimes.nodejs22x=null,runtimes.python313=null,runtimes.ruby.image.repository=mine,runtimes.ruby.image.tag=v9,runtimes.ruby.fileExtension=rb," +
			"runtimes.ruby.command={/bin/ruby,main.rb},runtimes.ruby.env[0].name=A,runtimes.ruby.env[0].value=b,runtimes.ruby.protocol=HTTP", map[string]v1alpha1.ClusterRuntimeSpec{
			"ruby": {Image: "mine:v9", Protocol: v1alpha1.ProtocolHTTP, FileExtension: "rb", Command: []string{"/bin/ruby", "main.rb"}, Env: []v1alpha1.EnvVar{{Name: "A", Value: "b"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, specs(t, render(t, "--set", test.values))); diff != "" {
				t.Errorf("the ClusterRuntimes (-want +got):\n%s", diff)
			}
		})
	}
}

// specs are the ClusterRuntimes that the controller is given to install, by name.
func specs(t *testing.T, objects []unstructured.Unstructured) map[string]v1alpha1.ClusterRuntimeSpec {
	t.Helper()
	specs := map[string]v1alpha1.ClusterRuntimeSpec{}
	var runtimes []v1alpha1.ClusterRuntime
	file := as[corev1.ConfigMap](t, find(t, objects, "ConfigMap", "windlass-controller-runtimes")).Data["runtimes.yaml"]
	if err := sigsyaml.UnmarshalStrict([]byte(file), &runtimes); err != nil {
		t.Fatal(err)
	}
	for _, r := range runtimes {
		if r.APIVersion != v1alpha1.APIVersion || r.Kind != v1alpha1.KindClusterRuntime || r.Labels[wellknown.LabelManagedBy] != wellknown.ManagedBy {
			t.Errorf("the runtime %+v is not one of Windlass", r.ObjectMeta)
		}
		specs[r.Name] = r.Spec
	}
	return specs
}

func TestOnlyTheControllerRollsWhenRuntimesChange(t *testing.T) {
	before, after := render(t), render(t, "--set", "runtimes.python313.image.repository=mine")
	for component, want := range map[string]bool{"controller": true, "gateway": false, "scheduler": false} {
		was, _ := podOf(t, find(t, before, "Deployment", "windlass-"+component))
		is, _ := podOf(t, find(t, after, "Deployment", "windlass-"+component))
		if changed := !cmp.Equal(was, is); changed != want {
			t.Errorf("the pods of the %s change: %v, want %v", component, changed, want)
		}
	}
}

// TestA19TheIconIsThatOfTheDocs keeps the two copies equal. Helm takes absolute URLs only,
// and a data URL works without any server.
func TestA19TheIconIsThatOfTheDocs(t *testing.T) {
	var chart struct{ Icon string }
	text, err := os.ReadFile(filepath.Join(chartDir, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sigsyaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	icon, err := os.ReadFile("../../docs/images/icon.svg")
	if err != nil {
		t.Fatal(err)
	}
	if want := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(icon); chart.Icon != want {
		t.Errorf("the icon in Chart.yaml is not docs/images/icon.svg; write\nicon: %s", want)
	}
}

// TestTheListOfImagesIsComplete compares what Artifact Hub is told with what is
// pulled, but for the images of runtimes, which no release has.
func TestTheListOfImagesIsComplete(t *testing.T) {
	var chart struct{ Annotations map[string]string }
	text, err := os.ReadFile(filepath.Join(chartDir, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sigsyaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	var listed []struct{ Name, Image string }
	if err := sigsyaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/images"]), &listed); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	objects := render(t)
	for _, object := range objects {
		if pod, ok := podOf(t, object); ok {
			want[pod.Spec.Containers[0].Image] = true
			if agent := arguments(t, pod.Spec.Containers[0])["agent-image"]; agent != "" {
				want[agent] = true
			}
		}
	}
	got := map[string]bool{}
	for _, image := range listed {
		got[image.Image] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("artifacthub.io/images in Chart.yaml (-pulled +listed):\n%s", diff)
	}
}

// copyChart copies the chart with another Chart.yaml.
func copyChart(t *testing.T, change func(string) string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "windlass")
	if err := os.CopyFS(dir, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "Chart.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, change(string(text)))
	return dir
}
