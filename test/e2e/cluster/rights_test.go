package cluster_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// roleUser is the name by which the API server knows a part of the release.
func roleUser(part string) string {
	return "system:serviceaccount:" + releaseNamespace + ":windlass-" + part
}

// may asks whether a part of the release may do what is written as "verb
// resource[/subresource][.group] [namespace[/name]]"; without a namespace, it
// means all of them.
func may(ctx context.Context, part, what string) bool {
	GinkgoHelper()
	words := strings.Fields(what)
	resource, group, _ := strings.Cut(words[1], ".")
	resource, sub, _ := strings.Cut(resource, "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: words[0], Resource: resource, Subresource: sub, Group: group}
	if len(words) > 2 {
		attributes.Namespace, attributes.Name, _ = strings.Cut(words[2], "/")
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               roleUser(part),
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + releaseNamespace, "system:authenticated"},
		ResourceAttributes: attributes,
	}}
	Expect(world.api.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

// forbidden is what no part of the release may do anywhere.
var forbidden = []string{
	"get secrets", "list secrets", "get secrets windlass", "create secrets",
	"get configmaps", "list configmaps",
	"create pods/exec", "get pods/exec", "create pods/attach", "create pods/portforward", "get pods/log", "update pods/ephemeralcontainers",
	"update pods", "create pods/binding",
	"update nodes", "patch nodes", "delete nodes", "update nodes/status", "get nodes/proxy", "create nodes/proxy",
	"create functions.windlass.dev", "delete functions.windlass.dev",
	"create deployments.apps", "create daemonsets.apps", "create jobs.batch",
	"create serviceaccounts", "create serviceaccounts/token", "impersonate users", "impersonate serviceaccounts",
	"create namespaces", "delete namespaces",
	"create clusterroles.rbac.authorization.k8s.io", "bind clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io",
	"create rolebindings.rbac.authorization.k8s.io", "create clusterrolebindings.rbac.authorization.k8s.io",
	"update validatingadmissionpolicies.admissionregistration.k8s.io", "create mutatingwebhookconfigurations.admissionregistration.k8s.io",
	"update customresourcedefinitions.apiextensions.k8s.io",
}

var _ = Describe("The rights", func() {
	DescribeTable("are what each part needs, and no more", func(ctx SpecContext, part string, allowed, denied []string) {
		for _, what := range allowed {
			Expect(may(ctx, part, what)).To(BeTrue(), "the %s needs to %s", part, what)
		}
		for _, what := range append(denied, forbidden...) {
			Expect(may(ctx, part, what)).To(BeFalse(), "the %s does not need to %s", part, what)
		}
	},
		Entry("of the gateway", "gateway",
			[]string{
				"get functions.windlass.dev", "list functions.windlass.dev", "watch functions.windlass.dev",
				"list functionrevisions.windlass.dev", "watch functionrevisions.windlass.dev",
			},
			[]string{
				"update functions.windlass.dev", "patch functions/status.windlass.dev", "create functionrevisions.windlass.dev", "patch functionrevisions/status.windlass.dev",
				"get pods", "list pods", "create pods", "delete pods", "patch pods",
				"list nodes", "create events", "create networkpolicies.networking.k8s.io", "update leases.coordination.k8s.io windlass",
			}),
		Entry("of the scheduler", "scheduler",
			[]string{
				"get functions.windlass.dev", "list functions.windlass.dev", "watch functions.windlass.dev", "list clusterruntimes.windlass.dev", "watch clusterruntimes.windlass.dev",
				"list functionrevisions.windlass.dev", "watch functionrevisions.windlass.dev", "list pods", "watch pods", "create pods", "delete pods", "patch pods", "list nodes", "watch nodes", "list namespaces", "watch namespaces",
			},
			[]string{
				"update functions.windlass.dev", "patch functions.windlass.dev", "patch functions/status.windlass.dev", "create clusterruntimes.windlass.dev", "patch clusterruntimes/status.windlass.dev",
				"create functionrevisions.windlass.dev", "patch functionrevisions/status.windlass.dev", "delete functionrevisions.windlass.dev",
				"deletecollection pods", "update pods/status", "create events", "create networkpolicies.networking.k8s.io", "delete networkpolicies.networking.k8s.io",
			}),
		Entry("of the controller", "controller",
			[]string{
				"list functions.windlass.dev", "watch functions.windlass.dev", "update functions.windlass.dev", "patch functions/status.windlass.dev",
				"list functionrevisions.windlass.dev", "watch functionrevisions.windlass.dev", "create functionrevisions.windlass.dev", "patch functionrevisions.windlass.dev",
				"delete functionrevisions.windlass.dev", "patch functionrevisions/status.windlass.dev",
				"list pods", "watch pods", "delete pods", "create clusterruntimes.windlass.dev", "update clusterruntimes.windlass.dev", "patch clusterruntimes/status.windlass.dev",
				"create networkpolicies.networking.k8s.io", "delete networkpolicies.networking.k8s.io", "list poddisruptionbudgets.policy", "create events",
				"update leases.coordination.k8s.io windlass/windlass-controller", "list endpointslices.discovery.k8s.io windlass",
			},
			[]string{
				"create pods", "patch pods", "deletecollection pods", "delete clusterruntimes.windlass.dev", "list nodes", "update pods/status",
				"update leases.coordination.k8s.io windlass/another", "update leases.coordination.k8s.io kube-system/kube-scheduler",
				"list endpointslices.discovery.k8s.io", "delete events", "patch poddisruptionbudgets.policy",
			}),
		Entry("of etcd", "etcd", nil, []string{"get pods", "patch pods", "list functions.windlass.dev", "get endpoints"}),
	)

	It("of a scheduler make pods of functions only", func(ctx SpecContext) {
		t := newTenant(ctx)
		// Without it, it is the admission policy alone that refuses.
		kubectl(ctx, "label", "namespace", t.namespace, "pod-security.kubernetes.io/enforce-")
		t.warm(httpd("model"))
		config := rest.CopyConfig(world.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: roleUser("scheduler"), Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		scheduler, err := client.New(config, client.Options{Scheme: world.api.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		model := t.pods("model")[0]
		try := func(change func(*corev1.Pod)) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: t.namespace, Name: "forged",
				Labels: model.Labels, Annotations: model.Annotations, OwnerReferences: model.OwnerReferences,
			}, Spec: *model.Spec.DeepCopy()}
			change(pod)
			return scheduler.Create(ctx, pod, client.DryRunAll)
		}
		Expect(try(func(*corev1.Pod) {})).To(Succeed(), "a copy of what the scheduler makes")
		yes, no, root := true, false, int64(0)
		for what, change := range map[string]func(*corev1.Pod){
			"privileged": func(p *corev1.Pod) {
				p.Spec.Containers[1].SecurityContext.Privileged, p.Spec.Containers[1].SecurityContext.AllowPrivilegeEscalation = &yes, &yes
			},
			"escalating": func(p *corev1.Pod) { p.Spec.Containers[1].SecurityContext.AllowPrivilegeEscalation = &yes },
			"with a capability": func(p *corev1.Pod) {
				p.Spec.Containers[1].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
			},
			"root": func(p *corev1.Pod) { p.Spec.Containers[1].SecurityContext.RunAsUser = &root },
			"perhaps root": func(p *corev1.Pod) {
				p.Spec.SecurityContext.RunAsNonRoot, p.Spec.Containers[1].SecurityContext.RunAsNonRoot = &no, &no
			},
			"on the host network":  func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			"in the host's PIDs":   func(p *corev1.Pod) { p.Spec.HostPID = true },
			"with the host's disk": func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, hostPath("/")) },
			"with a Secret":        func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, secretVolume("any")) },
			"with a token":         func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = &yes },
			"nobody's":             func(p *corev1.Pod) { p.OwnerReferences = nil },
			"another's":            func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" },
			"without labels":       func(p *corev1.Pod) { p.Labels = nil },
			"in kube-system":       func(p *corev1.Pod) { p.Namespace = "kube-system" },
			"in the release":       func(p *corev1.Pod) { p.Namespace = releaseNamespace },
		} {
			err := try(func(p *corev1.Pod) {
				p.OwnerReferences = append([]metav1.OwnerReference(nil), p.OwnerReferences...)
				change(p)
			})
			Expect(apierrors.IsForbidden(err) || apierrors.IsInvalid(err)).To(BeTrue(), "a pod that is %s: %v", what, err)
			Expect(fmt.Sprint(err)).To(ContainSubstring("ValidatingAdmissionPolicy 'windlass-scheduler-pods'"), "a pod that is %s", what)
		}
	})
})

