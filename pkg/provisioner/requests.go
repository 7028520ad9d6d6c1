package provisioner

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// Requests is what an instance of a function requests of its node, with an agent that
// requests that much. Nodes are picked and pods are counted by this one sum.
func Requests(fn *v1alpha1.Function, agent placement.Amount) placement.Amount {
	return agent.Plus(AmountOf(fn.Spec.Template.Resources.Requests))
}

// AmountOf is what a list says of CPU, memory, local storage and extended resources.
func AmountOf(list corev1.ResourceList) placement.Amount {
	// Most lists have no more than the first two, and each function is asked in each tick.
	others := len(list)
	var amount placement.Amount
	if cpu, there := list[corev1.ResourceCPU]; there {
		amount.MilliCPU = cpu.MilliValue()
		others--
	}
	if memory, there := list[corev1.ResourceMemory]; there {
		amount.Memory = memory.Value()
		others--
	}
	if others > 0 {
		amount.Further = furtherOf(list)
	}
	return amount
}

func furtherOf(list corev1.ResourceList) placement.Further {
	further := make(map[string]int64)
	for name, q := range list {
		if name == corev1.ResourceEphemeralStorage || v1alpha1.IsExtended(name) {
			further[string(name)] = q.Value()
		}
	}
	return placement.FurtherOf(further)
}
