package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Under load", Serial, Ordered, func() {
	var c *counted
	BeforeAll(func(ctx SpecContext) { c = newCounted(ctx, 5) })

	for _, component := range []string{"gateway", "scheduler", "controller"} {
		It("no call fails or runs twice while each "+component+" is replaced", func(ctx SpecContext) {
			c.ctx = ctx
			before := namesOf(append(c.living("http"), c.living("event")...))
			t := c.start(2)
			c.flows(t)
			restart(ctx, component)
			r := c.report("rollout restart of "+component, t)
			Expect(r.failed()).To(BeEmpty(), r.String())
			Expect(namesOf(append(c.living("http"), c.living("event")...))).To(ContainElements(before), "no instance is replaced")
		})
	}

	It("no call is lost or runs twice when schedulers are deleted by force", func(ctx SpecContext) {
		c.ctx = ctx
		t := c.start(2)
		for _, pod := range component(ctx, "scheduler") {
			c.flows(t)
			kubectl(ctx, "--namespace", releaseNamespace, "delete", "pod", pod.Name, "--grace-period=0", "--force")
			settle(ctx, "scheduler")
		}
		r := c.report("forced deletion of all schedulers in turn", t)
		Expect(r.failed()).To(BeEmpty(), r.String())
	})

	It("no call is lost or runs twice when schedulers crash", func(ctx SpecContext) {
		c.ctx = ctx
		t := c.start(2)
		c.flows(t)
		for _, pod := range component(ctx, "scheduler") {
			crash(pod.Name)
			c.flows(t)
			settle(ctx, "scheduler")
		}
		r := c.report("crash of all schedulers in turn", t)
		Expect(r.failed()).To(BeEmpty(), r.String())
	})

	It("a crash of a gateway loses only the calls that it holds, and none runs twice", func(ctx SpecContext) {
		c.ctx = ctx
		t := c.start(2)
		c.flows(t)
		crash(component(ctx, "gateway")[0].Name)
		c.flows(t)
		settle(ctx, "gateway")
		mended := time.Now()
		r := c.report("crash of a gateway", t)
		late := t.since(mended)
		for _, call := range r.failed() {
			Expect(call.kind).To(HavePrefix("transport: "), r.String())
		}
		for _, call := range late.failed() {
			Expect(call.began).To(BeTemporally("<", mended), late.String())
		}
	})
})

// component are the pods of a part of the release, but not those that are ending.
func component(ctx context.Context, name string) (pods []corev1.Pod) {
	GinkgoHelper()
	for _, pod := range listPods(ctx, releaseNamespace, client.MatchingLabels{"app.kubernetes.io/component": name}) {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// restart replaces the pods of a part one after the other, as after a change.
func restart(ctx context.Context, name string) {
	GinkgoHelper()
	kubectl(ctx, "--namespace", releaseNamespace, "rollout", "restart", "deployment/windlass-"+name)
	settle(ctx, name)
	Eventually(func() []string {
		return namesOf(listPods(ctx, releaseNamespace, client.MatchingLabels{"app.kubernetes.io/component": name}))
	}, "90s", "500ms").Should(HaveLen(len(component(ctx, name))), "the old pods end")
}

// settle waits until all pods of a part are ready.
func settle(ctx context.Context, name string) {
	GinkgoHelper()
	kubectl(ctx, "--namespace", releaseNamespace, "rollout", "status", "deployment/windlass-"+name, "--timeout=120s")
}

// crash kills the program in a pod of our own cluster, whose processes are this
// machine's.
func crash(pod string) {
	GinkgoHelper()
	ownMachines()
	pid := 0
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	Expect(err).NotTo(HaveOccurred())
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err == nil && strings.Contains("\x00"+string(environ), fmt.Sprintf("\x00POD_NAME=%s\x00", pod)) {
			pid, err = strconv.Atoi(filepath.Base(filepath.Dir(path)))
			Expect(err).NotTo(HaveOccurred())
		}
	}
	Expect(pid).NotTo(BeZero(), "no process is the pod %s", pod)
	Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
}
