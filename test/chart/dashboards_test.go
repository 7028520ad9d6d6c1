//go:build apiserver

package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEveryDashboardIsAConfigMapForTheSidecar(t *testing.T) {
	objects := render(t, "--set", "monitoring.dashboards.enabled=true,monitoring.dashboards.namespace=grafana,"+
		"monitoring.dashboards.label=board,monitoring.dashboards.labelValue=yes,monitoring.dashboards.annotations.grafana_folder=Windlass")
	files, err := filepath.Glob(filepath.Join(chartDir, "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the chart has no dashboards (%v)", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := as[corev1.ConfigMap](t, find(t, objects, "ConfigMap", "windlass-dashboard-"+name[:len(name)-len(".json")]))
		if found.Namespace != "grafana" || found.Labels["board"] != "yes" || found.Annotations["grafana_folder"] != "Windlass" {
			t.Errorf("%s: namespace %q, labels %v, annotations %v", name, found.Namespace, found.Labels, found.Annotations)
		}
		if !sameJSON(t, found.Data["windlass-"+name], string(text)) {
			t.Errorf("the ConfigMap of %s holds something else", name)
		}
	}
}

func TestThereAreNoDashboardsUnlessTheyAreWanted(t *testing.T) {
	for _, object := range render(t) {
		if object.GetKind() == "ConfigMap" && object.GetLabels()["grafana_dashboard"] != "" {
			t.Errorf("%s is there", title(object))
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var left, right any
	if err := json.Unmarshal([]byte(a), &left); err != nil {
		t.Fatalf("%v in\n%s", err, a)
	}
	if err := json.Unmarshal([]byte(b), &right); err != nil {
		t.Fatal(err)
	}
	x, errX := json.Marshal(left)
	y, errY := json.Marshal(right)
	return errX == nil && errY == nil && string(x) == string(y)
}
