package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/secretfile"
)

func (th *harness) get(t *testing.T, name string) *v1alpha1.Function {
	t.Helper()
	fn, ok := th.catalog.Get(invocation.FunctionKey{Namespace: "default", Name: name})
	if !ok {
		t.Fatalf("there is no function %s", name)
	}
	return fn
}

func TestA4HintsAreWhatThisUserTypes(t *testing.T) {
	for _, c := range []struct {
		finder     finder
		hint, want string
	}{
		{finder{}, "try windlass invoke f", "try windlass invoke f"},
		{finder{program: "bin/windlass", dataDir: "/srv/my data"}, "try windlass invoke f", "try bin/windlass --data-dir '/srv/my data' invoke f"},
		{finder{program: "/home/me/my tools/windlass"}, "try windlass list", "try '/home/me/my tools/windlass' list"},
		{finder{program: "bin/windlass"}, "start one with windlass up, see windlass doctor", "start one with bin/windlass up, see bin/windlass doctor"},
		{finder{dataDir: "/$x"}, "start one with windlass up", "start one with windlass --data-dir '/$x' up"},
		// Verbs that run here take no flags of a cluster.
		{finder{flags: clusterFlags{context: "c"}}, "windlass init x, then windlass doctor", "windlass init x, then windlass --context c doctor"},
		{finder{plugin: true, flags: clusterFlags{context: "c"}}, "windlass up, or windlass doctor", "windlass up, or kubectl windlass --context c doctor"},
	} {
		if got := c.finder.rewriteCommands(c.hint); got != c.want {
			t.Errorf("the hint is %q, want %q", got, c.want)
		}
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "windlass")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	if got := callName(program); got != program {
		t.Errorf("without it in the path it is called as %q", got)
	}
	t.Setenv("PATH", dir)
	if got := callName(program); got != "windlass" {
		t.Errorf("with it in the path it is called as %q", got)
	}
}

func TestA13WhatListPrintsCanBeDeployed(t *testing.T) {
	th := open(t)
	th.put(t, "default/a", nil)
	th.put(t, "team/b", nil)
	printed := th.run(t, "list", "-A", "-o", "yaml")
	printed.expect(t, exitOK, "out", "kind: FunctionList")
	other := open(t)
	other.play(t, strings.NewReader(printed.out), Programs{}, "deploy", "-f", "-").
		expect(t, exitOK, "out", "function default/a created", "function team/b created")

	kubectl := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: windlass.dev/v1alpha1, kind: Function, metadata: {name: c}, spec: {comand: [x]}}\n- 3\n"
	other.play(t, strings.NewReader(kubectl), Programs{}, "deploy", "-f", "-").
		expect(t, exitUsage, "err", "items[0].spec.comand: unknown field", "items[1]: 3 is not a Function")
}

func TestA14AllThatIsWrongIsToldAtOnce(t *testing.T) {
	th := open(t)
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {runtimeRef: {name: python}, handler: h, code: {path: .}, concurrency: -3}")})
	th.run(t, "deploy", "-f", dir).expect(t, exitUsage, "err", "spec.template.concurrency", "spec.template.runtimeRef.name")
}

func TestA14EveryErrorOfAManifestNamesItsLine(t *testing.T) {
	th := open(t)
	const manifest = "apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata:\n  name: f\nspec:\n  template:\n    runtimeRef: {name: python}\n    handler: h\n    code:\n      path: .\n    concurrency: -3\n"
	dir := write(t, map[string]string{"f.yaml": manifest, "g.yaml": "---\n" + yamlOf("f", "template: {image: x}")})
	got := th.run(t, "deploy", "-f", dir)
	got.expect(t, exitUsage, "err", "f.yaml:7: function f: spec.template.runtimeRef.name", "f.yaml:11: function f: spec.template.concurrency",
		"g.yaml:4: function default/f is in "+filepath.Join(dir, "f.yaml")+":4 too")
	th.play(t, strings.NewReader(manifest), Programs{}, "deploy", "-f", "-").expect(t, exitUsage, "err", "standard input:11: function f: spec.template.concurrency")
	th.run(t, "deploy", "--name", "f", "--concurrency", "-3", "--", "x").expect(t, exitUsage, "err", "flags: function f: spec.template.concurrency")
}

