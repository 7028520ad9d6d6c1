package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func (th *harness) names() []string {
	var names []string
	for _, fn := range th.catalog.List() {
		names = append(names, fn.Key().String())
	}
	return names
}

func TestDeployFromAManifestSaysHowToCallIt(t *testing.T) {
	th := open(t)
	dir := write(t, map[string]string{"fn.yaml": yamlOf("hello", "template: {command: [./server], code: {path: src}}")})
	th.run(t, "deploy", "-f", filepath.Join(dir, "fn.yaml")).expect(t, exitOK, "out", `function default/hello created
  url  http://127.0.0.1:8080/function/hello
  try  windlass invoke hello
       curl http://127.0.0.1:8080/function/hello
`)
	fn, _ := th.catalog.Get(invocation.FunctionKey{Namespace: "default", Name: "hello"})
	if want := filepath.Join(dir, "src"); fn.Spec.Template.Code.Path != want {
		t.Errorf("code.path %q does not start at the manifest's folder, %q", fn.Spec.Template.Code.Path, want)
	}
	th.run(t, "deploy", "-f", filepath.Join(dir, "fn.yaml")).expect(t, exitOK, "out", "function default/hello configured")
}

func TestDeploySaysWhichHostsAFunctionHas(t *testing.T) {
	th := open(t)
	th.statuses[invocation.FunctionKey{Namespace: "default", Name: "hello"}] = v1alpha1.FunctionStatus{
		Hosts: []v1alpha1.HostStatus{{Hostname: "shop.example.com", State: v1alpha1.HostNotPermitted}},
	}
	dir := write(t, map[string]string{"fn.yaml": yamlOf("hello", "template: {command: [x]}, expose: {hosts: [shop.example.com, new.example.com]}")})
	th.run(t, "deploy", "-f", filepath.Join(dir, "fn.yaml")).expect(t, exitOK, "out",
		"\n  host shop.example.com: NotPermitted, not granted to the namespace\n  host new.example.com: not decided yet\n")
}

func TestDeploySaysOnceThatAClassHasNoEffect(t *testing.T) {
	th := open(t)
	key := invocation.FunctionKey{Namespace: "default", Name: "f"}
	refused := func(observed int64) {
		th.statuses[key] = v1alpha1.FunctionStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionSchedulingClass, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeSchedulingOff,
			Message: "class Batch has no effect", ObservedGeneration: observed,
		}}}
	}
	refused(1)
	got := th.run(t, "deploy", "--name", "f", "--class", "Batch", "--", "./x")
	got.expect(t, exitOK, "err", "note: class Batch has no effect\n")
	if strings.Count(got.err, "no effect") != 1 {
		t.Errorf("it says it more than once:\n%s", got.err)
	}
	th.run(t, "describe", "f").expect(t, exitOK, "out", "Class         Batch: NodeSchedulingOff\n", "    class Batch has no effect\n")
	th.run(t, "list", "-o", "wide").expect(t, exitOK, "out", "Batch")

	// What a cluster said of the spec before says nothing of this one.
	refused(0)
	if got := th.run(t, "deploy", "--name", "f", "--class", "Batch", "--", "./x"); strings.Contains(got.err, "no effect") {
		t.Errorf("it tells of an older spec:\n%s", got.err)
	}
}

