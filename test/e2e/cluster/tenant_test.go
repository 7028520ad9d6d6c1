package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
)

// tenant is a namespace of a spec's own, which enforces the restricted profile.
type tenant struct {
	ctx       context.Context
	namespace string
}

// newTenant makes a namespace that goes with the spec.
func newTenant(ctx context.Context) *tenant {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(world.api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(world.api.Delete(ctx, ns))).To(Succeed())
	})
	return &tenant{ctx, ns.Name}
}

// httpd is a function that answers HTTP; the paths are in
// test/images/functions/httpd.go.
func httpd(name string, change ...func(*v1alpha1.FunctionSpec)) *v1alpha1.Function {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Name: name}}
	fn.Spec.Template.Image = image("test-functions")
	fn.Spec.Template.Args = []string{"httpd"}
	fn.Spec.Template.Resources.Requests = amount("10m", "16Mi")
	for _, c := range change {
		c(&fn.Spec)
	}
	return fn
}

// image is the reference of one of our images.
func image(name string) string { return fmt.Sprintf("%s/%s:%s", shared.Registry, name, shared.Tag) }

// apply creates a function, or gives the one of its name this spec.
func (t *tenant) apply(fn *v1alpha1.Function) {
	GinkgoHelper()
	fn = fn.DeepCopy()
	fn.Namespace = t.namespace
	err := world.api.Create(t.ctx, fn)
	if apierrors.IsAlreadyExists(err) {
		t.change(fn.Name, func(spec *v1alpha1.FunctionSpec) { *spec = fn.Spec })
		return
	}
	Expect(err).NotTo(HaveOccurred())
}

// change changes the spec of a function.
func (t *tenant) change(name string, change func(*v1alpha1.FunctionSpec)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fn := &v1alpha1.Function{}
		if err := world.api.Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, fn); err != nil {
			return err
		}
		change(&fn.Spec)
		return world.api.Update(t.ctx, fn)
	})).To(Succeed())
}

// delete asks for a function to be deleted, and does not wait.
func (t *tenant) delete(name string) {
	GinkgoHelper()
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}}
	Expect(world.api.Delete(t.ctx, fn)).To(Succeed())
}

// get returns a function, or nil if there is none.
func (t *tenant) get(name string) *v1alpha1.Function {
	GinkgoHelper()
	fn := &v1alpha1.Function{}
	err := world.api.Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, fn)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return fn
}

// status is the status of a function that must be there.
func (t *tenant) status(name string) v1alpha1.FunctionStatus {
	GinkgoHelper()
	fn := t.get(name)
	Expect(fn).NotTo(BeNil(), "there is no function %s/%s", t.namespace, name)
	return fn.Status
}

// condition is a condition of the function's present generation, or the zero value.
func (t *tenant) condition(name, kind string) metav1.Condition {
	GinkgoHelper()
	fn := t.get(name)
	Expect(fn).NotTo(BeNil(), "there is no function %s/%s", t.namespace, name)
	found := meta.FindStatusCondition(fn.Status.Conditions, kind)
	if found == nil || found.ObservedGeneration != fn.Generation {
		return metav1.Condition{}
	}
	return *found
}

// ready is the condition Ready as "True Started".
func (t *tenant) ready(name string) func() string {
	return func() string {
		c := t.condition(name, v1alpha1.ConditionReady)
		return string(c.Status) + " " + c.Reason
	}
}

// waitReady waits until a function can be called.
func (t *tenant) waitReady(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Eventually(func() metav1.ConditionStatus { return t.condition(name, v1alpha1.ConditionReady).Status }, soon, "100ms").
			Should(Equal(metav1.ConditionTrue), t.explain(name))
	}
}

