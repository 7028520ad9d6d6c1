package v1alpha1

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/wellknown"
)

func encoded(t *testing.T, f *Function) string {
	t.Helper()
	text, err := Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDefaultFillsWhatWasLeftOut(t *testing.T) {
	f := &Function{}
	f.Name = "f"
	Default(f)
	want := `apiVersion: windlass.dev/v1alpha1
kind: Function
metadata:
  name: f
  namespace: default
spec:
  calls:
    delivery: AtMostOnce
    onClientDisconnect: Continue
  revisionHistoryLimit: 10
  rollout:
    progressDeadline: 2m
    strategy: Immediate
    verify: OneInstance
  scaling:
    scaleDown:
      idleTimeout: 10m
      lastInstanceIdleTimeout: 1h
      policy: Fixed
  template:
    concurrency: 1
    port: 8080
    protocol: HTTP
    resources:
      requests:
        cpu: 100m
        memory: 64Mi
    scheduling:
      class: Standard
    startupTimeout: 1m
    timeout: 1m
`
	if diff := cmp.Diff(want, encoded(t, f)); diff != "" {
		t.Error(diff)
	}
	again := f.DeepCopy()
	Default(again)
	if !equality.Semantic.DeepEqual(f, again) {
		t.Error("defaulting twice is not the same as once")
	}
}

func TestDefaultKeepsWhatWasGiven(t *testing.T) {
	given := `{template: {runtimeRef: {kind: Other, name: nodejs22.x}, handler: a.b, code: {inline: x}, protocol: HTTP, port: 1, concurrency: -1, timeout: 1s, startupTimeout: 2s, scheduling: {class: Batch}, resources: {requests: {cpu: 0, memory: 1Gi}}}, calls: {delivery: AtLeastOnce, onClientDisconnect: Cancel, rate: {requests: 5, period: 2s, burst: 1}}, scaling: {scaleDown: {idleTimeout: 4s, lastInstanceIdleTimeout: 5s, policy: Learned}}, rollout: {verify: None, progressDeadline: 6s, strategy: Steps}, revisionHistoryLimit: 0}`
	functions, err := Decode([]byte(header+"spec: "+given), "test")
	if err != nil {
		t.Fatal(err)
	}
	want := functions[0].Spec.DeepCopy()
	Default(functions[0])
	if !equality.Semantic.DeepEqual(want, &functions[0].Spec) {
		t.Errorf("got %+v, want %+v", functions[0].Spec, want)
	}
}

func TestDefaultProtocolFollowsTheRuntime(t *testing.T) {
	if p := defaulted(t, `{template: {runtimeRef: {name: python3.13}}}`).Spec.Template.Protocol; p != ProtocolLambdaRuntime {
		t.Errorf("a runtime speaks %s", p)
	}
	if p := defaulted(t, `{template: {image: x}}`).Spec.Template.Protocol; p != ProtocolHTTP {
		t.Errorf("an image speaks %s", p)
	}
}

func TestDefaultRequestIsNotAboveTheLimit(t *testing.T) {
	f := defaulted(t, `{template: {command: [x], resources: {limits: {cpu: 50m, memory: 1Gi}}}}`)
	if got := f.Spec.Template.Resources.Requests.Cpu().String(); got != "50m" {
		t.Errorf("cpu request is %s, want the limit", got)
	}
	if got := f.Spec.Template.Resources.Requests.Memory().String(); got != "64Mi" {
		t.Errorf("memory request is %s, want the default", got)
	}
}

func TestDefaultRequestOfAnExtendedResourceIsTheLimit(t *testing.T) {
	r := defaulted(t, `{template: {command: [x], resources: {limits: {nvidia.com/gpu: 2, ephemeral-storage: 2Gi}}}}`).Spec.Template.Resources
	if got := r.Requests["nvidia.com/gpu"]; got.Value() != 2 {
		t.Errorf("the request is %s, want the limit", &got)
	}
	if got, requested := r.Requests["ephemeral-storage"]; requested {
		t.Errorf("%s of disk are requested that nobody has asked for", &got)
	}
}

func TestDefaultResourcesChangesNoMapThatOthersShare(t *testing.T) {
	shared := Resources{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	mine := shared
	DefaultResources(&mine)
	if len(shared.Requests) != 1 || len(mine.Requests) != 2 {
		t.Errorf("shared are %v, mine are %v", shared.Requests, mine.Requests)
	}
}

func TestResolvePathsStartsAtTheManifestsFolder(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ path, want string }{
		"the folder itself": {".", dir},
		"below it":          {"src/app", filepath.Join(dir, "src", "app")},
		"beside it":         {"../app", filepath.Join(filepath.Dir(dir), "app")},
		"absolute":          {dir + "/x/../y/", filepath.Join(dir, "y")},
		"none":              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Function{Spec: FunctionSpec{Template: FunctionTemplate{Code: &Code{Path: c.path}}}}
			ResolvePaths(f, dir)
			if got := f.Spec.Template.Code.Path; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	f := &Function{}
	ResolvePaths(f, dir)
	if f.Spec.Template.Code != nil {
		t.Error("code came from nowhere")
	}
}

func TestEncodeFillsTheHeaderOnlyInWhatItWrites(t *testing.T) {
	f := &Function{}
	f.Name = "f"
	want := "apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata:\n  name: f\n"
	if diff := cmp.Diff(want, encoded(t, f)); diff != "" {
		t.Error(diff)
	}
	if f.Kind != "" {
		t.Error("Encode changed its argument")
	}
}

func TestEncodeKeepsEveryText(t *testing.T) {
	for name, inline := range map[string]string{
		"source code":           "def f():\n    return 1\n",
		"Windows line ends":     "a\r\nb\r\n",
		"control characters":    "a\x7fb\x01\u0085\u2028",
		"blanks at both ends":   "  a \n b \n\n",
		"what looks like YAML":  "yes",
		"what looks like a bar": "---\n...\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := &Function{Spec: FunctionSpec{Template: FunctionTemplate{Code: &Code{Inline: inline}}}}
			again, err := Decode([]byte(encoded(t, f)), "test")
			if err != nil {
				t.Fatal(err)
			}
			if got := again[0].Spec.Template.Code.Inline; got != inline {
				t.Errorf("%q came back as %q", inline, got)
			}
		})
	}
	if text := encoded(t, &Function{Spec: FunctionSpec{Template: FunctionTemplate{Code: &Code{Inline: "a\nb\n"}}}}); !strings.Contains(text, "inline: |\n") {
		t.Errorf("source code is hard to read:\n%s", text)
	}
}

