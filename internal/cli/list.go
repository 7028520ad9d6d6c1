package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// lister shows functions in a table.
type lister struct{ *finder }

func (l *lister) listCommand() *cobra.Command {
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:        "list [NAME ...] [-A | -n NAMESPACE] [-o table|wide|name|json|yaml]",
		Aliases:    []string{"ls", "get"},
		SuggestFor: []string{"ps"},
		Short:      "Show the functions and their state",
		Long: `Show the functions that you name, or all of them, and their state.

READY      whether the function can be called
REASON     why, or why not, in one word
REVISION   the number of its latest revision, or where calls go instead
INSTANCES  how many can be called, and +n if n more are starting

In a cluster, the numbers may be up to 40 s old. windlass top shows how busy functions
are, how many calls wait and how long they run; windlass describe shows it for one
function.`,
		ValidArgsFunction: l.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "table", "wide", "name", "json", "yaml"); err != nil {
				return err
			}
			if all && l.namespace != "" {
				return usagef("-A and -n exclude each other; remove one of the two")
			}
			if all && len(args) > 0 {
				return usagef("-A shows all functions, and %s only one; remove one of the two", args[0])
			}
			t, err := l.target(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return l.listNamed(cmd.Context(), t, args, output)
			}
			namespace := cmp.Or(l.namespace, t.namespace)
			if all {
				namespace = ""
			}
			list, err := t.List(cmd.Context(), namespace)
			if err != nil {
				return err
			}
			return l.printList(list, output, namespace)
		}),
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show the functions of all namespaces")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`format`: table, wide, name, json or yaml")
	return cmd
}

// listNamed shows the functions of these names. One alone is printed for programs as it
// is, and not as a list.
func (l *lister) listNamed(ctx context.Context, t *target, names []string, output string) error {
	list := &v1alpha1.FunctionList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFunction + "List"}}
	namespaces := make(map[string]bool)
	for _, name := range names {
		key, err := l.key(name)
		if err != nil {
			return err
		}
		key = t.key(key)
		fn, err := t.Get(ctx, key)
		if err != nil {
			return l.explainNotFound(ctx, t, key, err)
		}
		namespaces[key.Namespace] = true
		list.Items = append(list.Items, *fn)
	}
	if len(list.Items) == 1 && (output == "json" || output == "yaml") {
		return l.printObject(&list.Items[0], output)
	}
	namespace := ""
	if len(namespaces) == 1 {
		namespace = list.Items[0].Namespace
	}
	return l.printList(list, output, namespace)
}

func (l *lister) printList(list *v1alpha1.FunctionList, output, namespace string) error {
	switch output {
	case "name":
		for i := range list.Items {
			fmt.Fprintln(l.Out, l.shortName(list.Items[i].Key()))
		}
		return nil
	case "json", "yaml":
		return l.printObject(list, output)
	}
	if len(list.Items) == 0 {
		where := "there is no function in the namespace " + namespace + "; -A looks in all, and"
		if namespace == "" {
			where = "there is no function yet;"
		}
		fmt.Fprintf(l.Err, "%s %s says how to make one\n", where, l.rewriteCommands("windlass deploy --help"))
		return nil
	}
	l.table(l.Out, listRows(list.Items, namespace == "", output == "wide", l.now()))
	return nil
}

// listRows is the table of list.
func listRows(functions []v1alpha1.Function, withNamespace, wide bool, now time.Time) [][]cell {
	head := cells("NAME", "READY", "REASON", "REVISION", "INSTANCES", "AGE", "URL")
	if withNamespace {
		head = append(cells("NAMESPACE"), head...)
	}
	if wide {
		head = append(head, cells("PROTOCOL", "CLASS", "RUNS")...)
	}
	rows := [][]cell{head}
	for i := range functions {
		fn := &functions[i]
		status, ready := fn.Status, readyOf(fn)
		row := []cell{
			{text: fn.Name, colour: nameColour(ready.Status)},
			{text: string(ready.Status), colour: statusColour(ready.Status)},
			{text: orDash(ready.Reason), colour: nameColour(ready.Status)},
			{text: orDash(callsInShort(fn))},
			{text: instances(status.Instances)},
			{text: age(fn.CreationTimestamp.Time, now)},
			{text: orDash(status.URL)},
		}
		if withNamespace {
			row = append(cells(fn.Namespace), row...)
		}
		if wide {
			row = append(row, cells(string(cmp.Or(protocolOf(&fn.Spec.Template), "-")), string(cmp.Or(fn.Spec.Template.Scheduling.Class, v1alpha1.ClassStandard)), programOf(&fn.Spec.Template))...)
		}
		rows = append(rows, row)
	}
	return rows
}

// readyOf is the condition Ready, unknown if it was never set.
func readyOf(fn *v1alpha1.Function) metav1.Condition {
	return conditionOf(fn, v1alpha1.ConditionReady)
}

// conditionOf is a condition, unknown if it was never set.
func conditionOf(fn *v1alpha1.Function, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(fn.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
}

func statusColour(status metav1.ConditionStatus) string {
	switch status {
	case metav1.ConditionTrue:
		return green
	case metav1.ConditionFalse:
		return red
	default:
		return yellow
	}
}

// nameColour makes a function stand out that cannot be called.
func nameColour(status metav1.ConditionStatus) string {
	if status == metav1.ConditionFalse {
		return red
	}
	return ""
}

func instances(c v1alpha1.InstanceCounts) string {
	if c.Desired <= c.Ready {
		return fmt.Sprint(c.Ready)
	}
	return fmt.Sprintf("%d+%d", c.Ready, c.Desired-c.Ready)
}

// mean keeps about three digits of seconds.
func mean(seconds float64) string {
	switch v := time.Duration(seconds * float64(time.Second)); {
	case v <= 0:
		return "-"
	case v >= 10*time.Second:
		return v.Round(100 * time.Millisecond).String()
	case v >= time.Second:
		return v.Round(10 * time.Millisecond).String()
	case v >= 10*time.Millisecond:
		return v.Round(100 * time.Microsecond).String()
	case v >= time.Millisecond:
		return v.Round(10 * time.Microsecond).String()
	default:
		return v.Round(time.Microsecond).String()
	}
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(since))
}

// protocolOf is how a function is called, though a cluster keeps what was written, and nothing for the
// default; empty if its runtime says.
func protocolOf(t *v1alpha1.FunctionTemplate) v1alpha1.Protocol {
	if t.Protocol == "" && t.RuntimeRef.Name == "" {
		return v1alpha1.ProtocolHTTP
	}
	return t.Protocol
}

// programOf says in a few words what an instance runs.
func programOf(t *v1alpha1.FunctionTemplate) string {
	switch {
	case t.RuntimeRef.Name != "":
		return string(t.RuntimeRef.Name) + " " + t.Handler
	case len(t.Command) > 0:
		return quoteWords(t.Command)
	default:
		return t.Image
	}
}

// quoteWords writes words so that one sees where each begins and ends.
func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\"+shellOnly) {
			quoted[i] = fmt.Sprintf("%q", word)
		}
	}
	return strings.Join(quoted, " ")
}

func orDash(s string) string { return cmp.Or(s, "-") }
