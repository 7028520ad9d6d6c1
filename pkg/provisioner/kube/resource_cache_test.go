package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

func somePod(name, node string, milli int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)},
		}}}},
	}
}

func names(nodes []placement.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Name)
	}
	return strings.Join(all, " ")
}

func TestNodesThatCannotBeUsedAreExplained(t *testing.T) {
	noSchedule := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, c := range map[string]struct {
		change  func(*corev1.Node)
		because string
	}{
		"fit": {func(*corev1.Node) {}, ""},
		"preferred": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, ""},
		"tolerated": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "fast", Effect: corev1.TaintEffectNoExecute}}
		}, ""},
		"not ready":    {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, "not ready"},
		"never seen":   {func(n *corev1.Node) { n.Status.Conditions = nil }, "not ready"},
		"cordoned":     {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "cordoned"},
		"tainted":      {noSchedule, "gpu=yes:NoSchedule"},
		"other labels": {func(n *corev1.Node) { n.Labels = map[string]string{"disk": "hdd"} }, "disk=ssd"},
		"no labels":    {func(n *corev1.Node) { n.Labels = nil }, "disk=ssd"},
	} {
		t.Run(name, func(t *testing.T) {
			f := testFunction("hello")
			f.Spec.Template.Placement.NodeSelector = map[string]string{"disk": "ssd"}
			f.Spec.Template.Placement.Tolerations = []corev1.Toleration{{Key: "fast", Operator: corev1.TolerationOpExists}}
			l := newResourceCache()
			l.setNode(readyNode("node-1", func(n *corev1.Node) { n.Labels = f.Spec.Template.Placement.NodeSelector }, c.change))
			got := l.candidates(f, epoch)
			if c.because == "" {
				if len(got.Nodes) != 1 || len(got.Excluded) != 0 {
					t.Errorf("candidates %+v", got)
				}
				return
			}
			if says := got.Excluded.String(); len(got.Nodes) != 0 || !strings.HasPrefix(says, "1 node: 1 ") || !strings.Contains(says, c.because) {
				t.Errorf("nodes %v, because %q, want because of %q", got.Nodes, says, c.because)
			}
		})
	}
}

func TestANodeThatFailedIsAvoidedWhileOthersHaveRoom(t *testing.T) {
	l := newResourceCache()
	l.setNode(readyNode("bad"))
	l.setNode(readyNode("good"))
	l.avoid("bad", epoch.Add(avoidFor))
	f, want := testFunction("hello"), placement.Amount{MilliCPU: 600, Pods: 1}
	first := func(int) int { return 0 }
	if node, ok := placement.NewSite(l.candidates(f, epoch)).Pick(want, first); node != "good" || !ok {
		t.Errorf("picked %q", node)
	}
	l.setPod(somePod("big", "good", 600))
	if node, ok := placement.NewSite(l.candidates(f, epoch)).Pick(want, first); node != "bad" || !ok {
		t.Errorf("with no room elsewhere: picked %q", node)
	}
	l.removePod(podKey{"shop", "big"})
	if later := l.candidates(f, epoch.Add(avoidFor)); len(later.Nodes) != 2 {
		t.Errorf("later: %s", names(later.Nodes))
	}
}

func TestAPodIsCountedAsTheSchedulerDoes(t *testing.T) {
	pod := somePod("a", "node-1", 100)
	pod.Spec.InitContainers = somePod("", "", 250).Spec.Containers
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}
	if got, want := podAmount(slimPod(pod)), (placement.Amount{MilliCPU: 300, Pods: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPodsThatStayAsLongAsTheirNodeAreFixed(t *testing.T) {
	ownedBy := func(kind string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: new(true)}}
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		fixed  int64
	}{
		"of a DaemonSet":     {ownedBy("DaemonSet"), 100},
		"a static pod":       {ownedBy("Node"), 100},
		"of a ReplicaSet":    {ownedBy("ReplicaSet"), 0},
		"nobody's":           {func(*corev1.Pod) {}, 0},
		"named by DaemonSet": {func(pod *corev1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newResourceCache()
			l.setNode(readyNode("node-1"))
			pod := somePod("p", "node-1", 100)
			c.change(pod)
			for _, seen := range []*corev1.Pod{pod, slimPod(pod), slimPod(slimPod(pod))} {
				l.setPod(seen)
				if n := l.candidates(testFunction("any"), epoch).Nodes[0]; n.Fixed.MilliCPU != c.fixed || n.Requested.MilliCPU != 100 {
					t.Errorf("%dm of %dm are fixed, want %dm of 100m", n.Fixed.MilliCPU, n.Requested.MilliCPU, c.fixed)
				}
			}
			pod.Status.Phase = corev1.PodFailed
			l.setPod(slimPod(pod))
			if n := l.allNodes()[0]; n.Fixed != (placement.Amount{}) || n.Requested != (placement.Amount{}) {
				t.Errorf("after its end %+v", n)
			}
		})
	}
}

