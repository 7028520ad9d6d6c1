//go:build apiserver

package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"
)

// The files are what promtool tests and what a Prometheus without the operator
// reads, so the object must say the same.
func TestThePrometheusRuleIsWhatTheFilesSay(t *testing.T) {
	files, err := filepath.Glob(chartDir + "/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules in the chart: %v", err)
	}
	var want []any
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content struct{ Groups []any }
		if err := sigsyaml.UnmarshalStrict(text, &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want = append(want, content.Groups...)
	}
	object := find(t, render(t, "--set", "monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.labels.release=prometheus"), "PrometheusRule", release)
	if got := object.GetLabels()["release"]; got != "prometheus" {
		t.Errorf("its label release is %q", got)
	}
	got, _, err := unstructured.NestedSlice(object.Object, "spec", "groups")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-files +object):\n%s", diff)
	}
}
