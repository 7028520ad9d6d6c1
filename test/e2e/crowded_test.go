package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/local"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var _ = Describe("A full machine", func() {
	const room = 4
	// narrow has room for so many instances that request a core each.
	narrow := func(c *local.Config) {
		c.Capacity = placement.Amount{MilliCPU: room*1000 + 500, Memory: 1 << 40}
	}

	for name, filled := range map[string]bool{"that is empty": false, "that is full of other functions' idle instances": true} {
		It("answers three times as many functions at once as it has room for, on a machine "+name, func() {
			w := start(narrow)
			core := resource.MustParse("1")
			call := func(prefix string, functions int) (refused int64) {
				var not atomic.Int64
				var calls sync.WaitGroup
				for i := range functions {
					w.probe(fmt.Sprint(prefix, i), func(s *v1alpha1.FunctionSpec) {
						s.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: core}
					})
				}
				for i := range functions {
					calls.Go(func() {
						defer GinkgoRecover()
						a := w.get(fmt.Sprintf("/function/%s%d/work?ms=200&call=%s%d", prefix, i, prefix, i))
						if a.StatusCode != 200 {
							GinkgoWriter.Printf("%s%d: %d %s\n", prefix, i, a.StatusCode, a.body)
							not.Add(1)
						}
					})
				}
				calls.Wait()
				return not.Load()
			}
			if filled {
				Expect(call("before", room)).To(BeZero(), "refused before it was full")
			}
			refused := call("crowd", 3*room)
			GinkgoWriter.Printf("functions=%d room=%d refused=%d\n", 3*room, room, refused)
			Expect(refused).To(BeZero())
		})
	}
})
