//go:build apiserver

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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
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
		"an image":                  `{template: {image: a/b}}`,
		"an image by digest":        `{template: {image: "a.b:5000/c/d@sha256:0123", command: [x, ""], args: [""]}}`,
		"a Lambda image":            `{template: {image: a/b, protocol: LambdaRuntime, handler: "com.example.Handler::handle"}}`,
		"inline code":               `{template: {runtimeRef: {name: python3.13}, handler: src/app-v2.handle, code: {inline: x}}}`,
		"the longest inline code":   `{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: ` + strings.Repeat("x", v1alpha1.MaxInlineCode) + `}}}`,
		"a ConfigMap":               `{template: {runtimeRef: {name: java21}, handler: "com.example.Handler::handle", code: {configMapRef: {name: my.code}}}}`,
		"a runtime that speaks":     `{template: {runtimeRef: {name: python3.13}, protocol: HTTP, handler: main.app, code: {inline: x}}}`,
		"a class":                   `{template: {image: a, scheduling: {class: LatencyCritical}}}`,
		"a slice":                   `{template: {image: a, scheduling: {slice: 10ms}}}`,
		"the lowest of everything":  `{template: {image: a, port: 1, concurrency: 1, timeout: 10ms, startupTimeout: 100ms, resources: {requests: {cpu: 1m, memory: 1Mi}}}, scaling: {minInstances: 0, maxInstances: 1, scaleDown: {idleTimeout: 1ms, lastInstanceIdleTimeout: 1ms}}}`,
		"the highest of everything": `{template: {image: a, port: 65535, concurrency: 1000, timeout: 24h, startupTimeout: 1h}, calls: {maxInFlight: 1000000, rate: {requests: 1000000, period: 24h, burst: 1}, queueTimeout: 24h}, scaling: {minInstances: 3, maxInstances: 3, scaleDown: {lastInstanceIdleTimeout: 99999h59m59s999ms}}}`,
		"quantities":                `{template: {image: a, resources: {requests: {cpu: 1, memory: 134217728}, limits: {cpu: "1.5", memory: 1e9}}}}`,
		"further resources":         `{template: {image: a, resources: {requests: {ephemeral-storage: 1Gi, nvidia.com/gpu: 1}, limits: {ephemeral-storage: 2Gi, nvidia.com/gpu: "1", example.com/some-thing_of.ours: 12}}}}`,
		"a limit of the request":    `{template: {image: a, resources: {requests: {cpu: 1}, limits: {cpu: 1000m}}}}`,
		"a limit alone":             `{template: {image: a, resources: {limits: {cpu: 50m, memory: 32Mi}}}}`,
		"words":                     `{template: {image: a}, calls: {delivery: AtLeastOnce, onClientDisconnect: Cancel}, scaling: {scaleDown: {policy: Learned}}}`,
		"windows":                   `{template: {image: a}, scaling: {maxInstances: 5, windows: [{name: w1, start: "0 8 * * 1-5", duration: 10h, minInstances: 5}, {name: w2, start: " */5 6-20/2\t1,15 jan-MAR ? ", duration: 1m, timeZone: America/Argentina/Buenos_Aires, minInstances: 1}, {name: w3, start: "0 0 * * *", duration: 168h, timeZone: Etc/GMT+5, minInstances: 1}]}}`,
		"variables":                 `{template: {image: a, env: [{name: A}, {name: b.c-D_1, value: x}, {name: PORTS}, {name: windlass_x}], envFrom: [{secretRef: {name: a}}, {prefix: A_, configMapRef: {name: b.c}}]}}`,
		"variables from elsewhere":  `{template: {image: a, env: [{name: A, valueFrom: {secretKeyRef: {name: db.x, key: tls.key_1-a, optional: true}}}, {name: B, valueFrom: {configMapKeyRef: {name: b, key: a}}}, {name: C, value: "", valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: D, valueFrom: {fieldRef: {fieldPath: "metadata.labels['cost-center']"}}}, {name: E, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['example.com/Owner']"}}}, {name: F, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}], envFrom: [{secretRef: {name: a, optional: true}}, {prefix: A_, configMapRef: {name: b, optional: false}}]}}`,
		"mounts":                    `{template: {image: a, mounts: [{name: tls, mountPath: /etc/tls, secret: {secretName: tls.x}}, {name: settings, mountPath: /etc/app/settings.json, subPath: a/..b, readOnly: true, configMap: {name: c, optional: true}}, {name: models, mountPath: "/models 1", persistentVolumeClaim: {claimName: models}}, {name: cache, mountPath: /var/cache, emptyDir: {}}, {name: fast, mountPath: /run/fast, emptyDir: {medium: Memory, sizeLimit: 64Mi}}, {name: zero, mountPath: /tmpx, emptyDir: {sizeLimit: 0}}]}}`,
		"what pods know":            `{template: {image: a, metadata: {labels: {cost-center: "4711", example.com/team: ""}, annotations: {example.com/owner: payments, notk8s.io/x: z}}, imagePullSecrets: [{name: a}], serviceAccountName: robot, placement: {nodeSelector: {a: b}, tolerations: [{key: x, operator: Exists}, {operator: Exists}, {key: x, value: z, operator: "", effect: ""}, {key: x, operator: Equal, effect: NoExecute, tolerationSeconds: 5}], runtimeClassName: gvisor, priorityClassName: batch}}}`,
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
		"nothing to run": {`{template: {}}`, []string{
			`spec.template: Invalid value: "object": image: or runtimeRef: missing; write for example image: example.com/team/function:1.0, or runtimeRef: {name: python3.13} with handler: main.handle and code: {inline: ...}`}},
		"a command alone": {`{template: {command: [x]}}`, []string{
			`spec.template.command: Invalid value: "object": a command without an image runs in local mode only; add image:, which holds the program`}},
		"a command without a program": {`{template: {image: a, command: [""]}}`, []string{
			`spec.template.command: Invalid value: "array": the program is missing; write for example command: ["./server"]`}},
		"a runtime beside everything": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: x}, image: i, command: [c], args: [a]}}`, []string{
			`spec.template.args: Forbidden: a runtime brings its own program; remove args or runtimeRef`,
			`spec.template.command: Forbidden: a runtime brings its own program; remove command or runtimeRef`,
			`spec.template.image: Forbidden: a runtime brings its own image; remove image or runtimeRef`}},
		"a runtime without everything": {`{template: {runtimeRef: {name: python3.13}}}`, []string{
			`spec.template.code: Required value: a runtime needs source code; put it into code.inline, or into a ConfigMap that code.configMapRef names`,
			`spec.template.handler: Required value: a runtime needs module.function; write for example handler: main.handle`}},
		"a runtime that is no name": {`{template: {runtimeRef: {name: Python}, handler: a.b, code: {inline: x}}}`, []string{
			`spec.template.runtimeRef.name: Invalid value: "string": must be the name of a ClusterRuntime, in lower-case letters, digits, hyphens and dots; write for example python3.13`}},
		"a handler without a module": {`{template: {runtimeRef: {name: python3.13}, handler: ../main.handle, code: {inline: x}}}`, []string{
			`spec.template.handler: Invalid value: "object": must be module.function; write for example main.handle`}},
		"a handler of an image": {`{template: {image: a, handler: a.b}}`, []string{
			`spec.template.handler: Forbidden: only a runtime has a handler; add runtimeRef: {name: python3.13} or runtimeRef: {name: nodejs22.x}, or protocol: LambdaRuntime for a runtime client of your own, or remove handler`}},
		"code of an image": {`{template: {image: a, code: {inline: x}}}`, []string{
			`spec.template.code: Forbidden: an image holds its own code; remove code`}},
		"a path": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {path: /app}}}`, []string{
			`spec.template.code.path: Forbidden: needs local mode; put the code into an image, a ConfigMap or code.inline`}},
		"code that is empty": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {}}}`, []string{
			`spec.template.code: Invalid value: "object": is empty; put the source into code.inline, or into a ConfigMap that code.configMapRef names`}},
		"code twice": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: x, configMapRef: {name: z}}}}`, []string{
			`spec.template.code: Forbidden: inline and configMapRef exclude each other; remove code.inline or code.configMapRef`}},
		"code that is too long": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: ` + strings.Repeat("é", v1alpha1.MaxInlineCode/2+1) + `}}}`, []string{
			`spec.template.code.inline: Invalid value: "string": is longer than 200000 bytes; use a ConfigMap or an image`}},
		"a ConfigMap that is no name": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {configMapRef: {name: A}}}}`, []string{
			`spec.template.code.configMapRef.name: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`}},
		"an image that is none": {`{template: {image: "docker://a"}}`, []string{
			`spec.template.image: Invalid value: "string": must be the reference of an image; write for example example.com/team/function:1.0`}},
		"names that nobody knows": {`{template: {image: a, protocol: gRPC}, calls: {delivery: Once, onClientDisconnect: cancel}}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.calls.delivery: Unsupported value: "Once": supported values: "AtMostOnce", "AtLeastOnce"`,
			`spec.calls.onClientDisconnect: Unsupported value: "cancel": supported values: "Continue", "Cancel"`,
			`spec.template.protocol: Unsupported value: "gRPC": supported values: "HTTP", "LambdaRuntime"`}},
		"ports of the agent": {`{template: {image: a, port: 9090}}`, []string{
			`spec.template.port: Invalid value: "integer": the instance's agent uses the ports 9001 and 9090 itself; take another, for example 8080`}},
		"durations that are none": {`{template: {image: a, timeout: 1d, startupTimeout: "5"}}`, []string{
			`spec.template.startupTimeout: Invalid value: "string": must be a duration of 100ms to 1h; write for example 1m`,
			`spec.template.timeout: Invalid value: "string": must be a duration of 10ms to 24h; write for example 60s`}},
		"durations out of range": {`{template: {image: a, timeout: 9ms, startupTimeout: 61m}, scaling: {scaleDown: {idleTimeout: 0h, lastInstanceIdleTimeout: 1us}}}`, []string{
			`spec.scaling.scaleDown.idleTimeout: Invalid value: "string": must be a duration of more than 0; write for example 10m`,
			`spec.scaling.scaleDown.lastInstanceIdleTimeout: Invalid value: "string": must be a duration of more than 0; write for example 1h`,
			`spec.template.startupTimeout: Invalid value: "string": must be a duration of 100ms to 1h; write for example 1m`,
			`spec.template.timeout: Invalid value: "string": must be a duration of 10ms to 24h; write for example 60s`}},
		"limits out of range": {`{template: {image: a}, calls: {maxInFlight: -1, rate: {requests: 1000001}}}`, []string{
			`spec.calls.maxInFlight: Invalid value: -1: spec.calls.maxInFlight in body should be greater than or equal to 1`,
			`spec.calls.rate.requests: Invalid value: 1000001: spec.calls.rate.requests in body should be less than or equal to 1000000`}},
		"a class that nobody knows": {`{template: {image: a, scheduling: {class: batch}}}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.template.scheduling.class: Unsupported value: "batch": supported values: "LatencyCritical", "Standard", "Batch"`}},
		"slices of calls that have none": {`{template: {image: a, scheduling: {class: Batch, slice: 50ms}}}`, []string{
			`spec.template.scheduling.slice: Forbidden: calls of class Batch always yield, so they have no slice; remove slice, or write class: Standard`}},
		"slices of calls that never yield": {`{template: {image: a, scheduling: {class: LatencyCritical, slice: 50ms}}}`, []string{
			`spec.template.scheduling.slice: Forbidden: calls of class LatencyCritical never yield, so they have no slice; remove slice, or write class: Standard`}},
		"a slice that the node cannot measure": {`{template: {image: a, scheduling: {slice: 9ms}}}`, []string{
			`spec.template.scheduling.slice: Invalid value: "string": must be a duration of 10ms to 1h; write for example 50ms`}},
		"times of calls out of range": {`{template: {image: a}, calls: {rate: {requests: 1, period: 999ms}, queueTimeout: 1.5h}}`, []string{
			`spec.calls.queueTimeout: Invalid value: "string": must be a duration of 10ms to 24h; write for example 5s`,
			`spec.calls.rate.period: Invalid value: "string": must be a duration of 1s to 24h; write for example 1m`}},
		"a burst of no rate": {`{template: {image: a}, calls: {rate: {burst: 5}}}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.calls.rate.requests: Required value`}},
		"keys that are not for functions": {`{template: {image: a, metadata: {labels: {app.kubernetes.io/name: x}, annotations: {eu.windlass.dev/x: z}}}}`, []string{
			`spec.template.metadata.annotations: Forbidden: keys of windlass.dev, kubernetes.io and k8s.io, and below, are not for functions; take one of your own, for example example.com/owner`,
			`spec.template.metadata.labels: Forbidden: keys of windlass.dev, kubernetes.io and k8s.io, and below, are not for functions; take one of your own, for example cost-center`}},
		"values that are too long": {`{template: {image: a, metadata: {labels: {a: ` + strings.Repeat("x", 64) + `}, annotations: {a: ` + strings.Repeat("x", 1025) + `}}}}`, []string{
			`spec.template.metadata.annotations: Invalid value: "object": a key is too long for an annotation, or a value is longer than 1024 characters; write for example example.com/owner: payments`,
			`spec.template.metadata.labels: Invalid value: "object": a key or a value is too long for a label; write for example cost-center: "4711"`}},
		"quantities that are too small": {`{template: {image: a, resources: {requests: {cpu: 0}, limits: {memory: 64m}}}}`, []string{
			`spec.template.resources.limits[memory]: Invalid value: "object": must be a quantity of at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes`,
			`spec.template.resources.requests[cpu]: Invalid value: "object": must be a quantity of at least 1m; write for example 250m, a quarter of a core`}},
		"a quantity that would take minutes to read": {`{template: {image: a, resources: {limits: {memory: "1.5e-99999999"}}}}`, []string{
			`spec.template.resources.limits[memory]: Invalid value: "object": must be a quantity of at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes`}},
		"limits below the requests": {`{template: {image: a, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1500m, memory: 1G}}}}`, []string{
			`spec.template.resources.limits[cpu]: Invalid value: "object": must be at least the request; raise it, or lower resources.requests.cpu`,
			`spec.template.resources.limits[memory]: Invalid value: "object": must be at least the request; raise it, or lower resources.requests.memory`}},
		"resources that no function has": {`{template: {image: a, resources: {requests: {hugepages-2Mi: 1}, limits: {cpus: 1, kubernetes.io/x: 1, Example.com/x: 1}}}}`, []string{
			`spec.template.resources.limits: Invalid value: "object": only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu, are known; correct the name`,
			`spec.template.resources.requests: Invalid value: "object": only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu, are known; correct the name`}},
		"parts of a GPU": {`{template: {image: a, resources: {limits: {nvidia.com/gpu: 500m}}}}`, []string{
			`spec.template.resources.limits: Invalid value: "object": an extended resource is a whole number of 1 or more; write for example nvidia.com/gpu: 1`}},
		"no GPU": {`{template: {image: a, resources: {limits: {nvidia.com/gpu: 0}}}}`, []string{
			`spec.template.resources.limits: Invalid value: "object": an extended resource is a whole number of 1 or more; write for example nvidia.com/gpu: 1`}},
		"a GPU that is requested alone": {`{template: {image: a, resources: {requests: {nvidia.com/gpu: 1}}}}`, []string{
			`spec.template.resources.requests: Invalid value: "object": an extended resource is requested as much as it is limited to; write it in resources.limits alone`}},
		"fewer GPUs than may be used": {`{template: {image: a, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}}`, []string{
			`spec.template.resources.requests: Invalid value: "object": an extended resource is requested as much as it is limited to; write it in resources.limits alone`}},
		"a bit of disk": {`{template: {image: a, resources: {requests: {ephemeral-storage: 1Gi}, limits: {ephemeral-storage: 1}}}}`, []string{
			`spec.template.resources.limits[ephemeral-storage]: Invalid value: "object": must be a quantity of at least 1Mi; write for example 2Gi, which are 2 times 2^30 bytes`,
			`spec.template.resources.limits[ephemeral-storage]: Invalid value: "object": must be at least the request; raise it, or lower resources.requests.ephemeral-storage`}},
		"variables that are none": {`{template: {image: a, env: [{name: 1A}, {name: "A=B"}, {name: ..a}]}}`, []string{
			`spec.template.env[0].name: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`,
			`spec.template.env[1].name: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`,
			`spec.template.env[2].name: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`}},
		"a value twice": {`{template: {image: a, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}`, []string{
			`spec.template.env[0].valueFrom: Forbidden: value and valueFrom exclude each other; remove one of the two`}},
		"a value from nowhere": {`{template: {image: a, env: [{name: A, valueFrom: {}}, {name: B, valueFrom: {secretKeyRef: {name: a, key: b}, fieldRef: {fieldPath: metadata.name}}}]}}`, []string{
			`spec.template.env[0].valueFrom: Invalid value: "object": needs exactly one of secretKeyRef, configMapKeyRef and fieldRef; write for example secretKeyRef: {name: my-secret, key: password}`,
			`spec.template.env[1].valueFrom: Invalid value: "object": needs exactly one of secretKeyRef, configMapKeyRef and fieldRef; write for example secretKeyRef: {name: my-secret, key: password}`}},
		"keys that are none": {`{template: {image: a, env: [{name: A, valueFrom: {secretKeyRef: {name: A, key: a/b}}}, {name: B, valueFrom: {configMapKeyRef: {name: a, key: ..}}}]}}`, []string{
			`spec.template.env[0].valueFrom.secretKeyRef.key: Invalid value: "string": must be the key of a Secret or a ConfigMap, in letters, digits, '-', '_' and '.'; write for example password`,
			`spec.template.env[0].valueFrom.secretKeyRef.name: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`,
			`spec.template.env[1].valueFrom.configMapKeyRef.key: Invalid value: "string": must be the key of a Secret or a ConfigMap, in letters, digits, '-', '_' and '.'; write for example password`}},
		"fields that no pod tells": {`{template: {image: a, env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.hostname}}}, {name: B, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a b']"}}}]}}`, []string{
			`spec.template.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "string": must be a field of the pod: metadata.name, .namespace, .uid, .labels['KEY'] or .annotations['KEY'], spec.nodeName or .serviceAccountName, status.hostIP, .hostIPs, .podIP or .podIPs; write for example metadata.name`,
			`spec.template.env[1].valueFrom.fieldRef.fieldPath: Invalid value: "string": must be a field of the pod: metadata.name, .namespace, .uid, .labels['KEY'] or .annotations['KEY'], spec.nodeName or .serviceAccountName, status.hostIP, .hostIPs, .podIP or .podIPs; write for example metadata.name`}},
		"mounts of nothing and of two": {`{template: {image: a, mounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b, emptyDir: {}, secret: {secretName: s}}]}}`, []string{
			`spec.template.mounts[0]: Invalid value: "object": needs exactly one of secret, configMap, persistentVolumeClaim and emptyDir; write for example configMap: {name: my-settings}`,
			`spec.template.mounts[1]: Invalid value: "object": needs exactly one of secret, configMap, persistentVolumeClaim and emptyDir; write for example configMap: {name: my-settings}`}},
		"paths that are none": {`{template: {image: a, mounts: [{name: a, mountPath: a, emptyDir: {}}, {name: b, mountPath: /b/../c, emptyDir: {}}, {name: c, mountPath: "/d:e", emptyDir: {}}, {name: e, mountPath: /f/, subPath: /x, emptyDir: {}}, {name: f, emptyDir: {}, mountPath: /g, subPath: x/../../y}]}}`, []string{
			`spec.template.mounts[0].mountPath: Invalid value: "string": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /etc/app`,
			`spec.template.mounts[1].mountPath: Invalid value: "string": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /etc/app`,
			`spec.template.mounts[2].mountPath: Invalid value: "string": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /etc/app`,
			`spec.template.mounts[3].mountPath: Invalid value: "string": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /etc/app`,
			`spec.template.mounts[3].subPath: Invalid value: "string": must be a path within the volume, without '..' and a slash at its beginning; write for example app/settings.json`,
			`spec.template.mounts[4].subPath: Invalid value: "string": must be a path within the volume, without '..' and a slash at its beginning; write for example app/settings.json`}},
		"paths of others": {`{template: {image: a, mounts: [{name: a, mountPath: /tmp/x, emptyDir: {}}, {name: b, mountPath: /var, emptyDir: {}}, {name: c, mountPath: /dev/shm, emptyDir: {}}, {name: d, mountPath: /run/secrets, emptyDir: {}}]}}`, []string{
			`spec.template.mounts[0].mountPath: Forbidden: is a path of Windlass' or the system's own, or contains one or is below it: /tmp, /var/task, /var/run/secrets, /dev, /proc, /sys; take another one, for example /etc/app`,
			`spec.template.mounts[1].mountPath: Forbidden: is a path of Windlass' or the system's own, or contains one or is below it: /tmp, /var/task, /var/run/secrets, /dev, /proc, /sys; take another one, for example /etc/app`,
			`spec.template.mounts[2].mountPath: Forbidden: is a path of Windlass' or the system's own, or contains one or is below it: /tmp, /var/task, /var/run/secrets, /dev, /proc, /sys; take another one, for example /etc/app`,
			`spec.template.mounts[3].mountPath: Forbidden: is a path of Windlass' or the system's own, or contains one or is below it: /tmp, /var/task, /var/run/secrets, /dev, /proc, /sys; take another one, for example /etc/app`}},
		"paths over each other": {`{template: {image: a, mounts: [{name: a, mountPath: /a/b, emptyDir: {}}, {name: b, mountPath: /a, emptyDir: {}}]}}`, []string{
			`spec.template.mounts: Invalid value: "array": a mountPath is that of another one, or below it; take paths apart, for example /etc/app and /models`}},
		"limits of folders with an exponent": {`{template: {image: a, mounts: [{name: a, mountPath: /a, emptyDir: {sizeLimit: "1e9"}}, {name: b, mountPath: /b, emptyDir: {sizeLimit: 1E}}, {name: c, mountPath: /c, emptyDir: {sizeLimit: 1Ei}}]}}`, []string{
			`spec.template.mounts[0].emptyDir.sizeLimit: Invalid value: "": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`,
			`spec.template.mounts[1].emptyDir.sizeLimit: Invalid value: "": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`,
			`spec.template.mounts[2].emptyDir.sizeLimit: Invalid value: "": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`}},
		"sources that are none": {`{template: {image: a, mounts: [{name: A, mountPath: /a, secret: {secretName: S}}, {name: c, mountPath: /c, persistentVolumeClaim: {claimName: C}}, {name: d, mountPath: /d, emptyDir: {sizeLimit: "1.5e-99999999"}}, {name: e, mountPath: /e, emptyDir: {sizeLimit: -1}}]}}`, []string{
			`spec.template.mounts[0].name: Invalid value: "string": must be at most 50 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example models`,
			`spec.template.mounts[0].secret.secretName: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`,
			`spec.template.mounts[1].persistentVolumeClaim.claimName: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`,
			`spec.template.mounts[2].emptyDir.sizeLimit: Invalid value: "": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`,
			`spec.template.mounts[3].emptyDir.sizeLimit: Invalid value: "": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`}},
		"variables that are Windlass's": {`{template: {image: a, env: [{name: PORT}, {name: AWS_LAMBDA_RUNTIME_API}, {name: _HANDLER}, {name: LAMBDA_TASK_ROOT}, {name: WINDLASS_}]}}`, []string{
			`spec.template.env[0].name: Forbidden: Windlass sets PORT itself; take another name, for example APP_MODE`,
			`spec.template.env[1].name: Forbidden: Windlass sets AWS_LAMBDA_RUNTIME_API itself; take another name, for example APP_MODE`,
			`spec.template.env[2].name: Forbidden: Windlass sets _HANDLER itself; take another name, for example APP_MODE`,
			`spec.template.env[3].name: Forbidden: Windlass sets LAMBDA_TASK_ROOT itself; take another name, for example APP_MODE`,
			`spec.template.env[4].name: Forbidden: Windlass sets WINDLASS_ itself; take another name, for example APP_MODE`}},
		"sources of variables that are none": {`{template: {image: a, envFrom: [{}, {secretRef: {name: a}, configMapRef: {name: b}}, {prefix: 1A, secretRef: {name: a}}, {secretRef: {name: A}}]}}`, []string{
			`spec.template.envFrom[0]: Invalid value: "object": needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}`,
			`spec.template.envFrom[1]: Invalid value: "object": needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}`,
			`spec.template.envFrom[2].prefix: Invalid value: "string": must be letters, digits, '_', '-' and '.', and not begin with a digit; write for example DB_`,
			`spec.template.envFrom[3].secretRef.name: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`}},
		"names that are none": {`{template: {image: a, serviceAccountName: a/b, imagePullSecrets: [{name: A}], placement: {runtimeClassName: A_B, priorityClassName: "-"}}}`, []string{
			`spec.template.imagePullSecrets[0].name: Invalid value: "string": must be the name of an object of this namespace, in lower-case letters, digits, hyphens and dots; write for example my-object`,
			`spec.template.placement.priorityClassName: Invalid value: "string": must be the name of a PriorityClass, in lower-case letters, digits, hyphens and dots; write for example batch`,
			`spec.template.placement.runtimeClassName: Invalid value: "string": must be the name of a RuntimeClass, in lower-case letters, digits, hyphens and dots; write for example gvisor`,
			`spec.template.serviceAccountName: Invalid value: "string": must be the name of a ServiceAccount, in lower-case letters, digits, hyphens and dots; write for example my-function`}},
		"a rollout that nobody knows": {`{template: {image: a}, rollout: {verify: Twice, strategy: Slow}, revisionHistoryLimit: 101}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.revisionHistoryLimit: Invalid value: 101: spec.revisionHistoryLimit in body should be less than or equal to 100`,
			`spec.rollout.strategy: Unsupported value: "Slow": supported values: "Immediate", "Steps"`,
			`spec.rollout.verify: Unsupported value: "Twice": supported values: "OneInstance", "None"`}},
		"steps of no strategy": {`{template: {image: a}, rollout: {steps: [{weight: 5, hold: 1m}]}}`, []string{
			`spec.rollout.steps: Forbidden: need strategy: Steps; add it, or remove the steps`}},
		"a strategy without steps": {`{template: {image: a}, rollout: {strategy: Steps}}`, []string{
			`spec.rollout.steps: Required value: strategy: Steps needs steps; write for example [{weight: 10, hold: 10m}]`}},
		"times of a rollout": {`{template: {image: a}, rollout: {strategy: Steps, progressDeadline: 999ms, steps: [{weight: 5, hold: 169h}]}}`, []string{
			`spec.rollout.progressDeadline: Invalid value: "string": must be a duration of 1s to 24h; write for example 2m`,
			`spec.rollout.steps[0].hold: Invalid value: "string": must be a duration of 1s to 168h; write for example 10m`}},
		"steps beside traffic": {`{template: {image: a}, rollout: {strategy: Steps, steps: [{weight: 5, hold: 1m}]}, traffic: [{tag: live, weight: 100}]}`, []string{
			`spec.traffic: Forbidden: traffic and rollout.strategy Steps exclude each other: both say where calls go; remove one of them`}},
		"hosts that are none": {`{template: {image: a}, expose: {hosts: [Shop.example.com, shop.example.com, 10.0.0.1]}}`, []string{
			`spec.expose.hosts[0]: Invalid value: "string": must be a DNS name of two labels or more, each of at most 63 lower-case letters, digits and hyphens, 253 bytes in all, and no URL, port, * or IP address; write for example shop.example.com`,
			`spec.expose.hosts[2]: Invalid value: "string": must be a DNS name of two labels or more, each of at most 63 lower-case letters, digits and hyphens, 253 bytes in all, and no URL, port, * or IP address; write for example shop.example.com`}},
		"traffic that is not all": {`{template: {image: a}, traffic: [{tag: A, weight: 50}, {tag: b, weight: 49}]}`, []string{
			`spec.traffic: Invalid value: "array": the weights together must be 100; write for example [{tag: live, weight: 100}]`,
			`spec.traffic[0].tag: Invalid value: "string": must be lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example next`}},
		"a policy that nobody knows": {`{template: {image: a}, scaling: {scaleDown: {policy: forever}}}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.scaling.scaleDown.policy: Unsupported value: "forever": supported values: "Fixed", "Learned"`}},
		"starts that are none": {`{template: {image: a}, scaling: {windows: [{name: w1, start: "", duration: 1h, minInstances: 1}, {name: w2, start: "0 8 * *", duration: 1h, minInstances: 1}, {name: w3, start: "0 0 8 * * *", duration: 1h, minInstances: 1}, {name: w4, start: "@daily", duration: 1h, minInstances: 1}, {name: w5, start: "TZ=UTC 8 * * *", duration: 1h, minInstances: 1}]}}`, []string{
			notAStart(0), notAStart(1), notAStart(2), notAStart(3), notAStart(4)}},
		"time zones that are none": {`{template: {image: a}, scaling: {windows: [{name: w1, start: "0 8 * * *", duration: 1h, minInstances: 1, timeZone: Local}, {name: w2, start: "0 8 * * *", duration: 1h, minInstances: 1, timeZone: ../UTC}]}}`, []string{
			`spec.scaling.windows[0].timeZone: Invalid value: "string": must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC`,
			`spec.scaling.windows[1].timeZone: Invalid value: "string": must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC`}},
		"tolerations that pods cannot have": {`{template: {image: a, placement: {tolerations: [{key: spot, operator: Exists, value: "true"}, {key: spot, operator: Exist}, {key: spot, effect: NoSchedual}, {key: spot, effect: NoSchedule, tolerationSeconds: 5}, {value: x}]}}}`, []string{
			`spec.template.placement.tolerations[0].value: Forbidden: the operator Exists takes any value; remove value, or write operator: Equal`,
			`spec.template.placement.tolerations[1].operator: Invalid value: "object": must be Exists or Equal; write for example {key: spot, operator: Exists}`,
			`spec.template.placement.tolerations[2].effect: Invalid value: "object": must be NoSchedule, PreferNoSchedule or NoExecute; without effect it is for all three`,
			`spec.template.placement.tolerations[3].tolerationSeconds: Forbidden: only the effect NoExecute has a time; add effect: NoExecute, or remove tolerationSeconds`,
			`spec.template.placement.tolerations[4].key: Required value: only the operator Exists goes without a key; write for example {key: spot, operator: Exists}`}},
		"windows out of range": {`{template: {image: a}, scaling: {windows: [{name: w1, start: "0 8 * * *", duration: 59s, minInstances: 1}, {name: w2, start: "0 8 * * *", duration: 169h, minInstances: 1}]}}`, []string{
			`spec.scaling.windows[0].duration: Invalid value: "string": must be a duration of 1m to 168h; write for example 10h`,
			`spec.scaling.windows[1].duration: Invalid value: "string": must be a duration of 1m to 168h; write for example 10h`}},
		"too few and too many in a window": {`{template: {image: a}, scaling: {windows: [{name: w1, start: "0 8 * * *", duration: 1h, minInstances: 0}, {name: w2, start: "0 8 * * *", duration: 1h, minInstances: 100001}]}}`, []string{
			`spec.scaling.windows[0].minInstances: Invalid value: 0: spec.scaling.windows[0].minInstances in body should be greater than or equal to 1`,
			`spec.scaling.windows[1].minInstances: Invalid value: 100001: spec.scaling.windows[1].minInstances in body should be less than or equal to 100000`}},
		"a window above max": {`{template: {image: a}, scaling: {maxInstances: 2, windows: [{name: w1, start: "0 8 * * *", duration: 1h, minInstances: 3}]}}`, []string{
			`spec.scaling.windows: Invalid value: "object": minInstances of a window must not be more than maxInstances; lower it, or raise scaling.maxInstances`}},
		"min above max": {`{template: {image: a}, scaling: {minInstances: 3, maxInstances: 2}}`, []string{
			`spec.scaling.minInstances: Invalid value: "object": must not be more than maxInstances; lower it, or raise scaling.maxInstances`}},
		"numbers out of range": {`{template: {image: a, concurrency: 1001, port: 65536}, scaling: {minInstances: -1, maxInstances: 0}}`, []string{
			`.spec.scaling.minInstances: Invalid value: -1: should be a non-negative integer`,
			`spec.scaling.maxInstances: Invalid value: 0: spec.scaling.maxInstances in body should be greater than or equal to 1`,
			`spec.scaling.minInstances: Invalid value: -1: spec.scaling.minInstances in body should be greater than or equal to 0`,
			`spec.template.concurrency: Invalid value: 1001: spec.template.concurrency in body should be less than or equal to 1000`,
			`spec.template.port: Invalid value: 65536: spec.template.port in body should be less than or equal to 65535`}},
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
	u := manifest(t, v1alpha1.KindFunction, "a.b", `{template: {image: a}}`)
	want := []string{`metadata: Invalid value: "object": name must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example my-function`}
	if diff := cmp.Diff(want, causes(t, c.Create(t.Context(), u, client.DryRunAll))); diff != "" {
		t.Error(diff)
	}
}

