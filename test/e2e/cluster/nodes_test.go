package cluster_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// ownMachines skips a spec that stops machines where they are not ours. Such a
// spec is Serial, because others may use the machine.
func ownMachines() {
	GinkgoHelper()
	if own == nil {
		Skip("stops a machine, which this suite does to its own cluster only: unset KUBECONFIG")
	}
}

// stopNode cuts the power of a node, which comes back at the end of the spec if
// the spec does not call startNode.
func stopNode(ctx context.Context, name string) {
	GinkgoHelper()
	ownMachines()
	DeferCleanup(func(ctx SpecContext) {
		if nodeRuns(name) {
			return
		}
		startNode(ctx, name)
	})
	Expect(own.StopNode(ctx, name)).To(Succeed())
}

// startNode returns when the node is ready.
func startNode(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(own.StartNode(ctx, name)).To(Succeed())
}

func nodeRuns(name string) bool {
	for _, running := range own.Status().Running {
		if running == "node-of-"+name {
			return true
		}
	}
	return false
}

// onNode are the pods of the release on a node.
func onNode(ctx context.Context, name string) (pods []corev1.Pod) {
	GinkgoHelper()
	for _, pod := range listPods(ctx, releaseNamespace, nil) {
		if pod.Spec.NodeName == name {
			pods = append(pods, pod)
		}
	}
	return pods
}
