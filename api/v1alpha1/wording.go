package v1alpha1

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/spelling"
)

// examples are what to write, by path without the positions in lists.
var examples = map[string]string{
	"metadata":                                               "{name: my-function}",
	"metadata.name":                                          "my-function",
	"metadata.namespace":                                     DefaultNamespace,
	"metadata.labels":                                        "{team: payments}",
	"metadata.annotations":                                   "{owner: payments}",
	"spec":                                                   `{template: {command: ["./server"]}}`,
	"spec.template":                                          `{command: ["./server"]}`,
	"spec.template.metadata":                                 "{labels: {team: payments}}",
	"spec.template.metadata.labels":                          "{team: payments}",
	"spec.template.metadata.annotations":                     "{example.com/owner: payments}",
	"spec.template.image":                                    "example.com/team/function:1.0",
	"spec.template.command":                                  `["./server", "--verbose"]`,
	"spec.template.args":                                     `["--verbose"]`,
	"spec.template.runtimeRef":                               "{name: " + string(RuntimePython313) + "}",
	"spec.template.runtimeRef.kind":                          KindClusterRuntime,
	"spec.template.runtimeRef.name":                          string(RuntimePython313),
	"spec.template.handler":                                  "main.handle",
	"spec.template.code":                                     "{path: .}",
	"spec.template.code.inline":                              `"def handle(event, context): return event"`,
	"spec.template.code.configMapRef":                        "{name: my-function-code}",
	"spec.template.code.configMapRef.name":                   "my-function-code",
	"spec.template.code.path":                                ".",
	"spec.template.protocol":                                 string(ProtocolHTTP),
	"spec.template.port":                                     "8080",
	"spec.template.concurrency":                              "10",
	"spec.template.timeout":                                  "60s",
	"spec.template.startupTimeout":                           "1m",
	"spec.template.resources":                                "{limits: {cpu: 500m, memory: 128Mi}}",
	"spec.template.resources.requests":                       "{cpu: 100m, memory: 64Mi}",
	"spec.template.resources.requests.cpu":                   "100m",
	"spec.template.resources.requests.memory":                "64Mi",
	"spec.template.resources.requests.ephemeral-storage":     "1Gi",
	"spec.template.resources.limits":                         "{cpu: 500m, memory: 128Mi}",
	"spec.template.resources.limits.ephemeral-storage":       "2Gi",
	"spec.template.resources.limits.cpu":                     "500m",
	"spec.template.resources.limits.memory":                  "128Mi",
	"spec.template.env":                                      "[{name: APP_MODE, value: test}]",
	"spec.template.env[]":                                    "{name: APP_MODE, value: test}",
	"spec.template.env[].name":                               "APP_MODE",
	"spec.template.env[].value":                              "test",
	"spec.template.env[].valueFrom":                          "{secretKeyRef: {name: my-secret, key: password}}",
	"spec.template.env[].valueFrom.secretKeyRef":             "{name: my-secret, key: password}",
	"spec.template.env[].valueFrom.secretKeyRef.name":        "my-secret",
	"spec.template.env[].valueFrom.secretKeyRef.key":         "password",
	"spec.template.env[].valueFrom.configMapKeyRef":          "{name: my-settings, key: level}",
	"spec.template.env[].valueFrom.configMapKeyRef.name":     "my-settings",
	"spec.template.env[].valueFrom.configMapKeyRef.key":      "level",
	"spec.template.env[].valueFrom.fieldRef":                 "{fieldPath: metadata.name}",
	"spec.template.env[].valueFrom.fieldRef.fieldPath":       "metadata.name",
	"spec.template.envFrom":                                  "[{secretRef: {name: my-secret}}]",
	"spec.template.envFrom[]":                                "{secretRef: {name: my-secret}}",
	"spec.template.envFrom[].prefix":                         "DB_",
	"spec.template.envFrom[].secretRef":                      "{name: my-secret}",
	"spec.template.envFrom[].configMapRef":                   "{name: my-settings}",
	"spec.template.mounts":                                   "[{name: settings, mountPath: /etc/app, configMap: {name: my-settings}}]",
	"spec.template.mounts[]":                                 "{name: settings, mountPath: /etc/app, configMap: {name: my-settings}}",
	"spec.template.mounts[].name":                            "settings",
	"spec.template.mounts[].mountPath":                       "/etc/app",
	"spec.template.mounts[].subPath":                         "app/settings.json",
	"spec.template.mounts[].secret":                          "{secretName: my-secret}",
	"spec.template.mounts[].secret.secretName":               "my-secret",
	"spec.template.mounts[].configMap":                       "{name: my-settings}",
	"spec.template.mounts[].configMap.name":                  "my-settings",
	"spec.template.mounts[].persistentVolumeClaim":           "{claimName: my-data}",
	"spec.template.mounts[].persistentVolumeClaim.claimName": "my-data",
	"spec.template.mounts[].emptyDir":                        "{sizeLimit: 1Gi}",
	"spec.template.mounts[].emptyDir.medium":                 "Memory",
	"spec.template.mounts[].emptyDir.sizeLimit":              "1Gi",
	"spec.template.scheduling":                               "{class: Batch}",
	"spec.template.scheduling.class":                         string(ClassBatch),
	"spec.template.scheduling.slice":                         "50ms",
	"spec.template.placement":                                "{nodeSelector: {disk: ssd}}",
	"spec.template.placement.nodeSelector":                   "{disk: ssd}",
	"spec.template.placement.tolerations":                    "[{key: spot, operator: Exists}]",
	"spec.template.placement.tolerations[]":                  "{key: spot, operator: Exists}",
	"spec.template.placement.runtimeClassName":               "gvisor",
	"spec.template.placement.priorityClassName":              "batch",
	"spec.template.imagePullSecrets":                         "[{name: my-registry}]",
	"spec.template.imagePullSecrets[]":                       "{name: my-registry}",
	"spec.template.imagePullSecrets[].name":                  "my-registry",
	"spec.template.serviceAccountName":                       "my-function",
	"spec.calls":                                             "{maxInFlight: 100}",
	"spec.calls.maxInFlight":                                 "100",
	"spec.calls.rate":                                        "{requests: 50, period: 1s, burst: 100}",
	"spec.calls.rate.requests":                               "50",
	"spec.calls.rate.period":                                 "1s",
	"spec.calls.rate.burst":                                  "100",
	"spec.calls.queueTimeout":                                "5s",
	"spec.calls.delivery":                                    string(DeliveryAtLeastOnce),
	"spec.calls.onClientDisconnect":                          string(OnClientDisconnectCancel),
	"spec.rollout":                                           "{strategy: Steps, steps: [{weight: 10, hold: 10m}]}",
	"spec.rollout.verify":                                    "OneInstance",
	"spec.rollout.progressDeadline":                          "2m",
	"spec.rollout.strategy":                                  "Immediate",
	"spec.rollout.steps":                                     "[{weight: 10, hold: 10m}]",
	"spec.rollout.steps[]":                                   "{weight: 10, hold: 10m}",
	"spec.rollout.steps[].weight":                            "10",
	"spec.rollout.steps[].hold":                              "10m",
	"spec.expose":                                            "{hosts: [shop.example.com]}",
	"spec.expose.hosts":                                      "[shop.example.com]",
	"spec.traffic":                                           "[{tag: live, weight: 90, revisionName: thumbnail-00006}, {tag: next, weight: 10}]",
	"spec.traffic[]":                                         "{tag: next, weight: 10}",
	"spec.traffic[].tag":                                     "next",
	"spec.traffic[].revisionName":                            "thumbnail-00006",
	"spec.traffic[].weight":                                  "10",
	"spec.revisionHistoryLimit":                              "10",
	"spec.scaling":                                           "{minInstances: 0, maxInstances: 10}",
	"spec.scaling.minInstances":                              "0",
	"spec.scaling.maxInstances":                              "10",
	"spec.scaling.windows":                                   `[{name: office-hours, start: "0 8 * * 1-5", duration: 10h, timeZone: Europe/Berlin, minInstances: 5}]`,
	"spec.scaling.windows[]":                                 `{name: office-hours, start: "0 8 * * 1-5", duration: 10h, timeZone: Europe/Berlin, minInstances: 5}`,
	"spec.scaling.windows[].name":                            "office-hours",
	"spec.scaling.windows[].start":                           `"0 8 * * 1-5"`,
	"spec.scaling.windows[].duration":                        "10h",
	"spec.scaling.windows[].timeZone":                        "Europe/Berlin",
	"spec.scaling.windows[].minInstances":                    "5",
	"spec.scaling.scaleDown":                                 "{idleTimeout: 10m}",
	"spec.scaling.scaleDown.policy":                          string(ScaleDownLearned),
	"spec.scaling.scaleDown.idleTimeout":                     "10m",
	"spec.scaling.scaleDown.lastInstanceIdleTimeout":         "1h",
}

