package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/test/tenant"
)

// cluster is a cluster with functions of ours, and where they are called.
type cluster struct {
	*tenant.Tenant
	gateway string
}

func (w cluster) url(fn *v1alpha1.Function, path string) string {
	return w.gateway + "/function/" + fn.Name + "." + w.Namespace + path
}

// instances are what the status of a function says of them.
func (w cluster) instances(ctx context.Context, fn *v1alpha1.Function) (v1alpha1.InstanceCounts, error) {
	var now v1alpha1.Function
	err := w.API.Get(ctx, client.ObjectKeyFromObject(fn), &now)
	return now.Status.Instances, err
}

// readyNodes are those that pods may be placed on, in the order of their names.
func (w cluster) readyNodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := w.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes := slices.DeleteFunc(list.Items, func(n corev1.Node) bool {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		return n.Spec.Unschedulable || !ready
	})
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

// freeCPU is what a node has left for requests, in thousandths of a core.
func (w cluster) freeCPU(ctx context.Context, node *corev1.Node) (int64, error) {
	pods, err := w.Core.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	if err != nil {
		return 0, err
	}
	free := node.Status.Allocatable.Cpu().MilliValue()
	for i := range pods.Items {
		free -= requestedCPU(&pods.Items[i])
	}
	return free, nil
}

// requestedCPU is what counts of a pod's requests while it has not ended.
func requestedCPU(pod *corev1.Pod) int64 {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	var sum, first int64
	for _, c := range pod.Spec.Containers {
		sum += c.Resources.Requests.Cpu().MilliValue()
	}
	for _, c := range pod.Spec.InitContainers {
		first = max(first, c.Resources.Requests.Cpu().MilliValue())
	}
	return max(sum, first)
}

// label sets a label of a node, or removes it if the value is nil.
func (w cluster) label(ctx context.Context, node, key string, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	_, err = w.Core.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// instanceCounts counts the pods of a function that are created from now on.
type instanceCounts struct {
	watcher watch.Interface
	counted sync.WaitGroup
	// over says that the watch was ended here, after which errors mean nothing.
	over  atomic.Bool
	pods  map[types.UID]*corev1.Pod
	broke error
}

// count begins a census. The watch stands when it returns.
func (w cluster) count(ctx context.Context, fn *v1alpha1.Function) (*instanceCounts, error) {
	options := metav1.ListOptions{LabelSelector: wellknown.LabelFunction + "=" + fn.Name}
	before, err := w.Core.CoreV1().Pods(w.Namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	if n := len(before.Items); n > 0 {
		return nil, fmt.Errorf("%d pods of function %s are there already", n, fn.Name)
	}
	options.ResourceVersion = before.ResourceVersion
	watcher, err := w.Core.CoreV1().Pods(w.Namespace).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	c := &instanceCounts{watcher: watcher, pods: make(map[types.UID]*corev1.Pod)}
	c.counted.Go(func() {
		for event := range watcher.ResultChan() {
			switch pod, isPod := event.Object.(*corev1.Pod); {
			case isPod:
				c.pods[pod.UID] = pod
			case event.Type == watch.Error && !c.over.Load():
				c.broke = errors.New("the API server ended the watch of pods: " + fmt.Sprint(event.Object))
			}
		}
	})
	return c, nil
}

// end returns the pods that were seen, as they were last.
func (c *instanceCounts) end() (map[types.UID]*corev1.Pod, error) {
	c.over.Store(true)
	c.watcher.Stop()
	c.counted.Wait()
	return c.pods, c.broke
}
