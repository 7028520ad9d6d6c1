package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

func TestNodesArePickedByWhatPodsAreCountedAs(t *testing.T) {
	cpu, memory := resource.MustParse("250m"), resource.MustParse("100Mi")
	for name, requests := range map[string]v1alpha1.ResourceList{
		"both": {CPU: &cpu, Memory: &memory}, "none": {},
	} {
		agent := nodepick.Amount{MilliCPU: 10, Memory: 32 << 20, Pods: 1}
		fn := &v1alpha1.Function{}
		fn.Spec.Template.Resources.Requests = requests
		r := &Runtime{agent: agent}
		p := provisioner.New(provisioner.Config{AgentRequests: agent}, provisioner.Deps{})
		want := agent
		if requests.CPU != nil {
			want.MilliCPU, want.Memory = 260, 132<<20
		}
		if picked, counted := p.Requests(fn), r.Requests(fn); picked != want || counted != want {
			t.Errorf("%s: picked by %+v, counted as %+v, want %+v", name, picked, counted, want)
		}
	}
}