var (
	position = regexp.MustCompile(`\[\d+\]`)
	key      = regexp.MustCompile(`\[([a-z-]+)\]`)
)

// exampleOf is what to write at path, or else other.
func exampleOf(path, other string) string {
	if example, ok := examples[key.ReplaceAllString(position.ReplaceAllString(path, "[]"), ".$1")]; ok {
		return example
	}
	return other
}

// exampleField is name: example, for values that are hard to tell from the
// text around them.
func exampleField(path, other string) string {
	if strings.HasSuffix(path, "]") {
		return exampleOf(path, other)
	}
	return path[strings.LastIndexByte(path, '.')+1:] + ": " + exampleOf(path, other)
}

// describe shows a value of a manifest, in brief.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		if runes := []rune(v); len(runes) > 60 {
			v = string(runes[:57]) + "..."
		}
		return strconv.Quote(v)
	case map[string]any:
		return "a group of fields"
	case []any:
		return "a list"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

func notText(path string, v any) string {
	switch v := v.(type) {
	case bool:
		return fmt.Sprintf(`%t is not text but true or false, as are yes, no, on and off; put it in quotes, for example "%t"`, v, v)
	case int64, float64:
		return fmt.Sprintf(`%s is a number, not text; put it in quotes: "%s"`, describe(v), describe(v))
	}
	return fmt.Sprintf("%s is not text; write for example %s", describe(v), exampleField(path, `"text"`))
}

