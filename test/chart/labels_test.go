//go:build apiserver

package chart

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownLabels are those that the chart gives objects, with another value, as an organisation may
// give them to all that it installs.
const ownLabels = `commonLabels={"helm.sh/chart": "x", "app.kubernetes.io/name": "x", "app.kubernetes.io/instance": "x", "app.kubernetes.io/component": "x",` +
	`"app.kubernetes.io/version": "x", "app.kubernetes.io/part-of": "x", "app.kubernetes.io/managed-by": "x", "team": "platform"}`

// A key that is written twice is no YAML for strict readers, such as kustomize.
func TestLabelsOfAllObjectsDoNotReplaceTheChartsOwn(t *testing.T) {
	for name, args := range scenarios {
		t.Run(name, func(t *testing.T) {
			for _, object := range render(t, append(args[:len(args):len(args)], "--set-json", ownLabels)...) {
				labels := object.GetLabels()
				if labels == nil {
					continue
				}
				if labels["team"] != "platform" || labels["app.kubernetes.io/name"] != "windlass" || labels["app.kubernetes.io/part-of"] != "windlass" {
					t.Errorf("%s has the labels %v", title(object), labels)
				}
			}
		})
	}
}

// The command and the cleanup find pods by these two labels.
func TestPodsArePartOfWindlassWhateverTheChartIsCalled(t *testing.T) {
	found := map[string]bool{}
	for _, object := range render(t, "--set", "nameOverride=fn,nodeAgent.enabled=true") {
		labels, ok, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
		if ok && labels["app.kubernetes.io/part-of"] == "windlass" {
			found[labels["app.kubernetes.io/component"]] = true
		}
	}
	for _, component := range []string{"gateway", "scheduler", "controller", "node"} {
		if !found[component] {
			t.Errorf("no pods of the component %s are part of Windlass", component)
		}
	}
}

// What is said of one object counts more than what is said of all.
func TestLabelsOfMonitorsComeFirst(t *testing.T) {
	const wanted = `{"app.kubernetes.io/part-of": "observability", "team": "observability"}`
	args := []string{"--set-json", ownLabels, "--set-json", "monitoring.prometheusRule={\"enabled\": true, \"labels\": " + wanted + "}",
		"--set", "monitoring.dashboards.enabled=true,monitoring.dashboards.label=team,monitoring.dashboards.labelValue=observability"}
	for _, monitor := range []string{"serviceMonitor", "podMonitor"} {
		objects := render(t, append(args[:len(args):len(args)], "--set-json", "monitoring."+monitor+`={"enabled": true, "labels": `+wanted+"}")...)
		kind := strings.ToUpper(monitor[:1]) + monitor[1:]
		for _, object := range []unstructured.Unstructured{find(t, objects, kind, "windlass"), find(t, objects, "PrometheusRule", "windlass")} {
			if labels := object.GetLabels(); labels["app.kubernetes.io/part-of"] != "observability" || labels["team"] != "observability" {
				t.Errorf("%s has the labels %v", title(object), labels)
			}
		}
		for _, object := range objects {
			if strings.Contains(object.GetName(), "-dashboard-") && object.GetLabels()["team"] != "observability" {
				t.Errorf("%s has the labels %v", title(object), object.GetLabels())
			}
		}
	}
}

func TestAnnotationsOfPodsMayReplaceTheChartsOwn(t *testing.T) {
	var args []string
	for _, component := range []string{"gateway", "scheduler", "controller", "etcd", "nodeAgent"} {
		args = append(args, "--set-json", component+`.podAnnotations={"kubectl.kubernetes.io/default-container": "proxy"}`)
	}
	for _, object := range render(t, append(args, "--set", "nodeAgent.enabled=true")...) {
		annotations, found, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "annotations")
		if err != nil || found && annotations["kubectl.kubernetes.io/default-container"] != "proxy" {
			t.Errorf("%s: its pods have the annotations %v, %v", title(object), annotations, err)
		}
	}
}