func notAStart(i int) string {
	return fmt.Sprintf(`spec.scaling.windows[%d].start: Invalid value: "string": must be five fields of cron: minute, hour, day of month, month, day of week; write for example 0 8 * * 1-5`, i)
}

func TestAPIServerChecksRuntimes(t *testing.T) {
	c := newClient(t)
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"what is right": {`{image: a/b:1, command: [/bootstrap], fileExtension: py, env: [{name: A, value: b}], warmPools: [{name: small, size: 100, resources: {limits: {memory: 1Gi}}}]}`, nil},
		"a warm pool of too many": {`{image: a, fileExtension: py, warmPools: [{name: small, size: 101}]}`, []string{
			`spec.warmPools[0].size: Invalid value: 101: spec.warmPools[0].size in body should be less than or equal to 100`}},
		"a pool that nobody could use": {`{image: a, protocol: HTTP, warmPools: [{name: small, size: 1}]}`, []string{
			`spec.warmPools: Invalid value: "object": need fileExtension, because a spare instance gets only inline code; write for example fileExtension: py`,
			`spec.warmPools: Invalid value: "object": need the protocol LambdaRuntime, the only one that can hand code to a running runtime; remove warmPools`}},
		"pools of several sizes and teams": {`{image: a, fileExtension: py, warmPools: [{name: small, size: 1}, ` +
			`{name: blue, size: 1, resources: {requests: {memory: 1Gi}}, namespaceSelector: {matchLabels: {team: blue}}}, ` +
			`{name: red, size: 1, resources: {requests: {memory: 1Gi}}, namespaceSelector: {matchLabels: {team: red}}}]}`, nil},
		"a pool with devices": {`{image: a, fileExtension: py, warmPools: [{name: small, size: 1, resources: {limits: {nvidia.com/gpu: 1}}}]}`, []string{
			`spec.warmPools[0].resources.limits: Invalid value: "object": a spare instance holds no extended resources; write cpu, memory or ephemeral-storage, and functions with others start pods of their own`}},
		"pools for the same functions": {`{image: a, fileExtension: py, warmPools: [{name: small, size: 1}, {name: red, size: 1, namespaceSelector: {matchLabels: {team: red}}}]}`, []string{
			`spec.warmPools: Invalid value: "array": two with equal resources admit the same namespaces, and functions would take from the first only; give each a namespaceSelector of its own, or make them one with a larger size`}},
		"pools of one name": {`{image: a, fileExtension: py, warmPools: [{name: small, size: 1}, {name: small, size: 2, resources: {requests: {memory: 1Gi}}}]}`, []string{
			`spec.warmPools[1]: Duplicate value: {"name":"small"}`}},
		"too many pools": {`{image: a, fileExtension: py, warmPools: [` + pools(9) + `]}`, []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.warmPools: Too many: 9: must have at most 8 items`}},
		"as many pools as there may be": {`{image: a, fileExtension: py, warmPools: [` + pools(8) + `]}`, nil},
		"every selector": {pooledBy(`{matchLabels: {team: payments, example.com/x: "", kubernetes.io/metadata.name: a}, matchExpressions: [` +
			`{key: example.com/team, operator: In, values: [a, ""]}, {key: a, operator: NotIn, values: [b]}, {key: a, operator: Exists}, {key: a, operator: DoesNotExist, values: []}]}`), nil},
		"a selector of all": {pooledBy(`{}`), nil},
		"an operator that nobody knows": {pooledBy(`{matchExpressions: [{key: a, operator: Like}]}`), []string{
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist"`}},
		"selectors that pick nothing": {pooledBy(`{matchExpressions: [{key: -a, operator: Exists}, {key: a, operator: In}, {key: a, operator: Exists, values: [b]}]}`), []string{
			`spec.warmPools[0].namespaceSelector.matchExpressions[0].key: Invalid value: "string": must be the key of a label: a name, or a domain, / and a name; write for example team, or example.com/team`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[1].values: Invalid value: "object": In and NotIn need values, and Exists and DoesNotExist have none; write for example {key: team, operator: In, values: [payments]}`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[2].values: Invalid value: "object": In and NotIn need values, and Exists and DoesNotExist have none; write for example {key: team, operator: In, values: [payments]}`}},
		"what is wrong": {`{image: a b, command: [""], fileExtension: .py, env: [{name: PORT}]}`, []string{
			`spec.command: Invalid value: "array": the program is missing; write for example command: ["/runtime/bootstrap"]`,
			`spec.env[0].name: Forbidden: Windlass sets PORT itself; take another name, for example APP_MODE`,
			`spec.fileExtension: Invalid value: "string": must be letters and digits without a dot; write for example py`,
			`spec.image: Invalid value: "string": must be the reference of an image; write for example example.com/team/runtime:1.0`}},
		"a variable from elsewhere": {`{image: a, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]}`, []string{
			`spec.env: Forbidden: a ClusterRuntime serves all namespaces, but a Secret or ConfigMap is in one; write a value here, or valueFrom in the functions`}},
	} {
		t.Run(name, func(t *testing.T) {
			u := manifest(t, v1alpha1.KindClusterRuntime, "r", tc.spec)
			if diff := cmp.Diff(tc.want, causes(t, c.Create(t.Context(), u.DeepCopy(), client.DryRunAll))); diff != "" {
				t.Error(diff)
			}
			r := &v1alpha1.ClusterRuntime{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
				return // Go's types cannot say it
			}
			v1alpha1.DefaultClusterRuntime(r)
			if found := v1alpha1.ValidateClusterRuntime(r); (len(found) > 0) != (len(tc.want) > 0) {
				t.Errorf("ValidateClusterRuntime finds %v", found)
			}
		})
	}
}

