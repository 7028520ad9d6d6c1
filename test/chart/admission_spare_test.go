//go:build apiserver

package chart

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

var chartPool = warmpool.Pool{Scheduler: "windlass-scheduler-1", Namespace: "wide-open", Runtime: "python3.13", Name: "small"}

// spareInput is what a spare pod, as the scheduler makes it, depends on.
func spareInput() podspec.Input {
	rt := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "python3.13", UID: "0a1b2c3d-0000-4000-8000-000000000001"}}
	rt.Spec.Image, rt.Spec.FileExtension, rt.Spec.WarmPools = "python3", "py", []v1alpha1.WarmPool{{Name: "small", Size: 1}}
	return podspec.Input{
		Config: podspec.Config{AgentImage: agentImage, AgentMemoryLimit: 256 << 20, SchedulerAddr: "windlass-scheduler.windlass.svc:9443", OwnerAddr: "10.0.0.1:9443", CA: "PEM", TLSDomain: "windlass.windlass.windlass",
			NodeAddr: "windlass-node.windlass.svc:9443", NodeTokenAudience: podtoken.NodeAudience},
		Function: warmpool.PoolFunction(chartPool, rt), Runtime: rt, CID: "1", Node: "a-node", Decided: time.Unix(0, 0),
	}
}

// sparePolicyHolds makes spare pods, and changes pods, in a namespace.
func sparePolicyHolds(t *testing.T, c *cluster, scheduler kubernetes.Interface, target string) {
	create := func(change func(*corev1.Pod), dry []string) (*corev1.Pod, error) {
		pod, err := podspec.Spare(spareInput())
		if err != nil {
			t.Fatal(err)
		}
		change(pod)
		return scheduler.CoreV1().Pods(target).Create(t.Context(), pod, metav1.CreateOptions{DryRun: dry})
	}
	for name, forbidden := range map[string]struct {
		change  func(*corev1.Pod)
		message string
	}{
		"a spare pod of no pool":             {func(p *corev1.Pod) { delete(p.Labels, wellknown.LabelPool) }, "must have the labels"},
		"a spare pod of no Runtime":          {func(p *corev1.Pod) { delete(p.Labels, wellknown.LabelRuntime) }, "must have the labels"},
		"a spare pod that has a function":    {func(p *corev1.Pod) { p.Labels[wellknown.LabelFunctionUID] = "u" }, "must have the labels"},
		"a spare pod that has a revision":    {func(p *corev1.Pod) { p.Labels[wellknown.LabelRevisionUID] = "u" }, "must have the labels"},
		"a spare pod without an owner":       {func(p *corev1.Pod) { p.OwnerReferences = nil }, "must be owned"},
		"a spare pod of another Runtime":     {func(p *corev1.Pod) { p.OwnerReferences[0].Name = "nodejs22.x" }, "must be owned"},
		"a spare pod owned by a Function":    {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Function" }, "must be owned"},
		"a spare pod with a Secret":          {mountSecret, "volumes must be"},
		"a spare pod on the host's network":  {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "must not share"},
		"a spare pod that says to be a real": {func(p *corev1.Pod) { p.Labels[wellknown.LabelComponent] = wellknown.ComponentFunction }, "must have the labels"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(forbidden.change, []string{metav1.DryRunAll})
			if err == nil || !strings.Contains(err.Error(), forbidden.message) {
				t.Errorf("refused with %v, want the policy's %q", err, forbidden.message)
			}
		})
	}
	// The garbage collector deletes a pod whose owner does not exist.
	owner := c.runtime(t, "python3.13")
	pod, err := create(func(p *corev1.Pod) { p.OwnerReferences[0].UID = owner }, nil)
	if err != nil {
		t.Fatalf("a spare pod is refused: %v", err)
	}
	own, err := c.client.CoreV1().Pods(target).Create(t.Context(), functionPodIn(t, target), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changesOfPods(t, scheduler, pod, own)
}

// runtime creates a Runtime, unless it exists, and returns its UID.
func (c *cluster) runtime(t *testing.T, name string) types.UID {
	t.Helper()
	const runtimes = "/apis/windlass.dev/v1alpha1/clusterruntimes"
	rt := &v1alpha1.ClusterRuntime{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindClusterRuntime},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ClusterRuntimeSpec{Image: name, Protocol: v1alpha1.ProtocolLambdaRuntime},
	}
	text, err := json.Marshal(rt)
	if err != nil {
		t.Fatal(err)
	}
	api := c.client.Discovery().RESTClient()
	got, err := api.Post().AbsPath(runtimes).Body(text).DoRaw(t.Context())
	if apierrors.IsAlreadyExists(err) {
		got, err = api.Get().AbsPath(runtimes, name).DoRaw(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, rt); err != nil {
		t.Fatal(err)
	}
	return rt.UID
}

func functionPodIn(t *testing.T, namespace string) *corev1.Pod {
	pod := functionPod(t)
	pod.Namespace = namespace
	return pod
}

// step is one of a JSON patch.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// changesOfPods changes the spare pod and that of a function in every way that would
// be of use to a thief, and in the one that is meant.
func changesOfPods(t *testing.T, scheduler kubernetes.Interface, pod, own *corev1.Pod) {
	in := spareInput()
	in.Function, in.CID = helloUnit(pod.Namespace), "00003-00000007-000001"
	claim, err := podspec.AssignPatch(in, chartPool, pod.UID)
	if err != nil {
		t.Fatal(err)
	}
	patch := func(pod *corev1.Pod, text []byte, dry ...string) error {
		_, err := scheduler.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.JSONPatchType, text, metav1.PatchOptions{DryRun: dry})
		return err
	}
	with := func(further ...step) []byte {
		var steps []any
		if err := json.Unmarshal(claim, &steps); err != nil {
			t.Fatal(err)
		}
		for _, s := range further {
			steps = append(steps, s)
		}
		text, err := json.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	only := func(s step) []byte {
		text, err := json.Marshal([]step{s})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	image := step{"replace", "/spec/containers/1/image", "miner"}
	for name, forbidden := range map[string]struct {
		pod  *corev1.Pod
		text []byte
	}{
		"another image":                     {pod, with(image)},
		"another image alone":               {pod, only(image)},
		"a finalizer":                       {pod, with(step{"add", "/metadata/finalizers", []string{"example.com/stuck"}})},
		"an annotation of another program":  {pod, with(step{"add", "/metadata/annotations/example.com~1a", "b"})},
		"a label of another program":        {pod, with(step{"add", "/metadata/labels/app", "web"})},
		"an owner that the label is not of": {pod, with(step{"replace", "/metadata/ownerReferences/0/uid", "other"})},
		"a spare pod that stays one":        {pod, only(step{"replace", "/metadata/labels/windlass.dev~1scheduler", "windlass-scheduler-2"})},
		"the pod of a function":             {own, only(step{"replace", "/metadata/labels/windlass.dev~1cid", "2"})},
		"the image of a function":           {own, only(image)},
		"a pod that was taken back":         {own, only(step{"replace", "/metadata/labels/app.kubernetes.io~1component", "spare"})},
	} {
		t.Run("a change: "+name, func(t *testing.T) {
			err := patch(forbidden.pod, forbidden.text, metav1.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'windlass-scheduler-pods'") {
				t.Errorf("refused with %v, want the policy's words", err)
			}
		})
	}
	if err := patch(pod, claim); err != nil {
		t.Errorf("a function cannot take a spare pod: %v", err)
	}
	if err := patch(pod, claim); err == nil {
		t.Error("a function takes what was taken")
	}
}
