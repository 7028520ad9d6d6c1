package kube

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

// foreignPod is one of somebody else's: a service with sidecars and what people and
// tools write on it.
func foreignPod(i int) *corev1.Pod {
	requests := func(cpu, memory string) corev1.ResourceRequirements {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		return corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
	}
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "theirs", Name: fmt.Sprintf("web-%d", i), UID: "u", ResourceVersion: "7",
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": string(make([]byte, 1000))},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", Overhead: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("10Mi")},
			InitContainers: []corev1.Container{
				{Name: "migrate", Resources: requests("2", "50Mi")},
				{Name: "proxy", Resources: requests("100m", "40Mi"), RestartPolicy: &always},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for c := range 4 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("c", c), Image: "registry.example/web:1", Resources: requests("250m", "64Mi"),
			Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
		})
	}
	return pod
}

func TestL10OfAStrangersPodOnlyItsSumIsKept(t *testing.T) {
	pod := foreignPod(1)
	want := podAmount(pod)
	for range 2 { // informers may do it twice
		slimmed, err := slim(pod)
		if err != nil {
			t.Fatal(err)
		}
		pod = slimmed.(*corev1.Pod)
		if diff := cmp.Diff(want, podAmount(pod)); diff != "" {
			t.Errorf("it requests something else: %s", diff)
		}
		if len(pod.Spec.Containers) != 1 || pod.Spec.InitContainers != nil || pod.Labels != nil || pod.Annotations != nil || pod.Spec.Overhead != nil {
			t.Errorf("more is kept than the sum: %+v", pod)
		}
	}
	pod = foreignPod(1)
	pod.Status.Phase = corev1.PodSucceeded
	if ended := slimPod(pod); ended.Spec.Containers != nil || !finished(ended) {
		t.Errorf("of a pod that has ended its containers are kept: %+v", ended.Spec)
	}
}

func TestL10PodsWithoutANodeAreNotAskedFor(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		asked := 0
		for _, action := range th.client.Actions() {
			var selector string
			switch a := action.(type) {
			case k8stesting.ListAction:
				selector = a.GetListRestrictions().Fields.String()
			case k8stesting.WatchAction:
				selector = a.GetWatchRestrictions().Fields.String()
			default:
				continue
			}
			if action.GetResource().Resource != "pods" {
				continue
			}
			asked++
			if selector != podsWithANode {
				t.Errorf("%s of pods with the selector %q, want %q", action.GetVerb(), selector, podsWithANode)
			}
		}
		if asked == 0 {
			t.Error("nothing was asked for")
		}
	})
}

// BenchmarkL10Pods measures what an informer keeps of each pod of the cluster that is not
// of a function.
func BenchmarkL10Pods(b *testing.B) {
	const pods = 10_000
	kept := make([]k8sruntime.Object, 0, pods)
	for b.Loop() {
		clear(kept)
		kept = kept[:0]
		before := heap()
		for i := range pods {
			kept = append(kept, slimPod(foreignPod(i)))
		}
		b.ReportMetric(float64(heap()-before)/pods, "B/pod")
	}
	runtime.KeepAlive(kept)
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
