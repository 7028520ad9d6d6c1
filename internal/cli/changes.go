package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
)

// change is a field of a function that is not what it was.
type change struct {
	// field is where it is, such as scaling.maxInstances or template.env A.
	field string
	// before and after are its values, in one or more lines, and empty where there
	// is no such field.
	before, after string
	// hidden says that the values may be nobody's business.
	hidden bool
	// edited says that what the field names has changed, and not the field.
	edited bool
}

// longValue is the longest value, in bytes, that a line shows.
const longValue = 80

// changesOf is what applying a function has changed of one that was there.
func changesOf(applied localapi.Applied) []change {
	if applied.Before == nil || applied.Function == nil {
		return nil
	}
	return changes(applied.Before, applied.Function)
}

// changes are the fields in which two functions differ, in the order of their names.
func changes(before, after *v1alpha1.Function) []change {
	was, is := fieldsOf(before), fieldsOf(after)
	fields := maps.Clone(was)
	maps.Copy(fields, is)
	var list []change
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if was[name] != is[name] {
			list = append(list, change{field: name, before: was[name], after: is[name], hidden: strings.HasPrefix(name, "template.env ")})
		}
	}
	stamp, samePath := before.Annotations[v1alpha1.AnnotationCodeStamp], was["template.code.path"] == is["template.code.path"]
	if stamp != "" && samePath && stamp != after.Annotations[v1alpha1.AnnotationCodeStamp] {
		list = append(list, change{field: "code in " + is["template.code.path"], edited: true})
	}
	return list
}

// fieldsOf are a function's fields that its author writes, by their names.
func fieldsOf(fn *v1alpha1.Function) map[string]string {
	fn = fn.DeepCopy()
	v1alpha1.Default(fn)
	delete(fn.Annotations, v1alpha1.AnnotationCodeStamp)
	fields := map[string]string{}
	text, err := json.Marshal(fn.Spec)
	var spec map[string]any
	if err != nil || json.Unmarshal(text, &spec) != nil {
		return fields // which no function that was read is
	}
	flatten(fields, "", spec)
	for _, l := range []struct {
		kind   string
		values map[string]string
	}{{"label ", fn.Labels}, {"annotation ", fn.Annotations}} {
		for name, value := range l.values {
			fields[l.kind+name] = orQuotes(value)
		}
	}
	return fields
}

// flatten puts the leaves of a value into fields. Names identify the items of a list that have
// some.
func flatten(fields map[string]string, at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			flatten(fields, strings.TrimPrefix(at+"."+name, "."), below)
		}
		return
	case []any:
		if named, ok := byName(v); ok {
			for name, item := range named {
				fields[at+" "+name] = item
			}
			return
		}
	case string:
		fields[at] = orQuotes(v)
		return
	}
	text, _ := json.Marshal(value)
	fields[at] = string(text)
}

// byName are the items of a list that all have names, without these.
func byName(list []any) (map[string]string, bool) {
	named := map[string]string{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, ok := fields["name"].(string)
		if !ok {
			return nil, false
		}
		delete(fields, "name")
		text, _ := json.Marshal(fields)
		if value, ok := fields["value"].(string); ok && len(fields) == 1 {
			text = []byte(orQuotes(value))
		}
		named[name] = string(text)
	}
	return named, true
}

// orQuotes makes an empty value one that is there.
func orQuotes(value string) string {
	if value == "" {
		return `""`
	}
	return value
}

// printChanges has a line for each change. Without all, values that may be secret or
// are long are left out.
func printChanges(w io.Writer, list []change, all bool) {
	for _, c := range list {
		switch {
		case c.edited:
			fmt.Fprintf(w, "  ~ %s was edited\n", c.field)
		case all && (strings.Contains(c.before, "\n") || strings.Contains(c.after, "\n")):
			fmt.Fprintf(w, "  ~ %s\n", c.field)
			printLines(w, printable(c.before), printable(c.after))
		case c.before == "":
			fmt.Fprintf(w, "  + %s%s\n", c.field, c.text(c.after, all))
		case c.after == "":
			fmt.Fprintf(w, "  - %s%s\n", c.field, c.text(c.before, all))
		case c.text(c.before, all) == "" || c.text(c.after, all) == "":
			fmt.Fprintf(w, "  ~ %s\n", c.field)
		default:
			fmt.Fprintf(w, "  ~ %s%s ->%s\n", c.field, c.text(c.before, all), c.text(c.after, all))
		}
	}
}

