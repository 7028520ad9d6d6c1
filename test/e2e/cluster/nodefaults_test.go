package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("Faults of the node agents of all nodes at once", Serial, Ordered, func() {
	BeforeAll(func(ctx SpecContext) { needBands(ctx) })

	It("under overload fail no call, lose no instance and leave no pod in the low band", func(ctx SpecContext) {
		nodeAgents(ctx, true)
		t := newTenant(ctx)
		elsewhere := computing("elsewhere", 1)
		elsewhere.Spec.Template.Placement.NodeSelector = map[string]string{"kubernetes.io/hostname": otherNodes(ctx)[0]}
		t.warm(computing("long", 4), computing("short", 1), elsewhere)
		for name, instances := range map[string]int{"long": 4, "short": 1, "elsewhere": 1} {
			Eventually(t.created(name), later, "200ms").Should(Equal(instances), t.explain(name))
		}
		busy, began := newBusyNode(t), time.Now()
		before, instances := sharesOn(firstNode), t.instancesOf("long", "short", "elsewhere")
		beside := t.startLoad("elsewhere", "/compute?ms=200", 1)
		busy.start()

		for _, fault := range []struct {
			name string
			do   func()
			// within is how long a node agent that has low pods may take to end, where its watcher sees to that.
			within time.Duration
		}{
			{name: "killing them", do: func() { signalAll(ctx, syscall.SIGKILL) }},
			{name: "deleting their pods", do: func() { t.deleteNodeAgents() }},
			{name: "deleting their pods by force", do: func() { t.deleteNodeAgents("--grace-period=0", "--force") }},
			{name: "stopping their processes, which watchers notice, and kubelets where no pod is low", do: func() { signalAll(ctx, syscall.SIGSTOP) }, within: 10 * time.Second},
			{name: "rolling out another version, on all nodes at the same time", do: func() {
				nodeAgents(ctx, true, "--set", "nodeAgent.maxUnavailable=100%", "--set-string", "nodeAgent.podAnnotations.e2e="+fmt.Sprint(began.Unix()))
			}},
		} {
			By(fault.name)
			Eventually(busy.low, later, "20ms").ShouldNot(BeEmpty(), "nobody is at a node agent")
			calls, others := busy.calls.Load(), beside.answered()
			done := onceGone(ctx, fault.within, fault.do)
			Eventually(busy.calls.Load, soon, "200ms").Should(BeNumerically(">", calls), "calls go on")
			Eventually(beside.answered, soon, "200ms").Should(BeNumerically(">", others), "calls elsewhere go on")
			Eventually(done, "3m").Should(BeClosed())
			nodeAgentsReady(ctx)
		}

		busy.stop()
		result := beside.stop()
		Expect(result.Failed).To(BeZero(), result.String())
		for _, node := range nodeNames(ctx) {
			Eventually(func() []string { return lowOn(node) }, "15s", "100ms").Should(BeEmpty(), node)
			Expect(journalOf(node)).To(BeEmpty(), node)
		}
		expectSame(before, sharesOn(firstNode))
		// Where even instances that have no node agent are given up, or schedulers get no core for seconds, the machine
		// has none to spare, and bands are not to blame.
		if lines := starved(ctx, began, t.namespace+"/elsewhere"); len(lines) > 0 {
			say("whether an instance was given up because of bands is not judged: this machine was too busy: %s", lines[0])
			return
		}
		Expect(t.instancesOf("long", "short", "elsewhere")).To(Equal(instances), "an instance was replaced, or a container of it started again")
		// A low instance may read its replies too slowly while its node agent hangs, and then comes again.
		for _, line := range logLines(ctx, began, "closing the stream of an instance") {
			say("%s", line)
		}
	})
})

// otherNodes are those on which pods have no node agent in our cluster, since there kube-proxy answers for
// those of the first node only.
func otherNodes(ctx context.Context) []string {
	GinkgoHelper()
	return slices.DeleteFunc(nodeNames(ctx), func(node string) bool { return node == firstNode })
}

