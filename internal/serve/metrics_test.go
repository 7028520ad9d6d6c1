package serve

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/buildinfo"
)

func TestAProgramTellsWhichReleaseItIs(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewBuildInfo())
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "windlass_build_info" {
		t.Fatalf("%v, %v", families, err)
	}
	said := families[0].GetMetric()[0]
	labels := map[string]string{}
	for _, l := range said.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if said.GetGauge().GetValue() != 1 || labels["version"] != buildinfo.Version || labels["go_version"] != runtime.Version() {
		t.Errorf("it tells %v", said)
	}
}
