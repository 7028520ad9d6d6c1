package podspec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

var pool = warmpool.Pool{Scheduler: "windlass-scheduler-abc", Namespace: "shop", Runtime: "python3.13", Name: "small"}

// spareInput is what a spare pod of the Runtime python depends on.
func spareInput() Input {
	rt := python.DeepCopy()
	rt.UID = "0a1b2c3d-0000-4000-8000-000000000001"
	rt.Spec.WarmPools = []v1alpha1.WarmPool{{Name: "small", Size: 2}}
	in := input(&v1alpha1.Function{})
	in.Function, in.Runtime = warmpool.PoolFunction(pool, rt), rt
	in.CID = invocation.Term{Epoch: 0x66bb, Standby: "beef"}.CID(3)
	return in
}

// assigned is a function that can take it.
func assigned() *v1alpha1.Function {
	return &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{
		Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "python3.13"}, Handler: "shop.cart.add", Concurrency: 4, Code: &v1alpha1.Code{Inline: "def add(event, context):\n    return '$(X)'\n"}, Env: []v1alpha1.EnvVar{{Name: "LEVEL", Value: "$(function)"}}},
	}}
}

func TestSparePod(t *testing.T) {
	pod, err := Spare(spareInput())
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "spare.yaml")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the pod changed; if that is meant, run with -update (-want +got):\n%s", diff)
	}
}

func TestTheAgentUnderstandsASparePod(t *testing.T) {
	pod, err := Spare(spareInput())
	if err != nil {
		t.Fatal(err)
	}
	c, err := agentenv.Parse(func(name string) string {
		for _, v := range pod.Spec.Containers[0].Env {
			if v.Name == name {
				return v.Value
			}
		}
		return ""
	})
	if err != nil || !c.Spare || c.Owner == "" {
		t.Errorf("the agent reads %+v, %v", c, err)
	}
}

// A pod cannot be changed. So what a function takes must be, in all that cannot be
// handed over, the pod that it would have had.
func TestASparePodIsThatOfEveryFunctionThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := spareInput()
		f := assigned()
		f.Spec.Template.Timeout.Duration = rapid.SampledFrom([]time.Duration{0, time.Second, warmpool.MaxTimeout, time.Hour}).Draw(t, "timeout")
		maybe := func(what string, change func()) {
			if rapid.IntRange(0, 5).Draw(t, what) == 0 {
				change()
			}
		}
		maybe("account", func() { f.Spec.Template.ServiceAccountName = "teller" })
		maybe("selector", func() { f.Spec.Template.Placement.NodeSelector = map[string]string{"a": "b"} })
		maybe("tolerations", func() { f.Spec.Template.Placement.Tolerations = []corev1.Toleration{{Key: "a"}} })
		maybe("class", func() { f.Spec.Template.Placement.RuntimeClassName = "kata" })
		maybe("priority", func() { f.Spec.Template.Placement.PriorityClassName = "high" })
		maybe("secrets", func() { f.Spec.Template.ImagePullSecrets = []v1alpha1.LocalReference{{Name: "a"}} })
		maybe("variables", func() { f.Spec.Template.EnvFrom = []v1alpha1.EnvFromSource{{Prefix: "A"}} })
		maybe("key", func() { f.Spec.Template.Env = full().Spec.Template.Env })
		maybe("mounts", func() { f.Spec.Template.Mounts = full().Spec.Template.Mounts[:1] })
		maybe("memory", func() { f.Spec.Template.Resources.Limits = full().Spec.Template.Resources.Limits })
		maybe("map", func() { f.Spec.Template.Code = &v1alpha1.Code{ConfigMapRef: v1alpha1.LocalReference{Name: "code"}} })
		own := input(f)
		own.Runtime = in.Runtime
		if pool, _ := warmpool.Choose(f, in.Runtime, nil); pool == nil {
			return
		}
		spared, err := Spare(in)
		if err != nil {
			t.Fatal(err)
		}
		pod, err := Pod(own)
		if err != nil {
			t.Fatal(err)
		}
		if *spared.Spec.TerminationGracePeriodSeconds < *pod.Spec.TerminationGracePeriodSeconds {
			t.Fatal("the call has less time than it may take")
		}
		for _, p := range []*corev1.Pod{spared, pod} {
			p.Spec.TerminationGracePeriodSeconds = nil
			p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volumeCode })
			for i := range p.Spec.Containers {
				c := &p.Spec.Containers[i]
				if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.ValueFrom != nil }) {
					t.Fatal("only the kubelet can read the value of a variable")
				}
				c.Env, c.WorkingDir = nil, ""
				c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volumeCode })
			}
		}
		if diff := cmp.Diff(pod.Spec, spared.Spec); diff != "" {
			t.Fatalf("-own +spare:\n%s", diff)
		}
	})
}

