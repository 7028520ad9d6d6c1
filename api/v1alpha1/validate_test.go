package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaulted is the Function f with the given spec in YAML flow style.
func defaulted(t *testing.T, spec string) *Function {
	t.Helper()
	functions, err := Decode([]byte(header+"spec: "+spec), "test")
	if err != nil {
		t.Fatal(err)
	}
	Default(functions[0])
	return functions[0]
}

func lines(errs field.ErrorList) []string {
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	return got
}

func TestValidateAcceptsWhatIsRight(t *testing.T) {
	for name, spec := range map[string]string{
		"a command":                           `{template: {command: [./server]}}`,
		"a command with an empty argument":    `{template: {command: [./server, ""]}}`,
		"a command in its folder":             `{template: {command: [./server], code: {path: /srv}}}`,
		"an image":                            `{template: {image: a/b}}`,
		"an image with a command":             `{template: {image: a/b, command: [x]}}`,
		"an image, and how to run it locally": `{template: {image: a/b, command: [x], code: {path: .}}}`,
		"an image of a Lambda runtime":        `{template: {image: a/b, protocol: LambdaRuntime}}`,
		"a runtime with inline code":          `{template: {runtimeRef: {name: python3.13}, handler: main.handle, code: {inline: x}}}`,
		"a runtime with a path":               `{template: {runtimeRef: {name: nodejs22.x}, handler: src/app-v2.handle, code: {path: .}}}`,
		"a handler in a package":              `{template: {runtimeRef: {name: python3.13}, handler: a.b.handle, code: {path: .}}}`,
		"a runtime that speaks HTTP":          `{template: {runtimeRef: {name: python3.13}, protocol: HTTP, handler: main.app, code: {path: .}}}`,
		"a runtime of one's own":              `{template: {runtimeRef: {name: java21}, handler: "com.example.Handler::handle", code: {configMapRef: {name: my.code}}}}`,
		"every toleration that pods can have": `{template: {image: a, placement: {nodeSelector: {a.b/c: "", d: e}, tolerations: [{operator: Exists}, {key: a.b/c}, {key: a, operator: "", value: b}, {key: a, operator: Equal, effect: ""}, {key: a, operator: Exists, effect: PreferNoSchedule}, {key: a, effect: NoExecute, tolerationSeconds: -1}]}}}`,
		"everything that needs a cluster":     `{template: {image: "a.b:5000/c@sha256:0123", args: [--fast, ""], port: 65535, envFrom: [{secretRef: {name: a}}, {prefix: A_, configMapRef: {name: b.c}}], imagePullSecrets: [{name: a}, {name: b}], serviceAccountName: robot, placement: {runtimeClassName: gvisor, priorityClassName: batch}}}`,
		"a class":                             `{template: {command: [x], scheduling: {class: LatencyCritical}}}`,
		"a slice":                             `{template: {command: [x], scheduling: {slice: 10ms}}}`,
		"the lowest of everything":            `{template: {command: [x], concurrency: 1, timeout: 10ms, startupTimeout: 100ms, resources: {requests: {cpu: 1m, memory: 1Mi}}}, scaling: {minInstances: 0, maxInstances: 1, scaleDown: {idleTimeout: 1ms, lastInstanceIdleTimeout: 1ms}}}`,
		"the highest of everything":           `{template: {command: [x], concurrency: 1000, timeout: 24h, startupTimeout: 1h}, calls: {maxInFlight: 1000000, rate: {requests: 1000000, burst: 1000000}}, scaling: {minInstances: 3, maxInstances: 3}}`,
		"a limit as high as the request":      `{template: {command: [x], resources: {requests: {cpu: 1}, limits: {cpu: 1000m}}}}`,
		"further resources":                   `{template: {command: [x], resources: {requests: {ephemeral-storage: 1Gi, nvidia.com/gpu: 1}, limits: {ephemeral-storage: 2Gi, nvidia.com/gpu: "1", example.com/some-thing_of.ours: 12}}}}`,
		"variables from elsewhere":            `{template: {command: [x], env: [{name: A, valueFrom: {secretKeyRef: {name: db.x, key: tls.key_1-a, optional: true}}}, {name: B, valueFrom: {configMapKeyRef: {name: b, key: a}}}, {name: C, value: "", valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: D, valueFrom: {fieldRef: {fieldPath: "metadata.labels['cost-center']"}}}, {name: E, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['example.com/Owner']"}}}, {name: F, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}], envFrom: [{secretRef: {name: a, optional: true}}, {prefix: A_, configMapRef: {name: b, optional: false}}]}}`,
		"mounts":                              `{template: {command: [x], mounts: [{name: tls, mountPath: /etc/tls, secret: {secretName: tls.x}}, {name: settings, mountPath: /etc/app/settings.json, subPath: a/..b, readOnly: true, configMap: {name: c, optional: true}}, {name: models, mountPath: "/models 1", persistentVolumeClaim: {claimName: models}}, {name: cache, mountPath: /var/cache, emptyDir: {}}, {name: fast, mountPath: /run/fast, emptyDir: {medium: Memory, sizeLimit: 64Mi}}, {name: zero, mountPath: /tmpx, emptyDir: {sizeLimit: 0}}]}}`,
		"as many resources as there may be":   `{template: {command: [x], resources: {limits: {a.b/1: 1, a.b/2: 1, a.b/3: 1, a.b/4: 1, a.b/5: 1, a.b/6: 1, a.b/7: 1, a.b/8: 1}}}}`,
		"a limit below the default request":   `{template: {command: [x], resources: {limits: {cpu: 50m, memory: 32Mi}}}}`,
		"nothing but what runs":               `{template: {command: [x]}}`,
		"another policy":                      `{template: {command: [x]}, scaling: {scaleDown: {policy: Learned}}}`,
		"windows of all kinds":                `{template: {command: [x]}, scaling: {maxInstances: 100000, windows: [{name: w1, start: "0 8 * * 1-5", duration: 10h, minInstances: 100000}, {name: w2, start: "*/5 6-20/2 1,15 jan-MAR sun", duration: 1m, timeZone: America/St_Johns, minInstances: 1}, {name: w3, start: "0 0 29 2 ?", duration: 168h, timeZone: UTC, minInstances: 2}]}}`,
		"steps":                               `{template: {command: [x]}, rollout: {strategy: Steps, steps: [{weight: 1, hold: 1s}, {weight: 99, hold: 168h}], progressDeadline: 24h}, revisionHistoryLimit: 0}`,
		"hosts":                               `{template: {command: [x]}, expose: {hosts: [shop.example.com, xn--bcher-kva.example, a.b-c.d1]}}`,
		"parts of the calls":                  `{template: {command: [x]}, rollout: {verify: None, progressDeadline: 1s}, traffic: [{tag: live, weight: 100, revisionName: f-00001}, {tag: next}], revisionHistoryLimit: 100}`,
		"environment variables":               `{template: {command: [x], env: [{name: A}, {name: b.c-D_1, value: x}, {name: PORTS}, {name: windlass_x}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if errs := Validate(defaulted(t, spec)); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

func TestValidateNamesFieldAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"nothing to run": {`{}`, []string{
			`spec.template: Required value: command: or runtimeRef: missing; add for example command: ["./server"] for a program that serves HTTP on $PORT, or runtimeRef: {name: python3.13} with handler: main.handle and code: {path: .}; in a cluster, image: works too`}},
		"a rollout that nobody knows": {`{template: {command: [x]}, rollout: {verify: Twice, strategy: Slow, progressDeadline: 999ms}, revisionHistoryLimit: 101}`, []string{
			`spec.rollout.verify: Unsupported value: "Twice": supported values: "OneInstance", "None"`,
			`spec.rollout.progressDeadline: Invalid value: "999ms": must be 1s to 24h; write for example 1s`,
			`spec.rollout.strategy: Unsupported value: "Slow": supported values: "Immediate", "Steps"`,
			`spec.revisionHistoryLimit: Invalid value: 101: must be 0 to 100; write for example 10`}},
		"steps of no strategy": {`{template: {command: [x]}, rollout: {steps: [{weight: 5, hold: 1m}]}}`, []string{
			`spec.rollout.steps: Forbidden: need strategy: Steps; add it, or remove the steps`}},
		"a strategy without steps": {`{template: {command: [x]}, rollout: {strategy: Steps}}`, []string{
			`spec.rollout.steps: Required value: strategy: Steps needs steps; write for example [{weight: 10, hold: 10m}]`}},
		"steps out of range": {`{template: {command: [x]}, rollout: {strategy: Steps, steps: [{weight: 100, hold: 1ms}]}}`, []string{
			`spec.rollout.steps[0].weight: Invalid value: 100: must be 1 to 99; write for example 10`,
			`spec.rollout.steps[0].hold: Invalid value: "1ms": must be 1s to 168h; write for example 1s`}},
		"steps beside traffic": {`{template: {command: [x]}, rollout: {strategy: Steps, steps: [{weight: 5, hold: 1m}]}, traffic: [{tag: live, weight: 100}]}`, []string{
			`spec.traffic: Forbidden: traffic and rollout.strategy Steps exclude each other: both say where calls go; remove one of them`}},
		"hosts that are none": {`{template: {command: [x]}, expose: {hosts: [Shop.example.com, shop, shop.example.com, shop.example.com, "a.b:80", "*.a.b", a.b., 10.0.0.1]}}`, []string{
			`spec.expose.hosts[0]: Invalid value: "Shop.example.com": ` + hostRule, `spec.expose.hosts[1]: Invalid value: "shop": ` + hostRule,
			`spec.expose.hosts[3]: Duplicate value: "shop.example.com"`, `spec.expose.hosts[4]: Invalid value: "a.b:80": ` + hostRule,
			`spec.expose.hosts[5]: Invalid value: "*.a.b": ` + hostRule, `spec.expose.hosts[6]: Invalid value: "a.b.": ` + hostRule,
			`spec.expose.hosts[7]: Invalid value: "10.0.0.1": ` + hostRule}},
		"traffic that is not all": {`{template: {command: [x]}, traffic: [{tag: A, weight: 50}, {tag: b, weight: 101}, {tag: b, weight: -52}]}`, []string{
			`spec.traffic[0].tag: Invalid value: "A": must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example a`,
			`spec.traffic[1].weight: Invalid value: 101: must be 0 to 100; write for example 10`,
			`spec.traffic[2].tag: Duplicate value: "b"`,
			`spec.traffic[2].weight: Invalid value: -52: must be 0 to 100; write for example 10`,
			`spec.traffic: Invalid value: 99: the weights together must be 100; write for example [{tag: live, weight: 100}]`}},
		"a command without a program": {`{template: {command: [""]}}`, []string{
			`spec.template.command[0]: Required value: the program is missing; write for example command: ["./server"]`}},
		"an argument that no program can be given": {`{template: {command: [x, "a\0b"]}}`, []string{
			`spec.template.command[1]: Invalid value: "a\x00b": must not contain a NUL byte; remove it`}},
		"a runtime without everything": {`{template: {runtimeRef: {name: python3.13}}}`, []string{
			`spec.template.handler: Required value: a runtime needs module.function; write for example handler: main.handle`,
			`spec.template.code: Required value: a runtime needs source code; write for example code: {path: .}, or put the source into code.inline`}},
		"a runtime beside an image and a command": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {path: .}, image: i, command: [c]}}`, []string{
			`spec.template.image: Forbidden: a runtime brings its own image; remove image or runtimeRef`,
			`spec.template.command: Forbidden: a runtime brings its own program; remove command or runtimeRef`}},
		"a handler without a module": {`{template: {runtimeRef: {name: python3.13}, handler: handle, code: {path: .}}}`, []string{
			`spec.template.handler: Invalid value: "handle": must be module.function; write for example main.handle`}},
		"a handler outside the code": {`{template: {runtimeRef: {name: python3.13}, handler: ../main.handle, code: {path: .}}}`, []string{
			`spec.template.handler: Invalid value: "../main.handle": must be module.function; write for example main.handle`}},
		"code that is empty": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {}}}`, []string{
			`spec.template.code: Required value: a runtime needs source code; write for example code: {path: .}, or put the source into code.inline`}},
		"code twice": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {path: ., inline: x}}}`, []string{
			`spec.template.code: Forbidden: inline and path exclude each other; remove code.inline or code.path`}},
		"a handler of a command": {`{template: {command: [x], handler: a.b}}`, []string{
			`spec.template.handler: Forbidden: only a runtime has a handler; add runtimeRef: {name: python3.13} or runtimeRef: {name: nodejs22.x}, or protocol: LambdaRuntime for a runtime client of your own, or remove handler`}},
		"inline code of a command": {`{template: {command: [x], code: {inline: x}}}`, []string{
			`spec.template.code.inline: Forbidden: only a runtime loads inline code; add runtimeRef: and handler:, or give code.path, the folder that the command starts in`}},
		"empty code of a command": {`{template: {command: [x], code: {}}}`, []string{
			`spec.template.code.path: Required value: code of a command is the folder that it starts in; write for example path: . or remove code`}},
		"code of an image": {`{template: {image: i, code: {path: .}}}`, []string{
			`spec.template.code: Forbidden: an image holds its own code; remove code`}},
		"names that nobody knows": {`{template: {runtimeRef: {name: ruby}, handler: a.b, code: {path: .}, protocol: gRPC}}`, []string{
			`spec.template.protocol: Unsupported value: "gRPC": supported values: "HTTP", "LambdaRuntime"`}},
		"numbers that are too low": {`{template: {command: [x], concurrency: -1, timeout: 9ms, startupTimeout: 99ms}}`, []string{
			`spec.template.concurrency: Invalid value: -1: must be 1 to 1000; write for example 1`,
			`spec.template.timeout: Invalid value: "9ms": must be 10ms to 24h; write for example 10ms`,
			`spec.template.startupTimeout: Invalid value: "99ms": must be 100ms to 1h; write for example 100ms`}},
		"numbers that are too high": {`{template: {command: [x], concurrency: 1001, timeout: 24h1s, startupTimeout: 61m}}`, []string{
			`spec.template.concurrency: Invalid value: 1001: must be 1 to 1000; write for example 1000`,
			`spec.template.timeout: Invalid value: "24h1s": must be 10ms to 24h; write for example 24h`,
			`spec.template.startupTimeout: Invalid value: "1h1m": must be 100ms to 1h; write for example 1h`}},
		"a class that nobody knows": {`{template: {command: [x], scheduling: {class: batch}}}`, []string{
			`spec.template.scheduling.class: Unsupported value: "batch": supported values: "LatencyCritical", "Standard", "Batch"`}},
		"a slice of calls that never yield": {`{template: {command: [x], scheduling: {class: LatencyCritical, slice: 50ms}}}`, []string{
			`spec.template.scheduling.slice: Forbidden: calls of class LatencyCritical never yield, so they have no slice; remove slice, or write class: Standard`}},
		"a slice of calls that always yield": {`{template: {command: [x], scheduling: {class: Batch, slice: 50ms}}}`, []string{
			`spec.template.scheduling.slice: Forbidden: calls of class Batch always yield, so they have no slice; remove slice, or write class: Standard`}},
		"a slice that the node cannot measure": {`{template: {command: [x], scheduling: {slice: 9ms}}}`, []string{
			`spec.template.scheduling.slice: Invalid value: "9ms": must be 10ms to 1h; write for example 10ms`}},
		"a slice that is none": {`{template: {command: [x], scheduling: {slice: 61m}}}`, []string{
			`spec.template.scheduling.slice: Invalid value: "1h1m": must be 10ms to 1h; write for example 1h`}},
		"quantities that are not positive": {`{template: {command: [x], resources: {requests: {cpu: 0, memory: -1}}}}`, []string{
			`spec.template.resources.requests[cpu]: Invalid value: "0": must be at least 1m; write for example 250m, a quarter of a core`,
			`spec.template.resources.requests[memory]: Invalid value: "-1": must be at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes`}},
		"resources that no function has": {`{template: {command: [x], resources: {requests: {hugepages-2Mi: 1Gi}, limits: {cpus: 1, kubernetes.io/x: 1, Example.com/x: 1}}}}`, []string{
			`spec.template.resources.requests: Invalid value: "hugepages-2Mi": is no resource that a function can have: only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu; correct the name`,
			`spec.template.resources.limits: Invalid value: "Example.com/x": is no resource that a function can have: only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu; correct the name`,
			`spec.template.resources.limits: Invalid value: "cpus": is no resource that a function can have: only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu; correct the name`,
			`spec.template.resources.limits: Invalid value: "kubernetes.io/x": is no resource that a function can have: only cpu, memory, ephemeral-storage, and extended resources of a domain, such as nvidia.com/gpu; correct the name`}},
		"too many resources": {`{template: {command: [x], resources: {limits: {a.b/1: 1, a.b/2: 1, a.b/3: 1, a.b/4: 1, a.b/5: 1, a.b/6: 1, a.b/7: 1, a.b/8: 1, a.b/9: 1}}}}`, []string{
			`spec.template.resources.limits: Too many: 9: must have at most 8 items`}},
		"a part of a GPU": {`{template: {command: [x], resources: {limits: {nvidia.com/gpu: 500m}}}}`, []string{
			`spec.template.resources.limits[nvidia.com/gpu]: Invalid value: "500m": an extended resource is a whole number of 1 or more; write for example nvidia.com/gpu: 1`}},
		"a GPU that is requested alone": {`{template: {command: [x], resources: {requests: {nvidia.com/gpu: 1}}}}`, []string{
			`spec.template.resources.requests[nvidia.com/gpu]: Invalid value: "1": an extended resource is requested as much as it is limited to; write it in resources.limits alone`}},
		"fewer GPUs than may be used": {`{template: {command: [x], resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}}`, []string{
			`spec.template.resources.requests[nvidia.com/gpu]: Invalid value: "1": an extended resource is requested as much as it is limited to; write it in resources.limits alone`}},
		"less disk than is requested": {`{template: {command: [x], resources: {requests: {ephemeral-storage: 2Gi}, limits: {ephemeral-storage: 1Gi}}}}`, []string{
			`spec.template.resources.limits[ephemeral-storage]: Invalid value: "1Gi": must be at least the request; raise it to 2Gi, or lower spec.template.resources.requests[ephemeral-storage]`}},
		"a value twice": {`{template: {command: [x], env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}`, []string{
			`spec.template.env[0].valueFrom: Forbidden: value and valueFrom exclude each other; remove one of the two`}},
		"a value from nowhere": {`{template: {command: [x], env: [{name: A, valueFrom: {}}, {name: B, valueFrom: {secretKeyRef: {name: a, key: b}, fieldRef: {fieldPath: metadata.name}}}]}}`, []string{
			`spec.template.env[0].valueFrom: Forbidden: needs exactly one of secretKeyRef, configMapKeyRef and fieldRef; write for example secretKeyRef: {name: my-secret, key: password}`,
			`spec.template.env[1].valueFrom: Forbidden: needs exactly one of secretKeyRef, configMapKeyRef and fieldRef; write for example secretKeyRef: {name: my-secret, key: password}`}},
		"keys that are none": {`{template: {command: [x], env: [{name: A, valueFrom: {secretKeyRef: {name: A, key: a/b}}}, {name: B, valueFrom: {configMapKeyRef: {name: a, key: ..}}}, {name: C, valueFrom: {configMapKeyRef: {}}}]}}`, []string{
			`spec.template.env[0].valueFrom.secretKeyRef.name: Invalid value: "A": must be the name of a Secret, in lower-case letters, digits, hyphens and dots; write for example my-secret`,
			`spec.template.env[0].valueFrom.secretKeyRef.key: Invalid value: "a/b": must be the key of a Secret or a ConfigMap, in letters, digits, '-', '_' and '.'; write for example password`,
			`spec.template.env[1].valueFrom.configMapKeyRef.key: Invalid value: "..": must be the key of a Secret or a ConfigMap, in letters, digits, '-', '_' and '.'; write for example password`,
			`spec.template.env[2].valueFrom.configMapKeyRef.name: Required value: write for example name: my-settings`,
			`spec.template.env[2].valueFrom.configMapKeyRef.key: Required value: write for example key: password`}},
		"fields that no pod tells": {`{template: {command: [x], env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.hostname}}}, {name: B, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a b']"}}}]}}`, []string{
			`spec.template.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.hostname": must be a field of the pod: metadata.name, .namespace, .uid, .labels['KEY'] or .annotations['KEY'], spec.nodeName or .serviceAccountName, status.hostIP, .hostIPs, .podIP or .podIPs; write for example metadata.name`,
			`spec.template.env[1].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.labels['a b']": must be a field of the pod: metadata.name, .namespace, .uid, .labels['KEY'] or .annotations['KEY'], spec.nodeName or .serviceAccountName, status.hostIP, .hostIPs, .podIP or .podIPs; write for example metadata.name`}},
		"mounts of nothing and of two": {`{template: {command: [x], mounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b, emptyDir: {}, secret: {secretName: s}}]}}`, []string{
			`spec.template.mounts[0]: Forbidden: needs exactly one of secret, configMap, persistentVolumeClaim and emptyDir; write for example configMap: {name: my-settings}`,
			`spec.template.mounts[1]: Forbidden: needs exactly one of secret, configMap, persistentVolumeClaim and emptyDir; write for example configMap: {name: my-settings}`}},
		"paths that are none": {`{template: {command: [x], mounts: [{name: a, mountPath: a, emptyDir: {}}, {name: b, mountPath: /b/../c, emptyDir: {}}, {name: c, mountPath: "/d:e", emptyDir: {}}, {name: d, mountPath: /, emptyDir: {}}, {name: e, mountPath: /f/, subPath: /x, emptyDir: {}}, {name: f, emptyDir: {}, mountPath: /g, subPath: x/../../y}, {name: g, emptyDir: {}}]}}`, []string{
			`spec.template.mounts[0].mountPath: Invalid value: "a": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /a`,
			`spec.template.mounts[1].mountPath: Invalid value: "/b/../c": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /c`,
			`spec.template.mounts[2].mountPath: Invalid value: "/d:e": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /d-e`,
			`spec.template.mounts[3].mountPath: Invalid value: "/": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /etc/app`,
			`spec.template.mounts[4].mountPath: Invalid value: "/f/": must be an absolute path without ':', '.', '..' and a slash at its end; write for example /f`,
			`spec.template.mounts[4].subPath: Invalid value: "/x": must be a path within the volume, without '..' and a slash at its beginning; write for example x`,
			`spec.template.mounts[5].subPath: Invalid value: "x/../../y": must be a path within the volume, without '..' and a slash at its beginning; write for example y`,
			`spec.template.mounts[6].mountPath: Required value: write for example mountPath: /etc/app`}},
		"paths of others": {`{template: {command: [x], mounts: [{name: a, mountPath: /tmp/x, emptyDir: {}}, {name: b, mountPath: /var, emptyDir: {}}, {name: c, mountPath: /dev/shm, emptyDir: {}}, {name: d, mountPath: /run/secrets, emptyDir: {}}]}}`, []string{
			`spec.template.mounts[0].mountPath: Forbidden: /tmp/x is, contains or is below /tmp, which belongs to Windlass or the system; take another one, for example /etc/app`,
			`spec.template.mounts[1].mountPath: Forbidden: /var is, contains or is below /var/task, which belongs to Windlass or the system; take another one, for example /etc/app`,
			`spec.template.mounts[2].mountPath: Forbidden: /dev/shm is, contains or is below /dev, which belongs to Windlass or the system; take another one, for example /etc/app`,
			`spec.template.mounts[3].mountPath: Forbidden: /run/secrets is, contains or is below /run/secrets/kubernetes.io, which belongs to Windlass or the system; take another one, for example /etc/app`}},
		"paths over each other": {`{template: {command: [x], mounts: [{name: a, mountPath: /a/b, emptyDir: {}}, {name: b, mountPath: /a, emptyDir: {}}, {name: b, mountPath: /ab, emptyDir: {}}]}}`, []string{
			`spec.template.mounts[1].mountPath: Invalid value: "/a": is the same as /a/b of a, or one is below the other; take paths apart, for example /etc/app and /models`,
			`spec.template.mounts[2].name: Invalid value: "b": occurs twice; remove one of the two or rename it`}},
		"limits of folders with an exponent": {`{template: {command: [x], mounts: [{name: a, mountPath: /a, emptyDir: {sizeLimit: "1e9"}}, {name: b, mountPath: /b, emptyDir: {sizeLimit: 1E}}, {name: c, mountPath: /c, emptyDir: {sizeLimit: 1Ei}}]}}`, []string{
			`spec.template.mounts[0].emptyDir.sizeLimit: Invalid value: "1e9": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`,
			`spec.template.mounts[1].emptyDir.sizeLimit: Invalid value: "1E": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`,
			`spec.template.mounts[2].emptyDir.sizeLimit: Invalid value: "1Ei": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`}},
		"sources that are none": {`{template: {command: [x], mounts: [{name: A, mountPath: /a, secret: {}}, {name: b, mountPath: /b, configMap: {name: B}}, {name: c, mountPath: /c, persistentVolumeClaim: {claimName: C}}, {name: d, mountPath: /d, emptyDir: {medium: HugePages, sizeLimit: -1}}]}}`, []string{
			`spec.template.mounts[0].name: Invalid value: "A": must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example a`,
			`spec.template.mounts[0].secret.secretName: Required value: write for example secretName: my-secret`,
			`spec.template.mounts[1].configMap.name: Invalid value: "B": must be the name of a ConfigMap, in lower-case letters, digits, hyphens and dots; write for example my-settings`,
			`spec.template.mounts[2].persistentVolumeClaim.claimName: Invalid value: "C": must be the name of a PersistentVolumeClaim, in lower-case letters, digits, hyphens and dots; write for example my-data`,
			`spec.template.mounts[3].emptyDir.medium: Unsupported value: "HugePages": supported values: "Memory"`,
			`spec.template.mounts[3].emptyDir.sizeLimit: Invalid value: "-1": must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes`}},
		"a limit with the wrong suffix": {`{template: {command: [x], resources: {limits: {memory: 64m}}}}`, []string{
			`spec.template.resources.limits[memory]: Invalid value: "64m": must be at least 1Mi; write for example 128Mi, which are 128 times 2^20 bytes`}},
		"a limit below the request": {`{template: {command: [x], resources: {requests: {cpu: 1}, limits: {cpu: 500m}}}}`, []string{
			`spec.template.resources.limits[cpu]: Invalid value: "500m": must be at least the request; raise it to 1, or lower spec.template.resources.requests[cpu]`}},
		"environment variables that are not": {`{template: {command: [x], env: [{name: ""}, {name: 1A}, {name: "A=B"}, {name: A}, {name: A}, {name: V, value: "\0"}]}}`, []string{
			`spec.template.env[0].name: Required value: write for example name: APP_MODE`,
			`spec.template.env[1].name: Invalid value: "1A": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`,
			`spec.template.env[2].name: Invalid value: "A=B": must be letters, digits, '_', '-' and '.', and not begin with a digit or '..'; write for example APP_MODE`,
			`spec.template.env[4].name: Invalid value: "A": occurs twice; remove one of the two or rename it`,
			`spec.template.env[5].value: Invalid value: "\x00": must not contain a NUL byte; remove it`}},
		"environment variables that are Windlass's": {`{template: {command: [x], env: [{name: PORT}, {name: AWS_LAMBDA_RUNTIME_API}, {name: _HANDLER}, {name: LAMBDA_TASK_ROOT}, {name: WINDLASS_TOKEN}, {name: WINDLASS_}]}}`, []string{
			`spec.template.env[0].name: Forbidden: Windlass sets PORT itself; take another name, for example APP_PORT`,
			`spec.template.env[1].name: Forbidden: Windlass sets AWS_LAMBDA_RUNTIME_API itself; take another name, for example APP_AWS_LAMBDA_RUNTIME_API`,
			`spec.template.env[2].name: Forbidden: Windlass sets _HANDLER itself; take another name, for example APP_HANDLER`,
			`spec.template.env[3].name: Forbidden: Windlass sets LAMBDA_TASK_ROOT itself; take another name, for example APP_LAMBDA_TASK_ROOT`,
			`spec.template.env[4].name: Forbidden: Windlass sets WINDLASS_TOKEN itself; take another name, for example APP_TOKEN`,
			`spec.template.env[5].name: Forbidden: Windlass sets WINDLASS_ itself; take another name, for example APP_MODE`}},
		"a runtime beside arguments": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: x}, args: [a]}}`, []string{
			`spec.template.args: Forbidden: a runtime brings its own program; remove args or runtimeRef`}},
		"a runtime that is no name": {`{template: {runtimeRef: {name: Python 3}, handler: a.b, code: {inline: x}}}`, []string{
			`spec.template.runtimeRef.name: Invalid value: "Python 3": must be 1 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends; write for example python-3`}},
		"code in line and in a ConfigMap": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: x, configMapRef: {name: z}}}}`, []string{
			`spec.template.code: Forbidden: inline and configMapRef exclude each other; remove code.inline or code.configMapRef`}},
		"code in a ConfigMap and a path": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {path: /x, configMapRef: {name: z}}}}`, []string{
			`spec.template.code: Forbidden: configMapRef and path exclude each other; remove code.configMapRef or code.path`}},
		"code in a ConfigMap without a name": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {configMapRef: {name: A}}}}`, []string{
			`spec.template.code.configMapRef.name: Invalid value: "A": must be the name of a ConfigMap, in lower-case letters, digits, hyphens and dots; write for example my-function-code`}},
		"a ConfigMap of a command": {`{template: {command: [x], code: {configMapRef: {name: z}}}}`, []string{
			`spec.template.code.configMapRef: Forbidden: only a runtime loads code from a ConfigMap; add runtimeRef: and handler:, or put the code into the image and remove code`}},
		"images that are none": {`{template: {image: "https://example.com/a"}}`, []string{
			`spec.template.image: Invalid value: "https://example.com/a": must be the reference of an image; write for example example.com/team/function:1.0`}},
		"an argument with a NUL": {`{template: {image: a, args: ["\0"]}}`, []string{
			`spec.template.args[0]: Invalid value: "\x00": must not contain a NUL byte; remove it`}},
		"ports that are none": {`{template: {image: a, port: 65536}}`, []string{
			`spec.template.port: Invalid value: 65536: must be 1 to 65535; write for example 8080`}},
		"a port of the agent": {`{template: {image: a, port: 9001}}`, []string{
			`spec.template.port: Invalid value: 9001: the instance's agent uses the ports 9001 and 9090 itself; take another, for example 8080`}},
		"names that are none": {`{template: {image: a, serviceAccountName: a/b, imagePullSecrets: [{name: ""}, {name: A}, {name: b}, {name: b}], placement: {runtimeClassName: A_B, priorityClassName: "-"}}}`, []string{
			`spec.template.placement.runtimeClassName: Invalid value: "A_B": must be the name of a RuntimeClass, in lower-case letters, digits, hyphens and dots; write for example gvisor`,
			`spec.template.placement.priorityClassName: Invalid value: "-": must be the name of a PriorityClass, in lower-case letters, digits, hyphens and dots; write for example batch`,
			`spec.template.serviceAccountName: Invalid value: "a/b": must be the name of a ServiceAccount, in lower-case letters, digits, hyphens and dots; write for example my-function`,
			`spec.template.imagePullSecrets[0].name: Required value: write for example name: my-registry`,
			`spec.template.imagePullSecrets[1].name: Invalid value: "A": must be the name of a Secret, in lower-case letters, digits, hyphens and dots; write for example my-registry`,
			`spec.template.imagePullSecrets[3].name: Invalid value: "b": occurs twice; remove one of the two`}},
		"tolerations that pods cannot have": {`{template: {image: a, placement: {tolerations: [{key: spot, operator: Exists, value: "true"}, {key: spot, operator: Exist}, {key: spot, effect: NoSchedual},
			{key: spot, effect: NoSchedule, tolerationSeconds: 5}, {value: x}, {key: a b}, {key: a, value: b c}, {tolerationSeconds: 5}]}}}`, []string{
			`spec.template.placement.tolerations[0].value: Forbidden: the operator Exists takes any value; remove value, or write operator: Equal`,
			`spec.template.placement.tolerations[1].operator: Unsupported value: "Exist": supported values: "Exists", "Equal"`,
			`spec.template.placement.tolerations[2].effect: Unsupported value: "NoSchedual": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			`spec.template.placement.tolerations[3].tolerationSeconds: Forbidden: only the effect NoExecute has a time; add effect: NoExecute, or remove tolerationSeconds`,
			`spec.template.placement.tolerations[4].key: Required value: only the operator Exists goes without a key; write for example {key: spot, operator: Exists}`,
			`spec.template.placement.tolerations[5].key: Invalid value: "a b": must be a name, or a domain, / and a name; write for example {key: spot, operator: Exists}`,
			`spec.template.placement.tolerations[6].value: Invalid value: "b c": must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends; write for example {key: spot, value: batch}`,
			`spec.template.placement.tolerations[7].key: Required value: only the operator Exists goes without a key; write for example {key: spot, operator: Exists}`,
			`spec.template.placement.tolerations[7].tolerationSeconds: Forbidden: only the effect NoExecute has a time; add effect: NoExecute, or remove tolerationSeconds`}},
		"labels that nodes cannot have": {`{template: {image: a, placement: {nodeSelector: {a b: c, d: e f}}}}`, []string{
			`spec.template.placement.nodeSelector: Invalid value: "a b": must be a name, or a domain, / and a name; write for example disk: ssd`,
			`spec.template.placement.nodeSelector[d]: Invalid value: "e f": must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends; write for example disk: ssd`}},
		"sources of variables that are none": {`{template: {image: a, envFrom: [{}, {secretRef: {name: a}, configMapRef: {name: b}}, {prefix: 1A, secretRef: {name: a}}, {secretRef: {}}, {configMapRef: {name: A}}]}}`, []string{
			`spec.template.envFrom[0]: Forbidden: needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}`,
			`spec.template.envFrom[1]: Forbidden: needs exactly one of secretRef and configMapRef; write for example secretRef: {name: my-secret}`,
			`spec.template.envFrom[2].prefix: Invalid value: "1A": must be letters, digits, '_', '-' and '.', and not begin with a digit; write for example DB_`,
			`spec.template.envFrom[3].secretRef.name: Required value: write for example name: my-secret`,
			`spec.template.envFrom[4].configMapRef.name: Invalid value: "A": must be the name of a ConfigMap, in lower-case letters, digits, hyphens and dots; write for example my-settings`}},
		"scaling out of range": {`{template: {command: [x]}, scaling: {minInstances: -1, maxInstances: 0}}`, []string{
			`spec.scaling.minInstances: Invalid value: -1: must be 0 to 100000; write 0 to keep no instance`,
			`spec.scaling.maxInstances: Invalid value: 0: must be 1 to 100000; write for example 10, or remove maxInstances to have no bound`}},
		"limits out of range": {`{template: {command: [x]}, calls: {maxInFlight: -1, rate: {requests: 1000001, period: 10ms}, queueTimeout: 1ms}}`, []string{
			`spec.calls.maxInFlight: Invalid value: -1: must be 1 to 1000000; write for example 100, or remove maxInFlight to have no limit`,
			`spec.calls.rate.requests: Invalid value: 1000001: must be 1 to 1000000; write for example 100, or remove requests to have no limit`,
			`spec.calls.rate.period: Invalid value: "10ms": must be 1s to 24h; write for example 1s`,
			`spec.calls.rate.burst: Invalid value: 1000001: must be 1 to 1000000; write for example 100, or remove burst to have no limit`,
			`spec.calls.queueTimeout: Invalid value: "1ms": must be 10ms to 24h; write for example 10ms`}},
		"a burst of no rate": {`{template: {command: [x]}, calls: {rate: {burst: 5}}}`, []string{
			`spec.calls.rate.requests: Required value: write for example requests: 50, or remove rate to have no limit`}},
		"ways to treat calls that nobody knows": {`{template: {command: [x]}, calls: {delivery: Once, onClientDisconnect: cancel}}`, []string{
			`spec.calls.delivery: Unsupported value: "Once": supported values: "AtMostOnce", "AtLeastOnce"`,
			`spec.calls.onClientDisconnect: Unsupported value: "cancel": supported values: "Continue", "Cancel"`}},
		"keys and values that are not for pods": {`{template: {command: [x], metadata: {labels: {"a b": x, app.kubernetes.io/name: x, team: "a b", windlass.dev/cid: c}, annotations: {k8s.io/x: a, "eu.windlass.dev/y": z, notwindlass.dev/fine: x}}}}`, []string{
			`spec.template.metadata.labels: Invalid value: "a b": must be a name, or a domain, / and a name; write for example cost-center, or example.com/owner`,
			`spec.template.metadata.labels[app.kubernetes.io/name]: Forbidden: ` + reservedKey,
			`spec.template.metadata.labels[windlass.dev/cid]: Forbidden: ` + reservedKey,
			`spec.template.metadata.annotations[eu.windlass.dev/y]: Forbidden: ` + reservedKey,
			`spec.template.metadata.annotations[k8s.io/x]: Forbidden: ` + reservedKey,
			`spec.template.metadata.labels[team]: Invalid value: "a b": must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends; write for example payments`}},
		"min above max": {`{template: {command: [x]}, scaling: {minInstances: 3, maxInstances: 2}}`, []string{
			`spec.scaling.minInstances: Invalid value: 3: must not be more than maxInstances; lower it to 2, or raise spec.scaling.maxInstances`}},
		"a policy that nobody knows": {`{template: {command: [x]}, scaling: {scaleDown: {policy: forever}}}`, []string{
			`spec.scaling.scaleDown.policy: Unsupported value: "forever": supported values: "Fixed", "Learned"`}},
		"windows of nothing": {`{template: {command: [x]}, scaling: {windows: [{}, {name: "A B", start: "0 8 * * *", duration: 1h, minInstances: 1}, {name: a-b, start: "0 8 * * *", duration: 1h, minInstances: 1}, {name: a-b, start: "0 8 * * *", duration: 1h, minInstances: 1}]}}`, []string{
			`spec.scaling.windows[0].name: Required value: must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example name: office-hours`,
			`spec.scaling.windows[0].start: Required value: must be five fields of cron: minute, hour, day of month, month, day of week; write for example start: "0 8 * * 1-5"`,
			`spec.scaling.windows[0].duration: Invalid value: "0s": must be 1m to 168h; write for example 1m`,
			`spec.scaling.windows[0].minInstances: Invalid value: 0: must be 1 to 100000; write for example 5, or remove the window`,
			`spec.scaling.windows[1].name: Invalid value: "A B": must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example a-b`,
			`spec.scaling.windows[3].name: Invalid value: "a-b": occurs twice; remove one of the two or rename it`}},
		"starts that are none": {`{template: {command: [x]}, scaling: {windows: [` + windows("0 8 * *", "0 0 8 * * 1-5", "x 0 8 * * *", "0 8 * * 7",
			"@daily", "@every 1h", "CRON_TZ=Asia/Tokyo 0 8 * * *", "TZ=x", "0 8 30 2 *", ", 8 * * *", "0 8-6 * * *") + `]}}`, []string{
			startIs(0, "0 8 * *") + `it has 4 instead of 5); write for example 0 8 * * 1-5`,
			startIs(1, "0 0 8 * * 1-5") + `it has 6 instead of 5); write for example 0 8 * * 1-5`,
			startIs(2, "x 0 8 * * *") + `it has 6 instead of 5); write for example 0 8 * * *`,
			startIs(3, "0 8 * * 7") + `end of range (7) above maximum (6): 7); write for example 0 8 * * 1-5`,
			startIs(4, "@daily") + `it has 1 instead of 5); write for example 0 0 * * *`,
			startIs(5, "@every 1h") + `it has 2 instead of 5); write for example 0 8 * * 1-5`,
			`spec.scaling.windows[6].start: Invalid value: "CRON_TZ=Asia/Tokyo 0 8 * * *": must not name a time zone; write start: "0 8 * * *" and timeZone: Asia/Tokyo`,
			startIs(7, "TZ=x") + `it has 1 instead of 5); write for example 0 8 * * 1-5`,
			`spec.scaling.windows[8].start: Invalid value: "0 8 30 2 *": must be a time that occurs; write for example 0 8 * * 1-5`,
			`spec.scaling.windows[9].start: Invalid value: ", 8 * * *": must be a time that occurs; write for example 0 8 * * 1-5`,
			startIs(10, "0 8-6 * * *") + `beginning of range (8) beyond end of range (6): 8-6); write for example 0 8 * * 1-5`}},
		"time zones that are none": {`{template: {command: [x]}, scaling: {windows: [{name: w1, start: "0 8 * * *", duration: 1h, minInstances: 1, timeZone: CET/Berlin}, {name: w2, start: "0 8 * * *", duration: 1h, minInstances: 1, timeZone: Local}, {name: w3, start: "0 8 * * *", duration: 1h, minInstances: 1, timeZone: ../UTC}]}}`, []string{
			`spec.scaling.windows[0].timeZone: Invalid value: "CET/Berlin": must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC`,
			`spec.scaling.windows[1].timeZone: Invalid value: "Local": must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC`,
			`spec.scaling.windows[2].timeZone: Invalid value: "../UTC": must be a name of the IANA time zone database; write for example Europe/Berlin, or remove timeZone for UTC`}},
		"windows out of range": {`{template: {command: [x]}, scaling: {maxInstances: 5, windows: [{name: w1, start: "0 8 * * *", duration: 59s, minInstances: 6}, {name: w2, start: "0 8 * * *", duration: 169h, minInstances: -1}, {name: w3, start: "0 8 * * *", duration: 1h, minInstances: 100001}]}}`, []string{
			`spec.scaling.windows[0].duration: Invalid value: "59s": must be 1m to 168h; write for example 1m`,
			`spec.scaling.windows[0].minInstances: Invalid value: 6: must not be more than maxInstances; lower it to 5, or raise spec.scaling.maxInstances`,
			`spec.scaling.windows[1].duration: Invalid value: "169h": must be 1m to 168h; write for example 168h`,
			`spec.scaling.windows[1].minInstances: Invalid value: -1: must be 1 to 100000; write for example 5, or remove the window`,
			`spec.scaling.windows[2].minInstances: Invalid value: 100001: must be 1 to 100000; write for example 5, or remove the window`}},
		"too many windows": {`{template: {command: [x]}, scaling: {windows: [` + windows(slices.Repeat([]string{"0 8 * * *"}, 17)...) + `]}}`, []string{
			`spec.scaling.windows: Invalid value: "17 windows": must be at most 16; join some, for example as 0 8,20 * * *`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(Validate(defaulted(t, c.spec)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const hostRule = "must be a DNS name of two labels or more, each of at most 63 lower-case letters, digits and hyphens, 253 bytes in all, and no URL, port, * or IP address; write for example shop.example.com"

const reservedKey = "keys of windlass.dev, kubernetes.io and k8s.io, and below, are not for functions; take one of your own, for example example.com/owner"

// windows are some that begin at the given starts, in YAML flow style.
func windows(starts ...string) string {
	var list []string
	for i, start := range starts {
		list = append(list, fmt.Sprintf("{name: w%d, start: %q, duration: 1h, minInstances: 1}", i, start))
	}
	return strings.Join(list, ", ")
}

func startIs(i int, given string) string {
	return fmt.Sprintf("spec.scaling.windows[%d].start: Invalid value: %q: %s (", i, given, startRule)
}

func TestWindowsLeaveOutWhatIsRefused(t *testing.T) {
	f := defaulted(t, `{template: {command: [x]}, scaling: {windows: [{name: w1, start: "@daily", duration: 1h, minInstances: 1}, {name: w2, start: "0 8 * * *", duration: 2h, timeZone: Asia/Tokyo, minInstances: 3}, {name: w3, start: "0 8 * * *", timeZone: Nowhere, duration: 1h, minInstances: 1}]}}`)
	got := f.Spec.Scaling.Calendar()
	if len(got) != 1 || got[0].Zone.String() != "Asia/Tokyo" || got[0].Duration != 2*time.Hour || got[0].Min != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestValidateCorrectsNames(t *testing.T) {
	const rule = "must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example "
	for name, c := range map[string]struct{ given, want string }{
		"capitals and underscores": {"My_Func", `metadata.name: Invalid value: "My_Func": ` + rule + "my-func"},
		"hyphens at the ends":      {"-a-", `metadata.name: Invalid value: "-a-": ` + rule + "a"},
		"dots":                     {"a.b", `metadata.name: Invalid value: "a.b": ` + rule + "a-b"},
		"nothing usable":           {"???", `metadata.name: Invalid value: "???": ` + rule + "my-function"},
		"too long": {strings.Repeat("a", 64), `metadata.name: Invalid value: "` + strings.Repeat("a", 64) + `": ` +
			rule + strings.Repeat("a", 63)},
		"missing": {"", "metadata.name: Required value: must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example name: my-function"},
	} {
		t.Run(name, func(t *testing.T) {
			f := defaulted(t, `{template: {command: [x]}}`)
			f.Name = c.given
			if diff := cmp.Diff([]string{c.want}, lines(Validate(f))); diff != "" {
				t.Error(diff)
			}
		})
	}
	f := defaulted(t, `{template: {command: [x]}}`)
	f.Namespace, f.APIVersion, f.Kind = "Team A", "v1", "Pod"
	want := []string{
		`apiVersion: Unsupported value: "v1": supported values: "windlass.dev/v1alpha1"`,
		`kind: Unsupported value: "Pod": supported values: "Function"`,
		`metadata.namespace: Invalid value: "Team A": ` + rule + "team-a",
	}
	if diff := cmp.Diff(want, lines(Validate(f))); diff != "" {
		t.Error(diff)
	}
}

func TestValidateLocalRefusesWhatNeedsAClusterOrAFile(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"an image alone": {`{template: {image: a/b}}`, []string{
			`spec.template.image: Invalid value: "a/b": needs a cluster; give command: or runtimeRef: to run it in local mode`}},
		"an image with a command": {`{template: {image: a/b, command: [x]}}`, nil},
		"a relative path": {`{template: {command: [x], code: {path: app}}}`, []string{
			`spec.template.code.path: Invalid value: "app": is relative, which has a meaning only in a manifest file; give the absolute path`}},
		"a runtime of a cluster": {`{template: {runtimeRef: {name: ruby}, handler: a.b, code: {inline: x}}}`, []string{
			`spec.template.runtimeRef.name: Unsupported value: "ruby": supported values: "nodejs22.x", "python3.13"`}},
		"a runtime without a version": {`{template: {runtimeRef: {name: python3}, handler: a.b, code: {inline: x}}}`, []string{
			`spec.template.runtimeRef.name: Unsupported value: "python3": supported values: "nodejs22.x", "python3.13"; did you mean python3.13?`}},
		"a runtime of another version": {`{template: {runtimeRef: {name: nodejs20.x}, handler: a.b, code: {inline: x}}}`, []string{
			`spec.template.runtimeRef.name: Unsupported value: "nodejs20.x": supported values: "nodejs22.x", "python3.13"; did you mean nodejs22.x?`}},
		"code in a ConfigMap": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {configMapRef: {name: x}}}}`, []string{
			`spec.template.code.configMapRef: Invalid value: "x": needs a cluster; give code.inline or code.path to run it in local mode`}},
		"variables from a Secret": {`{template: {command: [x], envFrom: [{secretRef: {name: x}}]}}`, nil},
		"an absolute path":        {`{template: {command: [x], code: {path: /app}}}`, nil},
		"fields of a pod": {`{template: {command: [x], env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}, {name: C, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}}`, []string{
			`spec.template.env[2].valueFrom.fieldRef.fieldPath: Invalid value: "status.podIP": needs a cluster: local mode has no pods, and knows metadata.name and metadata.namespace; write one of them, or a value`}},
		"mounts": {`{template: {command: [x], mounts: [{name: a, mountPath: /a, emptyDir: {}}, {name: b, mountPath: /b, secret: {secretName: s}}]}}`, []string{
			`spec.template.mounts: Invalid value: "a, b": need a cluster: here a function sees the files of this machine; remove mounts, and give it their path, for example in env`}},
		"inline code": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: x}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(ValidateLocal(defaulted(t, c.spec)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateClusterRefusesWhatNeedsLocalMode(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"an image":           {`{template: {image: a/b}}`, nil},
		"a runtime":          {`{template: {runtimeRef: {name: ruby}, handler: a.b, code: {inline: x}}}`, nil},
		"the longest inline": {`{template: {runtimeRef: {name: ruby}, handler: a.b, code: {inline: ` + strings.Repeat("x", MaxInlineCode) + `}}}`, nil},
		"a command": {`{template: {command: [x]}}`, []string{
			`spec.template.command: Invalid value: ["x"]: a command without an image runs in local mode only; add image:, which holds the program`}},
		"a path": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {path: /app}}}`, []string{
			`spec.template.code.path: Forbidden: needs local mode; put the code into an image, a ConfigMap or code.inline`}},
		"inline code that is too long": {`{template: {runtimeRef: {name: python3.13}, handler: a.b, code: {inline: ` + strings.Repeat("x", MaxInlineCode+1) + `}}}`, []string{
			`spec.template.code.inline: Invalid value: "200001 bytes": is longer than 200000 bytes; use a ConfigMap or an image`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := defaulted(t, c.spec)
			if errs := Validate(f); len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(c.want, lines(ValidateCluster(f))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateRuntimeNamesFieldAndRemedy(t *testing.T) {
	good := ClusterRuntime{Spec: ClusterRuntimeSpec{Image: "a/b:1", Command: []string{"/bootstrap"}, FileExtension: "py", Env: []EnvVar{{Name: "A"}}}}
	good.Name = "python3.13"
	for name, c := range map[string]struct {
		change func(*ClusterRuntime)
		want   []string
	}{
		"everything is right": {func(*ClusterRuntime) {}, nil},
		"no name and no image": {func(r *ClusterRuntime) { r.Name, r.Spec.Image = "", "" }, []string{
			`metadata.name: Required value: must be 1 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends; write for example name: python3.13`,
			`spec.image: Required value: write for example image: example.com/team/runtime:1.0`}},
		"everything is wrong": {func(r *ClusterRuntime) {
			r.Name = "Python"
			r.Spec = ClusterRuntimeSpec{Image: "a b", Command: []string{""}, Protocol: "gRPC", FileExtension: ".py", Env: []EnvVar{{Name: "PORT"}}}
		}, []string{
			`metadata.name: Invalid value: "Python": must be 1 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends; write for example python`,
			`spec.image: Invalid value: "a b": must be the reference of an image; write for example example.com/team/function:1.0`,
			`spec.command[0]: Required value: the program is missing; write for example command: ["./server"]`,
			`spec.protocol: Unsupported value: "gRPC": supported values: "HTTP", "LambdaRuntime"`,
			`spec.fileExtension: Invalid value: ".py": must be letters and digits without a dot, at most 16; write for example py`,
			`spec.env[0].name: Forbidden: Windlass sets PORT itself; take another name, for example APP_PORT`}},
		"a warm pool": {func(r *ClusterRuntime) { r.Spec.WarmPools = []WarmPool{{Name: "small", Size: MaxWarmPool}} }, nil},
		"a warm pool that nobody could use": {func(r *ClusterRuntime) {
			r.Spec.Protocol, r.Spec.FileExtension = ProtocolHTTP, ""
			r.Spec.WarmPools = []WarmPool{{Size: MaxWarmPool + 1}}
		}, []string{
			`spec.warmPools: Invalid value: "HTTP": need the protocol LambdaRuntime, the only one that can hand code to a running runtime; remove warmPools`,
			`spec.warmPools: Invalid value: "": need fileExtension, because a spare instance gets only inline code; write for example fileExtension: py`,
			`spec.warmPools[0].name: Required value: must be 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends; write for example name: small`,
			`spec.warmPools[0].size: Invalid value: 101: must be 1 to 100; write for example 3, or remove warmPools for none`}},
		"pools of several sizes and teams": {func(r *ClusterRuntime) {
			r.Spec.WarmPools = []WarmPool{pool("small", "64Mi", ""), pool("blue", "1Gi", "blue"), pool("red", "1Gi", "red")}
		}, nil},
		"pools for the same functions": {func(r *ClusterRuntime) {
			r.Spec.WarmPools = []WarmPool{pool("a", "1Gi", ""), pool("b", "1024Mi", "red"), pool("c", "2Gi", "red"), pool("d", "2048Mi", "red"), pool("d", "64Mi", "")}
		}, []string{
			`spec.warmPools[1]: Invalid value: "b": has the resources of a and admits the same namespaces, so functions would use only the first; give each a namespaceSelector of its own, or make them one with a larger size`,
			`spec.warmPools[3]: Invalid value: "d": has the resources of c and admits the same namespaces, so functions would use only the first; give each a namespaceSelector of its own, or make them one with a larger size`,
			`spec.warmPools[4].name: Duplicate value: "d"`}},
		"a pool with devices": {func(r *ClusterRuntime) {
			p := pool("a", "1Gi", "")
			p.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
			p.Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
			r.Spec.WarmPools = []WarmPool{p}
		}, []string{
			`spec.warmPools[0].resources.requests[nvidia.com/gpu]: Forbidden: a spare instance holds no extended resources; write cpu, memory or ephemeral-storage, and functions with others start pods of their own`,
			`spec.warmPools[0].resources.limits[nvidia.com/gpu]: Forbidden: a spare instance holds no extended resources; write cpu, memory or ephemeral-storage, and functions with others start pods of their own`}},
		"too many pools": {func(r *ClusterRuntime) {
			for i := range MaxWarmPools + 1 {
				r.Spec.WarmPools = append(r.Spec.WarmPools, pool(fmt.Sprint("p", i), "1Gi", fmt.Sprint("team", i)))
			}
		}, []string{`spec.warmPools: Too many: 9: must have at most 8 items`}},
		"selectors that pick nothing": {func(r *ClusterRuntime) {
			p := pool("a", "1Gi", "")
			p.NamespaceSelector = &NamespaceSelector{MatchLabels: map[string]string{"team": "a b", "a/b/c": "d", "e": ""}, MatchExpressions: []NamespaceRequirement{
				{Key: "team", Operator: "Like"}, {Key: "team", Operator: metav1.LabelSelectorOpIn},
				{Key: "-team", Operator: metav1.LabelSelectorOpExists, Values: []string{"a"}},
				{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}}
			r.Spec.WarmPools = []WarmPool{p}
		}, []string{
			`spec.warmPools[0].namespaceSelector.matchLabels[a/b/c]: Invalid value: "d": a key or a value is not valid for a label, so it selects no namespace; write for example team: payments`,
			`spec.warmPools[0].namespaceSelector.matchLabels[team]: Invalid value: "a b": a key or a value is not valid for a label, so it selects no namespace; write for example team: payments`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist"`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[1].values: Invalid value: null: In and NotIn need values, and Exists and DoesNotExist have none; write for example {key: team, operator: In, values: [payments]}`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[2].key: Invalid value: "-team": must be the key of a label: a name, or a domain, / and a name; write for example team, or example.com/team`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[2].values: Invalid value: ["a"]: In and NotIn need values, and Exists and DoesNotExist have none; write for example {key: team, operator: In, values: [payments]}`}},
		"too much of a selector": {func(r *ClusterRuntime) {
			p := pool("a", "1Gi", "many")
			for i := range MaxRequirements {
				p.NamespaceSelector.MatchLabels[fmt.Sprint("l", i)] = "a"
			}
			p.NamespaceSelector.MatchExpressions = slices.Repeat([]NamespaceRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}, MaxRequirements+1)
			p.NamespaceSelector.MatchExpressions[0] = NamespaceRequirement{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{"a"}, MaxSelectorValues+1)}
			r.Spec.WarmPools = []WarmPool{p}
		}, []string{
			`spec.warmPools[0].namespaceSelector.matchLabels: Too many: 9: must have at most 8 items`,
			`spec.warmPools[0].namespaceSelector.matchExpressions: Too many: 9: must have at most 8 items`,
			`spec.warmPools[0].namespaceSelector.matchExpressions[0].values: Too many: 65: must have at most 64 items`}},
		"dots in a name": {func(r *ClusterRuntime) { r.Name = "python3.13" }, nil},
		"another contract": {func(r *ClusterRuntime) { r.Spec.Contract = "v2" }, []string{
			`spec.contract: Unsupported value: "v2": supported values: "v1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := good.DeepCopy()
			c.change(r)
			DefaultClusterRuntime(r)
			if diff := cmp.Diff(c.want, lines(ValidateClusterRuntime(r))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefaultForTakesTheRuntimesProtocol(t *testing.T) {
	http := &ClusterRuntime{Spec: ClusterRuntimeSpec{Protocol: ProtocolHTTP}}
	for name, c := range map[string]struct {
		spec    FunctionSpec
		runtime *ClusterRuntime
		want    Protocol
	}{
		"the runtime's":            {FunctionSpec{Template: FunctionTemplate{RuntimeRef: RuntimeReference{Name: "r"}}}, http, ProtocolHTTP},
		"the function's own":       {FunctionSpec{Template: FunctionTemplate{RuntimeRef: RuntimeReference{Name: "r"}, Protocol: ProtocolLambdaRuntime}}, http, ProtocolLambdaRuntime},
		"of an unknown runtime":    {FunctionSpec{Template: FunctionTemplate{RuntimeRef: RuntimeReference{Name: "r"}}}, nil, ProtocolLambdaRuntime},
		"of a runtime without one": {FunctionSpec{Template: FunctionTemplate{RuntimeRef: RuntimeReference{Name: "r"}}}, &ClusterRuntime{}, ProtocolLambdaRuntime},
		"of an image":              {FunctionSpec{Template: FunctionTemplate{Image: "i"}}, nil, ProtocolHTTP},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Function{Spec: c.spec}
			DefaultFor(f, c.runtime)
			if f.Spec.Template.Protocol != c.want {
				t.Errorf("got %s, want %s", f.Spec.Template.Protocol, c.want)
			}
		})
	}
}

// pool is a warm pool with so much memory for the namespaces of a team; for all if it is
// empty.
func pool(name, memory, team string) WarmPool {
	p := WarmPool{Name: name, Size: 1}
	p.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	if team != "" {
		p.NamespaceSelector = &NamespaceSelector{MatchLabels: map[string]string{"team": team}}
	}
	return p
}
