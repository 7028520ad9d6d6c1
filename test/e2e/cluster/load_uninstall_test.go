package cluster_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

var _ = Describe("Uninstalling", Serial, func() {
	It("leaves CRDs and Functions and nothing else, and installing again serves the same Functions", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("first"), httpd("second", func(s *v1alpha1.FunctionSpec) { s.Scaling.MinInstances = 2 }))
		saved := savedValues(ctx)
		Expect(leftovers(ctx)).To(ContainElement(ContainSubstring("validatingadmissionpolicy")), "what is looked for is found while it is there")

		By("uninstalling")
		reinstall := uninstallRelease(ctx, saved)
		Expect(namesOf(t.pods("first"))).To(BeEmpty())
		Expect(namesOf(t.pods("second"))).To(BeEmpty())
		// Pods of the release may take their grace period, and the garbage
		// collector a moment.
		Eventually(func() []string { return leftovers(ctx) }, "90s", "1s").Should(BeEmpty())
		Expect(strings.Fields(kubectl(ctx, "get", "crd", "-o", "name"))).To(ContainElements(
			"customresourcedefinition.apiextensions.k8s.io/functions.windlass.dev", "customresourcedefinition.apiextensions.k8s.io/functionrevisions.windlass.dev",
			"customresourcedefinition.apiextensions.k8s.io/clusterruntimes.windlass.dev"))
		for _, name := range []string{"first", "second"} {
			Expect(t.get(name)).NotTo(BeNil())
			Expect(t.get(name).Finalizers).To(BeEmpty(), "so that a Function can be deleted without Windlass")
		}

		By("deleting a Function without Windlass")
		t.apply(httpd("third"))
		t.kubectl("delete", "function/third", "--timeout=10s")

		By("installing again")
		reinstall(ctx)
		t.waitReady("first", "second")
		t.waitRouted("first", "second")
		for _, name := range []string{"first", "second"} {
			a := t.call(name, "/")
			Expect(a.status).To(Equal(200), a.String())
		}
		Eventually(func() int { return len(t.living("second")) }, "30s").Should(BeNumerically(">=", 2), t.explain("second"))
	})
})

// uninstallRelease uninstalls the release. What it returns installs it again, with the saved values;
// the end of the spec does, too, if that was not called.
func uninstallRelease(ctx context.Context, saved string) (reinstall func(context.Context)) {
	GinkgoHelper()
	reinstalled := false
	reinstall = func(ctx context.Context) {
		GinkgoHelper()
		_, err := helm(ctx, "install", "windlass", filepath.Join(checkout, "charts", "windlass"),
			"--namespace", releaseNamespace, "--values", saved, "--wait", "--timeout", "3m")
		Expect(err).NotTo(HaveOccurred())
		reinstalled = true
		world.gateway = gatewayURL(ctx, world.api)
	}
	DeferCleanup(func(ctx SpecContext) {
		if !reinstalled {
			reinstall(ctx)
		}
	})
	_, err := helm(ctx, "uninstall", "windlass", "--namespace", releaseNamespace, "--wait", "--timeout", "3m")
	Expect(err).NotTo(HaveOccurred())
	return reinstall
}

// leftovers are all objects of the cluster, of every kind that can be listed,
// that Windlass or its chart has made, but for CRDs, Functions and their records.
func leftovers(ctx context.Context) (names []string) {
	GinkgoHelper()
	kinds := append(listable(ctx, "--namespaced=true"), listable(ctx, "--namespaced=false")...)
	kinds = slices.DeleteFunc(kinds, func(kind string) bool {
		return kind == "customresourcedefinitions.apiextensions.k8s.io" || kind == "functions.windlass.dev" || kind == "functionrevisions.windlass.dev" ||
			// They expire by themselves.
			kind == "events" || kind == "events.events.k8s.io" || strings.HasSuffix(kind, ".metrics.k8s.io")
	})
	all := strings.Join(kinds, ",")
	for _, selector := range []string{"app.kubernetes.io/managed-by=windlass", "app.kubernetes.io/name=windlass", "app.kubernetes.io/part-of=windlass", wellknown.LabelFunctionUID} {
		found := kubectl(ctx, "get", all, "--all-namespaces", "--ignore-not-found", "--selector", selector, "-o",
			`jsonpath={range .items[*]}{.kind}{" "}{.metadata.namespace}{"/"}{.metadata.name}{"\n"}{end}`)
		names = append(names, strings.Split(strings.ToLower(strings.TrimSpace(found)), "\n")...)
	}
	// What has no labels of ours may still have a name of ours.
	named := kubectl(ctx, "get", all, "--all-namespaces", "--ignore-not-found", "-o",
		`jsonpath={range .items[*]}{.kind}{" "}{.metadata.namespace}{"/"}{.metadata.name}{"\n"}{end}`)
	for line := range strings.Lines(strings.ToLower(named)) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "windlass") && line != "namespace /"+releaseNamespace && !standard(line) {
			names = append(names, line)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// standard are objects that Kubernetes keeps in every namespace, such as ours.
func standard(line string) bool {
	return line == "serviceaccount "+releaseNamespace+"/default" || line == "configmap "+releaseNamespace+"/kube-root-ca.crt" ||
		strings.HasPrefix(line, "apiservice /")
}

// listable are the kinds that can be listed.
func listable(ctx context.Context, scope string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "api-resources", "--verbs=list", scope, "-o", "name"))
}
