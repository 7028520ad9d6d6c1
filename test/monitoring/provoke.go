package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// provoke brings about what dashboards show and no alert tells of.
func (w *harness) provoke(ctx context.Context) {
	for name, f := range map[string]func(context.Context) error{
		"a call of no function": w.callNothing, "a request that is no HTTP": w.speakNonsense,
		"an instance that waits for nothing": w.expire, "an instance that makes room": w.evict,
		"an answer that breaks off":                               w.breakOff,
		"an instance that is one too many":                        w.lower,
		"more instances than may be created, and than are wanted": w.surge,
	} {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			w.fail("%s: %v", name, err)
		}
	}
}

// callNothing calls a function that does not exist, for as long as a rate needs.
func (w *harness) callNothing(ctx context.Context) error {
	for range 5 {
		answer, err := http.Get(w.CallURL(w.Gateways[0]) + "/function/nothing." + lab.Namespace)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		sleep.For(ctx, every)
	}
	return nil
}

// speakNonsense sends what is no HTTP.
func (w *harness) speakNonsense(ctx context.Context) error {
	for range 5 {
		conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", strings.TrimPrefix(w.CallURL(w.Gateways[0]), "http://"))
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: lab\r\nContent-Length: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
		sleep.For(ctx, every)
	}
	return nil
}

// provokedWithin bounds how long a series may take to be there.
const provokedWithin = time.Minute

// until returns when an expression has had a value for long enough to be found by
// those who ask later.
func (w *harness) until(ctx context.Context, expr string) error {
	limit, cancel := context.WithTimeout(ctx, provokedWithin)
	defer cancel()
	err := sleep.Until(limit, askEvery, func() (bool, error) {
		all, err := w.prometheus.Query(limit, expr)
		return len(all) > 0, err
	})
	if err != nil {
		return fmt.Errorf("%s has no value within %v: %w", expr, provokedWithin, err)
	}
	sleep.For(ctx, 2*step)
	return nil
}

// expire has an instance wait for a call that does not come, and leave.
func (w *harness) expire(ctx context.Context) error {
	const name = "brief"
	err := w.function(ctx, name, func(spec *v1alpha1.FunctionSpec) {
		spec.Scaling.MaxInstances = new(int32(2))
		spec.Scaling.ScaleDown.IdleTimeout.Duration = 2 * time.Second
	})
	if err != nil {
		return err
	}
	stop := w.call(ctx, name, "ms=100", 4)
	err = w.until(ctx, `sum(windlass_scheduler_instances{function="brief",state="busy"}) > 1`)
	stop()
	if err == nil {
		err = w.until(ctx, `sum(windlass_scheduler_instances_expired_total{function="brief"}) > 0`)
	}
	return errors.Join(err, w.Cluster.Delete(context.WithoutCancel(ctx), name))
}

// breakOff has answers of a function run out of time after their head.
func (w *harness) breakOff(ctx context.Context) error {
	const name = "breaks"
	err := w.function(ctx, name, func(spec *v1alpha1.FunctionSpec) { spec.Template.Timeout.Duration = time.Second })
	if err != nil {
		return err
	}
	stop := w.call(ctx, name, "do=endless", 1)
	err = w.until(ctx, `sum(windlass_gateway_answers_broken_total{function="breaks"}) > 0`)
	stop()
	return errors.Join(err, w.Cluster.Delete(context.WithoutCancel(ctx), name))
}

// lower lowers the most of a function that has as many instances as it may.
func (w *harness) lower(ctx context.Context) error {
	const name = "lowered"
	err := w.function(ctx, name, func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MaxInstances = new(int32(2)) })
	if err != nil {
		return err
	}
	stop := w.call(ctx, name, "ms=100", 4)
	err = w.until(ctx, `sum(windlass_scheduler_instances{function="lowered",state="busy"}) > 1`)
	stop()
	var fn v1alpha1.Function
	if err == nil {
		err = w.Cluster.Get(ctx, name, &fn)
	}
	if err == nil {
		fn.Spec.Scaling.MaxInstances = new(int32(1))
		err = w.Cluster.Objects.Update(ctx, &fn)
	}
	if err == nil {
		err = w.until(ctx, `sum(windlass_scheduler_instances_released_total{function="lowered"}) > 0`)
	}
	return errors.Join(err, w.Cluster.Delete(context.WithoutCancel(ctx), name))
}

// wanting is how many functions want room. A scheduler takes it only from functions
// of its own, and of so many one is of the same.
const wanting = 12

// evict fills all nodes with idle instances, of which one makes room.
func (w *harness) evict(ctx context.Context) error {
	const filler = "filler"
	// Of 8 cores on each node.
	large := requests("5")
	if err := w.function(ctx, filler, large); err != nil {
		return err
	}
	defer func() { _ = w.Cluster.Delete(context.WithoutCancel(ctx), filler) }()
	stop := w.call(ctx, filler, "ms=500", 3)
	err := w.until(ctx, `sum(windlass_scheduler_instances{function="filler",state="busy"}) > 2`)
	stop()
	if err != nil {
		return err
	}
	for i := range wanting {
		name := fmt.Sprintf("wants-%d", i)
		if err := w.function(ctx, name, large); err != nil {
			return err
		}
		defer func() { _ = w.Cluster.Delete(context.WithoutCancel(ctx), name) }()
		defer w.call(ctx, name, "ms=10", 1)()
	}
	return w.until(ctx, `sum(windlass_scheduler_instances_evicted_total{function="filler"}) > 0`)
}

// surge wants more instances at once than may be created in a second, and does not
// want them any more before they have started.
func (w *harness) surge(ctx context.Context) error {
	const name = "surge"
	err := w.function(ctx, name, func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Env = []v1alpha1.EnvVar{{Name: "LAB_START", Value: "25s"}}
		spec.Scaling.MaxInstances = new(int32(20))
	})
	if err != nil {
		return err
	}
	stop := w.call(ctx, name, "ms=1000", 40)
	err = w.until(ctx, `sum(windlass_scheduler_launches_deferred_total{function="surge"}) > 0`)
	stop()
	if err == nil {
		err = w.until(ctx, `sum(windlass_scheduler_instances_cancelled_total{function="surge"}) > 0`)
	}
	return errors.Join(err, w.Cluster.Delete(context.WithoutCancel(ctx), name))
}