func TestA18RedeployingSaysWhatChanged(t *testing.T) {
	th := open(t)
	th.run(t, "deploy", "--name", "e", "--env", "A=secret", "--max", "3", "--timeout", "9s", "--", "x").expect(t, exitOK, "out", "created")
	got := th.run(t, "deploy", "--name", "e", "--env", "B=secret", "--", "x")
	got.expect(t, exitOK, "out", "function default/e configured\n  - scaling.maxInstances 3\n  - template.env A\n  + template.env B\n  ~ template.timeout 9s -> 1m\n")
	if strings.Contains(got.out, "secret") {
		t.Error("values of the environment are printed")
	}
}

func TestA18EditedCodeIsNamed(t *testing.T) {
	stamped := func(stamp, path string) *v1alpha1.Function {
		return &v1alpha1.Function{
			ObjectMeta: metav1.ObjectMeta{Name: "f", Annotations: map[string]string{v1alpha1.AnnotationCodeStamp: stamp}},
			Spec:       v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Code: &v1alpha1.Code{Path: path}}},
		}
	}
	for want, is := range map[string]*v1alpha1.Function{
		"  ~ code in /srv/a was edited\n":           stamped("2", "/srv/a"),
		"  ~ template.code.path /srv/a -> /srv/b\n": stamped("2", "/srv/b"),
		"": stamped("1", "/srv/a"),
	} {
		for _, all := range []bool{false, true} {
			var out strings.Builder
			if printChanges(&out, changes(stamped("1", "/srv/a"), is), all); out.String() != want {
				t.Errorf("printed is %q, want %q", &out, want)
			}
		}
	}
}

func TestOfAChangeThatIsToBeProvenIsSaidWhereCallsGo(t *testing.T) {
	fn := func(change func(*v1alpha1.Function)) *v1alpha1.Function {
		f := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Name: "f", Namespace: "team", Generation: 2}}
		f.Spec.Template.Image, f.Spec.Rollout.Verify = "app:1", v1alpha1.VerifyOneInstance
		change(f)
		return f
	}
	before := fn(func(*v1alpha1.Function) {})
	for name, c := range map[string]struct {
		before, after *v1alpha1.Function
		said          bool
	}{
		"another image":     {before, fn(func(f *v1alpha1.Function) { f.Spec.Template.Image = "app:2" }), true},
		"more instances":    {before, fn(func(f *v1alpha1.Function) { f.Spec.Scaling.MinInstances = 2 }), false},
		"a function is new": {nil, before, false},
		"nothing is proven": {before, fn(func(f *v1alpha1.Function) {
			f.Spec.Template.Image, f.Spec.Rollout.Verify = "app:2", v1alpha1.VerifyNone
		}), false},
		"it was waited for": {before, rolledOut(metav1.ConditionTrue, v1alpha1.ReasonStarted), false},
	} {
		if got := awaitsProof(localapi.Applied{Before: c.before, Function: c.after}); got != c.said {
			t.Errorf("%s: %v, want %v", name, got, c.said)
		}
	}
}

func TestADryRunAndDiffChangeNothing(t *testing.T) {
	th := open(t)
	th.put(t, "default/e", func(fn *v1alpha1.Function) { fn.Spec.Template.Code = &v1alpha1.Code{Path: "/srv"} })
	before := th.get(t, "e")
	change := []string{"--name", "e", "--env", "B=1", "--", "./server"}
	th.run(t, append([]string{"deploy", "--dry-run"}, change...)...).expect(t, exitOK, "out", "function default/e would be changed\n  ~ template.code.path /srv -> ", "  + template.env B\n")
	th.run(t, append([]string{"diff"}, change...)...).expect(t, exitFunction, "out", "  + template.env B 1\n")
	th.run(t, "diff", "--name", "new", "--", "x").expect(t, exitFunction, "err", "1 of 1 functions would change")
	if !equality.Semantic.DeepEqual(th.get(t, "e"), before) || len(th.names()) != 1 {
		t.Error("something was changed")
	}
	printed := th.run(t, "describe", "e", "-o", "yaml").out
	th.play(t, strings.NewReader(printed), Programs{}, "diff", "-f", "-").expect(t, exitOK, "out", "function default/e is so already")
}

