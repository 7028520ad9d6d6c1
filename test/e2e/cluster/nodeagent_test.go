package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// firstNode is the one for which kube-proxy of our cluster answers for Services of the policy Local.
const firstNode = "node-1"

var _ = Describe("Node agents", Serial, Ordered, func() {
	var t *tenant
	var busy *busyNode

	BeforeAll(func(ctx SpecContext) {
		needBands(ctx)
		nodeAgents(ctx, true)
		t = newTenant(context.Background()) // for all specs
		t.warm(computing("long", 4), computing("short", 1))
		Eventually(t.created("long"), later, "200ms").Should(Equal(4), t.explain("long"))
		busy = newBusyNode(t)
	})

	It("run without a capability, a host namespace or a right, while function pods stay restricted", func(ctx SpecContext) {
		agent := nodeAgentPod(ctx)
		Expect(agent.Spec.HostPID || agent.Spec.HostNetwork || agent.Spec.HostIPC).To(BeFalse())
		worker := nodeAgentProcess(agent, true)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", worker))
		Expect(err).NotTo(HaveOccurred())
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			Expect(string(status)).To(MatchRegexp(`(?m)^` + set + `:\s+0+$`))
		}
		Expect(string(status)).To(MatchRegexp(`(?m)^NoNewPrivs:\s+1$`))
		for name, pid := range map[string]int{"node agent": worker, "guardian": nodeAgentProcess(agent, false)} {
			say("%s: %s", name, regexp.MustCompile(`VmRSS:.*|RssAnon:.*`).FindAllString(readText(fmt.Sprintf("/proc/%d/status", pid)), -1))
		}
		account := "system:serviceaccount:" + releaseNamespace + ":" + agent.Spec.ServiceAccountName
		for _, right := range [][]string{{"get", "pods"}, {"list", "nodes"}, {"get", "secrets"}, {"create", "tokenreviews.authentication.k8s.io"}} {
			out, _ := tryKubectl(ctx, append([]string{"auth", "can-i", "--as", account, "-A"}, right...)...)
			Expect(out).NotTo(HavePrefix("yes"), strings.Join(right, " "))
		}
		// The tenant's namespace enforces the level.
		pod := t.living("long")[0]
		for _, v := range pod.Spec.Volumes {
			Expect(v.HostPath).To(BeNil())
		}
		Expect(pod.Spec.Containers[0].Env).To(ContainElement(HaveField("Name", "WINDLASS_NODE")))
	})

	It("move pods into the low band under load, and back when it ends", func(SpecContext) {
		before := busy.weights()
		busy.start()
		Eventually(busy.low, later, "20ms").ShouldNot(BeEmpty(), "no pod was ever low")
		busy.stop()
		Eventually(busy.low, "15s", "100ms").Should(BeEmpty())
		Expect(busy.weights()).To(Equal(before), "a pod has lost its weight")
	})

	It("leave nothing low when they are replaced, and fail no call", func(ctx SpecContext) {
		before := busy.weights()
		busy.start()
		Eventually(busy.low, later, "20ms").ShouldNot(BeEmpty())
		old := nodeAgentPod(ctx)
		kubectl(ctx, "--namespace", releaseNamespace, "rollout", "restart", "daemonset/windlass-node")
		kubectl(ctx, "--namespace", releaseNamespace, "rollout", "status", "daemonset/windlass-node", "--timeout=2m")
		Expect(nodeAgentPod(ctx).UID).NotTo(Equal(old.UID))
		// Instances come back after 30 s at the latest.
		Eventually(busy.low, later, "20ms").ShouldNot(BeEmpty(), "nobody came to the new node agent")
		busy.stop()
		Eventually(busy.low, "15s", "100ms").Should(BeEmpty())
		Expect(busy.weights()).To(Equal(before))
	})

	It("leave nothing low when they are killed, with their guardian or without", func(ctx SpecContext) {
		before := busy.weights()
		for _, withGuardian := range []bool{false, true} {
			busy.start()
			Eventually(busy.low, later, "20ms").ShouldNot(BeEmpty())
			agent := nodeAgentPod(ctx)
			worker, guardian := nodeAgentProcess(agent, true), nodeAgentProcess(agent, false)
			if withGuardian {
				Expect(syscall.Kill(guardian, syscall.SIGKILL)).To(Succeed())
			} else {
				Expect(syscall.Kill(worker, syscall.SIGKILL)).To(Succeed())
			}
			// Instances come to the next node agent after a second at the earliest.
			Eventually(busy.low, map[bool]string{false: "2s", true: later}[withGuardian], "5ms").Should(BeEmpty(), "while calls go on")
			busy.stop()
			Eventually(busy.low, "15s", "100ms").Should(BeEmpty())
			Expect(busy.weights()).To(Equal(before))
			Eventually(func() bool { return isReady(nodeAgentPod(ctx)) }, later, "200ms").Should(BeTrue())
		}
	})

	It("leave no trace in any cgroup when their node is drained under load, and fail no call", func(ctx SpecContext) {
		By("having its instances here, though they may be elsewhere")
		others := otherNodes(ctx)
		uncordon := func(ctx SpecContext) { kubectl(ctx, append([]string{"uncordon"}, others...)...) }
		DeferCleanup(uncordon)
		kubectl(ctx, append([]string{"cordon"}, others...)...)
		t.deploy(batch("nightly"))
		Eventually(func() []string { return lowOn(firstNode) }, later, "200ms").Should(HaveLen(6), t.explain("nightly"))
		uncordon(ctx)
		Expect(journalOf(firstNode)).NotTo(BeEmpty(), "what is looked for is found while it is there")
		load := t.startLoad("nightly", "/compute?ms=200", 4)
		Eventually(load.answered, soon).Should(BeNumerically(">", 10))
		before := sharesOn(firstNode)

		By("draining it")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "uncordon", firstNode) })
		kubectl(ctx, "drain", firstNode, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s",
			"--pod-selector", "app.kubernetes.io/component=function")
		for _, name := range []string{"nightly", "long", "short"} {
			for _, pod := range t.living(name) {
				Expect(pod.Spec.NodeName).NotTo(Equal(firstNode), t.explain(name)())
			}
		}
		Eventually(func() []string { return lowOn(firstNode) }, "5s", "50ms").Should(BeEmpty())
		Eventually(func() []string { return journalOf(firstNode) }, "5s", "50ms").Should(BeEmpty())
		expectSame(before, sharesOn(firstNode))
		Expect(isReady(nodeAgentPod(ctx))).To(BeTrue(), "a DaemonSet's pods stay")
		answered := load.answered()
		Eventually(load.answered, soon).Should(BeNumerically(">", answered+10), t.explain("nightly"))
		result := load.stop()
		Expect(result.Failed).To(BeZero(), result.String())

		By("having pods again")
		kubectl(ctx, "uncordon", firstNode)
		t.kubectl("delete", "function/nightly", "--timeout=100s")
		Eventually(t.created("long"), later, "200ms").Should(Equal(4), t.explain("long"))
		Eventually(t.created("short"), later, "200ms").Should(Equal(1), t.explain("short"))
		busy = newBusyNode(t)
	})

	It("leave no trace in any cgroup when they are disabled under load", func(ctx SpecContext) {
		before := busy.weights()
		busy.start()
		Eventually(busy.low, later, "20ms").ShouldNot(BeEmpty())
		nodeAgents(ctx, false)
		Eventually(func() []corev1.Pod { return component(ctx, "node") }, soon, "200ms").Should(BeEmpty())
		Eventually(busy.low, "2s", "50ms").Should(BeEmpty(), "while calls go on")
		Expect(busy.weights()).To(Equal(before))
		busy.stop()
		Expect(busy.low()).To(BeEmpty())
	})

	It("leave no trace in any cgroup when Windlass is uninstalled under load", func(ctx SpecContext) {
		nodeAgents(ctx, true)
		hourly := batch("hourly")
		hourly.Spec.Template.Placement.NodeSelector = map[string]string{"kubernetes.io/hostname": firstNode}
		t.deploy(hourly)
		Eventually(func() []string { return lowOn(firstNode) }, later, "200ms").ShouldNot(BeEmpty(), t.explain("hourly"))
		t.bystander(ctx)
		saved, before := savedValues(ctx), sharesOn(firstNode)
		calling, done := context.WithCancel(ctx)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for calling.Err() == nil {
					_, _ = t.tryCall(calling, "hourly", "/compute?ms=200") // until there is nobody to answer
				}
			})
		}

		reinstall := uninstallRelease(ctx, saved)
		done()
		callers.Wait()
		Eventually(func() []corev1.Pod { return component(ctx, "node") }, soon, "200ms").Should(BeEmpty())
		Expect(namesOf(t.pods("hourly"))).To(BeEmpty())
		for _, node := range nodeNames(ctx) {
			Eventually(func() []string { return lowOn(node) }, "5s", "50ms").Should(BeEmpty(), node)
			Expect(journalOf(node)).To(BeEmpty(), node)
		}
		expectSame(before, sharesOn(firstNode))
		reinstall(ctx)
		t.kubectl("delete", "function/hourly", "--timeout=100s")
	})
})