func TestDeployFromAFolderTakesFunctionsOnly(t *testing.T) {
	th := open(t)
	dir := write(t, map[string]string{
		"a.yaml":                    yamlOf("a", "template: {command: [x]}"),
		"deep/er/b.yml":             yamlOf("b", "template: {command: [x]}"),
		"c.json":                    `{"apiVersion":"windlass.dev/v1alpha1","kind":"Function","metadata":{"name":"c"},"spec":{"template":{"command":["x"]}}}`,
		"package.json":              `{"name": "not-ours"}`,
		"compose.yaml":              "services: {}\n",
		"notes.txt":                 yamlOf("no-manifest", "template: {command: [x]}"),
		".hidden/d.yaml":            yamlOf("hidden", "template: {command: [x]}"),
		".e.yaml":                   yamlOf("hidden-file", "template: {command: [x]}"),
		"node_modules/f/f.yaml":     yamlOf("foreign", "template: {command: [x]}"),
		"python/.venv/lib/g.yaml":   yamlOf("foreign-too", "template: {command: [x]}"),
		"python/venvironment/h.yml": yamlOf("h", "template: {command: [x]}"),
	})
	th.run(t, "deploy", "-f", dir).expect(t, exitOK, "out", "default/a created", "default/b created", "default/c created", "default/h created")
	if diff := cmp.Diff([]string{"default/a", "default/b", "default/c", "default/h"}, th.names()); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	th.run(t, "delete", "-f", link).expect(t, exitOK, "out", "default/a deleted", "default/h deleted")
	if left := th.names(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestManifestsBesideAFunctionThatAreOfOtherKindsArePassedOverInAFolder(t *testing.T) {
	budget := "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: f}\nspec:\n  selector: {matchLabels: {windlass.dev/function: f}}\n"
	dir := write(t, map[string]string{
		"f.yaml": budget + "---\n" + yamlOf("f", "template: {command: [x]}"), "pdb.yaml": budget,
		"keda.yaml":     "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: f}\nspec:\n  scaleTargetRef: {apiVersion: windlass.dev/v1alpha1, kind: Function, name: f}\n",
		"runtime.yaml":  "apiVersion: windlass.dev/v1alpha1\nkind: ClusterRuntime\nmetadata: {name: r}\n",
		"revision.json": `{"apiVersion": "windlass.dev/v1alpha1", "kind": "FunctionRevision"}`,
		"list.yaml":     "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: n, labels: {windlass.dev/x: a}}}\n",
		"template.yaml": "metadata: {labels: {windlass.dev/function: {{ .Values.name }}}}\n",
	})
	th := quiet(t)
	th.run(t, "validate", "-f", dir).expect(t, exitOK, "out", "f.yaml: function f is valid\n")
	th.run(t, "validate", "-f", filepath.Join(dir, "pdb.yaml")).expect(t, exitFunction, "err", `kind: "PodDisruptionBudget" is not known here`)
	for _, slip := range []string{"kind: Functoin", "kind: Function\nkind: Function", "king: Function"} {
		dir := write(t, map[string]string{"a.yaml": strings.Replace(yamlOf("a", "template: {command: [x]}"), "kind: Function", slip, 1)})
		th.run(t, "validate", "-f", dir).expect(t, exitFunction, "err", "a.yaml:", "kind")
	}
}

func TestAFunctionThatIsAlmostOneIsNotPassedOverInAFolder(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": strings.Replace(yamlOf("a", "template: {command: [x]}"), "windlass.dev", "windlas.dev", 1)})
	open(t).run(t, "deploy", "-f", dir).expect(t, exitUsage, "err", "a.yaml:1: apiVersion", "windlass.dev/v1alpha1")
}

func TestDeployFromStandardInput(t *testing.T) {
	th := open(t)
	text := yamlOf("a", "template: {command: [x]}") + "---\n" + yamlOf("b", "template: {command: [x]}")
	th.play(t, strings.NewReader(text), Programs{}, "deploy", "-n", "team", "-f", "-").
		expect(t, exitOK, "out", "function team/a created", "function team/b created")
}

func TestDeployFromFlags(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	three := int32(3)
	for name, c := range map[string]struct {
		args []string
		want v1alpha1.FunctionSpec
	}{
		"a command behind the dashes": {
			[]string{"--", "python3", "app.py", "--port", "a b"},
			v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Command: []string{"python3", "app.py", "--port", "a b"}, Code: &v1alpha1.Code{Path: here}}},
		},
		"a command in one string": {
			[]string{"--command", `python3 'my app.py'`, "--code", "testdata"},
			v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Command: []string{"python3", "my app.py"}, Code: &v1alpha1.Code{Path: filepath.Join(here, "testdata")}}},
		},
		"a runtime": {
			[]string{"--runtime", "python3.13", "--handler", "main.handle", "--code", "/srv/x", "--env", "A=1", "--env", "B=x=y"},
			v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "python3.13"}, Handler: "main.handle", Code: &v1alpha1.Code{Path: "/srv/x"}, Env: []v1alpha1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "x=y"}}}},
		},
		"everything else": {
			[]string{"--timeout", "5s", "--concurrency", "4", "--min", "1", "--max", "3", "--protocol", "lambdaruntime", "--slice", "50ms", "--class", "standard", "--", "./x"},
			v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Command: []string{"./x"}, Code: &v1alpha1.Code{Path: here}, Protocol: v1alpha1.ProtocolLambdaRuntime, Timeout: v1alpha1.Duration{Duration: 5 * time.Second}, Concurrency: 4, Scheduling: v1alpha1.Scheduling{Class: v1alpha1.ClassStandard, Slice: v1alpha1.Duration{Duration: 50 * time.Millisecond}}},
				Scaling: v1alpha1.Scaling{MinInstances: 1, MaxInstances: &three}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := open(t)
			th.run(t, slices.Concat([]string{"deploy", "--name", "team/f"}, c.args)...).expect(t, exitOK, "out", "function team/f created")
			got, ok := th.catalog.Get(invocation.FunctionKey{Namespace: "team", Name: "f"})
			if !ok {
				t.Fatal("it is not there")
			}
			want := &v1alpha1.Function{Spec: c.want}
			v1alpha1.Default(want)
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsAppliedIfOneManifestIsWrong(t *testing.T) {
	th := open(t)
	dir := write(t, map[string]string{
		"a.yaml": yamlOf("a", "template: {command: [x]}"),
		"b.yaml": yamlOf("b", "template: {comand: [x]}"),
		"c.yaml": yamlOf("c", "template: {command: [x], concurrency: -3}"),
		"d.yaml": yamlOf("a", "template: {command: [z]}"),
	})
	got := th.run(t, "deploy", "-f", dir)
	got.expect(t, exitUsage, "err", "b.yaml:4: spec.template.comand: unknown field; did you mean command?")
	if strings.Contains(got.err, "usage:") {
		t.Error("the usage does not help with a manifest")
	}
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	th.run(t, "deploy", "-f", dir).expect(t, exitUsage, "err", "c.yaml:4: function c: spec.template.concurrency", "d.yaml:3: function default/a is in "+filepath.Join(dir, "a.yaml")+":3 too")
	if names := th.names(); len(names) > 0 {
		t.Errorf("%v were applied", names)
	}
}

