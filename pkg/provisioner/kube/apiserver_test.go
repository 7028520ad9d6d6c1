//go:build apiserver

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/apitest"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// apiHarness is a Driver before a real API; the test plays kubelet.
type apiHarness struct {
	*Driver
	t      *testing.T
	client kubernetes.Interface
}

func startRuntime(t *testing.T, client kubernetes.Interface) *apiHarness {
	t.Helper()
	r, err := New(testConfig(), Deps{
		Client: client.CoreV1(), Runtimes: pythonRuntime{}, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	s := &apiHarness{r, t, client}
	s.eventually("it has synced", func() error {
		if !r.Synced() {
			return errors.New("not yet")
		}
		return nil
	})
	return s
}

// in is the same stage, failing the test t.
func (s *apiHarness) in(t *testing.T) *apiHarness { return &apiHarness{s.Driver, t, s.client} }

func (s *apiHarness) eventually(what string, check func() error) {
	s.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v: %v", what, err, last)
	}
}

func (s *apiHarness) exit() provisioner.Exit {
	s.t.Helper()
	select {
	case e := <-s.Exits():
		return e
	case <-time.After(30 * time.Second):
		s.t.Fatal("there is no exit")
		return provisioner.Exit{}
	}
}

func (s *apiHarness) pod(name string) *corev1.Pod {
	s.t.Helper()
	var pod *corev1.Pod
	s.eventually("the pod "+name, func() (err error) {
		pod, err = s.client.CoreV1().Pods("shop").Get(s.t.Context(), name, metav1.GetOptions{})
		return err
	})
	return pod
}

// prepare makes a namespace that takes only restricted pods, and what the
// function names.
func prepare(t *testing.T, client kubernetes.Interface) *v1alpha1.Function {
	t.Helper()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, create := t.Context(), metav1.CreateOptions{}
	must(client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, create))
	must(client.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40m")}},
	}, create))
	must(client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000,
	}, create))
	node, err := client.CoreV1().Nodes().Create(ctx, readyNode("node-1"), create)
	must(node, err)
	// A new node is tainted until a controller sees that it is ready.
	node.Spec.Taints = nil
	must(client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}))
	f := testFunction("hello")
	f.Spec.Template.Placement.RuntimeClassName, f.Spec.Template.Placement.PriorityClassName, f.Spec.Template.ServiceAccountName = "gvisor", "high", "teller"
	f.Spec.Template.ImagePullSecrets = []v1alpha1.LocalReference{{Name: "registry"}}
	f.Spec.Template.EnvFrom = []v1alpha1.EnvFromSource{{Prefix: "DB_", SecretRef: &v1alpha1.EnvFromReference{Name: "db"}}}
	f.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "MODE", Value: "$(PORT)"}}
	f.Spec.Template.Code = &v1alpha1.Code{ConfigMapRef: v1alpha1.LocalReference{Name: "code"}}
	return f
}

func TestPodsBeforeARealAPI(t *testing.T) {
	client, err := kubernetes.NewForConfig(apitest.Start(t, false))
	if err != nil {
		t.Fatal(err)
	}
	f := prepare(t, client)
	s := startRuntime(t, client)
	s.eventually("the node is a candidate", func() error {
		if got := s.Candidates(f); len(got.Nodes) != 1 {
			return errors.New(got.Excluded.String())
		}
		return nil
	})

	t.Run("a life", func(t *testing.T) { testLife(t, s.in(t), f) })
	t.Run("a pod that is there", func(t *testing.T) { testExisting(t, s.in(t), f) })
	t.Run("a spare one", func(t *testing.T) { testSpare(t, s.in(t)) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, s.in(t), f) })
}

func testLife(t *testing.T, s *apiHarness, f *v1alpha1.Function) {
	s.Start(provisioner.InstanceSpec{Function: f, CID: "c-1", Node: "node-1"})
	pod := s.pod("hello-c-1")
	s.eventually("the overhead counts", func() error {
		if nodes := s.Candidates(f).Nodes; nodes[0].Requested.MilliCPU != 150 {
			return errors.New("not yet")
		}
		return nil
	})
	if uid, cid, ok := s.Identify(string(pod.UID), "shop", pod.Name); !ok || uid != string(f.UID) || cid != "c-1" {
		t.Errorf("it is identified as %s %s %v", uid, cid, ok)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue})
	if _, err := s.client.CoreV1().Pods("shop").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is seen that the pod has a network", func() error {
		if created, sandboxed := s.Progress(string(f.UID), "c-1"); created.IsZero() || !sandboxed.After(created) {
			return fmt.Errorf("it was created %v and had its network %v", created, sandboxed)
		}
		return nil
	})
	s.Stop(string(f.UID), "c-1", false)
	s.eventually("the pod is being deleted", func() error {
		if pod := s.pod("hello-c-1"); pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds != 70 {
			return errors.New("not yet")
		}
		return nil
	})
	if err := s.client.CoreV1().Pods("shop").Delete(t.Context(), "hello-c-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	if e := s.exit(); e.CID != "c-1" || e.Reason != reasonStopped {
		t.Errorf("exit %+v", e)
	}
}

