package cluster_test

import (
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

var _ = Describe("A function", func() {
	It("is ready soon after it is applied, answers through the gateway, and is what kubectl shows", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.apply(httpd("hello"))
		t.kubectl("wait", "--for=condition=Ready", "--timeout=20s", "function/hello")
		a := t.call("hello", "/some/path?q=1")
		Expect(a.status).To(Equal(200), a.String())
		Expect(a.executed()).To(Equal("yes"))
		Expect(a.body).To(ContainSubstring(`"path":"/some/path"`))

		By("showing it in columns")
		Eventually(func() string { return t.kubectl("get", "functions") }, soon).Should(SatisfyAll(
			MatchRegexp(`NAME +READY +REASON +REVISION +INSTANCES +AGE`),
			MatchRegexp(`hello +True +Started +hello-00001 +1 +\S+`)), t.explain("hello"))
		Expect(t.kubectl("get", "fn", "hello", "-o", "wide")).To(SatisfyAll(
			ContainSubstring(image("test-functions")), MatchRegexp(`http\S*hello\S*`+t.namespace)))

		By("explaining it")
		Expect(t.kubectl("explain", "function.spec.scaling.scaleDown.lastInstanceIdleTimeout")).To(ContainSubstring("last instance"))
		Expect(t.kubectl("explain", "function.status.conditions")).To(ContainSubstring("type"))
	})

	It("gets instances on several nodes in a burst, and all calls are answered", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("burst"))
		var calls sync.WaitGroup
		for range 30 {
			calls.Go(func() {
				defer GinkgoRecover()
				a := t.call("burst", "/sleep?ms=3000")
				Expect(a.status).To(Equal(200), a.String())
			})
		}
		// Not on every one: nodes that were lost lately are avoided.
		Eventually(func() int { return len(nodesOf(t.living("burst"))) }, soon, "100ms").Should(BeNumerically(">", 1), t.explain("burst"))
		calls.Wait()
		Eventually(t.created("burst"), soon).Should(BeNumerically(">", 3), t.explain("burst"))
	})

	It("loses its idle instances, and keeps the last", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.deploy(httpd("idle", func(s *v1alpha1.FunctionSpec) {
			s.Scaling = v1alpha1.Scaling{ScaleDown: v1alpha1.ScaleDown{IdleTimeout: duration(3), LastInstanceIdleTimeout: duration(600)}}
		}))
		load := t.startLoad("idle", "/sleep?ms=300", 8)
		Eventually(t.created("idle"), soon).Should(BeNumerically(">=", 3), t.explain("idle"))
		Expect(load.stop().Failed).To(BeZero(), load.sofar().String())
		Eventually(func() int { return len(t.pods("idle")) }, later).Should(Equal(1), t.explain("idle"))
		Consistently(func() int { return len(t.living("idle")) }, "6s").Should(Equal(1), t.explain("idle"))
		Eventually(t.created("idle"), soon).Should(Equal(1), t.explain("idle"))
		host := t.living("idle")[0].Name
		Expect(t.call("idle", "/").host()).To(Equal(host), "the kept instance answers")
	})

	It("is replaced when its spec changes, without a failed call", func(ctx SpecContext) {
		t := newTenant(ctx)
		version := func(v string) func(*v1alpha1.FunctionSpec) {
			return func(s *v1alpha1.FunctionSpec) {
				s.Template.Env = []v1alpha1.EnvVar{{Name: "VERSION", Value: v}}
				// Instances of the old revision are kept for a return for as long.
				s.Scaling.ScaleDown.IdleTimeout = v1alpha1.Duration{Duration: 3 * time.Second}
			}
		}
		t.warm(httpd("changing", version("one")))
		Expect(t.call("changing", "/version").body).To(Equal("one\n"))
		load := t.startLoad("changing", "/sleep?ms=50", 4)
		Eventually(load.answered, soon).Should(BeNumerically(">", 20))
		old := namesOf(t.pods("changing"))
		t.change("changing", version("two"))
		Eventually(func() string { return t.call("changing", "/version").body }, soon).Should(Equal("two\n"), t.explain("changing"))
		Eventually(func() []string { return namesOf(t.pods("changing")) }, later).
			ShouldNot(ContainElement(BeElementOf(old)), t.explain("changing"))
		answered := load.answered()
		Eventually(load.answered, soon).Should(BeNumerically(">", answered+20))
		result := load.stop()
		Expect(result.Failed).To(BeZero(), result.String())
		Expect(result.Repeated).To(BeZero(), result.String())
		Eventually(func() bool {
			rolling := meta.IsStatusConditionTrue(t.get("changing").Status.Conditions, v1alpha1.ConditionReconciling)
			return !rolling && t.condition("changing", v1alpha1.ConditionRevisionReady).Status == metav1.ConditionTrue
		}, soon).Should(BeTrue(), t.explain("changing"))
	})

	It("is scaled by kubectl scale, which replaces nothing", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("scaled"))
		first := namesOf(t.living("scaled"))
		t.kubectl("scale", "function/scaled", "--replicas=3")
		Expect(t.get("scaled").Spec.Scaling.MinInstances).To(BeEquivalentTo(3))
		Eventually(t.created("scaled"), later).Should(Equal(3), t.explain("scaled"))
		Expect(namesOf(t.living("scaled"))).To(ContainElements(first), t.explain("scaled"))
		Expect(t.living("scaled")).To(HaveLen(3), t.explain("scaled"))
		Expect(t.kubectl("get", "function", "scaled", "-o", "jsonpath={.status.conditions[?(@.type=='MinInstancesReady')].status}")).To(Equal("True"))
		Expect(t.call("scaled", "/").status).To(Equal(200))
	})

	It("lets its calls finish when it is deleted, refuses new ones, and leaves nothing", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("doomed"))
		load := t.startLoad("doomed", "/sleep?ms=200", 6)
		Eventually(t.created("doomed"), soon).Should(BeNumerically(">=", 2), t.explain("doomed"))
		t.delete("doomed")
		Eventually(func() int { return t.call("doomed", "/").status }, "5s", "50ms").Should(Equal(http.StatusNotFound))
		Expect(t.call("doomed", "/").executed()).To(Equal("no"))
		Eventually(func() int { return load.sofar().Failed }, soon).Should(BeNumerically(">", 0), "calls are refused")
		result := load.stop()
		for _, f := range result.Failures {
			Expect(f.err).NotTo(HaveOccurred())
			Expect(f.answer.executed()).To(Equal("no"), f.String())
			Expect(f.answer.status).To(BeElementOf(http.StatusNotFound, http.StatusServiceUnavailable), f.String())
		}
		Eventually(func() *v1alpha1.Function { return t.get("doomed") }, later).Should(BeNil(), t.explain("doomed"))
		Eventually(func() []string { return namesOf(t.pods("doomed")) }, soon).Should(BeEmpty())
	})

	It("is gone soon after its last call, though its program ignores SIGTERM", func(ctx SpecContext) {
		t := newTenant(ctx)
		// A pod has its function's timeout to end its calls.
		t.warm(httpd("stubborn", func(s *v1alpha1.FunctionSpec) {
			s.Template.Args, s.Template.Timeout = []string{"stubborn"}, duration(300)
		}))
		t.delete("stubborn")
		Eventually(func() []string { return namesOf(t.pods("stubborn")) }, soon).Should(BeEmpty())
		Eventually(func() *v1alpha1.Function { return t.get("stubborn") }, "5s").Should(BeNil(), t.explain("stubborn"))
	})

	It("is not mixed up with one of the same name in another namespace", func(ctx SpecContext) {
		greeting := func(text string) func(*v1alpha1.FunctionSpec) {
			return func(s *v1alpha1.FunctionSpec) { s.Template.Env = []v1alpha1.EnvVar{{Name: "GREETING", Value: text}} }
		}
		red, blue := newTenant(ctx), newTenant(ctx)
		red.deploy(httpd("same", greeting("red")))
		blue.deploy(httpd("same", greeting("blue")))
		var calls sync.WaitGroup
		for range 20 {
			for t, colour := range map[*tenant]string{red: "red", blue: "blue"} {
				calls.Go(func() {
					defer GinkgoRecover()
					a := t.call("same", "/")
					Expect(a.status).To(Equal(200), a.String())
					Expect(a.body).To(ContainSubstring(`"greeting":"` + colour + `"`))
				})
			}
		}
		calls.Wait()
		red.delete("same")
		Eventually(func() int { return red.call("same", "/").status }, soon).Should(Equal(http.StatusNotFound))
		Expect(blue.call("same", "/").body).To(ContainSubstring("blue"))
	})
})

// nodesOf counts pods by node.
func nodesOf(pods []corev1.Pod) map[string]int {
	count := map[string]int{}
	for _, pod := range pods {
		count[pod.Spec.NodeName]++
	}
	return count
}

func namesOf(pods []corev1.Pod) (names []string) {
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}
