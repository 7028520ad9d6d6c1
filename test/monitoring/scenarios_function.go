package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// standing is a function that works all the time.
const standing = "work"

// standing begins to call it, until stop is called.
func (w *harness) standing(ctx context.Context) (stop func(), err error) {
	err = w.function(ctx, standing, func(spec *v1alpha1.FunctionSpec) {
		spec.Scaling.MinInstances, spec.Scaling.MaxInstances = 2, new(int32(4))
	})
	if err != nil {
		return nil, err
	}
	return w.call(ctx, standing, "ms=50", 2), nil
}

// functionScenarios are alerts that name a function, and one that takes as long as all of them.
func functionScenarios() []scenario {
	return []scenario{
		{alert: "WindlassQueueNotDraining", function: "queue", cause: calledTooMuch},
		{alert: "WindlassColdStartSlow", function: "slow", cause: startsSlowly},
		{alert: "WindlassProvisionFailing", function: "failing", cause: neverStarts},
		{alert: "WindlassInstancesLost", function: "exiting", cause: exitsInCalls},
		{alert: "WindlassNoCapacity", function: "huge", cause: fitsNowhere},
		{alert: "WindlassAgentSilent", function: "silent", cause: agentStandsStill},
		{alert: "WindlassNodeBusyLong", cause: nodeIsBusy, says: " " + nodeName + " "},
	}
}

// called makes a function that so many call, until it is undone.
func (w *harness) called(ctx context.Context, name, query string, callers int, edit func(*v1alpha1.FunctionSpec)) (undo func() error, err error) {
	if err := w.function(ctx, name, edit); err != nil {
		return nil, err
	}
	stop := w.call(ctx, name, query, callers)
	return func() error {
		stop()
		return nil
	}, nil
}

// calledTooMuch has one instance serve calls of 2 s for 20 callers.
func calledTooMuch(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	return w.called(ctx, function, "ms=2000", 20, func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MaxInstances = new(int32(1)) })
}

// startsSlowly has a function take 12 s to start, again and again.
func startsSlowly(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	stop, err := w.called(ctx, function, "ms=10", 1, func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Env = []v1alpha1.EnvVar{{Name: "LAB_START", Value: "12s"}}
		spec.Scaling.MaxInstances = new(int32(1))
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.replace(ctx, function) }()
	return func() error {
		cancel()
		return errors.Join(<-ended, stop())
	}, nil
}

// replace deletes each pod of a function as soon as it has an instance that is ready.
func (w *harness) replace(ctx context.Context, function string) error {
	ready := fmt.Sprintf(`sum(windlass_scheduler_instances{function=%q,state=~"idle|busy"}) > 0`, function)
	for ctx.Err() == nil {
		all, err := w.prometheus.Query(ctx, ready)
		if err == nil && len(all) > 0 {
			for _, pod := range w.Kubelet.PodsOf(function) {
				err = errors.Join(err, w.Kubelet.Delete(ctx, pod))
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		sleep.For(ctx, every)
	}
	return nil
}

// neverStarts has a function exit at each start.
func neverStarts(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	return w.called(ctx, function, "", 2, func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Env = []v1alpha1.EnvVar{{Name: "LAB_START", Value: "crash"}}
	})
}

// exitsInCalls has a function exit in each call.
func exitsInCalls(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	return w.called(ctx, function, "do=exit", 2, func(*v1alpha1.FunctionSpec) {})
}

// fitsNowhere has a function request more than any node has.
func fitsNowhere(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	return w.called(ctx, function, "", 2, requests("100"))
}

// requests has a function request so much CPU.
func requests(cpu string) func(*v1alpha1.FunctionSpec) {
	return func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// agentStandsStill stops the processes of a function's pod.
func agentStandsStill(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	err = w.function(ctx, function, func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MinInstances = 1 })
	if err != nil {
		return nil, err
	}
	if err := w.until(ctx, fmt.Sprintf(`sum(windlass_scheduler_instances{function=%q,state="idle"}) > 0`, function)); err != nil {
		return nil, err
	}
	stopped := w.Kubelet.PodsOf(function)
	for _, pod := range stopped {
		err = errors.Join(err, pod.Hurt(syscall.SIGSTOP))
	}
	return func() error {
		for _, pod := range stopped {
			_ = pod.Hurt(syscall.SIGCONT)
		}
		return nil
	}, err
}