func testExisting(t *testing.T, s *apiHarness, f *v1alpha1.Function) {
	s.Start(provisioner.InstanceSpec{Function: f, CID: "c-2", Node: "node-1"})
	first := s.pod("hello-c-2")
	// Another scheduler that orders the same instance finds this pod.
	other := startRuntime(t, s.client)
	other.Start(provisioner.InstanceSpec{Function: f, CID: "c-2", Node: "node-1"})
	other.eventually("the pod is known", func() error {
		other.registry.mu.Lock()
		defer other.registry.mu.Unlock()
		if in := other.registry.byID[id{string(f.UID), "c-2"}]; in == nil || in.uid != first.UID {
			return errors.New("not yet")
		}
		return nil
	})
	// Its function ends: both hear of it, and the pod goes.
	first.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		Name: functionC, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.Now(),
		}},
	}}}
	if _, err := s.client.CoreV1().Pods("shop").UpdateStatus(t.Context(), first, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, each := range []*apiHarness{s, other} {
		if e := each.exit(); e.CID != "c-2" || e.Code != v1alpha1.ReasonOutOfMemory {
			t.Errorf("exit %+v", e)
		}
	}
	s.eventually("the pod is gone", func() error {
		pods, err := s.client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = errors.New("not yet")
		}
		return err
	})
}

func testRefusals(t *testing.T, s *apiHarness, f *v1alpha1.Function) {
	elsewhere := f.DeepCopy()
	elsewhere.Namespace, elsewhere.UID = "nowhere", "uid-nowhere"
	s.Start(provisioner.InstanceSpec{Function: elsewhere, CID: "c-1", Node: "node-1"})
	if e := s.exit(); e.Code != v1alpha1.ReasonPodRefused || !strings.Contains(e.Reason, "nowhere does not exist") {
		t.Errorf("no namespace: %+v", e)
	}

	wrong := f.DeepCopy()
	wrong.Spec.Template.Placement.PriorityClassName = "missing"
	s.Start(provisioner.InstanceSpec{Function: wrong, CID: "c-3", Node: "node-1"})
	if e := s.exit(); e.Code != v1alpha1.ReasonPodRefused || !strings.Contains(e.Reason, "missing") {
		t.Errorf("no priority class: %+v", e)
	}

	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0"), corev1.ResourceConfigMaps: resource.MustParse("0")}
	quota, err := s.client.CoreV1().ResourceQuotas("shop").Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// No controller does it here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if _, err := s.client.CoreV1().ResourceQuotas("shop").UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server enforces a quota once its own watch has seen it.
	s.eventually("the quota is enforced", func() error {
		_, err := s.client.CoreV1().ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("not yet")
		}
		return nil
	})
	s.Start(provisioner.InstanceSpec{Function: f, CID: "c-4", Node: "node-1"})
	if e := s.exit(); e.Code != v1alpha1.ReasonQuotaExceeded || !strings.Contains(e.Reason, "exceeded quota: small") {
		t.Errorf("quota: %+v", e)
	}
	if nodes := s.Candidates(f).Nodes; nodes[0].Requested != (placement.Amount{}) {
		t.Errorf("%+v is requested by pods that do not exist", nodes[0].Requested)
	}
}

// testSpare is the life of a spare instance before a real API.
func testSpare(t *testing.T, s *apiHarness) {
	f := pythonFunction("taker")
	start := func(cid invocation.CID) *corev1.Pod {
		s.Start(provisioner.InstanceSpec{Function: poolFunction(), CID: cid, Node: "node-1"})
		return s.pod(podspec.Name(poolFunction().Name, testPool.UID(), cid))
	}
	assign := func(spare, cid invocation.CID) (taken bool) {
		done := make(chan provisioner.AssignResult, 1)
		s.eventually("it is there", func() error {
			if !s.Assign(testPool.UID(), spare, provisioner.InstanceSpec{Function: f, CID: cid, Node: "node-1"}, func(r provisioner.AssignResult) { done <- r }) {
				return errors.New("not yet")
			}
			return nil
		})
		return <-done == provisioner.AssignTaken
	}
	pod := start("spare-1")
	// A change of status in between, as of every pod that starts, is no obstacle.
	pod.Status.Phase = corev1.PodRunning
	if _, err := s.client.CoreV1().Pods("shop").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if !assign("spare-1", "00000007-000001") {
		t.Fatal("it was not assigned")
	}
	if uid, cid, known := s.Identify(string(pod.UID), "shop", pod.Name); uid != string(f.UID) || cid != "00000007-000001" || !known {
		t.Errorf("the pod is %s %s", uid, cid)
	}
	assigned := s.pod(pod.Name)
	if of, ours := identity(assigned); !ours || of != (id{string(f.UID), "00000007-000001"}) {
		t.Errorf("the API has %v", assigned.ObjectMeta)
	}
	s.eventually("the informer shows the function", func() error {
		if len(s.watcher.cluster.podsOf(string(f.UID))) != 1 {
			return errors.New("not yet")
		}
		return nil
	})

	// Somebody else was faster.
	second := start("spare-2")
	second.Labels[wellknown.LabelComponent], second.Labels[wellknown.LabelFunctionUID] = wellknown.ComponentFunction, "uid-other"
	if _, err := s.client.CoreV1().Pods("shop").Update(t.Context(), second, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if assign("spare-2", "00000007-000002") {
		t.Error("two functions have one instance")
	}
	s.Stop(string(f.UID), "00000007-000001", false)
	for _, name := range []string{pod.Name, second.Name} {
		// What the kubelet does when the containers have ended.
		if err := s.client.CoreV1().Pods("shop").Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	}
	if e := s.exit(); e.FunctionUID != string(f.UID) || e.CID != "00000007-000001" {
		t.Errorf("the exit is %+v", e)
	}
}
