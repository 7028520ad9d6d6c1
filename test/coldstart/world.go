package main

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/test/tenant"
)

// world is a cluster with functions of ours.
type world struct{ *tenant.Tenant }

// create makes a function and waits until it can be called.
func (w world) create(ctx context.Context, name, image string) (*v1alpha1.Function, error) {
	return w.Create(ctx, name, v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: image, Args: []string{"httpd"}}})
}

// sighting is a pod and when it was first seen.
type sighting struct {
	pod *corev1.Pod
	at  time.Time
}

// firstPod watches for the function's first pod until stop is called. The watch
// stands when it returns.
func (w world) firstPod(ctx context.Context, function string) (seen <-chan sighting, stop func(), err error) {
	watcher, err := w.Core.CoreV1().Pods(w.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: wellknown.LabelFunction + "=" + function})
	if err != nil {
		return nil, nil, err
	}
	first := make(chan sighting, 1)
	go func() {
		for event := range watcher.ResultChan() {
			if pod, isPod := event.Object.(*corev1.Pod); isPod && event.Type == watch.Added {
				select {
				case first <- sighting{pod, time.Now()}:
				default: // only the first counts
				}
			}
		}
	}()
	return first, watcher.Stop, nil
}

// decidedAt is what the pod's annotation says.
func decidedAt(pod *corev1.Pod) time.Time {
	at, err := time.Parse(time.RFC3339Nano, pod.Annotations[podspec.AnnotationDecided])
	if err != nil {
		return time.Time{}
	}
	return at
}

// containers waits until the API knows the ids of a pod's containers.
func (w world) containers(ctx context.Context, name string) (agent, function string, err error) {
	err = sleep.Until(ctx, tenant.AskEvery, func() (bool, error) {
		pod, err := w.Core.CoreV1().Pods(w.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, status := range pod.Status.ContainerStatuses {
			_, id, _ := strings.Cut(status.ContainerID, "://")
			switch status.Name {
			case podspec.ContainerAgent:
				agent = id
			case podspec.ContainerFunction:
				function = id
			}
		}
		return agent != "" && function != "", nil
	})
	return agent, function, err
}

// What schedulers log of an instance.
const (
	logJoined = "an instance joined"
	logReady  = "an instance is ready"
)

// logged finds when the schedulers logged that an instance joined and was ready;
// zero if they did not.
func (w world) logged(ctx context.Context, function string, since time.Time) (joined, ready time.Time, err error) {
	pods, err := w.Core.CoreV1().Pods(w.Release).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=scheduler"})
	if err != nil {
		return joined, ready, err
	}
	from := metav1.NewTime(since.Add(-time.Second))
	for _, pod := range pods.Items {
		stream, err := w.Core.CoreV1().Pods(w.Release).GetLogs(pod.Name, &corev1.PodLogOptions{SinceTime: &from}).Stream(ctx)
		if err != nil {
			continue // it is not the one, or has ended
		}
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			var line struct {
				Time          time.Time
				Msg, Function string
			}
			if json.Unmarshal(lines.Bytes(), &line) != nil || line.Function != w.Namespace+"/"+function {
				continue
			}
			switch line.Msg {
			case logJoined:
				joined = line.Time
			case logReady:
				ready = line.Time
			}
		}
		_ = stream.Close()
	}
	return joined, ready, nil
}
