package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
)

// describer shows all that is known of one function.
type describer struct{ decisions }

func (d *describer) describeCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:               "describe NAME [-n NAMESPACE] [-o text|name|json|yaml]",
		Short:             "Show details and status of a function",
		Args:              oneName,
		ValidArgsFunction: d.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "text", "name", "json", "yaml"); err != nil {
				return err
			}
			key, err := d.key(args[0])
			if err != nil {
				return err
			}
			t, err := d.target(cmd.Context())
			if err != nil {
				return err
			}
			key = t.key(key)
			fn, err := t.Get(cmd.Context(), key)
			if err != nil {
				return d.explainNotFound(cmd.Context(), t, key, err)
			}
			switch output {
			case "name":
				fmt.Fprintln(d.Out, d.shortName(key))
			case "json", "yaml":
				return d.printObject(fn, output)
			default:
				account, err := decisionsOf(cmd.Context(), t, fn)
				d.describe(d.Out, fn, account.Load, d.lastDecision(account, err))
				d.describeFailure(d.Out, fn, account.LastFailure)
				d.describeCluster(cmd.Context(), t.pods, fn)
				d.advise(d.Out, fn)
			}
			return nil
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`format`: text, name, json or yaml")
	return cmd
}

// describe prints what was asked for and what is so. The load is nil if no scheduler tells of
// it.
func (d *describer) describe(w io.Writer, fn *v1alpha1.Function, load *decisionlog.Load, lastDecision string) {
	// A cluster keeps what was written; people ask what counts.
	fn = fn.DeepCopy()
	fn.Spec.Template.Protocol = cmp.Or(protocolOf(&fn.Spec.Template), "that of the runtime")
	v1alpha1.Default(fn)
	d.table(w, summary(fn, d.now()))

	status := &fn.Status
	fmt.Fprintln(w, "\nNow")
	d.table(w, append(loadRows(status.Instances, load), cells("  Last decision", lastDecision)))

	fmt.Fprintln(w, "\nConditions")
	if len(status.Conditions) == 0 {
		fmt.Fprintln(w, "  none yet")
	}
	for _, c := range status.Conditions {
		colour := ""
		if c.Type == v1alpha1.ConditionReady {
			colour = statusColour(c.Status)
		}
		fmt.Fprintf(w, "  %s: %s, %s, since %s\n", c.Type, d.paint(w, colour, string(c.Status)), orDash(printable(c.Reason)),
			age(c.LastTransitionTime.Time, d.now()))
		for line := range strings.Lines(printable(c.Message)) {
			fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n"))
		}
	}
}

// loadRows are what goes on, as its scheduler tells, or else what the status says of it.
func loadRows(counts v1alpha1.InstanceCounts, load *decisionlog.Load) [][]cell {
	if load == nil {
		return [][]cell{
			cells("  Instances", fmt.Sprint(counts.Ready)),
			cells("  Starting", fmt.Sprint(max(0, counts.Desired-counts.Ready))),
		}
	}
	return [][]cell{
		cells("  Instances", fmt.Sprintf("%d: %d busy, %d idle", load.Busy+load.Idle, load.Busy, load.Idle)),
		cells("  Starting", fmt.Sprint(load.Creating)),
		cells("  Queued calls", fmt.Sprint(load.Waiting)),
		cells("  Mean duration", mean(load.MeanExecution)),
		cells("  Mean start", mean(load.MeanStart)),
	}
}

// describeFailure says how an instance failed last, unless the condition says it.
func (d *describer) describeFailure(w io.Writer, fn *v1alpha1.Function, failure *decisionlog.Failure) {
	if failure == nil || readyOf(fn).Status == metav1.ConditionFalse {
		return
	}
	fmt.Fprintf(w, "\nLast failure\n  %s, %s ago\n", printable(failure.Code), age(failure.At, d.now()))
	detail := cmp.Or(failure.Detail, "the Events say how; what it wrote: "+d.rewriteCommands("windlass logs "+d.shortName(fn.Key())))
	for line := range strings.Lines(printable(detail)) {
		fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n"))
	}
}

