package v1alpha1

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
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
  concurrency: 1
  port: 8080
  protocol: HTTP
  resources:
    requests:
      cpu: 100m
      memory: 64Mi
  scaling:
    backoffAfter: 10s
    idleTimeout: 10m0s
    keepAlive: Fixed
    keepLast: 1h0m0s
  startupTimeout: 1m0s
  timeout: 1m0s
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
	given := `{runtime: nodejs, handler: a.b, code: {inline: x}, protocol: HTTP, port: 1, concurrency: -1, timeout: 1s, startupTimeout: 2s,
  resources: {requests: {cpu: 0, memory: 1Gi}}, decider: other, scaling: {backoffAfter: 3s, idleTimeout: 4s, keepLast: 5s, keepAlive: Histogram}}`
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
	if p := defaulted(t, `{runtime: python3}`).Spec.Protocol; p != ProtocolLambdaRuntime {
		t.Errorf("a runtime speaks %s", p)
	}
	if p := defaulted(t, `{image: x}`).Spec.Protocol; p != ProtocolHTTP {
		t.Errorf("an image speaks %s", p)
	}
}

func TestDefaultRequestIsNotAboveTheLimit(t *testing.T) {
	f := defaulted(t, `{command: [x], resources: {limits: {cpu: 50m, memory: 1Gi}}}`)
	if got := f.Spec.Resources.Requests.CPU.String(); got != "50m" {
		t.Errorf("cpu request is %s, want the limit", got)
	}
	if got := f.Spec.Resources.Requests.Memory.String(); got != "64Mi" {
		t.Errorf("memory request is %s, want the default", got)
	}
	if f.Spec.Resources.Requests.CPU == f.Spec.Resources.Limits.CPU {
		t.Error("request and limit share their memory")
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
			f := &Function{Spec: FunctionSpec{Code: &Code{Path: c.path}}}
			ResolvePaths(f, dir)
			if got := f.Spec.Code.Path; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	f := &Function{}
	ResolvePaths(f, dir)
	if f.Spec.Code != nil {
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
			f := &Function{Spec: FunctionSpec{Code: &Code{Inline: inline}}}
			again, err := Decode([]byte(encoded(t, f)), "test")
			if err != nil {
				t.Fatal(err)
			}
			if got := again[0].Spec.Code.Inline; got != inline {
				t.Errorf("%q came back as %q", inline, got)
			}
		})
	}
	if text := encoded(t, &Function{Spec: FunctionSpec{Code: &Code{Inline: "a\nb\n"}}}); !strings.Contains(text, "inline: |\n") {
		t.Errorf("source code is hard to read:\n%s", text)
	}
}

func TestHowManyAreKeptDoesNotReplaceInstances(t *testing.T) {
	most := int32(5)
	want := (&Function{}).Revision()
	for name, spec := range map[string]FunctionSpec{
		"limits":     {Limits: Limits{Concurrency: 5, RatePerSecond: 2, Burst: 9}},
		"bounds":     {Scaling: Scaling{Min: 1, Max: &most}},
		"keep-alive": {Scaling: Scaling{KeepAlive: KeepAliveHistogram}},
		"a schedule": {Scaling: Scaling{Schedule: []ScheduleWindow{{Start: "0 8 * * *", Min: 1}}}},
		"a decider":  {Decider: DeciderStaleness},
	} {
		if got := (&Function{Spec: spec}).Revision(); got != want {
			t.Errorf("with %s the revision is %s, without %s", name, got, want)
		}
	}
}

func TestA1CodeIsPartOfTheRevision(t *testing.T) {
	stamped := func(stamp string) *Function {
		f := &Function{Spec: FunctionSpec{Runtime: RuntimePython3, Code: &Code{Path: "/srv/app"}}}
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

func TestBurstIsOneSecondOfTheRate(t *testing.T) {
	for _, c := range []struct{ given, want Limits }{
		{Limits{RatePerSecond: 7}, Limits{RatePerSecond: 7, Burst: 7}},
		{Limits{RatePerSecond: 7, Burst: 2}, Limits{RatePerSecond: 7, Burst: 2}},
		{Limits{Concurrency: 3}, Limits{Concurrency: 3}},
	} {
		f := &Function{Spec: FunctionSpec{Limits: c.given}}
		Default(f)
		if f.Spec.Limits != c.want {
			t.Errorf("%+v became %+v, want %+v", c.given, f.Spec.Limits, c.want)
		}
	}
}
