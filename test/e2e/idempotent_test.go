package e2e

import (
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

var _ = Describe("An idempotent function", func() {
	idempotent := func(spec *v1alpha1.FunctionSpec) { spec.Calls.Delivery = v1alpha1.DeliveryAtLeastOnce }

	It("is called as it was asked to, with small and large bodies", func() {
		w := start()
		w.probe("echo", idempotent)
		for _, size := range []int{0, 5, 3 << 20} {
			body := strings.Repeat("x", size)
			a := w.do("PATCH", "/function/echo/echo?x=1", strings.NewReader(body), "X-Custom", "yes")
			Expect(a.StatusCode).To(Equal(200))
			Expect(a.body == body).To(BeTrue(), "%d bytes came back as they were sent", size)
			Expect(a.executed()).To(Equal("yes"))
			Expect(a.Header.Get("Echo-Method")).To(Equal("PATCH"))
			Expect(a.Header.Get("Echo-Uri")).To(Equal("/echo?x=1"))
			Expect(a.Header.Get("Echo-X-Custom")).To(Equal("yes"))
			Expect(a.Header.Get("Echo-Windlass-Invocation-Id")).To(Equal(a.Header.Get("Windlass-Invocation-Id")))
		}
	})

	It("runs each call of a crowd, one at a time in an instance", func() {
		w := start(roomy)
		w.probe("work", idempotent)
		const clients, calls = 8, 20
		var callers sync.WaitGroup
		failed := make(chan string, clients*calls)
		for client := range clients {
			callers.Go(func() {
				for call := range calls {
					a := w.get(fmt.Sprintf("/function/work/work?ms=2&call=%d-%d", client, call))
					if a.StatusCode != 200 {
						failed <- fmt.Sprint(a.StatusCode, " ", a.body)
					}
				}
			})
		}
		callers.Wait()
		Expect(failed).To(BeEmpty())
		expectOneAtATime(w.runs())
	})
})
