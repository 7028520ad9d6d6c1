package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	functionType = reflect.TypeFor[Function]()
	revisionType = reflect.TypeFor[FunctionRevision]()
	durationType = reflect.TypeFor[Duration]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	timeType     = reflect.TypeFor[metav1.Time]()
	parserType   = reflect.TypeFor[json.Unmarshaler]()
)

// plausible bounds what is worth reading as a quantity: to read or to compare
// an exponent of many digits takes minutes.
var plausible = regexp.MustCompile(`^[+-]?[0-9.]{1,40}([A-Za-z]{0,2}|[eE][+-]?[0-9]{1,3})$`)

// shape compares what a manifest holds with the Go types of the API. The JSON
// packages stop at the first value of a wrong type and name Go's types; a shape
// goes on, and names the field and the remedy.
type shape struct {
	problems []string
}

// checkFunction returns the fields without those that are null, which count as
// left out, and everything about them that does not fit a Function.
func checkFunction(fields map[string]any) (any, []string) {
	var s shape
	if fields["apiVersion"] == nil {
		s.addProblem("apiVersion", "is missing; write apiVersion: %s", APIVersion)
	}
	if fields["kind"] == nil {
		s.addProblem("kind", "is missing; write kind: %s", KindFunction)
	}
	checked := s.object("", fields, functionType)
	return checked, s.problems
}

func (s *shape) addProblem(path, format string, args ...any) {
	s.problems = append(s.problems, path+": "+fmt.Sprintf(format, args...))
}

func (s *shape) value(path string, v any, t reflect.Type) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(parserType) {
		s.parsed(path, v, t)
		return v
	}
	switch t.Kind() {
	case reflect.Struct:
		if fields, ok := v.(map[string]any); ok {
			return s.object(path, fields, t)
		}
		s.addProblem(path, "%s", notFields(path, v, t))
	case reflect.Map:
		if fields, ok := v.(map[string]any); ok {
			return s.dictionary(path, fields, t.Elem())
		}
		s.addProblem(path, "%s", notDictionary(path, v, t.Elem()))
	case reflect.Slice:
		if items, ok := v.([]any); ok {
			return s.list(path, items, t.Elem())
		}
		s.addProblem(path, "%s", notList(path, v))
	default:
		s.scalar(path, v, t)
	}
	return v
}

func (s *shape) object(path string, fields map[string]any, t reflect.Type) any {
	known := fieldsOf(t)
	kept := make(map[string]any, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v := fields[name]
		ft, ok := known[name]
		switch {
		case !ok:
			s.addProblem(join(path, name), "%s", unknownField(path, name, known))
		case v != nil:
			kept[name] = s.value(join(path, name), v, ft)
		}
	}
	return kept
}

func (s *shape) dictionary(path string, fields map[string]any, t reflect.Type) any {
	kept := make(map[string]any, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		at := fmt.Sprintf("%s[%s]", path, key)
		switch {
		case fields[key] != nil:
		case t == quantityType:
			s.addProblem(at, "has no value; write for example %s, or remove it", exampleOf(at, "1"))
			continue
		default:
			s.addProblem(at, `has no value; write "" for an empty text`)
			continue
		}
		kept[key] = s.value(at, fields[key], t)
	}
	return kept
}

func (s *shape) list(path string, items []any, t reflect.Type) any {
	kept := make([]any, 0, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item == nil {
			s.addProblem(at, "has no value; give it one, or remove it from the list")
			continue
		}
		kept = append(kept, s.value(at, item, t))
	}
	return kept
}

func (s *shape) scalar(path string, v any, t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		if _, ok := v.(string); !ok {
			s.addProblem(path, "%s", notText(path, v))
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			s.addProblem(path, "%s", notBool(v))
		}
	default:
		n, ok := v.(int64)
		if f, float := v.(float64); float && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			n, ok = int64(f), true
		}
		if !ok {
			s.addProblem(path, "%s", notNumber(path, v))
		} else if reflect.Zero(t).OverflowInt(n) {
			s.addProblem(path, "%d is out of range; write a smaller number, for example %s", n, exampleOf(path, "1"))
		}
	}
}

// parsed checks a value whose type reads it itself.
func (s *shape) parsed(path string, v any, t reflect.Type) {
	if q, ok := v.(string); ok && t == quantityType && !plausible.MatchString(q) {
		s.addProblem(path, "%s", notQuantity(path, v))
		return
	}
	text, err := json.Marshal(v)
	read := reflect.New(t)
	if err == nil {
		err = read.Interface().(json.Unmarshaler).UnmarshalJSON(text)
	}
	switch t {
	case durationType:
		if err != nil {
			s.addProblem(path, "%s", notDuration(path, v))
		}
	case quantityType:
		if err != nil {
			s.addProblem(path, "%s", notQuantity(path, v))
		}
	case timeType:
		// A time zone can lead out of the years that can be written again.
		if y := read.Interface().(*metav1.Time).UTC().Year(); err != nil || y < 0 || y > 9999 {
			s.addProblem(path, "%s is not a time; write for example %s", describe(v), time.Unix(0, 0).UTC().Format(time.RFC3339))
		}
	default:
		if err != nil {
			s.addProblem(path, "%s is not valid: %v; remove it", describe(v), err)
		}
	}
}

// fieldsOf are the fields of a struct by their names in a manifest.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			maps.Copy(fields, fieldsOf(f.Type))
		} else if name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
