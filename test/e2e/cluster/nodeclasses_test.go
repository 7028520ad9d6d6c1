package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

var _ = Describe("Batch work on a node", Serial, Ordered, func() {
	BeforeAll(func(ctx SpecContext) { needBands(ctx) })

	It("is kept back while latency-critical work waits for a core, goes on afterwards, and is as before when node agents are disabled", func(ctx SpecContext) {
		t := newTenant(ctx)
		nodeAgents(ctx, true, "--set", "nodeAgent.coLocation=true", "--set-json", listOf("latencyCriticalNamespaces", t))
		t.warm(classed("urgent", v1alpha1.ClassLatencyCritical, 4), classed("filling", v1alpha1.ClassBatch, 2))
		Eventually(t.created("urgent"), later, "200ms").Should(Equal(4), t.explain("urgent"))
		Eventually(t.created("filling"), later, "200ms").Should(Equal(2), t.explain("filling"))
		Expect(t.condition("urgent", v1alpha1.ConditionSchedulingClass).Status).NotTo(Equal(metav1.ConditionFalse))
		urgent, filling := t.living("urgent"), t.living("filling")
		keepStatistics(ctx, urgent)
		cores := coresOf(filling)

		By("beginning while nothing waits")
		batch := t.startLoad("filling", "/compute?ms=200", 2)
		Eventually(batch.answered, soon).Should(BeNumerically(">", 4), t.explain("filling"))
		// Instances come to another node agent after 30 s at the latest.
		Eventually(func() []string { return lowOn(firstNode) }, later, "100ms").Should(ConsistOf(groupOf(filling[0]), groupOf(filling[1])))
		how := lineOf(logOf(ctx, nodeAgentPod(ctx)), "kept back")
		Expect(how).To(ContainSubstring("are kept back when"))
		say("%s", how)
		held := func() []string { return keptBack(filling, cores) }

		By("waiting")
		critical := t.startLoad("urgent", "/compute?ms=100", 4)
		Eventually(held, later, "5ms").ShouldNot(BeEmpty(), "batch work is never kept back")
		say("kept back: %v", held())
		Expect(keptBack(urgent, coresOf(urgent))).To(BeEmpty())
		result := critical.stop()
		Expect(result.Failed).To(BeZero(), result.String())
		Eventually(held, later, "50ms").Should(BeEmpty(), "nothing waits any more")
		answered := batch.answered()
		Eventually(batch.answered, soon).Should(BeNumerically(">", answered+4), t.explain("filling"))

		By("disabling node agents while it is kept back again")
		critical = t.startLoad("urgent", "/compute?ms=100", 4)
		Eventually(held, later, "5ms").ShouldNot(BeEmpty())
		nodeAgents(ctx, false)
		Eventually(func() []corev1.Pod { return component(ctx, "node") }, soon, "200ms").Should(BeEmpty())
		Eventually(held, "3s", "50ms").Should(BeEmpty(), "while calls go on")
		Eventually(func() []string { return lowOn(firstNode) }, "3s", "50ms").Should(BeEmpty())
		Eventually(func() []string { return journalOf(firstNode) }, "3s", "50ms").Should(BeEmpty())
		for _, pod := range filling {
			Expect(sharesOn(firstNode)[groupOf(pod)]).To(Equal(sharesOn(firstNode)[groupOf(urgent[0])]), "they request the same")
		}
		answered = batch.answered()
		Eventually(batch.answered, soon).Should(BeNumerically(">", answered+4), t.explain("filling"))
		for _, result := range []loadResult{critical.stop(), batch.stop()} {
			Expect(result.Failed).To(BeZero(), result.String())
		}
		Expect(namesOf(t.living("filling"))).To(ConsistOf(namesOf(filling)), "no instance is replaced")
	})

	It("may be an ordinary pod, in a namespace that the administrator lists and in no other", func(ctx SpecContext) {
		listed, other := newTenant(ctx), newTenant(ctx)
		nodeAgents(ctx, true, "--set-json", listOf("batchNamespaces", listed))
		inLow, inNone := listed.job(ctx, "report"), other.job(ctx, "report")
		lowGroup, group := groupOf(inLow), groupOf(inNone)
		usual := sharesOn(firstNode)[group]
		Expect(usual).NotTo(BeEmpty())
		isLow := func() []string { return lowOn(firstNode) }
		Eventually(isLow, later, "100ms").Should(ConsistOf(lowGroup))
		Eventually(func() string { return logOf(ctx, nodeAgentPod(ctx)) }, soon, "1s").Should(SatisfyAll(
			MatchRegexp("a pod gets what others leave.*"+listed.namespace+"/"),
			MatchRegexp("a pod that asks for it is not in the low band.*"+other.namespace+"/.*its namespace is not among those")))

		By("computing beside one another, for more than there are cores")
		for _, pod := range []corev1.Pod{inLow, inNone} {
			for range 4 {
				go ask(pod, "/compute?ms=600000")
			}
		}
		lowBefore, before := usedBy(lowGroup), usedBy(group)
		Eventually(func() time.Duration { return usedBy(group) - before }, later, "100ms").Should(BeNumerically(">", 4*time.Second))
		low, normal := usedBy(lowGroup)-lowBefore, usedBy(group)-before
		say("in the low band %v of processor time, in the normal one %v", low, normal)
		// Without bands they are alike. Beside other programs the low one got up to 0.6 of the other one.
		Expect(low).To(BeNumerically("<", normal*3/4), "though both request the same and have as many threads")
		Expect(isLow()).To(ConsistOf(lowGroup))

		By("taking the annotation away, and giving it back")
		listed.kubectl("annotate", "pod", inLow.Name, wellknown.AnnotationClass+"-")
		Eventually(isLow, soon, "50ms").Should(BeEmpty())
		Expect(journalOf(firstNode)).To(BeEmpty())
		Expect(sharesOn(firstNode)[lowGroup]).To(Equal(usual), "they request the same")
		listed.kubectl("annotate", "pod", inLow.Name, wellknown.AnnotationClass+"=Batch")
		Eventually(isLow, soon, "50ms").Should(ConsistOf(lowGroup))

		By("disabling node agents, and enabling them")
		nodeAgents(ctx, false)
		Eventually(func() []corev1.Pod { return component(ctx, "node") }, soon, "200ms").Should(BeEmpty())
		Eventually(isLow, "3s", "50ms").Should(BeEmpty())
		Expect(sharesOn(firstNode)[lowGroup]).To(Equal(usual))
		nodeAgents(ctx, true, "--set-json", listOf("batchNamespaces", listed))
		Eventually(isLow, later, "50ms").Should(ConsistOf(lowGroup))

		By("ending")
		Expect(sharesOn(firstNode)[group]).To(Equal(usual), "nobody has touched the other pod")
		for _, pod := range []corev1.Pod{inLow, inNone} {
			ask(pod, "/exit?code=0")
			kubectl(ctx, "--namespace", pod.Namespace, "wait", "--for=condition=Complete", "job/report", "--timeout=60s")
		}
		Eventually(isLow, soon, "100ms").Should(BeEmpty())
		Eventually(func() []string { return journalOf(firstNode) }, soon, "100ms").Should(BeEmpty())
	})
})