func TestChangesOfCodeAreShownByLines(t *testing.T) {
	var out strings.Builder
	printChanges(&out, []change{{field: "code.inline", before: "a\nb\nc", after: "a\nB\nc"}}, true)
	printChanges(&out, []change{{field: "code.inline", before: "a\nb\nc", after: "a\nB\nc"}}, false)
	if want := "  ~ code.inline\n    - b\n    + B\n  ~ code.inline\n"; out.String() != want {
		t.Errorf("printed is\n%s\nwant\n%s", &out, want)
	}
}

func TestValidateNeedsNoWindlass(t *testing.T) {
	th := quiet(t)
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {image: example.com/x:1}"), "g.yaml": yamlOf("g", "template: {image: example.com/x:1, concurrency: 9999}")})
	f := filepath.Join(dir, "f.yaml")
	th.run(t, "validate", "-f", f).expect(t, exitOK, "out", "f.yaml: function f is valid\n")
	th.run(t, "validate", "-f", f, "--for", "cluster").expect(t, exitOK, "out", "valid")
	th.run(t, "validate", "-f", f, "--for", "local").expect(t, exitFunction, "err", "spec.template.image", "needs a cluster")
	th.run(t, "validate", "-f", dir).expect(t, exitFunction, "err", "g.yaml:4: function g: spec.template.concurrency")
	th.run(t, "validate", "-f", f, "-f", "nope.yaml").expect(t, exitUsage, "err", "nope.yaml: there is no such file or folder")
	th.run(t, "validate", "-f", t.TempDir()).expect(t, exitUsage, "err", "no Function is in this folder")
	elsewhere := write(t, map[string]string{"f.yaml": strings.Replace(yamlOf("f", "template: {image: example.com/x:1}"), "{name: f}", "{name: f, namespace: other}", 1)})
	th.run(t, "validate", "-n", "team", "-f", elsewhere).expect(t, exitUsage, "err", "function f is in the namespace other, but --namespace says team")
	for _, flag := range []string{"--context=c", "--kubeconfig=k", "--data-dir=d"} {
		name, _, _ := strings.Cut(flag, "=")
		th.run(t, "validate", "-f", f, flag).expect(t, exitUsage, "err", name+` has no effect with "validate", which asks no Windlass; remove it`)
	}
}

func TestScaleAndSetEnvChangeNothingElse(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", func(fn *v1alpha1.Function) {
		fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
	})
	want := th.get(t, "f").Spec.DeepCopy()
	three := int32(3)
	th.run(t, "scale", "f", "--min", "2", "--max", "3").expect(t, exitOK, "out", "function default/f configured\n  + scaling.maxInstances 3\n  + scaling.minInstances 2\n")
	want.Scaling.MinInstances, want.Scaling.MaxInstances = 2, &three
	file := filepath.Join(write(t, map[string]string{".env": "# what it says\nexport C='3 # x'\nA=0\n"}), ".env")
	th.run(t, "set", "env", "f", "--env-file", file, "A=9", "B-").expect(t, exitOK, "out", "  ~ template.env A\n  - template.env B\n  + template.env C\n")
	want.Template.Env = []v1alpha1.EnvVar{{Name: "A", Value: "9"}, {Name: "C", Value: "3 # x"}}
	if diff := cmp.Diff(*want, th.get(t, "f").Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	th.run(t, "scale", "f", "--min", "0", "--max", "none").expect(t, exitOK, "out", "  - scaling.maxInstances 3\n  - scaling.minInstances 2\n")
	th.run(t, "scale", "nobody", "--min", "1").expect(t, exitPlatform, "err", "there is no function default/nobody")
	th.run(t, "scale", "f", "--min", "5", "--max", "2").expect(t, exitUsage, "err", "spec.scaling.minInstances")
}

