package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// harness is a Driver without a cluster: the client's store is the
// API, and the test plays kubelet.
type harness struct {
	*Driver
	t      *testing.T
	client *fake.Clientset

	mu sync.Mutex
	// fail, if set, answers instead of the API.
	fail func(verb string, attempt int) error
	// requests counts the requests about pods by verb.
	requests map[string]int
	deleted  []metav1.DeleteOptions
	// lingering pods are there still after they were deleted.
	lingering bool
	// watching is the watch of pods, and away says that the API refuses connections for another one.
	watching watch.Interface
	away     bool
}

// pythonRuntime is the one Runtime that there is, with a warm pool.
type pythonRuntime struct{}

func (pythonRuntime) Get(name string) (*v1alpha1.ClusterRuntime, bool) {
	rt := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "python3.13", UID: "uid-python3.13"}}
	rt.Spec.Image, rt.Spec.FileExtension, rt.Spec.WarmPools = "python:1", "py", []v1alpha1.WarmPool{{Name: "small", Size: 2}}
	v1alpha1.DefaultClusterRuntime(rt)
	return rt, name == rt.Name
}

func testConfig() Config {
	return Config{
		Pod: podspec.Config{
			AgentImage: "agent:1", SchedulerAddr: "scheduler:9443",
			AgentRequests: placement.Amount{MilliCPU: 10, Memory: 32 << 20}, AgentMemoryLimit: 256 << 20,
		},
		QPS: 1000, Burst: 1000,
	}
}

// fakeClient says that lists of client-go's fake do not come by a watch.
type fakeClient struct{ Client }

func (fakeClient) IsWatchListSemanticsUnSupported() bool { return true }

// runHarness runs a test in a bubble with a Driver that has synced.
func runHarness(t *testing.T, config Config, objects []runtime.Object, act func(*harness)) {
	synctest.Test(t, func(t *testing.T) {
		th := &harness{t: t, client: fake.NewClientset(objects...), requests: map[string]int{}}
		th.client.PrependReactor("*", "pods", th.react)
		th.client.PrependWatchReactor("pods", th.watch)
		var err error
		th.Driver, err = New(config, Deps{
			Client: fakeClient{th.client.CoreV1()}, Runtimes: pythonRuntime{}, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := th.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		// Informers begin with a list after a moment.
		time.Sleep(time.Second)
		synctest.Wait()
		if !th.Synced() {
			t.Error("it has not synced")
		}
		act(th)
		cancel()
		running.Wait()
	})
}

func (th *harness) react(action k8stesting.Action) (bool, runtime.Object, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.requests[action.GetVerb()]++
	n := th.requests[action.GetVerb()]
	if create, ok := action.(k8stesting.CreateAction); ok && action.GetVerb() == "create" {
		create.GetObject().(*corev1.Pod).UID = types.UID(fmt.Sprintf("pod-%d", n))
	}
	if d, ok := action.(k8stesting.DeleteActionImpl); ok {
		th.deleted = append(th.deleted, d.DeleteOptions)
	}
	if th.fail != nil {
		if err := th.fail(action.GetVerb(), n); err != nil {
			return true, nil, err
		}
	}
	return th.lingering && action.GetVerb() == "delete", nil, nil
}

func (th *harness) watch(action k8stesting.Action) (bool, watch.Interface, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.away {
		return true, nil, refusedDial
	}
	var err error
	th.watching, err = th.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
	return true, th.watching, err
}

// awayFor has the API break the watch of pods and refuse connections for some time.
func (th *harness) awayFor(d time.Duration) {
	set := func(away bool) {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.away = away
	}
	set(true)
	th.watching.Stop()
	time.Sleep(d)
	set(false)
	time.Sleep(time.Minute) // until the informer has tried again
}

func (th *harness) count(verb string) int {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.requests[verb]
}

// exit is the next Exit, or fails the test.
func (th *harness) exit() provisioner.Exit {
	th.t.Helper()
	synctest.Wait()
	select {
	case e := <-th.Exits():
		return e
	default:
		th.t.Error("there is no exit")
		return provisioner.Exit{}
	}
}

func (th *harness) noExit() {
	th.t.Helper()
	synctest.Wait()
	select {
	case e := <-th.Exits():
		th.t.Errorf("unexpected exit %+v", e)
	default:
	}
}

// start starts an instance and waits for its pod.
func (th *harness) start(f *v1alpha1.Function, cid invocation.CID) {
	th.t.Helper()
	th.Start(provisioner.InstanceSpec{Function: f, CID: cid, Node: "node-1"})
	synctest.Wait()
}

// pod is the pod of an instance as the API has it.
func (th *harness) pod(f *v1alpha1.Function, cid invocation.CID) *corev1.Pod {
	th.t.Helper()
	object, err := th.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), f.Namespace, podspec.Name(f.Name, string(f.UID), cid))
	if err != nil {
		return nil
	}
	return object.(*corev1.Pod).DeepCopy()
}

// report changes a pod as the kubelet would.
func (th *harness) report(pod *corev1.Pod, changes ...func(*corev1.Pod)) {
	th.t.Helper()
	if pod.Status.ContainerStatuses == nil {
		pod.Status = *running().Status.DeepCopy()
	}
	for _, change := range changes {
		change(pod)
	}
	if err := th.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace); err != nil {
		th.t.Error(err)
	}
	synctest.Wait()
}

// requested is what is requested of a node.
func (th *harness) requested(name string) placement.Amount {
	for _, n := range th.Candidates(testFunction("any")).Nodes {
		if n.Name == name {
			return n.Requested
		}
	}
	return placement.Amount{}
}

// testFunction is the unit of a function's first revision.
func testFunction(name string) *v1alpha1.Function { return testUnit(name, 1) }

func testUnit(name string, number int) *v1alpha1.Function {
	f := &v1alpha1.Function{}
	f.Name, f.Namespace, f.UID = name, "shop", types.UID(fmt.Sprintf("uid-%s-%d", name, number))
	f.Annotations = map[string]string{
		v1alpha1.AnnotationRevision: fmt.Sprintf("%05d", number), v1alpha1.AnnotationFunctionUID: "uid-" + name,
	}
	f.Spec.Template.Image = "app:1"
	v1alpha1.Default(f)
	return f
}

func readyNode(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("1"),
				corev1.ResourceMemory: resource.MustParse("1Gi"),
				corev1.ResourcePods:   resource.MustParse("20"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(n)
	}
	return n
}