// batch is a function whose instances are in the low band at all times.
func batch(name string) *v1alpha1.Function {
	return httpd(name, func(s *v1alpha1.FunctionSpec) {
		s.Template.Concurrency = 1
		s.Template.Scheduling.Class = v1alpha1.ClassBatch
		s.Scaling.MinInstances, s.Scaling.MaxInstances = 6, new(int32(12))
	})
}

// bystander runs a pod on the first node that is not of Windlass, and stays when that goes.
func (t *tenant) bystander(ctx context.Context) {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "bystander"},
		Spec:       ordinaryPod(),
	}
	pod.Spec.NodeName = firstNode
	Expect(world.api.Create(ctx, pod)).To(Succeed())
	t.kubectl("wait", "--for=condition=Ready", "pod/bystander", "--timeout=60s")
}

// ordinaryPod is one that is not of Windlass, and answers HTTP.
func ordinaryPod() corev1.PodSpec {
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "httpd", Image: image("test-functions"), Args: []string{"httpd"},
			Resources:       corev1.ResourceRequirements{Requests: amount("10m", "16Mi")},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}
}

// podGroups are the groups of all pods of a node, also those of others, in the hierarchy of the cpu controller.
func podGroups(node string) (groups []string) {
	GinkgoHelper()
	for _, below := range []string{"pod*", "*/pod*"} {
		found, err := filepath.Glob("/sys/fs/cgroup/cpu/*/" + node + "/kubepods/" + below)
		Expect(err).NotTo(HaveOccurred())
		groups = append(groups, found...)
	}
	return groups
}