// instancesOf are the pods of functions, with how often their containers have started again.
func (t *tenant) instancesOf(names ...string) map[string]int32 {
	GinkgoHelper()
	restarts := map[string]int32{}
	for _, name := range names {
		for _, pod := range t.living(name) {
			restarts[pod.Name] = 0
			for _, container := range pod.Status.ContainerStatuses {
				restarts[pod.Name] += container.RestartCount
			}
		}
	}
	return restarts
}

// workers are the processes that order calls, by their nodes.
func workers(ctx context.Context) map[string]int {
	GinkgoHelper()
	pids := map[string]int{}
	for _, pod := range component(ctx, "node") {
		pids[pod.Spec.NodeName] = nodeAgentProcess(pod, true)
	}
	Expect(pids).To(HaveLen(len(nodeNames(ctx))))
	return pids
}

// signalAll sends all of them a signal, as close together as it can.
func signalAll(ctx context.Context, signal syscall.Signal) {
	GinkgoHelper()
	for node, pid := range workers(ctx) {
		Expect(syscall.Kill(pid, signal)).To(Succeed(), node)
	}
}

// deleteNodeAgents deletes the pods of all of them.
func (t *tenant) deleteNodeAgents(how ...string) {
	GinkgoHelper()
	kubectl(t.ctx, append([]string{"--namespace", releaseNamespace, "delete", "pods", "--selector", "app.kubernetes.io/component=node"}, how...)...)
}

// onceGone lets something happen to all node agents. Once one of them has ended, there is a moment in the next 3 s
// in which all pods of its node are normal; the next node agent may make some low again. That of the first node,
// where pods are low, ends within some time, unless that is 0. The channel is closed when the fault is over.
func onceGone(ctx context.Context, within time.Duration, fault func()) (done chan struct{}) {
	GinkgoHelper()
	before, nodes, began := workers(ctx), append([]string{firstNode}, otherNodes(ctx)...), time.Now()
	done = make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		fault()
	}()
	gone := func(pid int) func() bool {
		return func() bool {
			_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // also fails for one that nobody has waited for
			return err != nil
		}
	}
	// Pods of other nodes are never low here, so the first one comes first.
	for _, node := range nodes {
		Eventually(gone(before[node]), "90s", "5ms").Should(BeTrue(), "the node agent of %s has not ended", node)
		ended := time.Now()
		if node == firstNode && within > 0 {
			Expect(ended.Sub(began)).To(BeNumerically("<", within), "nobody but the kubelet noticed")
		}
		Eventually(func() []string { return lowOn(node) }, "3s", "5ms").Should(BeEmpty(), "while calls go on")
		say("the node agent of %s has ended %v after the fault, and no pod is low %v later", node,
			ended.Sub(began).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond))
	}
	return done
}

// starved are the lines in which schedulers say that they got no core, or lost an instance of a function that
// has no node agent.
func starved(ctx context.Context, since time.Time, function string) []string {
	GinkgoHelper()
	gone := slices.DeleteFunc(logLines(ctx, since, `"an instance is gone"`), func(line string) bool { return !strings.Contains(line, function) })
	return append(gone, logLines(ctx, since, "the process was paused")...)
}

// logLines are what schedulers have logged with some words.
func logLines(ctx context.Context, since time.Time, words string) (lines []string) {
	GinkgoHelper()
	log := kubectl(ctx, "--namespace", releaseNamespace, "logs", "--selector", "app.kubernetes.io/component=scheduler",
		"--tail=-1", "--prefix", "--since-time="+since.UTC().Format(time.RFC3339))
	for line := range strings.Lines(log) {
		if strings.Contains(line, words) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// logOf is what a pod has logged.
func logOf(ctx context.Context, pod corev1.Pod) string {
	GinkgoHelper()
	return kubectl(ctx, "--namespace", pod.Namespace, "logs", pod.Name)
}

// inHierarchy is the folder of a group in another hierarchy of version 1 than that of the cpu controller.
func inHierarchy(controller, group string) string {
	return strings.Replace(group, "/sys/fs/cgroup/cpu/", filepath.Join("/sys/fs/cgroup", controller)+"/", 1)
}
