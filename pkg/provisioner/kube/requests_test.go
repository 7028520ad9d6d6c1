package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

func TestNodesArePickedByWhatPodsAreCountedAs(t *testing.T) {
	agent := placement.Amount{MilliCPU: 10, Memory: 32 << 20, Pods: 1}
	for name, c := range map[string]struct {
		requests corev1.ResourceList
		want     placement.Amount
	}{
		"both": {corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("100Mi")}, placement.Amount{MilliCPU: 260, Memory: 132 << 20, Pods: 1}},
		"none": {nil, agent},
	} {
		fn := &v1alpha1.Function{}
		fn.Spec.Template.Resources.Requests = c.requests
		r := &Driver{agent: agent}
		p := provisioner.New(provisioner.Config{AgentRequests: agent}, provisioner.Deps{})
		if picked, counted := p.Requests(fn), r.Requests(fn); picked != c.want || counted != c.want {
			t.Errorf("%s: picked by %+v, counted as %+v, want %+v", name, picked, counted, c.want)
		}
	}
}

// Where Windlass itself runs the functions, nobody knows what further resources there are.
func TestFurtherResourcesCountOnNodesAlone(t *testing.T) {
	fn := &v1alpha1.Function{}
	fn.Spec.Template.Resources.Requests = corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("2")}
	if got, want := (&Driver{}).Requests(fn), (placement.Amount{Scalars: placement.ScalarsOf(map[string]int64{"nvidia.com/gpu": 2, "ephemeral-storage": 1 << 30})}); got != want {
		t.Errorf("on nodes it requests %+v, want %+v", got, want)
	}
	if got := provisioner.New(provisioner.Config{}, provisioner.Deps{}).Requests(fn); got != (placement.Amount{}) {
		t.Errorf("in local mode it requests %+v", got)
	}
}