// lowOn are those of them that are in the low band.
func lowOn(node string) (low []string) {
	for _, group := range podGroups(node) {
		if strings.TrimSpace(readText(filepath.Join(group, "cpu.idle"))) == "1" {
			low = append(low, group)
		}
	}
	return low
}

// sharesOn are the weight of each of them, and the cores that it may use, without those in the low
// band, which have another weight there.
func sharesOn(node string) map[string]string {
	low, shares := lowOn(node), map[string]string{}
	for _, group := range podGroups(node) {
		if slices.Contains(low, group) {
			continue
		}
		cores := strings.Replace(group, "/sys/fs/cgroup/cpu/", "/sys/fs/cgroup/cpuset/", 1)
		shares[group] = strings.TrimSpace(readText(filepath.Join(group, "cpu.shares"))) + " on " + strings.TrimSpace(readText(filepath.Join(cores, "cpuset.cpus")))
	}
	return shares
}

// expectSame compares the groups that there were and still are.
func expectSame(before, after map[string]string) {
	GinkgoHelper()
	compared := 0
	for group, was := range before {
		if is, stays := after[group]; stays {
			Expect(is).To(Equal(was), group)
			compared++
		}
	}
	Expect(compared).NotTo(BeZero(), "there is nothing to compare")
	say("%d of %d groups are there as before", compared, len(before))
}

// journalOf is what the journal of a node's agent has to undo: groups that are low, and files that
// hold groups back.
func journalOf(node string) (open []string) {
	text, err := os.ReadFile(filepath.Join(shared.State, "nodes", node, "disk/run/windlass/node/bands"))
	if os.IsNotExist(err) {
		return nil // the node never had one
	}
	Expect(err).NotTo(HaveOccurred())
	is := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 {
			is[words[len(words)-1]] = words[0]
		}
	}
	for path, word := range is {
		if word == "low" || word == "held" {
			open = append(open, word+" "+path)
		}
	}
	return open
}

// nodeNames are the nodes of the cluster.
func nodeNames(ctx context.Context) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
}

// needBands skips specs on machines where no pod can be in the low band. It lets node agents run until
// the specs' end.
func needBands(ctx context.Context) {
	GinkgoHelper()
	ownMachines()
	if matches, _ := filepath.Glob("/sys/fs/cgroup/cpu/*/" + firstNode + "/kubepods/cpu.idle"); len(matches) != 1 {
		Skip("the kubelets of this machine make no cgroups for pods: it has no cgroup v1 with cpu, cpuacct, cpuset and memory, or no cpu.idle")
	}
	kubectl(ctx, "label", "--overwrite", "namespace", releaseNamespace, "pod-security.kubernetes.io/enforce=privileged")
	DeferCleanup(func(ctx SpecContext) {
		nodeAgents(ctx, false)
		kubectl(ctx, "label", "--overwrite", "namespace", releaseNamespace, "pod-security.kubernetes.io/enforce=restricted")
	})
}

// nodeAgents switches the node agents of the release on or off, and waits until that is so. Those that
// are on have usual values, but for those that are given as arguments of helm.
func nodeAgents(ctx context.Context, on bool, values ...string) {
	GinkgoHelper()
	args := []string{"upgrade", "windlass", filepath.Join(checkout, "charts", "windlass"), "--namespace", releaseNamespace,
		"--reuse-values", "--wait", "--timeout", "3m", "--set", "nodeAgent.enabled=" + strconv.FormatBool(on) + ",nodeAgent.coLocation=false",
		"--set-json", "nodeAgent.latencyCriticalNamespaces=[]", "--set-json", "nodeAgent.batchNamespaces=[]"}
	_, err := helm(ctx, append(args, values...)...)
	Expect(err).NotTo(HaveOccurred())
	if on {
		nodeAgentsReady(ctx) // helm does not wait for all of them
	}
}