// pools are so many of sizes of their own, each with the longest selector.
func pools(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{name: p%d, size: 1, resources: {requests: {memory: %dMi}}, namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [%s]}]}}`,
			i, i+64, strings.Repeat("a,", v1alpha1.MaxSelectorValues-1)+"b")
	}
	return strings.Join(list, ", ")
}

// pooledBy is a runtime with a pool for the namespaces that a selector picks.
func pooledBy(selector string) string {
	return `{image: a, fileExtension: py, warmPools: [{name: small, size: 1, namespaceSelector: ` + selector + `}]}`
}

func TestProtocolCannotChange(t *testing.T) {
	c := newClient(t)
	const refused = `spec.template.protocol: Invalid value: "object": cannot change, because calls that wait were made for the old one; make a new function, or delete this one first`
	const runtime = `{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: x}`
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"another image":       {`{template: {image: a}}`, `{template: {image: b, timeout: 5s}}`, nil},
		"HTTP, said aloud":    {`{template: {image: a}}`, `{template: {image: a, protocol: HTTP}}`, nil},
		"from HTTP to Lambda": {`{template: {image: a}}`, `{template: {image: a, protocol: LambdaRuntime}}`, []string{refused}},
		"from an image to a runtime, whose protocol the controller knows": {`{template: {image: a}}`, runtime + `}}`, nil},
		"from a Lambda image to a runtime":                                {`{template: {image: a, protocol: LambdaRuntime}}`, runtime + `}}`, nil},
		"from a Lambda image to HTTP":                                     {`{template: {image: a, protocol: LambdaRuntime}}`, `{template: {image: a}}`, []string{refused}},
		"from a runtime to HTTP, in words":                                {runtime + `, protocol: LambdaRuntime}}`, runtime + `, protocol: HTTP}}`, []string{refused}},
		"HTTP of a runtime, said aloud":                                   {runtime + `}}`, runtime + `, protocol: HTTP}}`, nil},
		"another runtime":                                                 {runtime + `}}`, `{template: {runtimeRef: {name: nodejs22.x}, handler: a.c, code: {configMapRef: {name: z}}}}`, nil},
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
	r := manifest(t, v1alpha1.KindClusterRuntime, "protocol-cannot-change", `{image: a}`)
	makeRuntime(t, c, r)
	_ = unstructured.SetNestedField(r.Object, "HTTP", "spec", "protocol")
	want := []string{`spec.protocol: Invalid value: "string": cannot change, because functions of this runtime have callers of the old one; make a new ClusterRuntime`}
	if diff := cmp.Diff(want, causes(t, c.Update(t.Context(), r))); diff != "" {
		t.Error(diff)
	}
}

// The API server fills in what Default does, except what depends on other
// fields: the protocol, the requests, and the burst.
func TestAPIServerDefaultsAsGoDoes(t *testing.T) {
	c := newClient(t)
	for name, spec := range map[string]string{
		"an image":             `{template: {image: a}}`,
		"a runtime":            `{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: x}}}`,
		"empty groups":         `{template: {image: a, resources: {requests: {}, limits: {}}, metadata: {}, placement: {}}, calls: {}, scaling: {scaleDown: {}}}`,
		"a part of the groups": `{template: {image: a, resources: {limits: {cpu: 50m}}}, scaling: {maxInstances: 3, scaleDown: {lastInstanceIdleTimeout: 2h}}}`,
		"everything":           `{template: {image: a, port: 80, concurrency: 2, timeout: 1s, startupTimeout: 2s, protocol: HTTP, resources: {requests: {cpu: 1, memory: 1Gi}}}, scaling: {minInstances: 1, maxInstances: 2, windows: [{name: w1, start: "0 8 * * *", duration: 1h, minInstances: 2}], scaleDown: {idleTimeout: 2s, lastInstanceIdleTimeout: 3s, policy: Learned}}}`,
		"a rate":               `{template: {image: a}, calls: {rate: {requests: 5}}}`,
		"a part of a rollout":  `{template: {image: a}, rollout: {strategy: Steps, steps: [{weight: 5, hold: 1m}]}, revisionHistoryLimit: 0}`,
		"hosts":                `{template: {image: a}, expose: {hosts: [shop.example.com]}}`,
		"traffic":              `{template: {image: a}, rollout: {verify: None}, traffic: [{tag: live, weight: 90, revisionName: f-00001}, {tag: next, weight: 10}]}`,
		"nulls":                `{template: {image: a, timeout: null}, scaling: {minInstances: null, scaleDown: {idleTimeout: null}}}`,
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
			want.Spec.Template.Protocol, want.Spec.Template.Resources = got.Spec.Template.Protocol, got.Spec.Template.Resources
			want.Spec.Calls.Rate.Burst = got.Spec.Calls.Rate.Burst
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
			if u.GetKind() != v1alpha1.KindClusterRuntime {
				u.SetNamespace("default")
			}
			if err := c.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
