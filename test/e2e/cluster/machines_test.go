package cluster_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// These take a node away that others may use.
var _ = Describe("A node", Serial, func() {
	It("is drained without a failed call", func(ctx SpecContext) {
		directly()
		t := newTenant(ctx)
		t.deploy(httpd("steady", func(s *v1alpha1.FunctionSpec) { s.Scaling.MinInstances = 3 }))
		Eventually(t.created("steady"), soon).Should(Equal(3), t.explain("steady"))
		load := t.startLoad("steady", "/sleep?ms=200", 4)
		Eventually(load.answered, soon).Should(BeNumerically(">", 10))
		node := t.living("steady")[0].Spec.NodeName
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "uncordon", node) })
		// A member of an etcd without persistence does not come back from this.
		kubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s",
			"--pod-selector", "app.kubernetes.io/component in (function,gateway,scheduler,controller)")
		for _, pod := range t.pods("steady") {
			Expect(pod.Spec.NodeName).NotTo(Equal(node), t.explain("steady")())
		}
		answered := load.answered()
		Eventually(load.answered, soon).Should(BeNumerically(">", answered+20), t.explain("steady"))
		result := load.stop()
		Expect(result.Failed).To(BeZero(), result.String())
		Eventually(t.created("steady"), soon).Should(BeNumerically(">=", 3), t.explain("steady"))
	})

	It("that loses its power takes the calls that ran there, and no others for long, and comes back", func(ctx SpecContext) {
		ownMachines()
		t := newTenant(ctx)
		t.deploy(httpd("mobile", func(s *v1alpha1.FunctionSpec) { s.Scaling.MinInstances = 3 }))
		Eventually(t.created("mobile"), soon).Should(Equal(3), t.explain("mobile"))
		load := t.startLoad("mobile", "/sleep?ms=500", 4)
		Eventually(load.answered, soon).Should(BeNumerically(">", 10))
		node := t.living("mobile")[0].Spec.NodeName
		here := nodesOf(t.living("mobile"))[node]
		GinkgoWriter.Printf("stopping %s, which has %d of the function's pods and of the release: %v\n", node, here, namesOf(onNode(ctx, node)))
		stopped := time.Now()
		stopNode(ctx, node)

		// A gateway may have died with it: then calls on connections to it get no
		// answer, and new connections another gateway.
		Eventually(func() int {
			a, err := t.tryCall(ctx, "mobile", "/")
			if err != nil {
				return 0
			}
			return a.status
		}, "20s").Should(Equal(200), t.explain("mobile"))
		GinkgoWriter.Printf("a new call was answered after %v\n", time.Since(stopped))
		Eventually(func() []string { return t.events("mobile") }, later).Should(ContainElement(HavePrefix(v1alpha1.ReasonNodeLost+": ")), t.explain("mobile"))
		answered := load.answered()
		Eventually(load.answered, soon).Should(BeNumerically(">", answered+20), t.explain("mobile"))

		result := load.stop()
		GinkgoWriter.Println(result)
		for _, f := range result.Failures {
			if f.err != nil {
				continue // its gateway died
			}
			Expect(f.answer.status).To(BeElementOf(http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout), f.String())
			Expect(f.answer.executed()).To(BeElementOf("maybe", "no"), f.String())
		}
		Expect(result.Repeated).To(BeZero(), result.String())
		Eventually(t.created("mobile"), later).Should(BeNumerically(">=", 3), t.explain("mobile"))

		By("coming back")
		startNode(ctx, node)
		Eventually(func() []string { return namesOf(t.pods("mobile")) }, "60s").Should(HaveEach(Not(BeEmpty())))
		Expect(t.call("mobile", "/").status).To(Equal(200))
		step("waiting for the release's pods on "+node, func() {
			kubectl(ctx, "-n", releaseNamespace, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=90s")
		})
	})
})