func TestFurtherResourcesOfNodesAndPodsAreCounted(t *testing.T) {
	l := newResourceCache()
	l.setNode(readyNode("node-1", func(n *corev1.Node) {
		n.Status.Allocatable["nvidia.com/gpu"], n.Status.Allocatable["ephemeral-storage"] = resource.MustParse("4"), resource.MustParse("10Gi")
		n.Status.Allocatable["hugepages-2Mi"] = resource.MustParse("1Gi")
	}))
	pod := somePod("p", "node-1", 100)
	list := pod.Spec.Containers[0].Resources.Requests
	list["nvidia.com/gpu"], list["ephemeral-storage"] = resource.MustParse("3"), resource.MustParse("1Gi")
	for _, seen := range []*corev1.Pod{pod, slimOther(pod), slimOther(slimOther(pod))} {
		l.setPod(seen)
		n := l.allNodes()[0]
		if n.Allocatable.Scalars != placement.ScalarsOf(map[string]int64{"nvidia.com/gpu": 4, "ephemeral-storage": 10 << 30}) {
			t.Errorf("the node has %+v", n.Allocatable)
		}
		if want := (placement.Amount{MilliCPU: 100, Pods: 1, Scalars: placement.ScalarsOf(map[string]int64{"nvidia.com/gpu": 3, "ephemeral-storage": 1 << 30})}); n.Requested != want {
			t.Errorf("the pod requests %+v, want %+v", n.Requested, want)
		}
	}
}

// Whatever happens in whatever order, the sums are those of the pods.
func TestSumsAreThoseOfThePods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newResourceCache()
		nodeName := rapid.SampledFrom([]string{"n-0", "n-1", "n-2"})
		podName := rapid.SampledFrom([]string{"p-0", "p-1", "p-2", "p-3"})
		type counted struct {
			node    string
			milli   int64
			assumed bool
		}
		pods, nodes := map[string]counted{}, map[string]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"pod": func(t *rapid.T) {
				name, node, milli := podName.Draw(t, "pod"), nodeName.Draw(t, "node"), rapid.Int64Range(0, 100).Draw(t, "milli")
				l.setPod(somePod(name, node, milli))
				pods[name] = counted{node, milli, false}
			},
			"assume": func(t *rapid.T) {
				name, node := podName.Draw(t, "pod"), nodeName.Draw(t, "node")
				l.assume(podKey{"shop", name}, node, placement.Amount{MilliCPU: 7, Pods: 1})
				pods[name] = counted{node, 7, true}
			},
			"drop": func(t *rapid.T) {
				name := podName.Draw(t, "pod")
				l.dropAssumed(podKey{"shop", name})
				if pods[name].assumed {
					delete(pods, name)
				}
			},
			"created": func(t *rapid.T) {
				name := podName.Draw(t, "pod")
				p, there := pods[name]
				if !there {
					return
				}
				l.confirm(somePod(name, p.node, 9))
				if p.assumed {
					pods[name] = counted{p.node, 9, true}
				}
			},
			"finish": func(t *rapid.T) {
				name, node := podName.Draw(t, "pod"), nodeName.Draw(t, "node")
				pod := somePod(name, node, 1)
				pod.Status.Phase = corev1.PodFailed
				l.setPod(pod)
				delete(pods, name)
			},
			"remove": func(t *rapid.T) {
				name := podName.Draw(t, "pod")
				l.removePod(podKey{"shop", name})
				delete(pods, name)
			},
			"node": func(t *rapid.T) {
				name := nodeName.Draw(t, "node")
				l.setNode(readyNode(name))
				nodes[name] = true
			},
			"no node": func(t *rapid.T) {
				name := nodeName.Draw(t, "node")
				l.removeNode(name)
				delete(nodes, name)
			},
			"": func(t *rapid.T) {
				want := map[string]placement.Amount{}
				for _, p := range pods {
					want[p.node] = want[p.node].Plus(placement.Amount{MilliCPU: p.milli, Pods: 1})
				}
				found := l.candidates(testFunction("any"), epoch).Nodes
				if len(found) != len(nodes) {
					t.Fatalf("nodes %s, want %v", names(found), nodes)
				}
				for _, n := range found {
					if !nodes[n.Name] || n.Requested != want[n.Name] {
						t.Fatalf("%s has %+v, want %+v", n.Name, n.Requested, want[n.Name])
					}
				}
				if len(nodes)+len(pods) == 0 && len(l.nodes) != 0 {
					t.Fatalf("%d nodes are left", len(l.nodes))
				}
			},
		})
	})
}

func BenchmarkCandidates(b *testing.B) {
	l := newResourceCache()
	for i := range 1000 {
		l.setNode(readyNode(fmt.Sprintf("node-%d", i)))
	}
	for i := range 10000 {
		l.setPod(somePod(fmt.Sprintf("pod-%d", i), fmt.Sprintf("node-%d", i%1000), 10))
	}
	f, now := testFunction("hello"), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if got := l.candidates(f, now); len(got.Nodes) != 1000 {
			b.Fatal(len(got.Nodes))
		}
	}
}
