package podspec_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// An instance is a pod of two containers, whose name is the same each time that it is made.
func Example() {
	f := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "7f3b8a52-0c5d-4b0e-9f3a-0d5f9e2c1a11"}}
	f.Spec.Template.Image = "example.com/cart:1"
	v1alpha1.Default(f)
	pod, err := podspec.Pod(podspec.Input{
		Config: podspec.Config{
			AgentImage: "example.com/podagent:1", AgentRequests: placement.Amount{MilliCPU: 10, Memory: 32 << 20, Pods: 1},
			AgentMemoryLimit: 256 << 20, SchedulerAddr: "windlass-scheduler:9443", CA: "ca", TLSDomain: "windlass.windlass",
		},
		Function: f, CID: invocation.Term{Epoch: 7}.CID(1), Node: "node-1",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(pod.Namespace, pod.Name, "on", pod.Spec.NodeName)
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		fmt.Println(c.Name, c.Image, "user", *c.SecurityContext.RunAsUser)
	}
	// Output:
	// shop cart-00000007-000001 on node-1
	// agent example.com/podagent:1 user 65533
	// function example.com/cart:1 user 65532
}