func TestDeployStopsAtWhatWindlassRefuses(t *testing.T) {
	th := open(t)
	text := yamlOf("a", "template: {command: [x]}") + "---\n" + yamlOf("refused", "template: {command: [x]}") + "---\n" + yamlOf("c", "template: {command: [x]}")
	got := th.play(t, strings.NewReader(text), Programs{}, "deploy", "-f", "-")
	got.expect(t, exitUsage, "err", "spec.template.code.path", "cannot be read", "2 of 3 functions were not applied")
	got.expect(t, exitUsage, "out", "function default/a created")
}

func TestDelete(t *testing.T) {
	th := open(t)
	for _, key := range []string{"default/a", "default/hello", "team/c"} {
		th.put(t, key, nil)
	}
	got := th.run(t, "delete", "a", "helo", "team/c")
	got.expect(t, exitPlatform, "err", "there is no function default/helo", "did you mean hello?")
	got.expect(t, exitPlatform, "out", "function default/a deleted", "function team/c deleted")
	if diff := cmp.Diff([]string{"default/hello"}, th.names()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestAShellTakesWordsAsTheyAreTyped(t *testing.T) {
	for word, want := range map[string]string{
		"functions/hello-2": "functions/hello-2", "größe": "größe", "": "''", "a b": "'a b'", "$HOME": "'$HOME'", "a!": "'a!'", "it's": `'it'\''s'`,
	} {
		if got := typed(word); got != want {
			t.Errorf("%q is typed as %s, want %s", word, got, want)
		}
		if words, err := splitWords(typed(word, "x")); err != nil || !slices.Equal(words, []string{word, "x"}) {
			t.Errorf("%s is split into %q, %v", typed(word, "x"), words, err)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		`python3 app.py`:         {"python3", "app.py"},
		"  a \t b  ":             {"a", "b"},
		`a 'b c' "d e"`:          {"a", "b c", "d e"},
		`a '' ""`:                {"a", "", ""},
		`a\ b "c\"d" "e\f" '\g'`: {"a b", `c"d`, `e\f`, `\g`},
		`--x='$HOME'y`:           {"--x=$HOMEy"},
	} {
		if got, err := splitWords(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("splitWords(%s) = %q, %v, want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		``: "is empty", `'a`: "not closed", `a\`: "backslash", `a && b`: "sh -c", `python3 -m http.server $PORT`: "sh -c", `a "$B"`: "sh -c", `a > b`: "sh -c",
	} {
		if got, err := splitWords(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("splitWords(%s) = %q, %v, want an error with %q", line, got, err, want)
		}
	}
}