func (c change) text(value string, all bool) string {
	if !all && (c.hidden || len(value) > longValue || strings.Contains(value, "\n")) {
		return ""
	}
	return " " + printable(value)
}

// printLines prints what is between the lines that both texts begin and end with.
func printLines(w io.Writer, before, after string) {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	for _, line := range was {
		fmt.Fprintf(w, "    - %s\n", line)
	}
	for _, line := range is {
		fmt.Fprintf(w, "    + %s\n", line)
	}
}

// reporter prints the result of applying functions.
type reporter struct{ *finder }

// printPreview says what would become of a function. It returns whether anything would.
func (r *reporter) printPreview(preview localapi.Applied, all bool) bool {
	key := preview.Function.Key()
	switch preview.Result {
	case file.Created:
		fmt.Fprintf(r.Out, "function %s would be created\n", key)
	case file.Configured:
		fmt.Fprintf(r.Out, "function %s would be changed\n", key)
		printChanges(r.Out, changesOf(preview), all)
	default:
		fmt.Fprintf(r.Out, "function %s is so already\n", key)
		return false
	}
	return true
}

// noteInterpreter says which program of this machine runs a function if a cluster runs it
// with another version.
func (r *reporter) noteInterpreter(t *v1alpha1.FunctionTemplate) {
	dir := ""
	if t.Code != nil && t.Code.Path != "" {
		dir = t.Code.Path
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			dir = filepath.Dir(dir)
		}
	}
	// Starting an instance reports a missing interpreter.
	program, err := runtimes.Interpreter(t.RuntimeRef.Name, dir)
	if err != nil {
		return
	}
	if difference := runtimes.Difference(context.Background(), t.RuntimeRef.Name, program); difference != "" {
		fmt.Fprintln(r.Err, "note:", difference)
	}
}

// awaitsProof reports whether calls still go to the previous revision, so that the next one
// may get an answer of the old code.
func awaitsProof(applied localapi.Applied) bool {
	fn, before := applied.Function, applied.Before
	return before != nil && before.Revision() != fn.Revision() && fn.Spec.Rollout.Verify != v1alpha1.VerifyNone && !progressOf(fn).done
}

// printApplied prints the result of applying a function, and with try how to call it.
func (r *reporter) printApplied(applied localapi.Applied, try bool) {
	fn := applied.Function
	fmt.Fprintf(r.Out, "function %s %s\n", fn.Key(), applied.Result)
	printChanges(r.Out, changesOf(applied), false)
	if awaitsProof(applied) {
		fmt.Fprintf(r.Out, "  calls go to the new revision as soon as an instance of it has started: %s\n", r.rewriteCommands("windlass rollout status "+r.shortName(fn.Key())))
	}
	if fn.Status.URL != "" {
		fmt.Fprintf(r.Out, "  url  %s\n", fn.Status.URL)
	}
	for _, host := range fn.Spec.Expose.Hosts {
		fmt.Fprintf(r.Out, "  host %s\n", hostAndState(fn, host))
	}
	if why := classRefused(fn); why != nil {
		fmt.Fprintln(r.Err, "note:", printable(why.Message))
	}
	if !r.inCluster {
		r.noteInterpreter(&fn.Spec.Template)
	}
	if !try || (fn.Status.URL == "" && !r.inCluster) {
		return
	}
	fmt.Fprintf(r.Out, "  try  %s\n", r.rewriteCommands("windlass invoke "+r.shortName(fn.Key())))
	// The URL of a cluster may mean nothing to this machine.
	if !r.inCluster {
		fmt.Fprintf(r.Out, "       curl %s\n", fn.Status.URL)
	}
}
