package cluster_test

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// expectRefusal calls a function whose instances do not start, and wants to be
// told why within ten seconds.
func (t *tenant) expectRefusal(name string, words ...string) {
	GinkgoHelper()
	a := t.call(name, "/")
	Expect(a.status).To(Equal(http.StatusServiceUnavailable), a.String())
	Expect(a.executed()).To(Equal("no"), a.String())
	Expect(a.duration).To(BeNumerically("<", 10*time.Second), a.String())
	for _, w := range words {
		Expect(a.body).To(ContainSubstring(w), a.String())
	}
}

// expectReported wants a condition and an Event that tell why a function is not
// ready.
func (t *tenant) expectReported(name, reason string, words ...string) {
	GinkgoHelper()
	Eventually(t.ready(name), soon).Should(Equal("False "+reason), t.explain(name))
	for _, w := range words {
		Expect(t.condition(name, v1alpha1.ConditionReady).Message).To(ContainSubstring(w))
	}
	Eventually(func() []string { return t.events(name) }, soon).Should(ContainElement(HavePrefix(reason+": ")), t.explain(name))
}

// neighbour is a function whose calls must not suffer from what else its spec does.
func (t *tenant) neighbour() {
	GinkgoHelper()
	t.warm(httpd("neighbour"))
	load := t.startLoad("neighbour", "/sleep?ms=20", 1)
	DeferCleanup(func() {
		result := load.stop()
		Expect(result.Failed).To(BeZero(), "calls of another function: %s", result)
		Expect(result.Longest).To(BeNumerically("<", 3*time.Second), "calls of another function: %s", result)
	})
}

var _ = Describe("A mistake", func() {
	It("in the image's name is told to the caller within 10 s, and is repaired by a correct one", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.neighbour()
		wrong := shared.Registry + "/no-such-image:e2e"
		t.apply(httpd("typo", func(s *v1alpha1.FunctionSpec) { s.Template.Image = wrong }))
		t.waitRouted("typo")
		t.expectRefusal("typo", wrong)
		t.expectReported("typo", v1alpha1.ReasonImagePullFailed, wrong)

		t.change("typo", func(s *v1alpha1.FunctionSpec) { s.Template.Image = image("test-functions") })
		Eventually(func() int { return t.call("typo", "/").status }, soon).Should(Equal(200), t.explain("typo"))
		Eventually(t.ready("typo"), soon).Should(Equal("True "+v1alpha1.ReasonStarted), t.explain("typo"))
	})

	It("of a quota without pods is told as such", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.neighbour()
		full := newTenant(ctx)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: full.namespace, Name: "none"}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		Expect(world.api.Create(ctx, quota)).To(Succeed())
		Eventually(func() string {
			return full.kubectl("get", "resourcequota", "none", "-o", "jsonpath={.status.hard.pods}")
		}, soon).Should(Equal("0"))
		full.deploy(httpd("unlucky"))
		full.expectRefusal("unlucky", "quota")
		full.expectReported("unlucky", v1alpha1.ReasonQuotaExceeded, "none")

		full.kubectl("delete", "resourcequota", "none")
		Eventually(func() int { return full.call("unlucky", "/").status }, later).Should(Equal(200), full.explain("unlucky"))
	})

	It("of using more memory than the limit fails that call only, and is reported", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.neighbour()
		t.warm(httpd("hungry", func(s *v1alpha1.FunctionSpec) {
			s.Template.Resources = v1alpha1.Resources{Requests: amount("10m", "16Mi")}
			limit := resource.MustParse("48Mi")
			s.Template.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: limit}
		}))
		a := t.call("hungry", "/alloc?mb=200")
		Expect(a.status).To(Equal(http.StatusBadGateway), a.String())
		Expect(a.executed()).To(Equal("maybe"), a.String())
		Eventually(func() []string { return t.events("hungry") }, soon).Should(ContainElement(SatisfyAll(
			HavePrefix(v1alpha1.ReasonOutOfMemory+": "), ContainSubstring("48Mi"))), t.explain("hungry"))
		Eventually(func() int { return t.call("hungry", "/").status }, soon).Should(Equal(200), t.explain("hungry"))
	})

	It("of a program that ends at its start is told with its last words", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.neighbour()
		t.deploy(httpd("crash", func(s *v1alpha1.FunctionSpec) { s.Template.Args = []string{"crash"} }))
		t.expectRefusal("crash", "status 3", "cannot find my configuration")
		t.expectReported("crash", v1alpha1.ReasonFunctionExited, "cannot find my configuration")
	})

	It("of a Secret that is missing is told with its name, and is repaired by the Secret", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.neighbour()
		t.deploy(httpd("needy", func(s *v1alpha1.FunctionSpec) {
			s.Template.EnvFrom = []v1alpha1.EnvFromSource{{SecretRef: &v1alpha1.EnvFromReference{Name: "password"}}}
		}))
		t.expectRefusal("needy", `password`)
		t.expectReported("needy", v1alpha1.ReasonConfigMissing, "password")

		t.kubectl("create", "secret", "generic", "password", "--from-literal=GREETING=open")
		Eventually(func() string { return strings.TrimSpace(t.call("needy", "/env?name=GREETING").body) }, later).
			Should(Equal("open"), t.explain("needy"))
	})
})
