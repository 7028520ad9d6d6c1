package kubeclient

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// Pod describes a function's instance for people.
type Pod struct {
	CID, Name, Node string
	// State is the pod's phase, Terminating, or what a container waits for.
	State string
	// Message says why, if the cluster does.
	Message string
	Created time.Time
}

// Event is something that happened to a function.
type Event struct {
	Type, Reason, Message string
	// Count is how often, at least 1.
	Count int32
	Last  time.Time
}

// Pods are the function's, the oldest first.
func (c *Client) Pods(ctx context.Context, fn *v1alpha1.Function) ([]Pod, error) {
	list, err := c.podsOf(ctx, fn)
	if err != nil {
		return nil, err
	}
	pods := make([]Pod, 0, len(list))
	for i := range list {
		pods = append(pods, podOf(&list[i]))
	}
	return pods, nil
}

func (c *Client) podsOf(ctx context.Context, fn *v1alpha1.Function) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.kube.List(ctx, &list, client.InNamespace(fn.Namespace), client.MatchingLabels{wellknown.LabelFunctionUID: string(fn.UID)})
	if err != nil {
		return nil, c.explain(fn.Key(), err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(cidOf(&a), cidOf(&b)))
	})
	return list.Items, nil
}

// cidOf is the instance's id, or the pod's name if it has none.
func cidOf(pod *corev1.Pod) string { return cmp.Or(pod.Labels[wellknown.LabelCID], pod.Name) }

func podOf(pod *corev1.Pod) Pod {
	p := Pod{CID: cidOf(pod), Name: pod.Name, Node: pod.Spec.NodeName, Created: pod.CreationTimestamp.Time,
		State: string(pod.Status.Phase), Message: pod.Status.Message}
	if pod.Status.Reason != "" {
		p.State = pod.Status.Reason
	}
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case status.State.Waiting != nil && status.State.Waiting.Reason != "":
			p.State, p.Message = status.State.Waiting.Reason, cmp.Or(status.State.Waiting.Message, p.Message)
		case status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
			p.State = cmp.Or(status.State.Terminated.Reason, p.State)
			p.Message = cmp.Or(status.State.Terminated.Message, p.Message)
		}
	}
	if pod.DeletionTimestamp != nil {
		p.State = "Terminating"
	}
	return p
}

// Events are what the cluster still knows about the function itself, at most
// the last ones, the oldest first.
func (c *Client) Events(ctx context.Context, fn *v1alpha1.Function, last int) ([]Event, error) {
	var list corev1.EventList
	err := c.kube.List(ctx, &list, client.InNamespace(fn.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.uid", string(fn.UID))})
	if err != nil {
		return nil, c.explain(fn.Key(), err)
	}
	events := make([]Event, 0, len(list.Items))
	for i := range list.Items {
		events = append(events, eventOf(&list.Items[i]))
	}
	slices.SortFunc(events, func(a, b Event) int { return a.Last.Compare(b.Last) })
	return events[max(0, len(events)-last):], nil
}

// eventOf reads an Event of either API: the older counts, the newer has series.
func eventOf(e *corev1.Event) Event {
	event := Event{Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(e.Count, 1), Last: e.CreationTimestamp.Time}
	switch {
	case e.Series != nil:
		event.Count, event.Last = max(e.Series.Count, 1), e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		event.Last = e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		event.Last = e.EventTime.Time
	}
	return event
}
