package v1alpha1

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const header = "apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f}\n"

func TestDecodeReadsEveryField(t *testing.T) {
	functions, err := Decode([]byte(`
apiVersion: windlass.dev/v1alpha1
kind: Function
metadata:
  name: hello
  namespace: team-a
  labels: {tier: "1"}
spec:
  template:
    runtimeRef: {name: python3.13}
    handler: main.handle
    code:
      inline: |
        def handle(event, context):
            return event
    protocol: LambdaRuntime
    concurrency: 4
    timeout: 1m30s
    startupTimeout:
    resources:
      requests: {cpu: 0.25, memory: 134217728}
      limits: {cpu: 2, memory: 1Gi}
    env:
    - {name: A, value: "1"}
    - {name: B}
  calls:
    delivery: AtLeastOnce
  scaling: {minInstances: 1, maxInstances: 5, scaleDown: {lastInstanceIdleTimeout: 2h}}
`), "hello.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(functions) != 1 {
		t.Fatalf("got %d functions, want 1", len(functions))
	}
	f := functions[0]
	if got := f.Key().String(); got != "team-a/hello" {
		t.Errorf("key is %s", got)
	}
	s := f.Spec
	if want := "def handle(event, context):\n    return event\n"; s.Template.Code.Inline != want {
		t.Errorf("inline is %q, want %q", s.Template.Code.Inline, want)
	}
	if s.Template.Timeout.Duration != 90*time.Second || s.Template.StartupTimeout.Duration != 0 {
		t.Errorf("timeouts are %v and %v", s.Template.Timeout, s.Template.StartupTimeout)
	}
	if s.Template.Resources.Requests.Cpu().MilliValue() != 250 || s.Template.Resources.Requests.Memory().Value() != 128<<20 {
		t.Errorf("requests are %v", s.Template.Resources.Requests)
	}
	if s.Calls.Delivery != DeliveryAtLeastOnce || *s.Scaling.MaxInstances != 5 || s.Template.Concurrency != 4 {
		t.Errorf("spec is %+v", s)
	}
	if diff := cmp.Diff([]EnvVar{{Name: "A", Value: "1"}, {Name: "B"}}, s.Template.Env); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeReadsWhatNeedsACluster(t *testing.T) {
	functions, err := Decode([]byte(header+`
spec:
  template:
    image: example.com/a/b:1
    args: ["--fast"]
    port: 9000
    envFrom:
    - {prefix: DB_, secretRef: {name: db}}
    - {configMapRef: {name: settings}}
    imagePullSecrets: [{name: registry}]
    serviceAccountName: robot
    placement:
      nodeSelector: {disk: ssd}
      tolerations: [{key: spot, operator: Exists, tolerationSeconds: 30}]
      runtimeClassName: gvisor
      priorityClassName: batch
`), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seconds := int64(30)
	want := FunctionSpec{
		Template: FunctionTemplate{Image: "example.com/a/b:1", Args: []string{"--fast"}, Port: 9000, EnvFrom: []EnvFromSource{
			{Prefix: "DB_", SecretRef: &EnvFromReference{Name: "db"}},
			{ConfigMapRef: &EnvFromReference{Name: "settings"}},
		}, Placement: Placement{NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}}, RuntimeClassName: "gvisor", PriorityClassName: "batch"}, ImagePullSecrets: []LocalReference{{Name: "registry"}}, ServiceAccountName: "robot"},
	}
	if diff := cmp.Diff(want, functions[0].Spec); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeTakesAManifestApart(t *testing.T) {
	object := `{"apiVersion": "windlass.dev/v1alpha1", "kind": "Function", "metadata": {"name": "%s"}, "spec": {}}`
	doc := func(name string) string { return fmt.Sprintf(object, name) }
	for name, c := range map[string]struct {
		manifest string
		want     []string
	}{
		"one YAML document":                {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: a}", []string{"a"}},
		"a marker before and after":        {"---\n" + doc("a") + "\n---\n", []string{"a"}},
		"a licence before the marker":      {"# Licence\n---\n" + doc("a"), []string{"a"}},
		"several documents":                {doc("a") + "\n---\n" + doc("b") + "\n--- # next\n" + doc("c"), []string{"a", "b", "c"}},
		"empty documents between":          {doc("a") + "\n---\n---\n# nothing\n---\nnull\n---\n" + doc("b"), []string{"a", "b"}},
		"content beside the marker":        {"--- " + doc("a") + "\n--- " + doc("b"), []string{"a", "b"}},
		"documents that are ended":         {doc("a") + "\n...\n" + doc("b") + "\n...\n---\n" + doc("c"), []string{"a", "b", "c"}},
		"JSON objects after each other":    {doc("a") + doc("b") + "\n\n" + doc("c"), []string{"a", "b", "c"}},
		"Windows line ends":                {doc("a") + "\r\n---\r\n" + doc("b") + "\r\n", []string{"a", "b"}},
		"a byte order mark":                {"\ufeff" + doc("a"), []string{"a"}},
		"a marker's look-alike in a value": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: a}\nspec:\n  template:\n    code:\n      inline: |\n        x\n        ---\n        y\n", []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			functions, err := Decode([]byte(c.manifest), "f")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range functions {
				got = append(got, f.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeNamesFieldAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		manifest string
		// want are the lines of the error without "f.yaml:1: ".
		want []string
	}{
		"a duration in words": {header + `spec: {template: {timeout: 10 minutes}}`,
			[]string{`spec.template.timeout: "10 minutes" is not a duration; write for example 10m`}},
		"a duration in days": {header + `spec: {scaling: {scaleDown: {lastInstanceIdleTimeout: 1d}}}`,
			[]string{`spec.scaling.scaleDown.lastInstanceIdleTimeout: "1d" is not a duration; write for example 24h`}},
		"a duration without a unit": {header + `spec: {template: {timeout: 60}}`,
			[]string{`spec.template.timeout: 60 is not a duration; write for example 60s`}},
		"a negative duration": {header + `spec: {template: {scheduling: {slice: -5ms}}}`,
			[]string{`spec.template.scheduling.slice: "-5ms" is negative; it must be positive, for example 5ms`}},
		"a duration that is nonsense": {header + `spec: {scaling: {scaleDown: {idleTimeout: soon}}}`,
			[]string{`spec.scaling.scaleDown.idleTimeout: "soon" is not a duration; write for example 10m`}},
		"a quantity with a wrong unit": {header + `spec: {template: {resources: {limits: {memory: 64 MB}}}}`,
			[]string{`spec.template.resources.limits[memory]: "64 MB" is not a quantity; write for example 128Mi`}},
		"a resource without an amount": {header + `spec: {template: {resources: {limits: {cpu: null}, requests: 1}}}`,
			[]string{`spec.template.resources.limits[cpu]: has no value; write for example 500m, or remove it`,
				`spec.template.resources.requests: 1 is not a group of names and amounts; write for example requests: {cpu: 100m, memory: 64Mi}`}},
		"a quantity that would take minutes to read": {header + `spec: {template: {resources: {limits: {memory: "1.5e-99999999"}}}}`,
			[]string{`spec.template.resources.limits[memory]: "1.5e-99999999" is not a quantity; write for example 128Mi`}},
		"a field that is misspelt": {header + `spec: {template: {concurency: 1}}`,
			[]string{`spec.template.concurency: unknown field; did you mean concurrency? (valid here: args, code, command, concurrency, env, envFrom, handler, image, imagePullSecrets, metadata, mounts, placement, port, protocol, resources, runtimeRef, scheduling, serviceAccountName, startupTimeout, timeout)`}},
		"a field in wrong letters": {header + `spec: {template: {startuptimeout: 1s}}`,
			[]string{`spec.template.startuptimeout: unknown field; write startupTimeout`}},
		"a field in the wrong place": {header + `spec: {maxInstances: 3}`,
			[]string{`spec.maxInstances: unknown field here; write it as spec.scaling.maxInstances`}},
		"a class in the wrong place": {header + `spec: {scheduling: {class: Batch}}`,
			[]string{`spec.scheduling: unknown field here; write it as spec.template.scheduling`}},
		"a field that is misspelt in the wrong place": {header + `spec: {concurency: 1}`,
			[]string{`spec.concurency: unknown field; did you mean spec.template.concurrency? (valid here: calls, expose, revisionHistoryLimit, rollout, scaling, template, traffic)`}},
		"a field of the spec beside it": {header + `image: x`,
			[]string{`image: unknown field here; write it as spec.template.image`}},
		"a field of nothing at all": {header + `spec: {scaling: {replicas: 3}}`,
			[]string{`spec.scaling.replicas: unknown field; correct or remove it (valid here: maxInstances, minInstances, scaleDown, windows)`}},
		"a field of metadata": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {namme: f}\n",
			[]string{`metadata.namme: unknown field; did you mean name? (valid here: name, namespace, labels, annotations)`}},
		"a field in a list": {header + `spec: {template: {env: [{name: A}, {name: B, val: x}]}}`,
			[]string{`spec.template.env[1].val: unknown field; did you mean value? (valid here: name, value, valueFrom)`}},
		"a number for a text": {header + `spec: {template: {env: [{name: PORTS, value: 8080}]}}`,
			[]string{`spec.template.env[0].value: 8080 is a number, not text; put it in quotes: "8080"`}},
		"a truth for a text": {header + `spec: {template: {env: [{name: DEBUG, value: on}]}}`,
			[]string{`spec.template.env[0].value: true is not text but true or false, as are yes, no, on and off; put it in quotes, for example "true"`}},
		"a list for a text": {header + `spec: {template: {handler: [a, b]}}`,
			[]string{`spec.template.handler: a list is not text; write for example handler: main.handle`}},
		"a text for a number": {header + `spec: {template: {concurrency: "5"}}`,
			[]string{`spec.template.concurrency: "5" is text, not a number; write 5 without quotes`}},
		"a fraction for a whole number": {header + `spec: {template: {concurrency: 1.5}}`,
			[]string{`spec.template.concurrency: 1.5 is not a whole number; write for example 10`}},
		"a number that is much too large": {header + `spec: {template: {concurrency: 3000000000}}`,
			[]string{`spec.template.concurrency: 3000000000 is out of range; write a smaller number, for example 10`}},
		"a text for a truth": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f, ownerReferences: [{controller: \"true\"}]}",
			[]string{`metadata.ownerReferences[0].controller: "true" is text; write true without quotes`}},
		"a number for a truth": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f, ownerReferences: [{controller: 1}]}",
			[]string{`metadata.ownerReferences[0].controller: 1 is neither true nor false; write true or false`}},
		"a text for a list": {header + `spec: {template: {command: python3 app.py}}`,
			[]string{`spec.template.command: "python3 app.py" is not a list; write for example command: ["python3", "app.py"]`}},
		"a group for a list": {header + `spec: {template: {env: {A: b}}}`,
			[]string{`spec.template.env: a group of fields is not a list; write for example env: [{name: APP_MODE, value: test}]`}},
		"a text for a group": {header + `spec: {template: {code: main.py}}`,
			[]string{`spec.template.code: "main.py" is not a group of fields (configMapRef, inline, path); write for example code: {path: .}`}},
		"a text in a list of groups": {header + `spec: {template: {env: [A=b]}}`,
			[]string{`spec.template.env[0]: "A=b" is not a group of fields (name, value, valueFrom); write for example {name: APP_MODE, value: test}`}},
		"labels that are a list": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f, labels: [a]}",
			[]string{`metadata.labels: a list is not a group of names and texts; write for example labels: {team: payments}`}},
		"a label that is a number": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f, labels: {v: 1}}",
			[]string{`metadata.labels[v]: 1 is a number, not text; put it in quotes: "1"`}},
		"a label without a value": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f, labels: {v: }}",
			[]string{`metadata.labels[v]: has no value; write "" for an empty text`}},
		"an argument without a value": {header + "spec:\n  template:\n    command:\n    - a\n    -\n",
			[]string{`spec.template.command[1]: has no value; give it one, or remove it from the list`}},
		"a time that is none": {"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f, creationTimestamp: today}",
			[]string{`metadata.creationTimestamp: "today" is not a time; write for example 1970-01-01T00:00:00Z`}},
		"no apiVersion and no kind": {"metadata: {name: f}", []string{
			`apiVersion: is missing; write apiVersion: windlass.dev/v1alpha1`,
			`kind: is missing; write kind: Function`}},
		"another kind, whose fields are not looked at": {"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 2}", []string{
			`apiVersion: "apps/v1" is not known here; write windlass.dev/v1alpha1`,
			`kind: "Deployment" is not known here; write Function`}},
		"a document that is a list": {"- a\n- b", []string{
			`a list is not a Function; a document has the fields apiVersion, kind, metadata and spec`}},
		"a field given twice in YAML": {header + "spec:\n  template:\n    timeout: 1s\n    timeout: 2s\n",
			[]string{`timeout: is given twice; keep one`}},
		"a field given twice in JSON": {`{"apiVersion": "windlass.dev/v1alpha1", "kind": "Function", "spec": {"template": {"timeout": "1s", "timeout": "2s"}}}`,
			[]string{`spec.template.timeout: is given twice; keep one`}},
		"all problems at once": {header + "spec: {template: {timeout: x, concurrency: x, imgae: x}}", []string{
			`spec.template.concurrency: "x" is not a whole number; write for example 10`,
			`spec.template.imgae: unknown field; did you mean image? (valid here: args, code, command, concurrency, env, envFrom, handler, image, imagePullSecrets, metadata, mounts, placement, port, protocol, resources, runtimeRef, scheduling, serviceAccountName, startupTimeout, timeout)`,
			`spec.template.timeout: "x" is not a duration; write for example 60s`}},
	} {
		t.Run(name, func(t *testing.T) {
			functions, err := Decode([]byte(c.manifest), "f.yaml")
			if err == nil {
				t.Fatalf("got %v, want an error", functions)
			}
			var got []string
			for line := range strings.Lines(err.Error()) {
				text := atLine.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
				if len(text) >= len(line)-1 {
					t.Errorf("line does not begin with source and line: %s", line)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var atLine = regexp.MustCompile(`^f\.yaml:\d+: `)

func TestA14WhatIsWrongIsToldWithItsLine(t *testing.T) {
	const manifest = `# a comment
---
apiVersion: windlass.dev/v1alpha1
kind: Function
metadata:
  name: f
  labels:
    example.com/a.b: c
spec:
  template:
    image: example.com/x:1
    env:
      - name: A
        value: "1"
      - {name: B,
         value: "2"}
    resources: {limits: &same {memory: 1Gi}, requests: *same}
  scaling:
    maxInstances: 3
---
kind: FunctionList
apiVersion: windlass.dev/v1alpha1
items:
- metadata: {name: g}
  spec:
    template:
      timeout: 1s
- metadata:
    name: h
`
	located, err := DecodeLocated([]byte(manifest), "f.yaml")
	if err != nil || len(located) != 3 {
		t.Fatalf("%d Functions, %v", len(located), err)
	}
	for _, c := range []struct {
		function int
		path     string
		line     int
	}{
		{0, "", 3}, {0, "metadata.name", 6}, {0, "metadata.labels[example.com/a.b]", 8},
		{0, "spec.template.image", 11}, {0, "spec.template.env[1]", 15}, {0, "spec.template.env[1].value", 16}, {0, "spec.template.env[7].name", 12},
		{0, "spec.template.resources.requests[memory]", 17}, {0, "spec.scaling.maxInstances", 19},
		{0, "spec.template.handler", 10}, // which is missing
		{1, "spec.template.timeout", 27}, {2, "metadata.name", 29}, {2, "spec", 28},
	} {
		if got := located[c.function].Lines.Of(c.path); got != c.line {
			t.Errorf("%s of Function %d is in line %d, want %d", c.path, c.function, got, c.line)
		}
	}
	if got := (Lines{}).Of("spec"); got != 0 {
		t.Errorf("line %d of no manifest", got)
	}
}

func TestA14WhatHasNotTheShapeOfAFunctionIsToldWithItsLine(t *testing.T) {
	for manifest, want := range map[string]string{
		header + "spec:\n  template: {image: x}\n  scaling:\n    maxInstances: many\n": "f.yaml:7: spec.scaling.maxInstances:",
		header + "spec:\n  runtme: x\n": "f.yaml:5: spec.runtme: unknown field",
		"kind: List\napiVersion: v1\nitems:\n- apiVersion: windlass.dev/v1alpha1\n  kind: Function\n  spec: 5\n": "f.yaml:6: items[0].spec: ",
		"kind: List\napiVersion: v1\nitems:\n- 5\n":                                                              "f.yaml:4: items[0]: ",
		"\n\n{\"kind\": \"Function\"}\n{\"kind\": \"Function\",\n\"apiVersion\": \"v2\"}":                        "f.yaml:5: apiVersion: ",
	} {
		if _, err := Decode([]byte(manifest), "f.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", manifest, err, want)
		}
	}
}

func TestDecodeCountsDocumentsAndLines(t *testing.T) {
	_, err := Decode([]byte("# a comment\n---\n"+header+"spec: {template: {timeout: x}}\n---\n---\n"+header+"spec:\n\ttimeout: 1s\n"), "f.yaml")
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{
		"f.yaml:6: spec.template.timeout:",
		"f.yaml:13: is not valid YAML: ",
		"indent with spaces, not tabs",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestDecodeSaysThatAManifestIsEmpty(t *testing.T) {
	for name, manifest := range map[string]string{
		"nothing": "", "blanks": " \n\n", "a comment": "# x\n", "markers": "---\n---\n", "null": "null",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(manifest), "f.yaml")
			const want = "f.yaml: is empty; a manifest begins with apiVersion: windlass.dev/v1alpha1 and kind: Function"
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// Every example that an error may offer is one that Decode takes, for a field
// that exists, and every field that people write has one.
func TestExamplesAreRight(t *testing.T) {
	for path, example := range examples {
		if position.MatchString(path) || strings.Contains(path, "[]") {
			continue
		}
		manifest := example
		parts := strings.Split(path, ".")
		for i := len(parts) - 1; i >= 0; i-- {
			if i == len(parts)-1 {
				manifest = parts[i] + ": " + manifest
			} else {
				manifest = parts[i] + ": {" + manifest + "}"
			}
		}
		manifest = "apiVersion: windlass.dev/v1alpha1\nkind: Function\n" + manifest + "\n"
		if _, err := Decode([]byte(manifest), path); err != nil {
			t.Errorf("the example is wrong: %v", err)
		}
	}
	for name := range fieldsOf(fieldsOf(functionType)["spec"]) {
		if _, ok := examples["spec."+name]; !ok {
			t.Errorf("spec.%s has no example", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(header + "spec: {template: {command: [a], timeout: 1m, resources: {limits: {cpu: 1.5, memory: 1e3}}}, scaling: {maxInstances: 2}}"))
	f.Add([]byte(header + "---\n{}\n---\n" + header + "spec: {template: {code: {inline: \"a\\r\\nb\\x7f \\n\"}, env: [{name: A, value: ' x'}]}}"))
	f.Add([]byte(`{"apiVersion":"windlass.dev/v1alpha1","kind":"Function","metadata":{"creationTimestamp":"2026-01-02T03:04:05+01:00","labels":{"a":"b"}},"status":{"queued":3}}`))
	f.Add([]byte(header + "spec: {template: {image: a, resources: {requests: {ephemeral-storage: 1Gi}, limits: {nvidia.com/gpu: 1}}, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b, optional: true}}}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], envFrom: [{configMapRef: {name: c, optional: false}}]}}"))
	f.Add([]byte(header + "spec: {template: {image: a, mounts: [{name: a, mountPath: /a, subPath: b, secret: {secretName: s}}, {name: b, mountPath: /b, readOnly: true, persistentVolumeClaim: {claimName: c}}, {name: c, mountPath: /c/../d, emptyDir: {medium: Memory, sizeLimit: 1.5Gi}}]}}"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("{{{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		functions, err := Decode(data, "f")
		if (err == nil) == (len(functions) == 0) {
			t.Fatalf("%d functions and error %v", len(functions), err)
		}
		for _, fn := range functions {
			text, err := Encode(fn)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Decode(text, "again")
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if len(again) != 1 || !equality.Semantic.DeepEqual(fn, again[0]) {
				t.Fatalf("%+v came back as %+v by way of\n%s", fn, again, text)
			}
			revision := RevisionOf(&fn.Spec.Template)
			Default(fn)
			if with := RevisionOf(&fn.Spec.Template); with != revision {
				t.Fatalf("%s is %s with its defaults, and %s without", text, with, revision)
			}
			Validate(fn)
			ValidateLocal(fn)
		}
	})
}

func TestAHistoryComesBack(t *testing.T) {
	f := &Function{}
	f.Name, f.Namespace, f.UID, f.Generation = "f", "default", "u", 2
	f.Spec.Template.Code = &Code{Inline: "a\r\nb\x7f \n"}
	Default(f)
	f.Status.Traffic = []TrafficStatus{{RevisionName: "f-00001", Weight: 100}}
	plain := f.DeepCopy()
	plain.Generation, plain.Spec.Template.Code = 1, nil
	plain.Annotations = map[string]string{AnnotationCodeStamp: "x"}
	want := []*FunctionRevision{NewRevision(f), NewRevision(plain), NewRevision(f)}
	text, err := EncodeHistory(f, want)
	if err != nil {
		t.Fatal(err)
	}
	got, revisions, err := DecodeHistory(text, "f.yaml")
	if err != nil || !equality.Semantic.DeepEqual(f, got) || !equality.Semantic.DeepEqual(want, revisions) {
		t.Errorf("%v; it came back as %+v with %+v by way of\n%s", err, got, revisions, text)
	}
	if _, err := Decode(text, "f.yaml"); err == nil || !strings.Contains(err.Error(), `kind: "FunctionRevision" is not known here; write Function`) {
		t.Errorf("as a manifest it is %v", err)
	}
	broken := strings.Replace(string(text), "number: 1\n", "number: one\n", 1)
	if _, _, err := DecodeHistory([]byte(broken), "f.yaml"); err == nil || !strings.Contains(err.Error(), "spec.number") {
		t.Errorf("a number that is none: %v", err)
	}
}