func TestChangingSingleFieldsInAClusterLeavesTheOthersToTheirOwners(t *testing.T) {
	s := newClusterHarness(t, clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted))
	s.run(t, "scale", "f", "--max", "7").expect(t, exitOK, "out", "function team/f configured\n  + scaling.maxInstances 7\n")
	s.run(t, "set", "env", "f", "A=1").expect(t, exitOK, "out", "  + template.env A\n")
	var fn v1alpha1.Function
	if err := s.kube.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "f"}, &fn); err != nil {
		t.Fatal(err)
	}
	if *fn.Spec.Scaling.MaxInstances != 7 || len(fn.Spec.Template.Env) != 1 || fn.Spec.Template.Image != "example.com/f:1" {
		t.Errorf("spec %+v", fn.Spec)
	}
	s.run(t, "scale", "f", "--min", "9").expect(t, exitUsage, "err", "spec.scaling.minInstances")
}

func TestEnvFiles(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\n\n# no\nexport B = two words \n": "A=1;B=two words",
		`A="a\nb \"c\" \\n"`:                   "A=a\nb \"c\" \\n",
		"A='$HOME \"x\"'\r\nB=":                `A=$HOME "x";B=`,
		"A=x#y":                                "A=x#y",
		"A=b=c":                                "A=b=c",
		"A":                                    "line 1 is not KEY=VALUE",
		"A=1\nB C=2":                           "line 2 is not KEY=VALUE",
		`A="open`:                              "line 1: A: the quote \" is not closed",
		`A="x" # why`:                          "line 1: A: the quote \" is not closed",
		`A="x\"`:                               "line 1: A: the quote \" is not closed",
	} {
		env, err := parseEnvFile(text)
		var got []string
		for _, v := range env {
			got = append(got, v.name+"="+v.value)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if joined := strings.Join(got, ";"); joined != want && (err == nil || !strings.HasPrefix(joined, want)) {
			t.Errorf("%q is %q, want %q", text, joined, want)
		}
	}
}

func TestA20OfOneVariableTheLastWins(t *testing.T) {
	th := open(t)
	file := filepath.Join(write(t, map[string]string{".env": "A=0\nB=0\n"}), ".env")
	th.run(t, "deploy", "--name", "f", "--env", "A=1", "--env-file", file, "--env", "A=2", "--", "x").expect(t, exitOK, "out", "created")
	if diff := cmp.Diff([]v1alpha1.EnvVar{{Name: "A", Value: "2"}, {Name: "B", Value: "0"}}, th.get(t, "f").Spec.Template.Env); diff != "" {
		t.Error(diff)
	}
	th.run(t, "deploy", "--name", "f", "--env-file", "nowhere", "--", "x").expect(t, exitUsage, "err", "--env-file", "nowhere")
}

func TestA15ACommandLineInOneWordIsTakenApart(t *testing.T) {
	open(t).run(t, "deploy", "--name", "x", "--", "python3 srv.py").expect(t, exitUsage, "err", `"python3 srv.py" looks like a command line in one word: write -- python3 srv.py`)
}

