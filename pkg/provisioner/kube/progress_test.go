package kube

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// condition makes one of a pod be so.
func condition(of corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: of, Status: status, Message: "long words"})
	}
}

func TestHowFarAStartHasComeIsSeen(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		uid := string(f.UID)
		expect := func(wantCreated, wantSandboxed time.Time) {
			t.Helper()
			if created, sandboxed := th.Progress(uid, "c-1"); !created.Equal(wantCreated) || !sandboxed.Equal(wantSandboxed) {
				t.Errorf("created %v, sandboxed %v, want %v, %v", created, sandboxed, wantCreated, wantSandboxed)
			}
		}
		never, launched := time.Time{}, time.Now()
		expect(never, never)
		th.start(f, "c-1")
		expect(launched, never)
		time.Sleep(time.Second)
		th.report(th.pod(f, "c-1"), condition(corev1.PodReadyToStartContainers, corev1.ConditionFalse))
		expect(launched, never)
		time.Sleep(time.Second)
		th.report(th.pod(f, "c-1"), func(pod *corev1.Pod) { pod.Status.Conditions = nil }, condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue))
		network := time.Now()
		expect(launched, network)
		time.Sleep(time.Second)
		th.report(th.pod(f, "c-1"), condition(corev1.PodReady, corev1.ConditionTrue))
		expect(launched, network)
		th.Stop(uid, "c-1", false)
		synctest.Wait()
		expect(never, never)
	})
}

// Clusters that do not tell of the network tell that a pod is ready.
func TestAPodThatIsReadyHasItsNetwork(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		th.start(f, "c-1")
		time.Sleep(time.Second)
		th.report(th.pod(f, "c-1"), condition(corev1.PodReady, corev1.ConditionTrue))
		if _, sandboxed := th.Progress(string(f.UID), "c-1"); !sandboxed.Equal(time.Now()) {
			t.Errorf("it has its network since %v", sandboxed)
		}
	})
}

// What was a spare instance needed neither pod nor network.
func TestATakenInstanceHadItsNetwork(t *testing.T) {
	withSpare(t, func(th *harness) {
		f, launched := pythonFunction("f"), time.Now()
		if begun, _ := th.take(f, "00000007-000001"); !begun {
			t.Fatal("it was not taken")
		}
		created, sandboxed := th.Progress(string(f.UID), "00000007-000001")
		if created.Before(launched) || sandboxed.IsZero() || sandboxed.After(created) {
			t.Errorf("launched %v, created %v, sandboxed %v", launched, created, sandboxed)
		}
	})
}

// A scheduler that takes a function over knows which of its pods ran, so that it waits for
// their agents before it orders others.
func TestWhichPodsRanIsKnownWhenTheyAreTakenOver(t *testing.T) {
	f := testFunction("hello")
	ready, starting := podOfOther(t, f, "c-1", "node-1"), podOfOther(t, f, "c-2", "node-1")
	condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue)(ready)
	condition(corev1.PodReady, corev1.ConditionTrue)(ready)
	condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue)(starting)
	condition(corev1.PodReady, corev1.ConditionFalse)(starting)
	runHarness(t, testConfig(), append([]runtime.Object{ready, starting}, oneNode...), func(th *harness) {
		found := map[string]provisioner.Existing{}
		for _, e := range th.Adopt(f) {
			found[string(e.CID)] = e
		}
		if len(found) != 2 || !found["c-1"].Ran || found["c-2"].Ran {
			t.Errorf("found %+v", found)
		}
	})
}

func TestOfConditionsOnlyWhatIsAskedForIsKept(t *testing.T) {
	yes, no := corev1.ConditionTrue, corev1.ConditionFalse
	f := testFunction("hello")
	for name, tc := range map[string]struct {
		conditions []func(*corev1.Pod)
		want       []corev1.PodConditionType
	}{
		"none":       {nil, nil},
		"not so far": {[]func(*corev1.Pod){condition(corev1.PodReadyToStartContainers, no), condition(corev1.PodReady, no)}, nil},
		"a network":  {[]func(*corev1.Pod){condition(corev1.PodReadyToStartContainers, yes), condition(corev1.PodReady, no)}, []corev1.PodConditionType{corev1.PodReadyToStartContainers}},
		"ready":      {[]func(*corev1.Pod){condition(corev1.PodReadyToStartContainers, yes), condition(corev1.PodReady, yes)}, []corev1.PodConditionType{corev1.PodReady}},
		"evicted":    {[]func(*corev1.Pod){condition(corev1.PodReady, yes), condition(corev1.DisruptionTarget, yes), condition(corev1.PodScheduled, yes)}, []corev1.PodConditionType{corev1.DisruptionTarget, corev1.PodReady}},
	} {
		pod := podOfOther(t, f, "c-1", "node-1")
		pod.Status.Conditions = nil
		for _, change := range tc.conditions {
			change(pod)
		}
		got := slimPod(pod).Status.Conditions
		if len(got) != len(tc.want) {
			t.Errorf("%s: kept %v", name, got)
			continue
		}
		for i, c := range got {
			if c.Type != tc.want[i] || c.Status != yes || (c.Message == "") == (c.Type == corev1.DisruptionTarget) {
				t.Errorf("%s: kept %+v, want %s", name, c, tc.want[i])
			}
		}
	}
}

func TestNodesAreToldWithWhatIsRequested(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		th.start(testFunction("hello"), "c-1")
		nodes := th.Nodes()
		if len(nodes) != 1 || nodes[0].Name != "node-1" || nodes[0].Allocatable.MilliCPU != 1000 || nodes[0].Requested.MilliCPU != 110 {
			t.Errorf("nodes %+v", nodes)
		}
	})
}
