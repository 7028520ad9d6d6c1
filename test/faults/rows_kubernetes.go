package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/test/lab"
)

// kubernetesRows are faults of the cluster that Windlass is in.
func kubernetesRows() []row {
	return []row{
		{
			id: "F61", fault: "the API server is killed, and away for 12 s",
			promise: "no call of a warm function fails", allow: nothing(), run: withoutAPI((*lab.Member).Kill),
		},
		{
			id: "F61b", fault: "the API server is paused for 12 s, and the owner is killed in the middle",
			promise: "no call of a warm function fails", allow: nothing(), run: withoutAPI((*lab.Member).Pause),
		},
		{
			id: "F62", fault: "a quota lets no pod be created",
			promise: "its calls are refused with the reason; other functions go on", allow: refusals(), run: quota,
		},
		{
			id: "F63", fault: "an image cannot be pulled",
			promise: "its calls are refused with the reason; other functions go on",
			allow:   refusals(), run: neverReady(func(spec *v1alpha1.FunctionSpec) { spec.Template.Image = lab.ImageMissing }),
		},
		{
			id: "F63b", fault: "a function exits at its start, each time",
			promise: "its calls are refused with the reason; other functions go on",
			allow:   refusals(), run: neverReady(startsWith("crash")),
		},
		{
			id: "F63c", fault: "a function never becomes ready",
			promise: "its calls are refused with the reason; other functions go on",
			allow:   refusals(), run: neverReady(startsWith("silent")),
		},
		{
			id: "F65", fault: "a node is drained",
			promise: "no call fails", allow: nothing(), run: drain,
		},
		{
			id: "F66", fault: "a node loses its power",
			promise: "maybe for calls that ran there at most; its pods are replaced",
			allow:   maybes(2 * warm), run: loseNode,
		},
		{
			id: "F67", fault: "the kubelets are paused for 10 s",
			promise: "no call of a warm function fails", allow: nothing(), run: withoutKubelets,
		},
		{
			id: "F68", load: "30 callers", fault: "the owner is paused in the middle of a burst of creations, and resumes",
			promise: "no more pods than the function may have", allow: nothing(), run: twoBrains,
		},
		{
			id: "F69", load: "one by one", fault: "a function is deleted while its owner is dead",
			promise: "none of its pods stays", allow: refusals(), run: orphans,
		},
		{
			id: "F71", rate: 30, fault: "a function is deleted and created again with the same name, under load",
			promise: "calls are answered, or refused as not found", allow: refusals(), run: recreated,
		},
		{
			id: "F72", load: "20 callers", fault: "a function is deleted while calls wait and run",
			promise: "those that wait are refused; nobody waits for ever", allow: anything(), run: deleted,
		},
	}
}

func withoutAPI(away func(*lab.Member)) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
			away(s.API)
			sleep.For(ctx, 5*time.Second)
			if s.row == "F61b" {
				owner.Kill()
			}
			sleep.For(ctx, 7*time.Second)
			s.API.Resume()
			return s.API.Revive(ctx)
		}))
	}
}

// tight is a namespace without room for a pod.
const tight = "tight"

func quota(ctx context.Context, s *faultEnv) error {
	if err := s.Cluster.NamespaceWithQuota(ctx, tight); err != nil {
		return err
	}
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: tight, Name: "none"}}
	fn.Spec.Template.Image = lab.ImageFunction
	v1alpha1.Default(fn)
	if err := s.Cluster.Objects.Create(ctx, fn); err != nil {
		return err
	}
	err := s.known(ctx, tight+"/none")
	if err == nil {
		err = s.besides(ctx, tight+"/none")
	}
	if deleteErr := s.Cluster.Objects.Delete(ctx, fn); err == nil {
		err = deleteErr
	}
	return err
}

func startsWith(what string) func(*v1alpha1.FunctionSpec) {
	return func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Env = []v1alpha1.EnvVar{{Name: "LAB_START", Value: what}}
		spec.Template.StartupTimeout.Duration = 2 * time.Second
	}
}

func neverReady(edit func(*v1alpha1.FunctionSpec)) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.with(ctx, "never", edit, func(*v1alpha1.Function) error { return s.besides(ctx, "faults/never") })
	}
}

// refusedWithin is how long a caller may wait to be told that a function does not
// start.
const refusedWithin = 30 * time.Second

// besides calls a function that cannot run while others work.
func (s *faultEnv) besides(ctx context.Context, function string) error {
	return s.under(ctx, toWork, func() error {
		for range 3 {
			calls := s.call(ctx, 1, request{Function: function, Body: 10})
			s.holds(len(calls) == 1 && calls[0].Executed == "no" && calls[0].Reason != problems.NoInstanceInTime && calls[0].Latency() < refusedWithin,
				"a call of a function that cannot start: %+v", calls)
			if len(calls) == 1 {
				s.note("refused=%v %s", calls[0].Latency().Round(10*time.Millisecond), calls[0].Reason)
			}
		}
		return nil
	})
}