func TestWhatIsHandedOverIsWhatAPodWouldHaveHad(t *testing.T) {
	in := input(assigned())
	in.Runtime = python
	pod, err := Pod(in)
	if err != nil {
		t.Fatal(err)
	}
	got := AssignmentOf(in)
	handed := map[string]string{}
	for _, v := range got.Variables {
		if _, twice := handed[v.Name]; twice {
			t.Errorf("%s is handed over twice", v.Name)
		}
		handed[v.Name] = v.Value
	}
	for _, v := range pod.Spec.Containers[1].Env {
		want := strings.ReplaceAll(v.Value, "$$", "$")
		if v.Name == "LAMBDA_TASK_ROOT" {
			want = SpareTaskRoot
		}
		if got, ok := handed[v.Name]; !ok || got != want {
			t.Errorf("%s is %q, want %q", v.Name, got, want)
		}
		delete(handed, v.Name)
	}
	if len(handed) > 0 {
		t.Errorf("a pod would not have had %v", handed)
	}
	want := map[string][]byte{"shop/cart.py": []byte(in.Function.Spec.Template.Code.Inline)}
	if diff := cmp.Diff(want, got.Files); diff != "" {
		t.Error(diff)
	}
}

func TestAClaimTurnsASparePodIntoTheFunctions(t *testing.T) {
	in := input(assigned())
	in.Runtime = python
	text, err := AssignPatch(in, pool, "pod-uid")
	if err != nil {
		t.Fatal(err)
	}
	var steps []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(text, &steps); err != nil {
		t.Fatal(err)
	}
	tested := map[string]any{}
	for i, s := range steps {
		if s.Op == "test" {
			tested[s.Path] = s.Value
			if i > 0 && steps[i-1].Op != "test" {
				t.Errorf("%s is tested after something was changed", s.Path)
			}
		}
		if !strings.HasPrefix(s.Path, "/metadata/") {
			t.Errorf("%s %s", s.Op, s.Path)
		}
	}
	want := map[string]any{
		"/metadata/uid": "pod-uid",
		"/metadata/labels/app.kubernetes.io~1component": "spare",
		"/metadata/labels/windlass.dev~1runtime":        "python3.13",
		"/metadata/labels/windlass.dev~1pool":           "small",
		"/metadata/labels/windlass.dev~1scheduler":      "windlass-scheduler-abc",
	}
	if diff := cmp.Diff(want, tested); diff != "" {
		t.Error(diff)
	}
}

func TestSparePodsHaveNamesAndLabelsOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := spareInput()
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?([.][a-z0-9]{1,10}){0,2}`).Draw(t, "runtime")
		in.Runtime.ObjectMeta = metav1.ObjectMeta{Name: name, UID: "1"}
		in.Function = warmpool.PoolFunction(warmpool.Pool{Scheduler: "s", Namespace: "shop", Runtime: name, Name: "small"}, in.Runtime)
		pod, err := Spare(in)
		if err != nil {
			t.Fatal(err)
		}
		if errs := validation.IsDNS1123Label(pod.Name); len(errs) > 0 {
			t.Fatalf("%s: %v", pod.Name, errs)
		}
		for label, value := range pod.Labels {
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Fatalf("%s=%s: %v", label, value, errs)
			}
		}
		if pod.Labels[wellknown.LabelFunctionUID] != "" || pod.Labels[wellknown.LabelFunction] != "" {
			t.Fatalf("it says that it is a function's: %v", pod.Labels)
		}
	})
}
