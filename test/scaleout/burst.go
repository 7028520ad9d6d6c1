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
	"github.com/windlass-dev/windlass/api/wellknown"
)

const (
	// startSeconds is how long the function takes to start, and execution how long
	// to answer.
	startSeconds = "3"
	execution    = 50 * time.Millisecond
	// lessons are the calls of the life before, of which the durations are learnt.
	lessons = 20
	// mostPods bounds the function to so many times what it needs: beyond, nothing is
	// learnt, and a machine with many nodes comes to a standstill.
	mostPods = 5
	// goneTime is how long instances may take to end.
	goneTime = 2 * time.Minute
)

// burst is what a burst of calls cost.
type burst struct {
	calls           int
	failed          int64
	created, needed int
	waits           []time.Duration
	// most is how many instances there were at the end.
	most int
}

// measureBurst measures a burst of calls of a function that has no instance.
func measureBurst(ctx context.Context, w cluster, o options, out io.Writer) (err error) {
	most := int32(mostPods * needed(o))
	cpu := *resource.NewMilliQuantity(10, resource.DecimalSI)
	fn, err := w.Create(ctx, "burst", v1alpha1.FunctionSpec{
		Template: v1alpha1.FunctionTemplate{
			Image: o.image, Args: []string{"slow-start"}, Env: []v1alpha1.EnvVar{{Name: "SECONDS", Value: startSeconds}},
			Resources: v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu}},
		},
		Scaling: v1alpha1.Scaling{MaxInstances: &most},
	}, func(fn *v1alpha1.Function) {
		fn.Annotations = map[string]string{wellknown.AnnotationAlgorithm: o.decider}
	})
	if err != nil {
		return err
	}
	calls := newCaller(w.url(fn, fmt.Sprintf("/sleep?ms=%d", execution.Milliseconds())), 1000)
	defer calls.close()
	if err := w.liveOnce(ctx, fn, calls); err != nil {
		return fmt.Errorf("the life before: %w", err)
	}
	census, err := w.count(ctx, fn)
	if err != nil {
		return err
	}
	answers := calls.open(ctx, o.rate, o.length, o.seed)
	at, err := w.instances(ctx, fn)
	if err != nil {
		return err
	}
	pods, err := census.end()
	if err != nil {
		return err
	}
	b := burst{
		calls: len(answers), created: len(pods), needed: needed(o), most: int(at.Ready),
	}
	var last error
	for _, a := range answers {
		if a.err != nil {
			b.failed, last = b.failed+1, a.err
		} else {
			b.waits = append(b.waits, a.waited)
		}
	}
	reportBurst(out, o, b)
	if last != nil {
		return fmt.Errorf("%d calls failed, the last with: %w", b.failed, last)
	}
	return nil
}

// liveOnce calls a function until its durations are known, and ends its instances.
func (w cluster) liveOnce(ctx context.Context, fn *v1alpha1.Function, calls *caller) error {
	for range lessons {
		if a := calls.call(ctx); a.err != nil {
			return a.err
		}
	}
	pods := w.Core.CoreV1().Pods(w.Namespace)
	ofFunction := metav1.ListOptions{LabelSelector: wellknown.LabelFunction + "=" + fn.Name}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, ofFunction); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	err := w.UntilPods(limited, fn.Name, 0)
	if err != nil && ctx.Err() == nil {
		return errors.Join(errors.New("its instances do not end"), err)
	}
	if err != nil {
		return err
	}
	return w.awaitInstances(ctx, fn, 0)
}

// needed is how many instances the calls keep busy.
func needed(o options) int {
	if o.needed > 0 {
		return o.needed
	}
	return ceil(o.rate * execution.Seconds())
}