func notBool(v any) string {
	if text, ok := v.(string); ok && (text == "true" || text == "false") {
		return fmt.Sprintf("%q is text; write %s without quotes", text, text)
	}
	return describe(v) + " is neither true nor false; write true or false"
}

func notNumber(path string, v any) string {
	if text, ok := v.(string); ok {
		if _, err := strconv.ParseInt(text, 10, 32); err == nil {
			return fmt.Sprintf("%q is text, not a number; write %s without quotes", text, text)
		}
	}
	return fmt.Sprintf("%s is not a whole number; write for example %s", describe(v), exampleOf(path, "1"))
}

func notFields(path string, v any, t reflect.Type) string {
	return fmt.Sprintf("%s is not a group of fields (%s); write for example %s", describe(v),
		strings.Join(writtenFields(path, fieldsOf(t)), ", "), exampleField(path, "{}"))
}

func notDictionary(path string, v any, t reflect.Type) string {
	of := "texts"
	if t == quantityType {
		of = "amounts"
	}
	return fmt.Sprintf("%s is not a group of names and %s; write for example %s",
		describe(v), of, exampleField(path, "{name: text}"))
}

func notList(path string, v any) string {
	example := exampleOf(path, "[]")
	if text, ok := v.(string); ok && path == "spec.template.command" {
		if words := strings.Fields(text); len(words) > 0 && !strings.ContainsAny(text, `"'\`) {
			example = `["` + strings.Join(words, `", "`) + `"]`
		}
	}
	return fmt.Sprintf("%s is not a list; write for example %s: %s",
		describe(v), path[strings.LastIndexByte(path, '.')+1:], example)
}

func notQuantity(path string, v any) string {
	return fmt.Sprintf("%s is not a quantity; write for example %s", describe(v), exampleOf(path, "1"))
}

func notDuration(path string, v any) string {
	example := exampleOf(path, "10s")
	switch v := v.(type) {
	case int64:
		example = strconv.FormatInt(v, 10) + "s"
	case float64:
		example = strconv.FormatFloat(v, 'f', -1, 64) + "s"
	case string:
		if meant, ok := meantDuration(v); ok {
			example = meant
		}
		if positive, negative := strings.CutPrefix(v, "-"); negative && durationPattern.MatchString(positive) {
			return fmt.Sprintf("%s is negative; it must be positive, for example %s", describe(v), positive)
		}
	}
	return fmt.Sprintf("%s is not a duration; write for example %s", describe(v), example)
}

var amountOfTime = regexp.MustCompile(`^(\d{1,6}) ?([a-z]*)$`)

// meantDuration is the duration that "10 minutes" and the like stand for.
func meantDuration(s string) (string, bool) {
	m := amountOfTime.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return "", false
	}
	switch m[2] {
	case "", "s", "sec", "secs", "second", "seconds":
		return m[1] + "s", true
	case "ms", "msec", "millis", "millisecond", "milliseconds":
		return m[1] + "ms", true
	case "m", "min", "mins", "minute", "minutes":
		return m[1] + "m", true
	case "h", "hr", "hrs", "hour", "hours":
		return m[1] + "h", true
	case "d", "day", "days":
		n, _ := strconv.Atoi(m[1])
		return Duration{time.Duration(n) * 24 * time.Hour}.String(), true
	}
	return "", false
}

// writtenFields are the fields at path that people write.
func writtenFields(path string, known map[string]reflect.Type) []string {
	switch path {
	case "":
		return []string{"apiVersion", "kind", "metadata", "spec"}
	case "metadata":
		return []string{"name", "namespace", "labels", "annotations"}
	}
	return slices.Sorted(maps.Keys(known))
}

// unknownField says what may have been meant: a field of this group in other
// letters, one of this name in another group, or one with a similar name.
func unknownField(path, name string, known map[string]reflect.Type) string {
	fields := writtenFields(path, known)
	if same := slices.IndexFunc(fields, func(f string) bool { return strings.EqualFold(f, name) }); same >= 0 {
		return "unknown field; write " + fields[same]
	}
	for _, other := range slices.SortedFunc(maps.Keys(examples), shortestFirst) {
		if strings.EqualFold(other[strings.LastIndexByte(other, '.')+1:], name) && !strings.Contains(other, "[]") {
			return "unknown field here; write it as " + other
		}
	}
	nearest, best := "", math.MaxInt
	for _, f := range fields {
		if d := spelling.Distance(strings.ToLower(f), strings.ToLower(name)); d < best {
			nearest, best = f, d
		}
	}
	valid := " (valid here: " + strings.Join(fields, ", ") + ")"
	if best <= max(2, len(nearest)/3) {
		return "unknown field; did you mean " + nearest + "?" + valid
	}
	for _, other := range slices.SortedFunc(maps.Keys(examples), shortestFirst) {
		last := other[strings.LastIndexByte(other, '.')+1:]
		if !strings.Contains(other, "[]") && spelling.Distance(strings.ToLower(last), strings.ToLower(name)) <= len(last)/4 {
			return "unknown field; did you mean " + other + "?" + valid
		}
	}
	return "unknown field; correct or remove it" + valid
}

func shortestFirst(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