// editorThat is a script that does that to the file.
func editorThat(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEdit(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	th := open(t)
	th.put(t, "default/f", nil)
	th.editor = editorThat(t, ":")
	th.run(t, "edit", "f").expect(t, exitOK, "out", "function default/f is as it was")
	th.editor = editorThat(t, `sed -i 's/concurrency: 1/concurrency: 4/' "$1"`)
	th.run(t, "edit", "f").expect(t, exitOK, "out", "function default/f configured\n  ~ template.concurrency 1 -> 4\n")
	// What is wrong is opened again, with the error on top.
	th.editor = editorThat(t, `if grep -q '# ERROR: .*spec.template.concurrency' "$1"; then sed -i 's/-5/5/' "$1"; else sed -i 's/concurrency: 4/concurrency: -5/' "$1"; fi`)
	th.run(t, "edit", "f").expect(t, exitOK, "out", "  ~ template.concurrency 4 -> 5\n")
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "windlass-*")); len(left) > 0 {
		t.Errorf("left behind is %v", left)
	}
	th.editor = editorThat(t, `sed -i 's/concurrency: 5/concurrency: -5/' "$1"`)
	th.run(t, "edit", "f").expect(t, exitUsage, "err", "errors are not corrected; the text is in")
	th.editor = editorThat(t, `sed -i 's/name: f/name: g/' "$1"`)
	th.run(t, "edit", "f").expect(t, exitUsage, "err", "errors are not corrected")
	// vim's :!make is stopped so.
	th.editor = editorThat(t, `kill -INT $PPID; kill -QUIT $PPID; sleep 0.1; sed -i 's/concurrency: 5/concurrency: 6/' "$1"`)
	th.run(t, "edit", "f").expect(t, exitOK, "out", "  ~ template.concurrency 5 -> 6\n")
	th.editor = editorThat(t, `sed -i 's/concurrency: 6/concurrency: 5/' "$1"`)
	th.run(t, "edit", "f").expect(t, exitOK, "out", "  ~ template.concurrency 6 -> 5\n")
	before, _ := filepath.Glob(filepath.Join(os.TempDir(), "windlass-*"))
	th.editor = editorThat(t, "exit 1")
	th.run(t, "edit", "f").expect(t, exitUsage, "err", "failed", "$EDITOR")
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "windlass-*")); len(left) != len(before) {
		t.Errorf("an editor that fails at once leaves %v", left)
	}
	th.editor = editorThat(t, `if grep -q ERROR "$1"; then exit 1; fi; sed -i 's/concurrency: 5/concurrency: -5/' "$1"`)
	th.run(t, "edit", "f").expect(t, exitUsage, "err", "failed", "your text is in "+filepath.Join(os.TempDir(), "windlass-f-"))
	if fn := th.get(t, "f"); fn.Spec.Template.Concurrency != 5 {
		t.Errorf("concurrency %d", fn.Spec.Template.Concurrency)
	}
}

func TestA6ABodyThatIsTooLargeDidNotRun(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	th.answer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "100-continue" {
			t.Error("it is sent without asking")
		}
		w.Header().Set(invocation.HeaderExecuted, string(invocation.ExecutedNo))
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	body := filepath.Join(write(t, map[string]string{"big": strings.Repeat("x", 8<<20)}), "big")
	th.run(t, "invoke", "f", "-f", body).expect(t, exitPlatform, "err", "413", "it did not run")
}

func TestA20AnAnswerIsLaidOutForPeople(t *testing.T) {
	for body, want := range map[string]string{
		`{"stackTrace":["a","b"]}`: "{\n  \"stackTrace\": [\n    \"a\",\n    \"b\"\n  ]\n}",
		`"text"`:                   `"text"`, "not {json": "not {json", "": "", "{broken": "{broken",
	} {
		if got := string(pretty([]byte(body))); got != want {
			t.Errorf("%s is %s, want %s", body, got, want)
		}
	}
}

func TestA20CheckFindsTheGatewayOfThisMachine(t *testing.T) {
	open(t).run(t, "check", "--timeout", "50ms").expect(t, exitPlatform, "err", "the gateway at "+localGateway+" does not answer")
	quiet(t).run(t, "check").expect(t, exitUsage, "err", "--gateway or $WINDLASS_GATEWAY")
	// It says nothing about a cluster, and another gateway nothing about this one.
	open(t).run(t, "check", "--context", "c").expect(t, exitUsage, "err", "--gateway or $WINDLASS_GATEWAY")
	th := open(t)
	elsewhere := &clusterHarness{env: map[string]string{"WINDLASS_GATEWAY": "http://elsewhere.example"}}
	elsewhere.run(t, "check", "--timeout", "50ms", "--data-dir", th.dir).expect(t, exitPlatform, "err", "the gateway at "+localGateway+" does not answer")
	elsewhere.run(t, "check", "--data-dir", quiet(t).dir).expect(t, exitPlatform, "err", "no Windlass runs with the data folder", "start one with")
}

