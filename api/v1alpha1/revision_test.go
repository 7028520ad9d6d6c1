package v1alpha1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

// templated is a template in YAML flow style, as it was written.
func templated(t *testing.T, text string) *FunctionTemplate {
	t.Helper()
	read := &FunctionTemplate{}
	if err := yaml.UnmarshalStrict([]byte(text), read); err != nil {
		t.Fatal(err)
	}
	return read
}

// goldenRevision is a template and the revision that pods of it bear since a release
// that had no more fields than it uses.
type goldenRevision struct {
	Template json.RawMessage `json:"template"`
	Revision string          `json:"revision"`
}

// A line of this file never changes: a release that makes another revision of the same
// template replaces every instance of every function.
func TestARevisionIsTheSameInEveryRelease(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "revisions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var golden []goldenRevision
	if err := yaml.UnmarshalStrict(text, &golden); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, g := range golden {
		read := templated(t, string(g.Template))
		got := RevisionOf(read)
		if got != g.Revision {
			t.Errorf("%s is %s, want %s", g.Template, got, g.Revision)
		}
		defaultTemplate(read)
		if again := RevisionOf(read); again != got {
			t.Errorf("%s is %s with its defaults, and %s without", g.Template, again, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%s and %s are one revision", g.Template, other)
		}
		seen[got] = string(g.Template)
	}
	if len(golden) < 12 {
		t.Errorf("only %d revisions are known", len(golden))
	}
}

func TestAFieldThatIsAddedChangesNoRevision(t *testing.T) {
	type nextTemplate struct {
		Aardvark string `json:"aardvark,omitempty"`
		*FunctionTemplate
		Zebra *Duration `json:"zebra,omitempty"`
	}
	now := templated(t, `{image: a/b, env: [{name: A, value: x}], placement: {nodeSelector: {disk: ""}}}`)
	next := nextTemplate{FunctionTemplate: now}
	if got, want := digest(canonical(next)), digest(canonical(now)); got != want {
		t.Errorf("with fields that say nothing it is %s, without them %s", got, want)
	}
	// The default of a new field is left out as those of bare are.
	next.Aardvark = "byDefault"
	without(&next.Aardvark, "byDefault")
	if got, want := digest(canonical(next)), digest(canonical(now)); got != want {
		t.Errorf("with a default it is %s, without it %s", got, want)
	}
	next.Aardvark = "otherwise"
	if digest(canonical(next)) == digest(canonical(now)) {
		t.Error("a field that says something is no part of the revision")
	}
}

func TestWhatMeansTheSameIsOneRevision(t *testing.T) {
	for name, pair := range map[string][2]string{
		"defaults":                {`{image: a}`, `{image: a, port: 8080, concurrency: 1, timeout: 60s, startupTimeout: 1m, protocol: HTTP, resources: {requests: {cpu: 100m, memory: 64Mi}}}`},
		"a kind":                  {`{runtimeRef: {name: r}}`, `{runtimeRef: {kind: ClusterRuntime, name: r}, protocol: LambdaRuntime}`},
		"amounts":                 {`{image: a, resources: {requests: {cpu: "0.5", memory: 1Gi}}}`, `{image: a, resources: {requests: {cpu: 500m, memory: "1073741824"}}}`},
		"limits":                  {`{image: a, resources: {limits: {cpu: 2, memory: 1G}}}`, `{image: a, resources: {limits: {cpu: 2000m, memory: 1e9}}}`},
		"a lowered request":       {`{image: a, resources: {limits: {memory: 32Mi}}}`, `{image: a, resources: {requests: {memory: 32Mi}, limits: {memory: 32Mi}}}`},
		"extended amounts":        {`{image: a, resources: {limits: {nvidia.com/gpu: "1"}}}`, `{image: a, resources: {limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1000m}}}`},
		"an optional that is not": {`{image: a, envFrom: [{secretRef: {name: a}}]}`, `{image: a, envFrom: [{secretRef: {name: a, optional: false}}]}`},
		"sizes":                   {`{image: a, mounts: [{name: a, mountPath: /a, emptyDir: {sizeLimit: 1Gi}}]}`, `{image: a, mounts: [{name: a, mountPath: /a, emptyDir: {sizeLimit: 1024Mi}}]}`},
		"no size":                 {`{image: a, mounts: [{name: a, mountPath: /a, emptyDir: {}}]}`, `{image: a, mounts: [{name: a, mountPath: /a, readOnly: false, emptyDir: {sizeLimit: 0}}]}`},
		"durations":               {`{image: a, timeout: 90s}`, `{image: a, timeout: 1m30s}`},
		"what is empty":           {`{image: a}`, `{image: a, args: [], env: [], metadata: {labels: {}}, placement: {tolerations: []}}`},
		"a class":                 {`{image: a}`, `{image: a, scheduling: {class: Standard}}`},
		"a field that is nil":     {`{image: a}`, `{image: a, code: null}`},
	} {
		a, b := templated(t, pair[0]), templated(t, pair[1])
		if RevisionOf(a) != RevisionOf(b) {
			t.Errorf("%s: %s is %s, and %s is %s", name, pair[0], canonical(bare(a)), pair[1], canonical(bare(b)))
		}
		if strings.Contains(name, "amount") || strings.Contains(name, "size") || strings.Contains(name, "limit") {
			continue // quantities keep how they were written until they are compared
		}
		defaultTemplate(a)
		defaultTemplate(b)
		if !equality.Semantic.DeepEqual(a, b) {
			t.Errorf("%s: %+v is not %+v", name, a, b)
		}
	}
}

func TestEveryFieldOfTheTemplateIsPartOfTheRevision(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		`{}`, `{metadata: {labels: {a: b}}}`, `{metadata: {annotations: {a: b}}}`, `{image: a}`, `{command: [a]}`, `{command: [a, b]}`,
		`{args: [a]}`, `{args: [""]}`, `{runtimeRef: {name: a}}`, `{runtimeRef: {kind: Runtime, name: a}}`, `{handler: a}`,
		`{code: {inline: a}}`, `{code: {configMapRef: {name: a}}}`, `{code: {path: a}}`, `{protocol: LambdaRuntime}`, `{port: 1}`,
		`{concurrency: 2}`, `{timeout: 1s}`, `{startupTimeout: 1s}`, `{resources: {requests: {cpu: 1}}}`, `{resources: {requests: {memory: 1Gi}}}`,
		`{scheduling: {class: Batch}}`, `{scheduling: {class: LatencyCritical}}`, `{scheduling: {slice: 50ms}}`, `{scheduling: {slice: 60ms}}`,
		`{resources: {limits: {cpu: 1}}}`, `{resources: {limits: {memory: 1Gi}}}`, `{resources: {requests: {ephemeral-storage: 1Gi}}}`,
		`{resources: {limits: {ephemeral-storage: 1Gi}}}`, `{resources: {limits: {nvidia.com/gpu: 1}}}`, `{resources: {limits: {nvidia.com/gpu: 2}}}`, `{env: [{name: a}]}`, `{env: [{name: a, value: b}]}`,
		`{envFrom: [{secretRef: {name: a}}]}`, `{envFrom: [{configMapRef: {name: a}}]}`, `{envFrom: [{prefix: b, configMapRef: {name: a}}]}`,
		`{envFrom: [{secretRef: {name: a, optional: true}}]}`, `{env: [{name: a, valueFrom: {secretKeyRef: {name: a, key: b}}}]}`,
		`{env: [{name: a, valueFrom: {secretKeyRef: {name: a, key: b, optional: true}}}]}`, `{env: [{name: a, valueFrom: {configMapKeyRef: {name: a, key: b}}}]}`,
		`{env: [{name: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`,
		`{mounts: [{name: a, mountPath: /a, emptyDir: {}}]}`, `{mounts: [{name: b, mountPath: /a, emptyDir: {}}]}`, `{mounts: [{name: a, mountPath: /b, emptyDir: {}}]}`,
		`{mounts: [{name: a, mountPath: /a, emptyDir: {medium: Memory}}]}`, `{mounts: [{name: a, mountPath: /a, emptyDir: {sizeLimit: 1Gi}}]}`,
		`{mounts: [{name: a, mountPath: /a, subPath: b, emptyDir: {}}]}`, `{mounts: [{name: a, mountPath: /a, secret: {secretName: a}}]}`,
		`{mounts: [{name: a, mountPath: /a, secret: {secretName: a, optional: true}}]}`, `{mounts: [{name: a, mountPath: /a, configMap: {name: a}}]}`,
		`{mounts: [{name: a, mountPath: /a, persistentVolumeClaim: {claimName: a}}]}`, `{mounts: [{name: a, mountPath: /a, readOnly: true, persistentVolumeClaim: {claimName: a}}]}`,
		`{imagePullSecrets: [{name: a}]}`, `{serviceAccountName: a}`, `{placement: {nodeSelector: {a: ""}}}`, `{placement: {nodeSelector: {a: b}}}`,
		`{placement: {tolerations: [{}]}}`, `{placement: {tolerations: [{operator: Exists}]}}`, `{placement: {runtimeClassName: a}}`, `{placement: {priorityClassName: a}}`,
	} {
		revision := RevisionOf(templated(t, text))
		if other, taken := seen[revision]; taken {
			t.Errorf("%s and %s are one revision", text, other)
		}
		seen[revision] = text
	}
}
