package provisioner

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// Requests is what an instance of a function requests of its node, with an agent that
// requests that much. Nodes are picked and pods are counted by this one sum.
func Requests(fn *v1alpha1.Function, agent nodepick.Amount) nodepick.Amount {
	if cpu := fn.Spec.Template.Resources.Requests.CPU; cpu != nil {
		agent.MilliCPU += cpu.MilliValue()
	}
	if memory := fn.Spec.Template.Resources.Requests.Memory; memory != nil {
		agent.Memory += memory.Value()
	}
	return agent
}