func hostPath(path string) corev1.Volume {
	return corev1.Volume{Name: "extra", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
}

func secretVolume(name string) corev1.Volume {
	return corev1.Volume{Name: "extra", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}

var _ = Describe("The namespace of a function", func() {
	It("has a NetworkPolicy that lets nothing in and nothing to the metadata of clouds, for as long as there are functions", func(ctx SpecContext) {
		t := newTenant(ctx)
		policies := func() (names []string) {
			var list networkingv1.NetworkPolicyList
			Expect(world.api.List(ctx, &list, client.InNamespace(t.namespace))).To(Succeed())
			for _, policy := range list.Items {
				Expect(policy.Spec.Ingress).To(BeEmpty())
				Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
				Expect(policy.Spec.Egress).To(ContainElement(HaveField("To", ContainElement(HaveField("IPBlock.Except", ConsistOf("169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32"))))))
				names = append(names, policy.Name)
			}
			return names
		}
		Consistently(policies, "1s").Should(BeEmpty())
		t.deploy(httpd("first"), httpd("second"))
		Eventually(policies, soon).Should(Equal([]string{"windlass-functions"}))

		By("mending it")
		t.kubectl("delete", "networkpolicy", "windlass-functions")
		Eventually(policies, soon).Should(Equal([]string{"windlass-functions"}))

		t.kubectl("delete", "function", "first", "--timeout=60s")
		Consistently(policies, "2s").ShouldNot(BeEmpty())
		t.kubectl("delete", "function", "second", "--timeout=60s")
		Eventually(policies, soon).Should(BeEmpty())
	})

	It("may enforce the restricted profile", func(ctx SpecContext) {
		t := newTenant(ctx)
		_, err := tryKubectl(ctx, "-n", t.namespace, "run", "plain", "--image", image("test-functions"))
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)), "it does enforce it")
		t.warm(httpd("http"))
		t.deploy(handler("py", v1alpha1.RuntimePython313, v1alpha1.Code{Inline: python}))
		t.expectGreeting("py", "python")
		for _, pod := range t.pods("http") {
			Expect(pod.Spec.Containers).To(HaveLen(2))
			for _, c := range pod.Spec.Containers {
				Expect(*c.SecurityContext.ReadOnlyRootFilesystem || c.Name == "function").To(BeTrue(), c.Name)
			}
		}
	})
})
