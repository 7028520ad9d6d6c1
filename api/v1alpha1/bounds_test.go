package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// ceiling is an upper bound that the API server checks.
type ceiling struct {
	// path has [] for the first item of a list.
	path   string
	schema apiextensionsv1.JSONSchemaProps
}

// ceilings are the bounds below spec in the schema of a resource.
func ceilings(t *testing.T, plural string) []ceiling {
	t.Helper()
	text, err := os.ReadFile("../../config/crd/windlass.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var found []ceiling
	var walk func(path string, s apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s apiextensionsv1.JSONSchemaProps) {
		if s.Maximum != nil || s.MaxItems != nil || s.MaxLength != nil || s.MaxProperties != nil {
			found = append(found, ceiling{path, s})
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			walk(path+"."+name, s.Properties[name])
		}
		if s.Items != nil {
			walk(path+"[]", *s.Items.Schema)
		}
	}
	walk("spec", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	return found
}

// usual are values that are right, of fields that do not take every text.
var usual = map[string]string{
	"spec.calls.queueTimeout": "1m", "spec.calls.rate.period": "1m",
	"spec.rollout.progressDeadline": "1m", "spec.rollout.steps[].hold": "1m",
	"spec.scaling.scaleDown.idleTimeout": "1m", "spec.scaling.scaleDown.lastInstanceIdleTimeout": "1m",
	"spec.scaling.windows[].duration": "1m", "spec.scaling.windows[].start": "0 8 * * *", "spec.scaling.windows[].timeZone": "UTC",
	"spec.template.scheduling.slice": "1m", "spec.template.startupTimeout": "1m", "spec.template.timeout": "1m",
	"spec.expose.hosts[]": "a.example", "spec.template.env[].valueFrom.fieldRef.fieldPath": "metadata.name",
	"spec.template.handler": "a.b", "spec.template.mounts[].mountPath": "/a",
}

// around is what makes a field be the only thing that may be wrong, by the beginning of its path;
// the longest one counts.
var around = map[string]string{
	"spec":                                         `{template: {image: a}}`,
	"spec.calls.rate":                              `{template: {image: a}, calls: {rate: {requests: 1}}}`,
	"spec.rollout.steps":                           `{template: {image: a}, rollout: {strategy: Steps, steps: [{weight: 1, hold: 1s}]}}`,
	"spec.scaling.windows[]":                       `{template: {image: a}, scaling: {windows: [{name: a, start: "0 8 * * *", duration: 1h, minInstances: 1}]}}`,
	"spec.traffic[]":                               `{template: {image: a}, traffic: [{tag: a, weight: 100}]}`,
	"spec.template.runtimeRef":                     `{template: {runtimeRef: {}, handler: a.b, code: {inline: x}}}`,
	"spec.template.handler":                        `{template: {runtimeRef: {name: java21}, code: {inline: x}}}`,
	"spec.template.code.inline":                    `{template: {runtimeRef: {name: java21}, handler: a.b, code: {}}}`,
	"spec.template.code.configMapRef":              `{template: {runtimeRef: {name: java21}, handler: a.b, code: {}}}`,
	"spec.template.mounts[]":                       `{template: {image: a, mounts: [{name: a, mountPath: /a, emptyDir: {}}]}}`,
	"spec.template.mounts[].secret":                `{template: {image: a, mounts: [{name: a, mountPath: /a}]}}`,
	"spec.template.mounts[].configMap":             `{template: {image: a, mounts: [{name: a, mountPath: /a}]}}`,
	"spec.template.mounts[].persistentVolumeClaim": `{template: {image: a, mounts: [{name: a, mountPath: /a}]}}`,
	"spec.template.env[]":                          `{template: {image: a, env: [{name: A}]}}`,
}

// onlyLocal are fields that no Function of a cluster has.
var onlyLocal = map[string]bool{"spec.template.code.path": true}

// What the API server refuses for its size, windlass validate and local mode refuse as well: a
// manifest that passes there is applied.
func TestValidateKnowsTheBoundsOfTheAPIServer(t *testing.T) {
	all := ceilings(t, "functions")
	if len(all) < 60 {
		t.Fatalf("found only %d bounds", len(all))
	}
	for _, c := range all {
		if onlyLocal[c.path] {
			continue
		}
		t.Run(c.path, func(t *testing.T) { c.check(t, c.faults) })
	}
}

// ofPools make a pool be the only thing that may be wrong.
const ofPools = `{image: a, fileExtension: py, warmPools: [{name: a, size: 1}]}`

// aroundRuntime is what around is, for ClusterRuntimes.
var aroundRuntime = map[string]string{
	"spec": `{image: a}`, "spec.env[]": `{image: a, env: [{name: A}]}`, "spec.warmPools": ofPools,
	"spec.warmPools[].namespaceSelector.matchExpressions[]": `{image: a, fileExtension: py, warmPools: [{name: a, size: 1, namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [a]}]}}]}`,
}

// uncommon are bounds of ClusterRuntimes of what no runtime has at all.
var uncommon = []string{"spec.env[].valueFrom"}

func TestValidateClusterRuntimeKnowsTheBoundsOfTheAPIServer(t *testing.T) {
	all := ceilings(t, "clusterruntimes")
	if len(all) < 12 {
		t.Fatalf("found only %d bounds", len(all))
	}
	for _, c := range all {
		if slices.ContainsFunc(uncommon, func(path string) bool { return strings.HasPrefix(c.path, path) }) {
			continue
		}
		t.Run(c.path, func(t *testing.T) { c.check(t, c.runtimeFaults) })
	}
}

// check compares the bound with what faults finds.
func (c ceiling) check(t *testing.T, faults func(t *testing.T, value any) []string) {
	t.Helper()
	within, most, beyond := c.values()
	if wrong := faults(t, within); len(wrong) > 0 {
		t.Fatalf("a usual value is wrong: %v", wrong)
	}
	for _, fault := range faults(t, most) {
		if strings.Contains(fault, "Too long") || strings.Contains(fault, "Too many") || c.schema.Maximum != nil {
			t.Errorf("the largest value is wrong: %s", fault)
		}
	}
	if len(faults(t, beyond)) == 0 {
		t.Errorf("nothing is wrong with more than the API server takes")
	}
}

// values are a usual one, the largest, and one that is larger.
func (c ceiling) values() (within, most, beyond any) {
	switch s := c.schema; {
	case s.Maximum != nil:
		return 1, int(*s.Maximum), int(*s.Maximum) + 1
	case s.MaxLength != nil:
		usual, given := usual[c.path]
		if !given {
			usual = "a"
		}
		padding := "a"
		if strings.HasSuffix(c.path, ".start") {
			padding = " "
		}
		longest := usual + strings.Repeat(padding, int(*s.MaxLength)-len(usual))
		return usual, longest, longest + padding
	case s.MaxItems != nil:
		return c.items(1), c.items(int(*s.MaxItems)), c.items(int(*s.MaxItems) + 1)
	default:
		return c.entries(1), c.entries(int(*s.MaxProperties)), c.entries(int(*s.MaxProperties) + 1)
	}
}

func (c ceiling) items(n int) []any {
	items := make([]any, n)
	for i := range items {
		switch item := c.schema.Items.Schema; item.Type {
		case "string":
			items[i] = fmt.Sprintf("a%d.example", i)
		default:
			items[i] = map[string]any{}
			if _, weighs := item.Properties["weight"]; weighs && i == 0 {
				items[i] = map[string]any{"weight": 100}
			}
		}
	}
	return items
}

func (c ceiling) entries(n int) map[string]any {
	entries := map[string]any{}
	for i := range n {
		// Functions that request none of the first two get some of them.
		name := fmt.Sprintf("example.com/a%d", i)
		if i < 2 {
			name = []string{"cpu", "memory"}[i]
		}
		entries[name] = "1"
	}
	return entries
}

// object is one whose field has that value.
func (c ceiling) object(t *testing.T, kind string, around map[string]string, value any) []byte {
	t.Helper()
	beginning := ""
	for path := range around {
		if strings.HasPrefix(c.path, path) && len(path) > len(beginning) {
			beginning = path
		}
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(around[beginning]), &spec); err != nil {
		t.Fatal(err)
	}
	put(spec, strings.Split(c.path, ".")[1:], value)
	text, err := json.Marshal(map[string]any{"apiVersion": APIVersion, "kind": kind, "metadata": map[string]any{"name": "f"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// runtimeFaults are what is wrong with the field of a ClusterRuntime, if it has that value.
func (c ceiling) runtimeFaults(t *testing.T, value any) []string {
	t.Helper()
	var r ClusterRuntime
	if err := yaml.Unmarshal(c.object(t, KindClusterRuntime, aroundRuntime, value), &r); err != nil {
		t.Fatal(err)
	}
	DefaultClusterRuntime(&r)
	return c.among(ValidateClusterRuntime(&r))
}

// among are the errors of the field.
func (c ceiling) among(errs field.ErrorList) (faults []string) {
	at := strings.ReplaceAll(c.path, "[]", "[0]")
	for _, err := range errs {
		if err.Field == at {
			faults = append(faults, err.ErrorBody())
		}
	}
	return faults
}

// faults are what is wrong with the field of a Function, if it has that value.
func (c ceiling) faults(t *testing.T, value any) []string {
	t.Helper()
	text := c.object(t, KindFunction, around, value)
	at := strings.ReplaceAll(c.path, "[]", "[0]")
	functions, err := Decode(text, "manifest")
	if err != nil {
		if strings.Contains(err.Error(), at) {
			return []string{err.Error()}
		}
		t.Fatal(err)
	}
	Default(functions[0])
	return c.among(append(Validate(functions[0]), ValidateCluster(functions[0])...))
}

// put sets a field below an object; [] at a name's end is the first item of a list.
func put(object map[string]any, path []string, value any) {
	name, list := strings.CutSuffix(path[0], "[]")
	switch {
	case len(path) == 1 && list:
		object[name] = []any{value}
	case len(path) == 1:
		object[name] = value
	case list:
		items, _ := object[name].([]any)
		if len(items) == 0 {
			items = []any{map[string]any{}}
			object[name] = items
		}
		put(items[0].(map[string]any), path[1:], value)
	default:
		below, _ := object[name].(map[string]any)
		if below == nil {
			below = map[string]any{}
			object[name] = below
		}
		put(below, path[1:], value)
	}
}
