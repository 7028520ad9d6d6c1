package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/tenant"
)

const (
	// source is the Runtime that both kinds are made of, and spares how many are kept.
	source = "python3.13"
	spares = 2
	// spareTime is how long a spare instance may take to be ready.
	spareTime = 2 * time.Minute
	code      = "def handle(event, context):\n    return {'statusCode': 200, 'body': 'ok'}\n"
)

// start is one first call.
type start struct {
	answer
	// spare says that a spare instance served it.
	spare bool
}

// measureWarmPool measures first calls by pods and by spare instances, in turns.
func measureWarmPool(ctx context.Context, w cluster, o options, out io.Writer) (err error) {
	plain, pooled := w.Namespace+"-plain", w.Namespace+"-pooled"
	defer func() {
		cleaning, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, w.removeRuntime(cleaning, plain), w.removeRuntime(cleaning, pooled))
	}()
	if err := w.copyRuntime(ctx, plain); err != nil {
		return err
	}
	if err := w.copyRuntime(ctx, pooled, v1alpha1.WarmPool{Name: "bench", Size: spares}); err != nil {
		return err
	}
	// The pool is kept for functions that could take of it: this one is never called.
	if _, err := w.Create(ctx, "keeps-the-pool", function(pooled)); err != nil {
		return err
	}
	byPod, bySpare := []start{}, []start{}
	for n := range o.runs {
		s, err := w.firstCall(ctx, fmt.Sprintf("plain-%d", n), plain)
		if err != nil {
			return fmt.Errorf("run %d by a pod: %w", n, err)
		}
		byPod = append(byPod, s)
		if err := w.awaitSpares(ctx, pooled); err != nil {
			return fmt.Errorf("run %d: %w", n, err)
		}
		if s, err = w.firstCall(ctx, fmt.Sprintf("pooled-%d", n), pooled); err != nil {
			return fmt.Errorf("run %d by a spare instance: %w", n, err)
		}
		bySpare = append(bySpare, s)
	}
	reportWarmPool(out, byPod, bySpare)
	return nil
}

func function(runtime string) v1alpha1.FunctionSpec {
	return v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: v1alpha1.RuntimeName(runtime)}, Handler: "main.handle", Code: &v1alpha1.Code{Inline: code}}}
}

// copyRuntime makes a Runtime like python3.13 with a pool of its own, or none.
func (w cluster) copyRuntime(ctx context.Context, name string, pools ...v1alpha1.WarmPool) error {
	var original v1alpha1.ClusterRuntime
	if err := w.API.Get(ctx, client.ObjectKey{Name: source}, &original); err != nil {
		return err
	}
	runtime := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: original.Spec}
	runtime.Spec.WarmPools = pools
	return w.API.Create(ctx, runtime)
}

func (w cluster) removeRuntime(ctx context.Context, name string) error {
	err := w.API.Delete(ctx, &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// awaitSpares waits until all spare instances are there.
func (w cluster) awaitSpares(ctx context.Context, runtime string) error {
	limited, cancel := context.WithTimeout(ctx, spareTime)
	defer cancel()
	ready := 0
	err := sleep.Until(limited, tenant.AskEvery, func() (bool, error) {
		// One that a function has taken has that function's label as well.
		pods, err := w.Core.CoreV1().Pods(w.Namespace).List(limited, metav1.ListOptions{LabelSelector: wellknown.LabelRuntime + "=" + runtime + ",!" + wellknown.LabelFunction})
		if err != nil {
			return false, err
		}
		ready = 0
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				ready++
			}
		}
		return ready >= spares, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%d of %d spare instances are ready after %v: %w", ready, spares, spareTime, err)
	}
	if err != nil {
		return err
	}
	// A ready pod has still to tell its scheduler.
	sleep.For(ctx, time.Second)
	return ctx.Err()
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// firstCall makes a function, calls it once, and removes it.
func (w cluster) firstCall(ctx context.Context, name, runtime string) (s start, err error) {
	fn, err := w.Create(ctx, name, function(runtime))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, w.Delete(ctx, fn)) }()
	// What made the function has its moment to end.
	sleep.For(ctx, time.Second)
	calls := newCaller(w.url(fn, "/"), 1)
	defer calls.close()
	if s.answer = calls.call(ctx); s.err != nil {
		return s, s.err
	}
	if !s.cold {
		return s, errors.New("the call did not start an instance")
	}
	pods, err := w.Core.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: wellknown.LabelFunction + "=" + name})
	if err != nil || len(pods.Items) == 0 {
		return s, errors.Join(errors.New("its pod is not there"), err)
	}
	s.spare = pods.Items[0].Labels[wellknown.LabelRuntime] != ""
	return s, nil
}
