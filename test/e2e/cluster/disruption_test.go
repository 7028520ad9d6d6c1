package cluster_test

import (
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// all is how long twenty instances may take to start.
const all = "3m"

// guard makes a PodDisruptionBudget over the pods of a function, by the selector in its
// status, and returns what it says: "allowed of healthy of expected".
func (t *tenant) guard(name string, maxUnavailable int) func() string {
	GinkgoHelper()
	selector, err := metav1.ParseToLabelSelector(t.status(name).Selector)
	Expect(err).NotTo(HaveOccurred())
	most := intstr.FromInt(maxUnavailable)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: &most},
	}
	Expect(world.api.Create(t.ctx, budget)).To(Succeed())
	return func() string {
		Expect(world.api.Get(t.ctx, client.ObjectKeyFromObject(budget), budget)).To(Succeed())
		s := budget.Status
		return fmt.Sprintf("%d of %d of %d", s.DisruptionsAllowed, s.CurrentHealthy, s.ExpectedPods)
	}
}

// evict asks for pods to be evicted at the same time, and counts those that were, and
// those that the budget protects.
func (t *tenant) evict(pods ...corev1.Pod) (evicted, refused int) {
	GinkgoHelper()
	errs := make([]error, len(pods))
	var asked sync.WaitGroup
	for i := range pods {
		asked.Go(func() { errs[i] = world.api.SubResource("eviction").Create(t.ctx, &pods[i], &policyv1.Eviction{}) })
	}
	asked.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
			evicted++
		case apierrors.IsTooManyRequests(err):
			refused++
		default:
			Expect(err).NotTo(HaveOccurred())
		}
	}
	return evicted, refused
}

var _ = Describe("A PodDisruptionBudget with maxUnavailable", Serial, func() {
	It("lets one of twenty instances go at a time, follows those that calls bring, and holds up nobody at none", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("guarded", func(s *v1alpha1.FunctionSpec) {
			s.Scaling.MinInstances, s.Scaling.MaxInstances = 20, new(int32(20))
			s.Scaling.ScaleDown = v1alpha1.ScaleDown{IdleTimeout: duration(3), LastInstanceIdleTimeout: duration(3)}
		}))
		budget := t.guard("guarded", 1)
		Eventually(budget, all).Should(Equal("1 of 20 of 20"), t.explain("guarded"))

		By("evicting two at once")
		load := t.startLoad("guarded", "/sleep?ms=50", 4)
		evicted, refused := t.evict(t.living("guarded")[:2]...)
		Expect([]int{evicted, refused}).To(Equal([]int{1, 1}))
		Eventually(budget, all).Should(Equal("1 of 20 of 20"), t.explain("guarded"))
		result := load.stop()
		Expect(result.Failed).To(BeZero(), result.String())

		By("having none that is kept")
		t.change("guarded", func(s *v1alpha1.FunctionSpec) { s.Scaling.MinInstances = 0 })
		Eventually(budget, later).Should(Equal("0 of 0 of 0"), t.explain("guarded"))

		By("having as many as the calls need")
		t.change("guarded", func(s *v1alpha1.FunctionSpec) { s.Scaling.ScaleDown.IdleTimeout = duration(60) })
		burst := t.startLoad("guarded", "/sleep?ms=2000", 10)
		Eventually(func() int { return len(t.living("guarded")) }, soon).Should(BeNumerically(">=", 5), t.explain("guarded"))
		Expect(burst.stop().Failed).To(BeZero())
		differs := func() string {
			n := len(t.living("guarded"))
			if says, want := budget(), fmt.Sprintf("1 of %d of %d", n, n); says != want {
				return fmt.Sprintf("%s, want %s", says, want)
			}
			return ""
		}
		Eventually(differs, "30s").Should(BeEmpty(), t.explain("guarded"))
		Consistently(differs, "2s").Should(BeEmpty(), t.explain("guarded"))

		By("having one left")
		t.change("guarded", func(s *v1alpha1.FunctionSpec) {
			s.Scaling.ScaleDown = v1alpha1.ScaleDown{IdleTimeout: duration(3), LastInstanceIdleTimeout: duration(600)}
		})
		Eventually(budget, later).Should(Equal("1 of 1 of 1"), t.explain("guarded"))
		evicted, _ = t.evict(t.living("guarded")...)
		Expect(evicted).To(Equal(1))
		Eventually(budget, later).Should(Equal("0 of 0 of 0"), t.explain("guarded"))
		a := t.call("guarded", "/version")
		Expect(a.status).To(Equal(200), a.String())
	})
})

var _ = Describe("Scaling by others", Serial, func() {
	It("is for a HorizontalPodAutoscaler, which sets minInstances, and leaves a function alone that keeps none", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("scaled", func(s *v1alpha1.FunctionSpec) {
			s.Scaling.MinInstances = 1
			s.Scaling.ScaleDown = v1alpha1.ScaleDown{IdleTimeout: duration(3), LastInstanceIdleTimeout: duration(3)}
		}))
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "scaled"}}
		scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFunction, Name: "scaled"}
		scaler.Spec.MinReplicas, scaler.Spec.MaxReplicas = new(int32(3)), 20
		Expect(world.api.Create(ctx, scaler)).To(Succeed())
		wanted := func() int32 { return t.get("scaled").Spec.Scaling.MinInstances }
		active := func() string {
			Expect(world.api.Get(ctx, client.ObjectKeyFromObject(scaler), scaler)).To(Succeed())
			for _, c := range scaler.Status.Conditions {
				if c.Type == autoscalingv2.ScalingActive {
					return string(c.Status) + " " + c.Reason
				}
			}
			return ""
		}
		Eventually(wanted, later).Should(BeEquivalentTo(3), t.explain("scaled"))
		Eventually(t.created("scaled"), later).Should(Equal(3), t.explain("scaled"))

		By("wanting more than it allows")
		t.kubectl("scale", "function/scaled", "--replicas=30")
		Eventually(wanted, later).Should(BeEquivalentTo(20), t.explain("scaled"))
		Eventually(t.created("scaled"), all).Should(Equal(20), t.explain("scaled"))
		Eventually(func() int32 { active(); return scaler.Status.CurrentReplicas }, later).Should(BeEquivalentTo(20))

		By("keeping none")
		t.kubectl("scale", "function/scaled", "--replicas=0")
		Eventually(active, later).Should(Equal("False ScalingDisabled"))
		enough := "20s" // An autoscaler looks every 15 s, and that of a cluster of our own every 2 s.
		if own != nil {
			enough = "6s"
		}
		Consistently(wanted, enough, "1s").Should(BeZero(), "an autoscaler leaves it alone")
	})

	It("is for those with the role edit in the namespace", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.apply(httpd("scaled"))
		t.kubectl("create", "serviceaccount", "editor")
		as := func(args ...string) error {
			_, err := tryKubectl(ctx, append([]string{"-n", t.namespace, "--as=system:serviceaccount:" + t.namespace + ":editor"}, args...)...)
			return err
		}
		Expect(as("scale", "function/scaled", "--replicas=2")).To(MatchError(ContainSubstring("forbidden")))
		t.kubectl("create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount="+t.namespace+":editor")
		Eventually(func() error { return as("scale", "function/scaled", "--replicas=2") }, soon).Should(Succeed())
		Expect(t.get("scaled").Spec.Scaling.MinInstances).To(BeEquivalentTo(2))
		Expect(as("patch", "functionrevision/scaled-00001", "--type=merge", "--patch", `{"spec":{"instances":9}}`)).To(MatchError(ContainSubstring("forbidden")))
	})
})
