package cluster_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// contendersOf makes so many functions and calls each of them once, all at the same time. It
// returns how many were answered, and what was said to the others.
func (t *tenant) contendersOf(prefix string, functions int, cpu resource.Quantity) (answered int, others []string) {
	GinkgoHelper()
	contenders := make([]*v1alpha1.Function, functions)
	for i := range contenders {
		contenders[i] = httpd(fmt.Sprint(prefix, i), func(s *v1alpha1.FunctionSpec) {
			s.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu}
		})
	}
	t.deploy(contenders...)
	var mu sync.Mutex
	var calls sync.WaitGroup
	for i := range functions {
		calls.Go(func() {
			a, err := t.tryCall(t.ctx, fmt.Sprint(prefix, i), "/")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				others = append(others, err.Error())
			case a.status != 200:
				others = append(others, a.String())
			default:
				answered++
			}
		})
	}
	calls.Wait()
	return answered, others
}

// It takes all room that the nodes have.
var _ = Describe("A full cluster", Serial, func() {
	It("refuses none of three times as many functions as it has room for, full of other functions' idle instances", func(ctx SpecContext) {
		var nodes corev1.NodeList
		Expect(world.api.List(ctx, &nodes)).To(Succeed())
		smallest, open := int64(0), 0
		for _, n := range nodes.Items {
			if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 {
				continue
			}
			open++
			if cpu := n.Status.Allocatable.Cpu().MilliValue(); smallest == 0 || cpu < smallest {
				smallest = cpu
			}
		}
		Expect(open).To(BeNumerically(">", 0), "no node takes functions")
		// An instance takes a quarter of the smallest node, so that there is room for
		// at most as many as fit on empty nodes.
		cpu := *resource.NewMilliQuantity(smallest/4, resource.DecimalSI)
		room := 0
		for _, n := range nodes.Items {
			if !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 {
				room += int(n.Status.Allocatable.Cpu().MilliValue() / cpu.MilliValue())
			}
		}
		t := newTenant(ctx)
		began := time.Now()
		answered, others := t.contendersOf("before", room, cpu)
		Expect(others).To(BeEmpty(), "when the nodes were filled, %d were answered", answered)
		answered, others = t.contendersOf("crowd", 3*room, cpu)
		GinkgoWriter.Printf("functions=%d answered=%d refused=%d in %v\n", 3*room, answered, len(others), time.Since(began).Round(time.Second))
		Expect(others).To(BeEmpty())
	})
})

// It gives a node a device that no other has, as administrators do for devices without a
// plugin.
var _ = Describe("A device", Serial, func() {
	It("is given to an instance on the node that has it, and to no more than there are", func(ctx SpecContext) {
		const device = "e2e.windlass.example/device"
		var nodes corev1.NodeList
		Expect(world.api.List(ctx, &nodes)).To(Succeed())
		open := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 })
		Expect(open).To(BeNumerically(">=", 0), "no node takes functions")
		node := &nodes.Items[open]
		patch := func(op string) client.Patch {
			text := ""
			for i, list := range []string{"capacity", "allocatable"} {
				text += fmt.Sprintf(`%s{"op": %q, "path": "/status/%s/e2e.windlass.example~1device", "value": "1"}`, []string{"", ", "}[i], op, list)
			}
			return client.RawPatch(types.JSONPatchType, []byte("["+text+"]"))
		}
		Expect(world.api.Status().Patch(ctx, node, patch("add"))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(world.api.Status().Patch(ctx, node, patch("remove"))).To(Succeed()) })

		t := newTenant(ctx)
		wants := func(n string) func(*v1alpha1.FunctionSpec) {
			return func(s *v1alpha1.FunctionSpec) {
				s.Template.Resources.Limits = corev1.ResourceList{device: resource.MustParse(n)}
			}
		}
		t.deploy(httpd("one", wants("1")), httpd("two", wants("2")))
		Eventually(func() int { return t.call("one", "/").status }, later).Should(Equal(200), t.explain("one"))
		for _, pod := range t.pods("one") {
			Expect(pod.Spec.NodeName).To(Equal(node.Name))
		}
		t.expectRefusal("two", "short of "+device+" (an instance requests 2)")
	})
})
