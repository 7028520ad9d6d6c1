package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// spares are the pods of a Runtime's warm pool in the namespace.
func (t *tenant) spares(runtime string) []corev1.Pod {
	GinkgoHelper()
	return listPods(t.ctx, t.namespace, client.MatchingLabels{
		wellknown.LabelRuntime: runtime, wellknown.LabelComponent: wellknown.ComponentSpare,
	})
}

// readySpares is how many spare instances of a Runtime can be taken in the namespace,
// as all schedulers together say.
func (t *tenant) readySpares(runtime string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		total := 0
		for _, pod := range listPods(ctx, releaseNamespace, client.MatchingLabels{"app.kubernetes.io/component": "scheduler"}) {
			metrics, err := tryKubectl(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8081/proxy/metrics", releaseNamespace, pod.Name))
			if err != nil {
				return 0, err
			}
			prefix := fmt.Sprintf("windlass_scheduler_spare_instances{function_namespace=%q,pool=\"small\",runtime=%q,state=\"ready\"} ", t.namespace, runtime)
			for line := range strings.Lines(metrics) {
				if value, found := strings.CutPrefix(strings.TrimSpace(line), prefix); found {
					n, err := strconv.Atoi(value)
					if err != nil {
						return 0, err
					}
					total += n
				}
			}
		}
		return total, nil
	}
}

// waitFull waits until a pool of that size is full, and stays so: the shares of the
// schedulers change with the functions.
func (t *tenant) waitFull(runtime v1alpha1.RuntimeName, size int) {
	GinkgoHelper()
	Eventually(t.readySpares(string(runtime)), soon, "200ms").MustPassRepeatedly(8).WithContext(t.ctx).Should(Equal(size))
}

// uids are those of pods.
func uids(pods []corev1.Pod) (list []types.UID) {
	for _, pod := range pods {
		list = append(list, pod.UID)
	}
	return list
}

// warmPool makes a Runtime of the tenant's own with so many spare instances in its
// namespace, and a pool for all others, before it. Nothing is left of it after the spec.
func (t *tenant) warmPool(ctx context.Context, language string, size int32) v1alpha1.RuntimeName {
	GinkgoHelper()
	rt := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "warm-" + t.namespace}}
	extension := map[string]string{"python3.13": "py", "nodejs22.x": "js"}[language]
	rt.Spec = v1alpha1.ClusterRuntimeSpec{Image: image("runtime-" + language), FileExtension: extension}
	here := &v1alpha1.NamespaceSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: t.namespace}}
	elsewhere := &v1alpha1.NamespaceSelector{MatchExpressions: []v1alpha1.NamespaceRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{t.namespace}}}}
	requests := v1alpha1.Resources{Requests: amount("10m", "32Mi")}
	rt.Spec.WarmPools = []v1alpha1.WarmPool{
		{Name: "elsewhere", Size: size, Resources: requests, NamespaceSelector: elsewhere},
		{Name: "small", Size: size, Resources: requests, NamespaceSelector: here},
	}
	Expect(world.api.Create(ctx, rt)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(world.api.Delete(ctx, rt))).To(Succeed()) })
	return v1alpha1.RuntimeName(rt.Name)
}

// unproven is a function of which nothing starts before its first call.
func unproven(fn *v1alpha1.Function) *v1alpha1.Function {
	fn.Spec.Rollout.Verify = v1alpha1.VerifyNone
	return fn
}