func TestWhatIsOutsideOfTheTemplateReplacesNothing(t *testing.T) {
	most := int32(5)
	want := (&Function{}).Revision()
	for name, spec := range map[string]FunctionSpec{
		"limits":         {Calls: Calls{MaxInFlight: 5, Rate: Rate{Requests: 2, Burst: 9}, QueueTimeout: Duration{time.Second}}},
		"other delivery": {Calls: Calls{Delivery: DeliveryAtLeastOnce, OnClientDisconnect: OnClientDisconnectCancel}},
		"bounds":         {Scaling: Scaling{MinInstances: 1, MaxInstances: &most}},
		"a policy":       {Scaling: Scaling{ScaleDown: ScaleDown{Policy: ScaleDownLearned, IdleTimeout: Duration{time.Second}, LastInstanceIdleTimeout: Duration{time.Second}}}},
		"a window":       {Scaling: Scaling{Windows: []ScalingWindow{{Name: "morning", Start: "0 8 * * *", MinInstances: 1}}}},
	} {
		if got := (&Function{Spec: spec}).Revision(); got != want {
			t.Errorf("with %s the revision is %s, without %s", name, got, want)
		}
	}
	tried := &Function{}
	tried.Annotations = map[string]string{wellknown.AnnotationAlgorithm: algorithms[1]}
	if got := tried.Revision(); got != want {
		t.Errorf("with an algorithm the revision is %s, without %s", got, want)
	}
}

func TestA1CodeIsPartOfTheRevision(t *testing.T) {
	stamped := func(stamp string) *Function {
		f := &Function{Spec: FunctionSpec{Template: FunctionTemplate{RuntimeRef: RuntimeReference{Name: RuntimePython313}, Code: &Code{Path: "/srv/app"}}}}
		f.Annotations = map[string]string{"team": "a"}
		if stamp != "" {
			f.Annotations[AnnotationCodeStamp] = stamp
		}
		return f
	}
	bare := &Function{Spec: stamped("").Spec}
	if bare.Revision() != stamped("").Revision() {
		t.Error("an annotation that says nothing of the code makes another revision")
	}
	seen := map[string]string{}
	for _, stamp := range []string{"", "11", "12"} {
		if other, taken := seen[stamped(stamp).Revision()]; taken {
			t.Errorf("the stamps %q and %q make one revision", other, stamp)
		}
		seen[stamped(stamp).Revision()] = stamp
	}
}

func TestBurstIsOnePeriodOfTheRate(t *testing.T) {
	for _, c := range []struct{ given, want Rate }{
		{Rate{Requests: 7}, Rate{Requests: 7, Period: Duration{time.Second}, Burst: 7}},
		{Rate{Requests: 7, Period: Duration{time.Minute}, Burst: 2}, Rate{Requests: 7, Period: Duration{time.Minute}, Burst: 2}},
		{Rate{}, Rate{}},
	} {
		f := &Function{Spec: FunctionSpec{Calls: Calls{Rate: c.given}}}
		Default(f)
		if f.Spec.Calls.Rate != c.want {
			t.Errorf("%+v became %+v, want %+v", c.given, f.Spec.Calls.Rate, c.want)
		}
	}
}