// waitRouted waits until gateways know where calls of a function go. To see that it calls
// a tag that nobody has, which starts nothing.
func (t *tenant) waitRouted(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		for range 3 { // whichever gateways these meet
			Eventually(func() (string, error) {
				a, err := t.send(t.ctx, http.MethodGet, name, "/", nil, "Windlass-Tag", "no-such-tag")
				return a.body, err
			}, soon, "100ms").Should(ContainSubstring(problems.UnknownTag), t.explain(name))
		}
	}
}

// deploy applies functions and waits until they can be called, whether they start or not.
func (t *tenant) deploy(functions ...*v1alpha1.Function) {
	GinkgoHelper()
	for _, fn := range functions {
		t.apply(fn)
	}
	for _, fn := range functions {
		t.waitRouted(fn.Name)
	}
}

// warm deploys functions and calls each once, so that it has an instance.
func (t *tenant) warm(functions ...*v1alpha1.Function) {
	GinkgoHelper()
	t.deploy(functions...)
	for _, fn := range functions {
		a := t.call(fn.Name, "/version")
		Expect(a.status).To(Equal(200), a.String())
	}
}

// created is how many instances the function's status says can be called.
func (t *tenant) created(name string) func() int {
	return func() int { return int(t.status(name).Instances.Ready) }
}

// pods are a function's pods, of every revision, also those that are ending.
func (t *tenant) pods(name string) []corev1.Pod {
	GinkgoHelper()
	return listPods(t.ctx, t.namespace, client.MatchingLabels{wellknown.LabelFunction: name})
}

// living are the pods of a function that have not ended and that nobody has
// asked to end. Whether they run, a kubelet says late: ask the function's status.
func (t *tenant) living(name string) (pods []corev1.Pod) {
	GinkgoHelper()
	for _, pod := range t.pods(name) {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			pods = append(pods, pod)
		}
	}
	return pods
}

// events are the Events about a function, as "Reason: message".
func (t *tenant) events(name string) (events []string) {
	GinkgoHelper()
	var list corev1.EventList
	Expect(world.api.List(t.ctx, &list, client.InNamespace(t.namespace))).To(Succeed())
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == v1alpha1.KindFunction && e.InvolvedObject.Name == name {
			events = append(events, e.Reason+": "+e.Message)
		}
	}
	return events
}

// kubectl runs kubectl in the tenant's namespace.
func (t *tenant) kubectl(args ...string) string {
	GinkgoHelper()
	return kubectl(t.ctx, append([]string{"--namespace", t.namespace}, args...)...)
}

// explain is what a failed assertion says of a function.
func (t *tenant) explain(name string) func() string {
	return func() string {
		fn := t.get(name)
		if fn == nil {
			return fmt.Sprintf("there is no function %s/%s", t.namespace, name)
		}
		text, _ := yaml.Marshal(fn.Status)
		var out strings.Builder
		fmt.Fprintf(&out, "function %s/%s, generation %d, status:\n%s", t.namespace, name, fn.Generation, text)
		for _, pod := range t.pods(name) {
			fmt.Fprintf(&out, "pod %s on %s: %s %s ending=%v\n", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Reason, pod.DeletionTimestamp != nil)
		}
		for _, e := range t.events(name) {
			fmt.Fprintf(&out, "event %s\n", e)
		}
		return out.String()
	}
}

func listPods(ctx context.Context, namespace string, which client.MatchingLabels) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	options := []client.ListOption{client.InNamespace(namespace)}
	if which != nil {
		options = append(options, which)
	}
	Expect(world.api.List(ctx, &list, options...)).To(Succeed())
	return list.Items
}

// amount is what an instance requests or may use.
func amount(cpu, memory string) corev1.ResourceList {
	c, m := resource.MustParse(cpu), resource.MustParse(memory)
	return corev1.ResourceList{corev1.ResourceCPU: c, corev1.ResourceMemory: m}
}

// duration is n seconds, as specs have it.
func duration(n float64) v1alpha1.Duration {
	return v1alpha1.Duration{Duration: time.Duration(n * float64(time.Second))}
}