// nodeAgentsReady waits until there is one of the present version on each node.
func nodeAgentsReady(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "--namespace", releaseNamespace, "rollout", "status", "daemonset/windlass-node", "--timeout=2m")
}

// computing is a function of the first node whose instances run one call at a time.
func computing(name string, instances int32) *v1alpha1.Function {
	return httpd(name, func(s *v1alpha1.FunctionSpec) {
		s.Template.Concurrency = 1
		s.Template.Placement.NodeSelector = map[string]string{"kubernetes.io/hostname": firstNode}
		s.Scaling.MinInstances, s.Scaling.MaxInstances = instances, &instances
	})
}

// nodeAgentPod is that of the first node.
func nodeAgentPod(ctx context.Context) corev1.Pod {
	GinkgoHelper()
	var found []corev1.Pod
	for _, pod := range component(ctx, "node") {
		if pod.Spec.NodeName == firstNode {
			found = append(found, pod)
		}
	}
	Expect(found).To(HaveLen(1))
	return found[0]
}

func isReady(pod corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
}

// nodeAgentProcess is the process on this machine that orders calls, or the one that watches it, once there is
// one: the last one's end may not have come to its pod's status.
func nodeAgentProcess(pod corev1.Pod, worker bool) (pid int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pids := nodeAgentProcesses(pod, worker)
		g.Expect(pids).To(HaveLen(1), pod.Name)
		pid = pids[0]
	}, later, "100ms").Should(Succeed())
	return pid
}

func nodeAgentProcesses(pod corev1.Pod, worker bool) (pids []int) {
	GinkgoHelper()
	procs, err := filepath.Glob(groupOf(pod) + "/*/cgroup.procs")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range procs {
		text, _ := os.ReadFile(file) // a container may just have ended
		for _, field := range strings.Fields(string(text)) {
			command, _ := os.ReadFile("/proc/" + field + "/cmdline")
			if bytes.Contains(command, []byte("\x00node\x00")) && bytes.Contains(command, []byte("--watched")) == worker {
				pid, err := strconv.Atoi(field)
				Expect(err).NotTo(HaveOccurred())
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// groupOf is the folder of a pod's group in the hierarchy of the cpu controller.
func groupOf(pod corev1.Pod) string {
	GinkgoHelper()
	pattern := "/sys/fs/cgroup/cpu/*/" + pod.Spec.NodeName + "/kubepods/burstable/pod" + string(pod.UID)
	found, err := filepath.Glob(pattern)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(HaveLen(1), pattern)
	return found[0]
}

// busyNode makes calls of two functions that compute for longer than there are cores.
type busyNode struct {
	t             *tenant
	cancel        context.CancelFunc
	callers       sync.WaitGroup
	calls, failed atomic.Int64
	groups        []string
}

func newBusyNode(t *tenant) *busyNode {
	GinkgoHelper()
	b := &busyNode{t: t, cancel: func() {}}
	for _, name := range []string{"long", "short"} {
		for _, pod := range t.living(name) {
			b.groups = append(b.groups, groupOf(pod))
		}
	}
	return b
}

// start makes calls until stop, which the end of the spec does, too.
func (b *busyNode) start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	DeferCleanup(func() { cancel(); b.callers.Wait() })
	call := func(name, path string) {
		for ctx.Err() == nil {
			a, err := b.t.tryCall(context.Background(), name, path)
			b.calls.Add(1)
			if err != nil || a.status != 200 {
				b.failed.Add(1)
				say("a call of %s failed: %v %v", name, a, err)
			}
		}
	}
	for range 4 {
		b.callers.Go(func() { call("long", "/compute?ms=1000") })
	}
	b.callers.Go(func() { call("short", "/compute?ms=20") })
}

// stop waits for the calls' ends. None may have failed.
func (b *busyNode) stop() {
	GinkgoHelper()
	b.cancel()
	b.callers.Wait()
	say("%d calls, %d failed", b.calls.Load(), b.failed.Load())
	Expect(b.failed.Load()).To(BeZero())
}

// low are the groups of pods in the low band.
func (b *busyNode) low() (low []string) {
	for _, group := range b.groups {
		if strings.TrimSpace(readText(filepath.Join(group, "cpu.idle"))) == "1" {
			low = append(low, group)
		}
	}
	return low
}

// weights are the shares of all groups, which must be those that their kubelet gave them.
func (b *busyNode) weights() map[string]string {
	weights := map[string]string{}
	for _, group := range b.groups {
		weights[group] = strings.TrimSpace(readText(filepath.Join(group, "cpu.shares")))
	}
	return weights
}

func readText(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
