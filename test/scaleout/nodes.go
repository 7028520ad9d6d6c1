package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/tenant"
)

const (
	// stageLabel is on the nodes that a function may use.
	stageLabel = "scaleout.windlass.dev/stage"
	// instanceCPU is what an instance requests with its agent, in thousandths of a
	// core, and holdTime how long each call holds one.
	instanceCPU = 100
	holdTime    = 500 * time.Millisecond
	// fillTime is how long all instances may take to be there, and settleTime what
	// the clients get afterwards.
	fillTime   = 4 * time.Minute
	settleTime = 2 * time.Second
)

// measureScaleOut measures the throughput with so many nodes, one after the other.
func measureScaleOut(ctx context.Context, w cluster, o options, out io.Writer) (err error) {
	steps, err := counts(o.nodes)
	if err != nil {
		return err
	}
	nodes, err := w.readyNodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range steps {
		if n > len(nodes) {
			return fmt.Errorf("-nodes asks for %d, and %d are ready: start a larger cluster, such as with make cluster-up NODES=%d", n, len(nodes), n)
		}
	}
	defer func() {
		cleaning, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, node := range nodes {
			err = errors.Join(err, w.label(cleaning, node.Name, stageLabel, nil))
		}
	}()
	if err := w.fill(ctx, nodes, o); err != nil {
		return err
	}
	var all []throughput
	for _, n := range steps {
		t, err := w.throughput(ctx, o, nodes[:n])
		if err != nil {
			return fmt.Errorf("%d nodes: %w", n, err)
		}
		all = append(all, t)
	}
	reportScaleOut(out, o, all)
	return nil
}

// fill puts a pod on every node that leaves room for so many instances and no more.
func (w cluster) fill(ctx context.Context, nodes []corev1.Node, o options) error {
	for i := range nodes {
		free, err := w.freeCPU(ctx, &nodes[i])
		if err != nil {
			return err
		}
		surplus := free - int64(o.instances)*instanceCPU
		if surplus < 0 {
			return fmt.Errorf("the node %s has %dm CPU left, and %d instances request %dm: lower -instances", nodes[i].Name, free, o.instances, o.instances*instanceCPU)
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "fills-" + nodes[i].Name},
			Spec: corev1.PodSpec{NodeName: nodes[i].Name, Containers: []corev1.Container{{
				Name: "fills", Image: o.image, Args: []string{"httpd"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: *resource.NewMilliQuantity(surplus, resource.DecimalSI)}},
			}}},
		}
		if _, err := w.Core.CoreV1().Pods(w.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return sleep.Until(ctx, tenant.AskEvery, func() (bool, error) {
		pods, err := w.Core.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == len(nodes), nil
	})
}

// throughput is what so many nodes carried.
type throughput struct {
	nodes, instances int
	perSecond        float64
	// ramp is the time from the first calls until all instances were there.
	ramp   time.Duration
	failed int64
}

// throughput measures a function that may use these nodes.
func (w cluster) throughput(ctx context.Context, o options, nodes []corev1.Node) (t throughput, err error) {
	t = throughput{nodes: len(nodes), instances: o.instances * len(nodes)}
	stage := fmt.Sprintf("%s-%d", w.Namespace, len(nodes))
	for _, node := range nodes {
		if err := w.label(ctx, node.Name, stageLabel, &stage); err != nil {
			return t, err
		}
	}
	cpu := *resource.NewMilliQuantity(instanceCPU-o.agentCPU, resource.DecimalSI)
	fn, err := w.Create(ctx, fmt.Sprintf("waits-%d", len(nodes)), v1alpha1.FunctionSpec{
		Template: v1alpha1.FunctionTemplate{Image: o.image, Args: []string{"httpd"}, Placement: v1alpha1.Placement{NodeSelector: map[string]string{stageLabel: stage}}, Resources: v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu}}},
	})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.Delete(ctx, fn)) }()
	clients := 2 * t.instances
	calls := newCaller(w.url(fn, fmt.Sprintf("/sleep?ms=%d", holdTime.Milliseconds())), clients)
	defer calls.close()
	begun := time.Now()
	counts, stop := calls.closed(ctx, clients)
	defer stop()
	if err := w.awaitInstances(ctx, fn, t.instances); err != nil {
		return t, err
	}
	t.ramp = time.Since(begun)
	sleep.For(ctx, settleTime)
	before, failedBefore, from := counts.answered.Load(), counts.failed.Load(), time.Now()
	if !sleep.For(ctx, o.length) {
		return t, ctx.Err()
	}
	t.perSecond = float64(counts.answered.Load()-before) / time.Since(from).Seconds()
	t.failed = counts.failed.Load() - failedBefore
	return t, nil
}

// awaitInstances waits until a function has so many instances, and no more are
// being created.
func (w cluster) awaitInstances(ctx context.Context, fn *v1alpha1.Function, n int) error {
	limited, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	var counts v1alpha1.InstanceCounts
	err := sleep.Until(limited, tenant.AskEvery, func() (bool, error) {
		var err error
		counts, err = w.instances(limited, fn)
		return int(counts.Ready) == n && int(counts.Desired) == n, err
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("it has %d instances and %d that are starting after %v, and was to have %d: see windlass explain %s/%s: %w",
			counts.Ready, counts.Desired-counts.Ready, fillTime, n, fn.Namespace, fn.Name, err)
	}
	return err
}
