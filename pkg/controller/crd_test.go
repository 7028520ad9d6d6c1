package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/fpcs"
)

// manifest is an object of that kind with the given spec in YAML.
func manifest(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte("spec: "+spec), &content); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(v1alpha1.APIVersion)
	u.SetKind(kind)
	u.SetName(name)
	if kind == v1alpha1.KindFunction {
		u.SetNamespace("default")
	}
	return u
}

// causes are what the API server says is wrong, as "field: message".
func causes(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range status.Status().Details.Causes {
		lines = append(lines, c.Field+": "+c.Message)
	}
	slices.Sort(lines)
	return lines
}

// inGo is the function as local mode reads it, with its defaults; nil if it
// cannot be read.
func inGo(t *testing.T, u *unstructured.Unstructured) *v1alpha1.Function {
	t.Helper()
	text, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	functions, err := v1alpha1.Decode(text, "manifest")
	if err != nil {
		return nil
	}
	v1alpha1.Default(functions[0])
	return functions[0]
}

func TestAPIServerTakesWhatIsRight(t *testing.T) {
	c := newClient(t)
	for name, spec := range map[string]string{
		"an image":                  `{image: a/b}`,
		"an image by digest":        `{image: "a.b:5000/c/d@sha256:0123", command: [x, ""], args: [""]}`,
		"a Lambda image":            `{image: a/b, protocol: LambdaRuntime, handler: "com.example.Handler::handle"}`,
		"inline code":               `{runtime: python3, handler: src/app-v2.handle, code: {inline: x}}`,
		"the longest inline code":   `{runtime: python3, handler: a.b, code: {inline: ` + strings.Repeat("x", v1alpha1.MaxInlineCode) + `}}`,
		"a ConfigMap":               `{runtime: java21, handler: "com.example.Handler::handle", code: {configMap: my.code}}`,
		"a runtime that speaks":     `{runtime: python3, protocol: HTTP, handler: main.app, code: {inline: x}}`,
		"the lowest of everything":  `{image: a, port: 1, concurrency: 1, timeout: 10ms, startupTimeout: 100ms, resources: {requests: {cpu: 1m, memory: 1Mi}}, scaling: {min: 0, max: 1, backoffAfter: 1ns, idleTimeout: 1µs, keepLast: 1us}}`,
		"the highest of everything": `{image: a, port: 65535, concurrency: 1000, timeout: 24h, startupTimeout: 1h, scaling: {min: 3, max: 3, keepLast: 1.5h30m}, limits: {concurrency: 1000000, ratePerSecond: 1000000, burst: 1}}`,
		"quantities":                `{image: a, resources: {requests: {cpu: 1, memory: 134217728}, limits: {cpu: "1.5", memory: 1e9}}}`,
		"a limit of the request":    `{image: a, resources: {requests: {cpu: 1}, limits: {cpu: 1000m}}}`,
		"a limit alone":             `{image: a, resources: {limits: {cpu: 50m, memory: 32Mi}}}`,
		"a decider and keep-alive":  `{image: a, decider: staleness, scaling: {keepAlive: Histogram}}`,
		"windows":                   `{image: a, scaling: {max: 5, schedule: [{start: "0 8 * * 1-5", duration: 10h, min: 5}, {start: " */5 6-20/2\t1,15 jan-MAR ? ", duration: 1m, timeZone: America/Argentina/Buenos_Aires, min: 1}, {start: "0 0 * * *", duration: 168h, timeZone: Etc/GMT+5, min: 1}]}}`,
		"variables":                 `{image: a, env: [{name: A}, {name: b.c-D_1, value: x}, {name: PORTS}, {name: windlass_x}], envFrom: [{secretRef: {name: a}}, {prefix: A_, configMapRef: {name: b.c}}]}`,
		"what pods know":            `{image: a, nodeSelector: {a: b}, tolerations: [{key: x, operator: Exists}], runtimeClassName: gvisor, priorityClassName: batch, imagePullSecrets: [{name: a}], serviceAccountName: robot}`,
	} {
		t.Run(name, func(t *testing.T) {
			u := manifest(t, v1alpha1.KindFunction, "f", spec)
			f := inGo(t, u)
			if err := c.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Error(err)
			}
			if errs := append(v1alpha1.Validate(f), v1alpha1.ValidateCluster(f)...); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

func TestAPIServerNamesFieldAndRemedy(t *testing.T) {
	c := newClient(t)
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"nothing to run": {`{}`, []string{
			`spec: Invalid value: "object": image: or runtime: missing; write for example image: example.com/team/function:1.0, or runtime: python3 with handler: main.handle and code: {inline: ...}`}},
		"a command alone": {`{command: [x]}`, []string{
			`spec.command: Invalid value: "object": a command without an image runs in local mode only; add image:, which holds the program`}},
		"a command without a program": {`{image: a, command: [""]}`, []string{
			`spec.command: Invalid value: "array": the program is missing; write for example command: ["./server"]`}},
		"a runtime beside everything": {`{runtime: python3, handler: a.b, code: {inline: x}, image: i, command: [c], args: [a]}`, []string{
			`spec.args: Forbidden: a runtime brings its own program; remove args or runtime`,
			`spec.command: Forbidden: a runtime brings its own program; remove command or runtime`,
			`spec.image: Forbidden: a runtime brings its own image; remove image or runtime`}},
		"a runtime without everything": {`{runtime: python3}`, []string{
			`spec.code: Required value: a runtime needs source code; put it into code.inline, or into a ConfigMap that code.configMap names`,
			`spec.handler: Required value: a runtime needs module.function; write for example handler: main.handle`}},
		"a runtime that is no name": {`{runtime: Python, handler: a.b, code: {inline: x}}`, []string{
			`spec.runtime: Invalid value: "string": must be the name of a Runtime, in lower-case letters, digits and hyphens; write for example python3`}},
		"a handler without a module": {`{runtime: python3, handler: ../main.handle, code: {inline: x}}`, []string{
			`spec.handler: Invalid value: "object": must be module.function; write for example main.handle`}},
		"a handler of an image": {`{image: a, handler: a.b}`, []string{
			`spec.handler: Forbidden: only a runtime has a handler; add runtime: python3 or runtime: nodejs, or protocol: LambdaRuntime for a runtime client of your own, or remove handler`}},
		"code of an image": {`{image: a, code: {inline: x}}`, []string{
			`spec.code: Forbidden: an image holds its own code; remove code`}},
		"a path": {`{runtime: python3, handler: a.b, code: {path: /app}}`, []string{
			`spec.code.path: Forbidden: needs local mode; put the code into an image, a ConfigMap or code.inline`}},
		"code that is empty": {`{runtime: python3, handler: a.b, code: {}}`, []string{
			`spec.code: Invalid value: "object": is empty; put the source into code.inline, or into a ConfigMap that code.configMap names`}},
		"code twice": {`{runtime: python3, handler: a.b, code: {inline: x, configMap: z}}`, []string{
			`spec.code: Forbidden: inline and configMap exclude each other; remove code.inline or code.configMap`}},
		"code that is too long": {`{runtime: python3, handler: a.b, code: {inline: ` + strings.Repeat("é", v1alpha1.MaxInlineCode/2+1) + `}}`, []string{
			`spec.code.inline: Invalid value: "string": is longer than 200000 bytes; use a ConfigMap or an image`}},
		"a ConfigMap that is no name": {`{runtime: python3, handler: a.b, code: {configMap: A}}`, []string{
			`spec.code.configMap: Invalid value: "string": must be the name of a ConfigMap, in lower-case letters, digits, hyphens and dots; write for example my-function-code`}},
		"an image that is none": {`{image: "docker://a"}`, []string{
			`spec.image: Invalid value: "string": must be the reference of an image; write for example example.com/team/function:1.0`}},
		"names that nobody knows": {`{image: a, protocol: gRPC, decider: best}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.decider: Unsupported value: "best": supported values: "` + strings.Join(fpcs.Names(), `", "`) + `"`,
			`spec.protocol: Unsupported value: "gRPC": supported values: "HTTP", "LambdaRuntime"`}},
		"ports of the agent": {`{image: a, port: 9090}`, []string{
			`spec.port: Invalid value: "integer": the instance's agent uses the ports 9001 and 9090 itself; take another, for example 8080`}},
		"durations that are none": {`{image: a, timeout: 1d, startupTimeout: "5"}`, []string{
			`spec.startupTimeout: Invalid value: "string": must be a duration of 100ms to 1h; write for example 1m`,
			`spec.timeout: Invalid value: "string": must be a duration of 10ms to 24h; write for example 60s`}},
		"durations out of range": {`{image: a, timeout: 9ms, startupTimeout: 61m, scaling: {backoffAfter: 0s, idleTimeout: 0h, keepLast: -1s}}`, []string{
			`spec.scaling.backoffAfter: Invalid value: "string": must be a duration of more than 0; write for example 10s`,
			`spec.scaling.idleTimeout: Invalid value: "string": must be a duration of more than 0; write for example 10m`,
			`spec.scaling.keepLast: Invalid value: "string": must be a duration of more than 0; write for example 1h`,
			`spec.startupTimeout: Invalid value: "string": must be a duration of 100ms to 1h; write for example 1m`,
			`spec.timeout: Invalid value: "string": must be a duration of 10ms to 24h; write for example 60s`}},
		"limits out of range": {`{image: a, limits: {concurrency: -1, ratePerSecond: 1000001}}`, []string{
			`spec.limits.concurrency: Invalid value: -1: spec.limits.concurrency in body should be greater than or equal to 1`,
			`spec.limits.ratePerSecond: Invalid value: 1000001: spec.limits.ratePerSecond in body should be less than or equal to 1000000`}},
		"a burst of no rate": {`{image: a, limits: {burst: 5}}`, []string{
			`spec.limits.burst: Forbidden: needs limits.ratePerSecond; add it, or remove burst`}},
		"quantities that are too small": {`{image: a, resources: {requests: {cpu: 0}, limits: {memory: 64m}}}`, []string{
			`spec.resources.limits.memory: Invalid value: "": must be a quantity of at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes`,
			`spec.resources.requests.cpu: Invalid value: "": must be a quantity of at least 1m; write for example 250m, a quarter of a core`}},
		"a quantity that would take minutes to read": {`{image: a, resources: {limits: {memory: "1.5e-99999999"}}}`, []string{
			`spec.resources.limits.memory: Invalid value: "": must be a quantity of at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes`}},
		"limits below the requests": {`{image: a, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1500m, memory: 1G}}}`, []string{
			`spec.resources.limits.cpu: Invalid value: "object": must be at least the request; raise it, or lower resources.requests.cpu`,
			`spec.resources.limits.memory: Invalid value: "object": must be at least the request; raise it, or lower resources.requests.memory`}},
		"variables that are none": {`{image: a, env: [{name: 1A}, {name: "A=B"}, {name: ..a}]}`, []string{
			`spec.env[0].name: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`,
			`spec.env[1].name: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`,
			`spec.env[2].name: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`}},
		"variables that are Windlass's": {`{image: a, env: [{name: PORT}, {name: AWS_LAMBDA_RUNTIME_API}, {name: _HANDLER}, {name: LAMBDA_TASK_ROOT}, {name: WINDLASS_}]}`, []string{
			`spec.env[0].name: Forbidden: Windlass sets PORT itself; take another name, for example APP_MODE`,
			`spec.env[1].name: Forbidden: Windlass sets AWS_LAMBDA_RUNTIME_API itself; take another name, for example APP_MODE`,
			`spec.env[2].name: Forbidden: Windlass sets _HANDLER itself; take another name, for example APP_MODE`,
			`spec.env[3].name: Forbidden: Windlass sets LAMBDA_TASK_ROOT itself; take another name, for example APP_MODE`,
			`spec.env[4].name: Forbidden: Windlass sets WINDLASS_ itself; take another name, for example APP_MODE`}},
		"sources of variables that are none": {`{image: a, envFrom: [{}, {secretRef: {name: a}, configMapRef: {name: b}}, {prefix: 1A, secretRef: {name: a}}, {secretRef: {name: A}}]}`, []string{
			`spec.envFrom[0]: Invalid value: "object": needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}`,
			`spec.envFrom[1]: Invalid value: "object": needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}`,
			`spec.envFrom[2].prefix: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit; write for example DB_`,
			`spec.envFrom[3].secretRef.name: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`}},
		"names that are none": {`{image: a, runtimeClassName: A_B, priorityClassName: "-", serviceAccountName: a/b, imagePullSecrets: [{name: A}]}`, []string{
			`spec.imagePullSecrets[0].name: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`,
			`spec.priorityClassName: Invalid value: "string": must be the name of a PriorityClass, in lower-case letters, digits, hyphens and dots; write for example batch`,
			`spec.runtimeClassName: Invalid value: "string": must be the name of a RuntimeClass, in lower-case letters, digits, hyphens and dots; write for example gvisor`,
			`spec.serviceAccountName: Invalid value: "string": must be the name of a ServiceAccount, in lower-case letters, digits, hyphens and dots; write for example my-function`}},
		"a keep-alive that nobody knows": {`{image: a, scaling: {keepAlive: forever}}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.scaling.keepAlive: Unsupported value: "forever": supported values: "Fixed", "Histogram"`}},
		"starts that are none": {`{image: a, scaling: {schedule: [{start: "", duration: 1h, min: 1}, {start: "0 8 * *", duration: 1h, min: 1}, {start: "0 0 8 * * *", duration: 1h, min: 1}, {start: "@daily", duration: 1h, min: 1}, {start: "TZ=UTC 8 * * *", duration: 1h, min: 1}]}}`, []string{
			notAStart(0), notAStart(1), notAStart(2), notAStart(3), notAStart(4)}},
		"time zones that are none": {`{image: a, scaling: {schedule: [{start: "0 8 * * *", duration: 1h, min: 1, timeZone: Local}, {start: "0 8 * * *", duration: 1h, min: 1, timeZone: ../UTC}]}}`, []string{
			`spec.scaling.schedule[0].timeZone: Invalid value: "string": must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC`,
			`spec.scaling.schedule[1].timeZone: Invalid value: "string": must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC`}},
		"windows out of range": {`{image: a, scaling: {schedule: [{start: "0 8 * * *", duration: 59s, min: 1}, {start: "0 8 * * *", duration: 169h, min: 1}]}}`, []string{
			`spec.scaling.schedule[0].duration: Invalid value: "string": must be a duration of 1m to 168h; write for example 10h`,
			`spec.scaling.schedule[1].duration: Invalid value: "string": must be a duration of 1m to 168h; write for example 10h`}},
		"too few and too many in a window": {`{image: a, scaling: {schedule: [{start: "0 8 * * *", duration: 1h, min: 0}, {start: "0 8 * * *", duration: 1h, min: 100001}]}}`, []string{
			`spec.scaling.schedule[0].min: Invalid value: 0: spec.scaling.schedule[0].min in body should be greater than or equal to 1`,
			`spec.scaling.schedule[1].min: Invalid value: 100001: spec.scaling.schedule[1].min in body should be less than or equal to 100000`}},
		"a window above max": {`{image: a, scaling: {max: 2, schedule: [{start: "0 8 * * *", duration: 1h, min: 3}]}}`, []string{
			`spec.scaling.schedule: Invalid value: "object": min of a window must not be more than max; lower it, or raise scaling.max`}},
		"min above max": {`{image: a, scaling: {min: 3, max: 2}}`, []string{
			`spec.scaling.min: Invalid value: "object": must not be more than max; lower it, or raise scaling.max`}},
		"numbers out of range": {`{image: a, concurrency: 1001, port: 65536, scaling: {min: -1, max: 0}}`, []string{
			`.spec.scaling.min: Invalid value: -1: should be a non-negative integer`,
			`spec.concurrency: Invalid value: 1001: spec.concurrency in body should be less than or equal to 1000`,
			`spec.port: Invalid value: 65536: spec.port in body should be less than or equal to 65535`,
			`spec.scaling.max: Invalid value: 0: spec.scaling.max in body should be greater than or equal to 1`,
			`spec.scaling.min: Invalid value: -1: spec.scaling.min in body should be greater than or equal to 0`}},
	} {
		t.Run(name, func(t *testing.T) {
			u := manifest(t, v1alpha1.KindFunction, "f", tc.spec)
			got := causes(t, c.Create(t.Context(), u.DeepCopy(), client.DryRunAll))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			f := inGo(t, u)
			if f != nil && len(append(v1alpha1.Validate(f), v1alpha1.ValidateCluster(f)...)) == 0 {
				t.Error("Validate and ValidateCluster find nothing wrong with it")
			}
		})
	}
	u := manifest(t, v1alpha1.KindFunction, "a.b", `{image: a}`)
	want := []string{`metadata: Invalid value: "object": name must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example my-function`}
	if diff := cmp.Diff(want, causes(t, c.Create(t.Context(), u, client.DryRunAll))); diff != "" {
		t.Error(diff)
	}
}