// listOf sets a list of namespaces of node agents to that of a tenant.
func listOf(value string, t *tenant) string {
	return fmt.Sprintf("nodeAgent.%s=[%q]", value, t.namespace)
}

// classed is a function of the first node with a class.
func classed(name string, class v1alpha1.SchedulingClass, instances int32) *v1alpha1.Function {
	fn := computing(name, instances)
	fn.Spec.Template.Scheduling.Class = class
	return fn
}

// lineOf is the first line of a log with some words.
func lineOf(log, words string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, words) {
			return strings.TrimSpace(line)
		}
	}
	return "nothing was logged with " + words
}

// coresOf are the cores of the containers of pods, by their groups.
func coresOf(pods []corev1.Pod) map[string]string {
	GinkgoHelper()
	cores := map[string]string{}
	for _, pod := range pods {
		groups, err := filepath.Glob(inHierarchy("cpuset", groupOf(pod)) + "/*/cpuset.cpus")
		Expect(err).NotTo(HaveOccurred())
		Expect(groups).NotTo(BeEmpty(), pod.Name)
		for _, file := range groups {
			cores[file] = strings.TrimSpace(readText(file))
		}
	}
	return cores
}

// keptBack says which containers of pods are frozen, or have other cores than usually.
func keptBack(pods []corev1.Pod, usual map[string]string) (held []string) {
	for file, cores := range usual {
		if now := strings.TrimSpace(readText(file)); now != cores {
			held = append(held, fmt.Sprintf("cores %s instead of %s", now, cores))
		}
	}
	for _, pod := range pods {
		files, _ := filepath.Glob(inHierarchy("freezer", groupOf(pod)) + "/*/freezer.state")
		for _, file := range files {
			if state := strings.TrimSpace(readText(file)); state != "THAWED" {
				held = append(held, state+" "+pod.Name)
			}
		}
	}
	return held
}

// usedBy is the processor time of a pod's group.
func usedBy(group string) time.Duration {
	GinkgoHelper()
	n, err := strconv.ParseInt(strings.TrimSpace(readText(filepath.Join(inHierarchy("cpuacct", group), "cpuacct.usage"))), 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return time.Duration(n)
}

// job runs a Job on the first node that asks for what others leave, and returns its pod once that runs.
func (t *tenant) job(ctx context.Context, name string) corev1.Pod {
	GinkgoHelper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}}
	job.Spec.BackoffLimit = new(int32(0))
	job.Spec.Template.Annotations = map[string]string{wellknown.AnnotationClass: "Batch"}
	job.Spec.Template.Spec = ordinaryPod()
	job.Spec.Template.Spec.Containers[0].Resources.Requests = amount("100m", "16Mi")
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": firstNode}
	Expect(world.api.Create(ctx, job)).To(Succeed())
	var pods []corev1.Pod
	Eventually(func() bool {
		pods = listPods(ctx, t.namespace, client.MatchingLabels{"batch.kubernetes.io/job-name": name})
		return len(pods) == 1 && isReady(pods[0]) && reachable(pods[0].Status.PodIP+":8080")
	}, later, "200ms").Should(BeTrue(), "the Job's pod does not run: %v", pods)
	return pods[0]
}