var _ = Describe("A warm pool", func() {
	It("serves the first call of a function from a pod that was there, and no other function from that", func(ctx SpecContext) {
		t := newTenant(ctx)
		// One for each of the three schedulers, whichever of them owns the functions.
		runtime := t.warmPool(ctx, "python3.13", 3)
		t.deploy(unproven(handler("first", runtime, v1alpha1.Code{Inline: python})))
		t.waitFull(runtime, 3)
		// The pool for other namespaces comes first, and has nothing here.
		Expect(t.kubectl("get", "pods", "-L", wellknown.LabelRuntime+","+wellknown.LabelPool)).To(And(
			MatchRegexp(`-spare-\S+ .* %s +small\n`, runtime), Not(ContainSubstring(" elsewhere\n"))))
		spares := uids(t.spares(string(runtime)))
		Expect(spares).To(HaveLen(3))
		t.kubectl("wait", "--for=condition=WarmPoolsReady", "--timeout=1m", "clusterruntime/"+string(runtime))
		Expect(t.kubectl("get", "clusterruntime", string(runtime))).To(MatchRegexp(`%s +True +Started .* 3 +\S+\n`, runtime))
		Expect(t.kubectl("get", "clusterruntime", string(runtime), "-o", "jsonpath={.status.warmPools}")).To(MatchJSON(
			`[{"name": "elsewhere", "ready": 0, "desired": 0}, {"name": "small", "ready": 3, "desired": 3}]`))

		a := t.post("first", "/", `{"name": "Ada"}`)
		Expect(a.status).To(Equal(200), a.String()+"\n"+t.explain("first")())
		Expect(a.body).To(MatchJSON(`{"greeting": "hello Ada from python"}`))
		say("the first call was answered after %v, by a spare instance", a.duration.Round(time.Millisecond))
		pods := t.pods("first")
		Expect(pods).To(HaveLen(1))
		Expect(spares).To(ContainElement(pods[0].UID))
		Expect(pods[0].OwnerReferences).To(HaveLen(1))
		Expect(pods[0].OwnerReferences[0].Kind).To(Equal(v1alpha1.KindFunctionRevision))
		Expect(pods[0].Labels).To(HaveKeyWithValue(wellknown.LabelComponent, wellknown.ComponentFunction))

		// The next function cannot get that one, but another.
		t.deploy(unproven(handler("second", runtime, v1alpha1.Code{Inline: strings.ReplaceAll(python, "hello", "good day")})))
		t.waitFull(runtime, 3)
		next := uids(t.spares(string(runtime)))
		Expect(next).To(HaveLen(3))
		Expect(next).NotTo(ContainElement(pods[0].UID))
		b := t.post("second", "/", `{"name": "Ada"}`)
		Expect(b.body).To(MatchJSON(`{"greeting": "good day Ada from python"}`), b.String())
		Expect(next).To(ContainElement(t.pods("second")[0].UID))
		c := t.post("first", "/", `{"name": "Ada"}`)
		Expect(c.body).To(MatchJSON(`{"greeting": "hello Ada from python"}`), c.String())

		By("going with the last function that could use it")
		t.delete("second")
		t.delete("first")
		Eventually(func() []corev1.Pod { return t.spares(string(runtime)) }, soon).Should(BeEmpty())
	})

	It("is measured against pods", func(ctx SpecContext) {
		t := newTenant(ctx)
		runtimes := map[string]v1alpha1.RuntimeName{"pods": "python3.13", "spare instances": t.warmPool(ctx, "python3.13", 3)}
		median := make(map[string]time.Duration)
		for what, runtime := range runtimes {
			var took []time.Duration
			for i := range repeats(9, 3) {
				name := fmt.Sprintf("f%d-%s", i, strings.Fields(what)[0])
				t.deploy(unproven(handler(name, runtime, v1alpha1.Code{Inline: python})))
				if what == "spare instances" {
					t.waitFull(runtime, 3)
				}
				a := t.post(name, "/", `{"name": "Ada"}`)
				Expect(a.status).To(Equal(200), a.String()+"\n"+t.explain(name)())
				took = append(took, a.duration)
				_, wasSpare := t.pods(name)[0].Labels[wellknown.LabelPool]
				Expect(wasSpare).To(Equal(what == "spare instances"))
			}
			slices.Sort(took)
			median[what] = took[len(took)/2]
			say("first calls from %s: p50 %v of %v", what, median[what].Round(time.Millisecond), took)
		}
		say("first calls: p50 %v from spare instances, %v from pods", median["spare instances"].Round(time.Millisecond), median["pods"].Round(time.Millisecond))
	})

	It("gives a function that does not load the blame, and not the next one", func(ctx SpecContext) {
		t := newTenant(ctx)
		runtime := t.warmPool(ctx, "nodejs22.x", 3)
		t.deploy(unproven(handler("broken", runtime, v1alpha1.Code{Inline: "require('no-such-module')"})))
		t.waitFull(runtime, 3)
		a := t.post("broken", "/", `{}`)
		Expect(a.status).To(Equal(503), a.String())
		Expect(a.body).To(ContainSubstring("no-such-module"))
		t.deploy(handler("works", runtime, v1alpha1.Code{Inline: nodejs}))
		t.waitFull(runtime, 3)
		t.expectGreeting("works", "nodejs")
	})
})