func TestA20WhatPeopleTypeIsSuggested(t *testing.T) {
	th := open(t)
	for typed, want := range map[string]string{"rm": "delete", "call": "invoke", "apply": "deploy", "lint": "validate", "ps": "list"} {
		th.run(t, typed).expect(t, exitUsage, "err", "Did you mean this?", want)
	}
}

func TestSecretsAreKeptOnThisMachineOnly(t *testing.T) {
	th := open(t)
	dir := write(t, map[string]string{
		"f.yaml": yamlOf("f", "template: {command: [x], envFrom: [{secretRef: {name: db}}]}"), "db.env": "PASSWORD=xyz\n",
	})
	manifest, secret := filepath.Join(dir, "f.yaml"), "db="+filepath.Join(dir, "db.env")
	th.run(t, "deploy", "-f", manifest).expect(t, exitUsage, "err", "function default/f: spec.template.envFrom[0]: there is no secret db in the namespace default: give it with windlass deploy --secret db=FILE")
	th.run(t, "deploy", "-f", manifest, "--secret", secret, "--dry-run").expect(t, exitOK, "out", "would be created")
	if _, err := os.Stat(filepath.Join(th.dir, "secrets")); err == nil {
		t.Error("a dry run keeps secrets")
	}
	th.run(t, "deploy", "-f", manifest, "--secret", secret).expect(t, exitOK, "out", "function default/f created")
	env, err := secretfile.Environ(th.dir, th.get(t, "f"))
	if err != nil || len(env) != 1 || env[0] != "PASSWORD=xyz" {
		t.Errorf("the function gets %v, %v", env, err)
	}
	th.run(t, "deploy", "-f", manifest, "--secret", "db").expect(t, exitUsage, "err", `--secret "db" is not NAME=FILE`)
	th.run(t, "deploy", "-f", manifest, "--secret", "DB="+filepath.Join(dir, "db.env")).expect(t, exitUsage, "err", "is not the name of a secret")
	s := newClusterHarness(t)
	s.run(t, "deploy", "--name", "x", "--image", "example.com/x:1", "--secret", secret).expect(t, exitUsage, "err", "kubectl create secret generic")
}

func TestA20KeysAreToldToPrograms(t *testing.T) {
	th := quiet(t)
	th.run(t, "keys", "list", "-o", "json").expect(t, exitOK, "out", "[]\n")
	th.run(t, "keys", "create", "team-a").expect(t, exitOK, "out", "wl_")
	got := th.run(t, "keys", "list", "-o", "json")
	got.expect(t, exitOK, "out", `"allow": [`, `"team-a"`, `"created": "2026-03-01T12:00:00Z"`)
	if strings.Contains(got.out, "sha256") || strings.Contains(got.out, "expires") {
		t.Errorf("it tells\n%s", got.out)
	}
}

func TestChangesAtTheSameTimeAllCount(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	key := invocation.FunctionKey{Namespace: "default", Name: "f"}
	others := 1
	tries := 0
	change := func() error {
		_, err := localTarget(th.dir).Change(t.Context(), key, func(fn *v1alpha1.Function) error {
			tries++
			if others > 0 {
				others--
				th.put(t, "default/f", func(fn *v1alpha1.Function) { fn.Spec.Scaling.MinInstances = int32(tries) })
			}
			fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "A", Value: "b"}}
			return nil
		}, false)
		return err
	}
	err := change()
	if fn, _ := th.catalog.Get(key); err != nil || tries != 2 || fn.Spec.Scaling.MinInstances != 1 || len(fn.Spec.Template.Env) != 1 {
		t.Errorf("err %v after %d tries: %+v", err, tries, fn.Spec)
	}
	others, tries = 1000, 0
	if err := change(); !isReason(err, localapi.ReasonConflict) || tries != changeAttempts || !strings.Contains(err.Error(), "make your change again") {
		t.Errorf("err %v after %d tries", err, tries)
	}
}
