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
	"metadata":                         "{name: my-function}",
	"metadata.name":                    "my-function",
	"metadata.namespace":               DefaultNamespace,
	"metadata.labels":                  "{team: payments}",
	"metadata.annotations":             "{owner: payments}",
	"spec":                             `{command: ["./server"]}`,
	"spec.image":                       "example.com/team/function:1.0",
	"spec.command":                     `["./server", "--verbose"]`,
	"spec.args":                        `["--verbose"]`,
	"spec.runtime":                     string(RuntimePython3),
	"spec.handler":                     "main.handle",
	"spec.code":                        "{path: .}",
	"spec.code.inline":                 `"def handle(event, context): return event"`,
	"spec.code.configMap":              "my-function-code",
	"spec.code.path":                   ".",
	"spec.protocol":                    string(ProtocolHTTP),
	"spec.port":                        "8080",
	"spec.concurrency":                 "10",
	"spec.timeout":                     "60s",
	"spec.startupTimeout":              "1m",
	"spec.resources":                   "{limits: {cpu: 500m, memory: 128Mi}}",
	"spec.resources.requests":          "{cpu: 100m, memory: 64Mi}",
	"spec.resources.requests.cpu":      "100m",
	"spec.resources.requests.memory":   "64Mi",
	"spec.resources.limits":            "{cpu: 500m, memory: 128Mi}",
	"spec.resources.limits.cpu":        "500m",
	"spec.resources.limits.memory":     "128Mi",
	"spec.env":                         "[{name: APP_MODE, value: test}]",
	"spec.env[]":                       "{name: APP_MODE, value: test}",
	"spec.env[].name":                  "APP_MODE",
	"spec.env[].value":                 "test",
	"spec.envFrom":                     "[{secretRef: {name: my-secret}}]",
	"spec.envFrom[]":                   "{secretRef: {name: my-secret}}",
	"spec.envFrom[].prefix":            "DB_",
	"spec.envFrom[].secretRef":         "{name: my-secret}",
	"spec.envFrom[].configMapRef":      "{name: my-settings}",
	"spec.nodeSelector":                "{disk: ssd}",
	"spec.tolerations":                 "[{key: spot, operator: Exists}]",
	"spec.tolerations[]":               "{key: spot, operator: Exists}",
	"spec.runtimeClassName":            "gvisor",
	"spec.priorityClassName":           "batch",
	"spec.imagePullSecrets":            "[{name: my-registry}]",
	"spec.imagePullSecrets[]":          "{name: my-registry}",
	"spec.imagePullSecrets[].name":     "my-registry",
	"spec.serviceAccountName":          "my-function",
	"spec.scaling":                     "{min: 0, max: 10}",
	"spec.scaling.min":                 "0",
	"spec.scaling.max":                 "10",
	"spec.scaling.backoffAfter":        "10s",
	"spec.scaling.idleTimeout":         "10m",
	"spec.scaling.keepLast":            "1h",
	"spec.scaling.keepAlive":           string(KeepAliveHistogram),
	"spec.scaling.schedule":            `[{start: "0 8 * * 1-5", duration: 10h, timeZone: Europe/Berlin, min: 5}]`,
	"spec.scaling.schedule[]":          `{start: "0 8 * * 1-5", duration: 10h, timeZone: Europe/Berlin, min: 5}`,
	"spec.scaling.schedule[].start":    `"0 8 * * 1-5"`,
	"spec.scaling.schedule[].duration": "10h",
	"spec.scaling.schedule[].timeZone": "Europe/Berlin",
	"spec.scaling.schedule[].min":      "5",
	"spec.limits":                      "{concurrency: 100, ratePerSecond: 50}",
	"spec.limits.concurrency":          "100",
	"spec.limits.ratePerSecond":        "50",
	"spec.limits.burst":                "100",
	"spec.idempotent":                  "true",
	"spec.cancelOnDisconnect":          "true",
	"spec.decider":                     string(DeciderHorizon),
}

var position = regexp.MustCompile(`\[\d+\]`)

// exampleOf is what to write at path, or else other.
func exampleOf(path, other string) string {
	if example, ok := examples[position.ReplaceAllString(path, "[]")]; ok {
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

func notDictionary(path string, v any) string {
	return fmt.Sprintf("%s is not a group of names and texts; write for example %s",
		describe(v), exampleField(path, "{name: text}"))
}

func notList(path string, v any) string {
	example := exampleOf(path, "[]")
	if text, ok := v.(string); ok && path == "spec.command" {
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
		return plain(time.Duration(n) * 24 * time.Hour), true
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
	return "unknown field; correct or remove it" + valid
}

func shortestFirst(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