func drain(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		pods := s.Kubelet.PodsOf(work)
		if len(pods) == 0 {
			return fmt.Errorf("%s has no pods", work)
		}
		node := pods[0].Node()
		if err := s.Kubelet.Cordon(ctx, node, true); err != nil {
			return err
		}
		for _, pod := range s.Kubelet.Pods() {
			if pod.Node() == node {
				if err := s.Kubelet.Delete(ctx, pod); err != nil {
					return err
				}
			}
		}
		sleep.For(ctx, 5*time.Second)
		return s.Kubelet.Cordon(ctx, node, false)
	})
}

func loseNode(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		pods := s.Kubelet.PodsOf(work)
		if len(pods) == 0 {
			return fmt.Errorf("%s has no pods", work)
		}
		if err := s.Kubelet.LoseNode(ctx, pods[0].Node(), 3*time.Second); err != nil {
			return err
		}
		began := time.Now()
		for len(s.Kubelet.PodsOf(work)) < warm && time.Since(began) < 30*time.Second {
			sleep.For(ctx, 50*time.Millisecond)
		}
		s.note("replaced=%v", time.Since(began).Round(10*time.Millisecond))
		s.holds(len(s.Kubelet.PodsOf(work)) >= warm, "the pods of a lost node are not replaced 30 s later")
		return nil
	})
}

func withoutKubelets(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		resume := s.Kubelet.Pause()
		defer resume()
		sleep.For(ctx, 10*time.Second)
		return nil
	})
}

// most is how many instances the function of a burst may have.
const most = 6

func twoBrains(ctx context.Context, s *faultEnv) error {
	limited := func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MaxInstances = new(int32(most)) }
	return s.with(ctx, "burst", limited, func(*v1alpha1.Function) error {
		config := s.config(slowly(toWork, "ms=200"))
		config.Rate, config.Clients, config.Next = 0, 30, fixed(request{Function: "faults/burst", Query: "ms=200", Body: 10})
		l := startLoad(ctx, config)
		sleep.For(ctx, 100*time.Millisecond)
		owner, err := s.owner(ctx, "burst")
		if err != nil {
			return err
		}
		peak := 0
		watch := func(d time.Duration) {
			for began := time.Now(); time.Since(began) < d; sleep.For(ctx, 50*time.Millisecond) {
				peak = max(peak, len(s.Kubelet.PodsOf("burst")))
			}
		}
		owner.Pause()
		watch(12 * time.Second)
		owner.Resume()
		watch(3 * time.Second)
		s.calls = append(s.calls, l.Stop()...)
		s.note("peak=%d", peak)
		s.podsWithin(peak, most)
		return nil
	})
}

func orphans(ctx context.Context, s *faultEnv) error {
	few := func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MinInstances = 2 }
	var owner *lab.Member
	err := s.with(ctx, "orphan", few, func(*v1alpha1.Function) (err error) {
		s.call(ctx, 5, request{Function: "faults/orphan", Body: 10})
		s.shows(len(s.Kubelet.PodsOf("orphan")) > 0, "the function has no pods")
		if owner, err = s.owner(ctx, "orphan"); err == nil {
			owner.Kill()
		}
		return err
	})
	if err != nil {
		return err
	}
	began := time.Now()
	for len(s.Kubelet.PodsOf("orphan")) > 0 && time.Since(began) < time.Minute {
		sleep.For(ctx, 50*time.Millisecond)
	}
	s.note("gone=%v", time.Since(began).Round(10*time.Millisecond))
	s.holds(len(s.Kubelet.PodsOf("orphan")) == 0, "%d pods of a function that is deleted run a minute later", len(s.Kubelet.PodsOf("orphan")))
	return owner.Revive(ctx)
}

func recreated(ctx context.Context, s *faultEnv) error {
	config := s.config(fixed(request{Function: "faults/again-and-again", Query: "ms=20", Body: 10}))
	_, err := s.underLoad(ctx, config, func() error {
		for range 4 {
			err := s.with(ctx, "again-and-again", func(*v1alpha1.FunctionSpec) {}, func(*v1alpha1.Function) error {
				sleep.For(ctx, 1500*time.Millisecond)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func deleted(ctx context.Context, s *faultEnv) error {
	config := s.config(fixed(request{Function: "faults/doomed", Query: "ms=500", Body: 10}))
	config.Rate, config.Clients = 0, 20
	return s.with(ctx, "doomed", func(*v1alpha1.FunctionSpec) {}, func(*v1alpha1.Function) error {
		_, err := s.underLoad(ctx, config, func() error {
			sleep.For(ctx, 2*time.Second)
			return s.Cluster.Delete(ctx, "doomed")
		})
		return err
	})
}
