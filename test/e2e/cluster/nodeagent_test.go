package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// firstNode is the one for which kube-proxy of our cluster answers for Services of the policy Local.
const firstNode = "node-1"

var _ = Describe("Node agents", Serial, Ordered, func() {
	var t *tenant
	var busy *busyNode

	BeforeAll(func(ctx SpecContext) {
		ownMachines()
		if matches, _ := filepath.Glob("/sys/fs/cgroup/cpu/*/" + firstNode + "/kubepods/cpu.idle"); len(matches) != 1 {
			Skip("the kubelets of this machine make no cgroups for pods: it has no cgroup v1 with cpu, cpuacct, cpuset and memory, or no cpu.idle")
		}
		kubectl(ctx, "label", "--overwrite", "namespace", releaseNamespace, "pod-security.kubernetes.io/enforce=privileged")
		DeferCleanup(func(ctx SpecContext) {
			nodeAgents(ctx, false)
			kubectl(ctx, "label", "--overwrite", "namespace", releaseNamespace, "pod-security.kubernetes.io/enforce=restricted")
		})
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
})

// nodeAgents switches the node agents of the release on or off, and waits until that is so.
func nodeAgents(ctx context.Context, on bool) {
	GinkgoHelper()
	_, err := helm(ctx, "upgrade", "windlass", filepath.Join(checkout, "charts", "windlass"), "--namespace", releaseNamespace,
		"--reuse-values", "--set", "nodeAgent.enabled="+strconv.FormatBool(on), "--wait", "--timeout", "3m")
	Expect(err).NotTo(HaveOccurred())
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

// nodeAgentProcess is the process on this machine that orders calls, or the one that watches it.
func nodeAgentProcess(pod corev1.Pod, worker bool) int {
	GinkgoHelper()
	var pids []int
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
	Expect(pids).To(HaveLen(1))
	return pids[0]
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