// ask calls an ordinary pod, which may end meanwhile.
func ask(pod corev1.Pod, path string) {
	response, err := http.Get("http://" + pod.Status.PodIP + ":8080" + path)
	if err == nil {
		_ = response.Body.Close()
	}
}

// keepStatistics shows node agents of the first node for how long the threads of pods have waited for a core, where
// the kernel keeps no statistics of its scheduler: then it does what such a kernel does, and writes the sum of the
// run delay of the pods' threads as wait_sum into the cpu.stat that they see.
func keepStatistics(ctx context.Context, pods []corev1.Pod) {
	GinkgoHelper()
	if strings.Contains(readText(filepath.Join(groupOf(pods[0]), "cpu.stat")), "wait_sum") {
		return
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		Skip("this kernel does not say how long groups wait for a core, and nsenter is not there to make up for it")
	}
	folder := filepath.Join(shared.State, "statistics")
	Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	DeferCleanup(func() { Expect(os.RemoveAll(folder)).To(Succeed()) })
	node := nodeGroup()
	show := func(group string, n int) *os.File {
		GinkgoHelper()
		file, err := os.Create(filepath.Join(folder, strconv.Itoa(n)))
		Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString(waitSum(0))
		Expect(err).NotTo(HaveOccurred())
		// In the node, its own group is at the top.
		target := strings.Replace(filepath.Join(group, "cpu.stat"), node, "/sys/fs/cgroup/cpu", 1)
		inNode(ctx, node, "mount", "--bind", file.Name(), target)
		DeferCleanup(func(ctx SpecContext) {
			inNode(ctx, node, "umount", target)
			Expect(file.Close()).To(Succeed())
		})
		return file
	}
	show(filepath.Join(node, "kubepods"), 0) // where a node agent looks which statistics there are
	var writers sync.WaitGroup
	writing, stop := context.WithCancel(context.Background())
	for i, pod := range pods {
		file, group := show(groupOf(pod), i+1), groupOf(pod)
		writers.Go(func() { writeWaits(writing, file, group) })
	}
	DeferCleanup(func() { stop(); writers.Wait() })
	// A container sees what was mounted before it began.
	kubectl(ctx, "--namespace", releaseNamespace, "delete", "pod", nodeAgentPod(ctx).Name)
	nodeAgentsReady(ctx)
	say("this kernel keeps no statistics of its scheduler; the test shows node agents what it would count")
}

// nodeGroup is the group of the first node in the hierarchy of the cpu controller.
func nodeGroup() string {
	GinkgoHelper()
	found, err := filepath.Glob("/sys/fs/cgroup/cpu/*/" + firstNode)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(HaveLen(1))
	return found[0]
}

// inNode runs a command among the mounts of the first node.
func inNode(ctx context.Context, group string, command ...string) {
	GinkgoHelper()
	processes := strings.Fields(readText(filepath.Join(group, "cgroup.procs")))
	Expect(processes).NotTo(BeEmpty())
	_, err := capture(exec.CommandContext(ctx, "nsenter", append([]string{"--mount", "--pid", "--target", processes[0]}, command...)...))
	Expect(err).NotTo(HaveOccurred())
}

// waitSum is a line of cpu.stat. It is always as long, so that who reads it while it is written finds a number.
func waitSum(waited time.Duration) string { return fmt.Sprintf("wait_sum %020d\n", waited) }

// writeWaits writes the run delay of a group's threads into a file until ctx ends.
func writeWaits(ctx context.Context, file *os.File, group string) {
	defer GinkgoRecover()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	var sum, last time.Duration
	for ctx.Err() == nil {
		now := runDelay(group)
		sum += max(0, now-last) // threads may have ended
		last = now
		_, err := file.WriteAt([]byte(waitSum(sum)), 0)
		Expect(err).NotTo(HaveOccurred())
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// runDelay is for how long the threads in the containers of a pod could have run and had no core.
func runDelay(group string) (sum time.Duration) {
	files, _ := filepath.Glob(group + "/*/cgroup.procs")
	for _, file := range files {
		for _, pid := range slices.Compact(strings.Fields(readText(file))) {
			threads, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
			for _, thread := range threads {
				// Three numbers: how long it ran, how long it waited, and how often it ran.
				if fields := strings.Fields(readText(thread)); len(fields) == 3 {
					n, _ := strconv.ParseInt(fields[1], 10, 64)
					sum += time.Duration(n)
				}
			}
		}
	}
	return sum
}
