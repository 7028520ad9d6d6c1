package cli

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kubeclient"
)

// advice is what to do about a function that is not ready in a cluster, by the
// reason. For all others its logs tell more.
var advice = map[string]string{
	v1alpha1.ReasonInvalid:         "Correct the fields that the condition names, and deploy it again.",
	v1alpha1.ReasonRuntimeNotFound: "Write one of the runtimes of kubectl get clusterruntimes, or ask the cluster's administrator to add one.",
	v1alpha1.ReasonImagePullFailed: "See that the image exists, that the nodes may pull it (spec.template.imagePullSecrets), and deploy it again.",
	v1alpha1.ReasonConfigMissing:   "Make the Secret or ConfigMap that the condition names; the next attempt then takes it.",
	v1alpha1.ReasonQuotaExceeded:   "Raise the namespace's quota, or lower spec.template.resources or spec.scaling.maxInstances.",
	v1alpha1.ReasonPodRefused:      "The cluster's administrator can say what its admission policies allow; the condition names the one that refused.",
	v1alpha1.ReasonNoCapacity:      "Lower spec.template.resources.requests, see spec.template.placement.nodeSelector and spec.template.placement.tolerations, or add a node.",
	v1alpha1.ReasonDraining:        "It is being deleted, and goes when its last instance has ended.",
}

// describeCluster prints the function's pods and Events. What may not be seen is
// said, and keeps nothing else from being shown.
func (d *describer) describeCluster(ctx context.Context, w podLister, fn *v1alpha1.Function) {
	if w == nil {
		return
	}
	fmt.Fprintln(d.Out, "\nPods")
	pods, err := w.Pods(ctx, fn)
	switch {
	case err != nil:
		fmt.Fprintf(d.Out, "  unknown: %s\n", d.rewriteCommands(printable(err.Error())))
	case len(pods) == 0:
		fmt.Fprintln(d.Out, "  none")
	default:
		d.table(d.Out, d.podRows(pods))
	}
	fmt.Fprintln(d.Out, "\nEvents")
	events, err := w.Events(ctx, fn)
	switch {
	case err != nil:
		fmt.Fprintf(d.Out, "  unknown: %s\n", d.rewriteCommands(printable(err.Error())))
	case len(events) == 0:
		fmt.Fprintln(d.Out, "  none")
	default:
		d.table(d.Out, d.eventRows(events))
	}
}

func (d *describer) podRows(pods []kubeclient.Pod) [][]cell {
	rows := [][]cell{cells("  INSTANCE", "NODE", "STATE", "AGE", "POD", "WHY")}
	for _, pod := range pods {
		state := cell{text: orDash(pod.State)}
		if pod.State == string(corev1.PodRunning) {
			state.colour = green
		}
		row := cells("  "+pod.CID, orDash(pod.Node), "", age(pod.Created, d.now()), pod.Name, firstLine(pod.Message))
		row[2] = state
		rows = append(rows, row)
	}
	return rows
}

func (d *describer) eventRows(events []kubeclient.Event) [][]cell {
	rows := [][]cell{cells("  LAST", "TYPE", "REASON", "MESSAGE")}
	for _, event := range events {
		last := age(event.Last, d.now())
		if event.Count > 1 {
			last += fmt.Sprintf(" (%d times)", event.Count)
		}
		row := cells("  "+last, event.Type, event.Reason, firstLine(event.Message))
		if event.Type == corev1.EventTypeWarning {
			row[1].colour = yellow
		}
		rows = append(rows, row)
	}
	return rows
}

// firstLine is for a table; conditions show all lines.
func firstLine(text string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		line += " ..."
	}
	return line
}