// advise says what to do about a function that is not ready.
func (d *describer) advise(w io.Writer, fn *v1alpha1.Function) {
	ready := readyOf(fn)
	if ready.Status != metav1.ConditionFalse {
		return
	}
	if step, ok := advice[ready.Reason]; ok && d.inCluster {
		fmt.Fprintf(w, "\n%s\n", step)
		return
	}
	fmt.Fprintf(w, "\nSee what its instances wrote: %s\n", d.rewriteCommands("windlass logs "+d.shortName(fn.Key())))
}

// summary is what was asked for.
func summary(fn *v1alpha1.Function, now time.Time) [][]cell {
	spec := &fn.Spec
	rows := [][]cell{
		cells("Name", fn.Name),
		cells("Namespace", fn.Namespace),
		cells("URL", orDash(fn.Status.URL)),
	}
	rows = append(rows, labelled("Hosts", spec.Expose.Hosts, func(h v1alpha1.Hostname) string { return hostAndState(fn, h) })...)
	rows = append(rows,
		cells("Age", fmt.Sprintf("%s, generation %d", age(fn.CreationTimestamp.Time, now), fn.Generation)),
		cells("Revision", orDash(revisionAndCalls(fn))),
		cells("Runs", programOf(&spec.Template)),
	)
	if spec.Template.Code != nil && spec.Template.Code.Path != "" {
		rows = append(rows, cells("Code", spec.Template.Code.Path))
	} else if spec.Template.Code != nil && spec.Template.Code.ConfigMapRef.Name != "" {
		rows = append(rows, cells("Code", "ConfigMap "+spec.Template.Code.ConfigMapRef.Name))
	} else if spec.Template.Code != nil {
		rows = append(rows, cells("Code", fmt.Sprintf("inline, %d bytes", len(spec.Template.Code.Inline))))
	}
	most := "∞"
	if spec.Scaling.MaxInstances != nil {
		most = fmt.Sprint(*spec.Scaling.MaxInstances)
	}
	rows = append(rows,
		cells("Protocol", string(spec.Template.Protocol)),
		cells("Concurrency", fmt.Sprintf("%d per instance", spec.Template.Concurrency)),
		cells("Class", classAndState(fn)),
		cells("Timeouts", fmt.Sprintf("call %s, startup %s", spec.Template.Timeout, spec.Template.StartupTimeout)),
		cells("Scaling", fmt.Sprintf("%d–%s instances, algorithm %s", spec.Scaling.MinInstances, most,
			cmp.Or(fn.Algorithm(), "of the scheduler"))),
		cells("Scale-in", scaleIn(&spec.Scaling.ScaleDown)),
	)
	rows = append(rows, labelled("Windows", spec.Scaling.Windows, window)...)
	rows = append(rows,
		cells("Call limits", callLimits(&spec.Calls)),
		cells("CPU", amounts(&spec.Template.Resources, corev1.ResourceCPU)),
		cells("Memory", amounts(&spec.Template.Resources, corev1.ResourceMemory)),
	)
	rows = append(rows, furtherAmounts(&spec.Template.Resources)...)
	rows = append(rows,
		cells("Delivery", fmt.Sprintf("%s; %s when the client disconnects", spec.Calls.Delivery, strings.ToLower(string(spec.Calls.OnClientDisconnect)))),
	)
	return append(rows, labelled("Environment", spec.Template.Env, variable)...)
}

// classAndState is the class and the slice that a function asks for, and why it does not get them.
func classAndState(fn *v1alpha1.Function) string {
	s := &fn.Spec.Template.Scheduling
	text := string(s.Class)
	if s.Slice.Duration > 0 {
		text += ", slice " + s.Slice.String()
	}
	if why := classRefused(fn); why != nil {
		text += ": " + why.Reason
	}
	return text
}