func notAStart(i int) string {
	return fmt.Sprintf(`spec.scaling.schedule[%d].start: Invalid value: "string": must be five fields of cron: minute, hour, day of month, month, day of week; write for example 0 8 * * 1-5`, i)
}

func TestAPIServerChecksRuntimes(t *testing.T) {
	c := newClient(t)
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"what is right": {`{image: a/b:1, command: [/bootstrap], fileExtension: py, env: [{name: A, value: b}], warmPool: {size: 100, resources: {limits: {memory: 1Gi}}}}`, nil},
		"a warm pool of too many": {`{image: a, fileExtension: py, warmPool: {size: 101}}`, []string{
			`spec.warmPool.size: Invalid value: 101: spec.warmPool.size in body should be less than or equal to 100`}},
		"a pool that nobody could use": {`{image: a, protocol: HTTP, warmPool: {size: 1}}`, []string{
			`spec.warmPool: Invalid value: "object": needs fileExtension, since only inline code is handed to a spare instance; write for example fileExtension: py`,
			`spec.warmPool: Invalid value: "object": needs the protocol LambdaRuntime, by which alone code is handed to a runtime that has started; remove warmPool`}},
		"what is wrong": {`{image: a b, command: [""], fileExtension: .py, env: [{name: PORT}]}`, []string{
			`spec.command: Invalid value: "array": the program is missing; write for example command: ["/runtime/bootstrap"]`,
			`spec.env[0].name: Forbidden: Windlass sets PORT itself; take another name, for example APP_MODE`,
			`spec.fileExtension: Invalid value: "string": must be letters and digits without a dot; write for example py`,
			`spec.image: Invalid value: "string": must be the reference of an image; write for example example.com/team/runtime:1.0`}},
	} {
		t.Run(name, func(t *testing.T) {
			u := manifest(t, v1alpha1.KindRuntime, "r", tc.spec)
			if diff := cmp.Diff(tc.want, causes(t, c.Create(t.Context(), u, client.DryRunAll))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProtocolCannotChange(t *testing.T) {
	c := newClient(t)
	const refused = `spec.protocol: Invalid value: "object": cannot change, because calls that wait were made for the old one; make a new function, or delete this one first`
	const runtime = `{runtime: python3, handler: a.b, code: {inline: x}`
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"another image":                    {`{image: a}`, `{image: b, timeout: 5s}`, nil},
		"HTTP, said aloud":                 {`{image: a}`, `{image: a, protocol: HTTP}`, nil},
		"from HTTP to Lambda":              {`{image: a}`, `{image: a, protocol: LambdaRuntime}`, []string{refused}},
		"from an image to a runtime":       {`{image: a}`, runtime + `}`, []string{refused}},
		"from a Lambda image to a runtime": {`{image: a, protocol: LambdaRuntime}`, runtime + `}`, nil},
		"from a runtime to HTTP":           {runtime + `}`, runtime + `, protocol: HTTP}`, []string{refused}},
		"another runtime":                  {runtime + `}`, `{runtime: nodejs, handler: a.c, code: {configMap: z}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t, c)
			before, after := manifest(t, v1alpha1.KindFunction, "f", tc.before), manifest(t, v1alpha1.KindFunction, "f", tc.after)
			before.SetNamespace(namespace)
			after.SetNamespace(namespace)
			if err := c.Create(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			after.SetResourceVersion(before.GetResourceVersion())
			if diff := cmp.Diff(tc.want, causes(t, c.Update(t.Context(), after))); diff != "" {
				t.Error(diff)
			}
		})
	}
	r := manifest(t, v1alpha1.KindRuntime, "protocol-cannot-change", `{image: a}`)
	makeRuntime(t, c, r)
	_ = unstructured.SetNestedField(r.Object, "HTTP", "spec", "protocol")
	want := []string{`spec.protocol: Invalid value: "string": cannot change, because functions of this runtime have callers of the old one; make a new Runtime`}
	if diff := cmp.Diff(want, causes(t, c.Update(t.Context(), r))); diff != "" {
		t.Error(diff)
	}
}

// The API server fills in what Default does, except what depends on other
// fields: the protocol, and the requests.
func TestAPIServerDefaultsAsGoDoes(t *testing.T) {
	c := newClient(t)
	for name, spec := range map[string]string{
		"an image":             `{image: a}`,
		"a runtime":            `{runtime: python3, handler: a.b, code: {inline: x}}`,
		"empty groups":         `{image: a, scaling: {}, resources: {requests: {}, limits: {}}}`,
		"a part of the groups": `{image: a, scaling: {max: 3, keepLast: 2h}, resources: {limits: {cpu: 50m}}}`,
		"everything":           `{image: a, port: 80, concurrency: 2, timeout: 1s, startupTimeout: 2s, decider: listing1, protocol: HTTP, scaling: {min: 1, max: 2, backoffAfter: 1s, idleTimeout: 2s, keepLast: 3s, keepAlive: Histogram, schedule: [{start: "0 8 * * *", duration: 1h, min: 2}]}, resources: {requests: {cpu: 1, memory: 1Gi}}}`,
		"nulls":                `{image: a, timeout: null, scaling: {min: null, idleTimeout: null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			u := manifest(t, v1alpha1.KindFunction, "f", spec)
			want := inGo(t, u)
			if err := c.Create(t.Context(), u, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(u)
			if err != nil {
				t.Fatal(err)
			}
			got := &v1alpha1.Function{}
			if err := json.Unmarshal(text, got); err != nil {
				t.Fatal(err)
			}
			given := &v1alpha1.Function{}
			given.Spec = *got.Spec.DeepCopy()
			v1alpha1.Default(given)
			if !equality.Semantic.DeepEqual(want.Spec, given.Spec) {
				t.Error(cmp.Diff(want.Spec, given.Spec))
			}
			want.Spec.Protocol, want.Spec.Resources = got.Spec.Protocol, got.Spec.Resources
			if !equality.Semantic.DeepEqual(want.Spec, got.Spec) {
				t.Error(cmp.Diff(want.Spec, got.Spec))
			}
		})
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	c := newClient(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("samples: %v, error %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), u); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if u.GetKind() != v1alpha1.KindRuntime {
				u.SetNamespace("default")
			}
			if err := c.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