// classRefused is the condition that says why a function does not get the class and the slice that it
// asks for; nil if it gets them, or nobody has looked at them yet.
func classRefused(fn *v1alpha1.Function) *metav1.Condition {
	c := conditionOf(fn, v1alpha1.ConditionSchedulingClass)
	if c.Status != metav1.ConditionFalse || c.ObservedGeneration != fn.Generation {
		return nil
	}
	return &c
}

// hostAndState is a host that a function asks for, and whether and why it does not have it.
func hostAndState(fn *v1alpha1.Function, host v1alpha1.Hostname) string {
	at := slices.IndexFunc(fn.Status.Hosts, func(s v1alpha1.HostStatus) bool { return s.Hostname == host })
	if at < 0 {
		return string(host) + ": not decided yet"
	}
	state := fn.Status.Hosts[at].State
	text := fmt.Sprintf("%s: %s", host, state)
	switch state {
	case v1alpha1.HostConflict:
		text += ", an older function has it"
	case v1alpha1.HostNotPermitted:
		text += ", not granted to the namespace"
	}
	return text
}

// variable is what a variable is, or where its value is.
func variable(v v1alpha1.EnvVar) string {
	switch from := v.ValueFrom; {
	case from == nil:
		return v.Name + "=" + v.Value
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("%s: key %s of the Secret %s", v.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Name)
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("%s: key %s of the ConfigMap %s", v.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
	case from.FieldRef != nil:
		return fmt.Sprintf("%s: %s of the pod", v.Name, from.FieldRef.FieldPath)
	}
	return v.Name
}

// labelled has a row for each item; only the first has the label.
func labelled[T any](label string, items []T, text func(T) string) (rows [][]cell) {
	for _, item := range items {
		rows = append(rows, cells(label, text(item)))
		label = ""
	}
	return rows
}

// scaleIn says when idle instances stop.
func scaleIn(s *v1alpha1.ScaleDown) string {
	fixed := fmt.Sprintf("after %s idle; the last instance after %s", s.IdleTimeout, s.LastInstanceIdleTimeout)
	if s.Policy == v1alpha1.ScaleDownLearned {
		return "as learned from idle times, or else " + fixed
	}
	return fixed
}

func window(w v1alpha1.ScalingWindow) string {
	return fmt.Sprintf("%s: at least %d from %s %s for %s", w.Name, w.MinInstances, w.Start, cmp.Or(w.TimeZone, "UTC"), w.Duration)
}

// callLimits says how many calls are taken.
func callLimits(l *v1alpha1.Calls) string {
	var parts []string
	if l.MaxInFlight > 0 {
		parts = append(parts, fmt.Sprintf("%d at a time", l.MaxInFlight))
	}
	if l.Rate.Requests > 0 {
		parts = append(parts, fmt.Sprintf("%d in %s, %d at once", l.Rate.Requests, l.Rate.Period, l.Rate.Burst))
	}
	if wait := l.QueueTimeout; wait.Duration > 0 {
		parts = append(parts, fmt.Sprintf("each waits %s at most", wait))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

func amounts(r *v1alpha1.Resources, name corev1.ResourceName) string {
	text := func(list corev1.ResourceList) string {
		if q, there := list[name]; there {
			return q.String()
		}
		return "none"
	}
	return "request " + text(r.Requests) + ", limit " + text(r.Limits)
}

// furtherAmounts has a row for each resource besides CPU and memory.
func furtherAmounts(r *v1alpha1.Resources) (rows [][]cell) {
	names := make(map[corev1.ResourceName]bool)
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for name := range list {
			names[name] = name != corev1.ResourceCPU && name != corev1.ResourceMemory
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] {
			rows = append(rows, cells(string(name), amounts(r, name)))
		}
	}
	return rows
}

// plainDuration leaves out units that are zero: 1m, not 1m0s.
func plainDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
