package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// instanceRows are faults of agents and functions.
func instanceRows() []row {
	return []row{
		{
			id: "F5", load: "one by one", fault: "idle agents are killed",
			promise: "nothing visible", allow: nothing(), run: killIdleAgents,
		},
		{
			id: "F7", rate: 10, fault: "three agents are killed while they run calls",
			promise: "one maybe for each at most; nothing is run again",
			allow:   maybes(3), run: killAgents(toWork),
		},
		{
			id: "F7b", rate: 10, fault: "the same with a function that may run twice",
			promise: "no call fails", allow: nothing(), run: killAgents(toAgain),
		},
		{
			id: "F7c", rate: 10, fault: "three agents are killed while callers send and get a MiB with each call",
			promise: "one maybe, or one answer that breaks off, for each at most; nothing is run again",
			allow:   verdict.Allowance{Patience: testTimeout, Maybe: 3, Broken: 3}, run: killAgents(large(toWork)),
		},
		{
			id: "F9", load: "one by one", fault: "the function's process exits during a call",
			promise: "502 maybe within seconds, one execution",
			allow:   maybes(4), run: misbehaving("exit", 4, maybeWith(http.StatusBadGateway)),
		},
		{
			id: "F9b", load: "one by one", fault: "the function's process dies of a segmentation fault during a call",
			promise: "502 maybe within seconds, one execution",
			allow:   maybes(4), run: misbehaving("segfault", 4, maybeWith(http.StatusBadGateway)),
		},
		{
			id: "F9c", load: "one by one", fault: "the function closes its connection instead of answering",
			promise: "502 maybe within seconds, one execution",
			allow:   maybes(6), run: misbehaving("break", 6, maybeWith(http.StatusBadGateway)),
		},
		{
			id: "F10", load: "one by one", fault: "the function hangs",
			promise: "504 maybe when its time is over; later calls are answered",
			allow:   maybes(2), run: misbehaving("hang", 2, maybeWith(http.StatusGatewayTimeout)),
		},
		{
			id: "F11", rate: 2, fault: "the function does not read a large body for a while",
			promise: "the agent's memory is bounded, and every call succeeds",
			allow:   nothing(), run: ignoredBody,
		},
		{
			id: "F13", load: "one by one", fault: "the function's answer does not end",
			promise: "cut off when its time is over, and never a clean end",
			allow:   verdict.Allowance{Patience: testTimeout, Broken: 2}, run: misbehaving("endless", 2, cutOff),
		},
		{
			id: "F14", load: "one by one", fault: "the function's answers are not HTTP, or not quite",
			promise: "502 maybe, or the part that is good; the agent survives",
			allow:   verdict.Allowance{Patience: testTimeout, Maybe: verdict.Any, Broken: 2}, run: badAnswers,
		},
		{
			id: "F18a", fault: "gateways are restarted, one after the other",
			promise: "no call fails", allow: nothing(), run: rollGateways(toWork),
		},
		{
			id: "F18f", rate: 20, fault: "the same while callers upload a MiB piece by piece",
			promise: "no call fails", allow: nothing(), run: rollGateways(streamed(toWork)),
		},
		{
			id: "F18b", fault: "schedulers are restarted, one after the other",
			promise: "no call fails", allow: nothing(), run: rollSchedulers,
		},
		{
			id: "F18c", fault: "every pod is deleted, one after the other",
			promise: "no call fails", allow: nothing(), run: rollPods(toWork),
		},
		{
			id: "F18g", rate: 20, fault: "the same while callers send and get a MiB with each call",
			promise: "no call fails", allow: nothing(), run: rollPods(large(toWork)),
		},
		{
			id: "F18d", fault: "the function is changed, so that all its pods are replaced",
			promise: "no call fails", allow: nothing(), run: changeFunction,
		},
		{
			id: "F18e", fault: "gateways, schedulers and pods are restarted at the same time",
			promise: "no call fails", allow: nothing(), run: rollAll,
		},
		{
			id: "F19", rate: 3, fault: "pods are deleted with a second of grace while calls run for longer",
			promise: "maybe for the calls that are cut off, and nothing hangs",
			allow:   maybes(2 * warm), run: shortGrace,
		},
		{
			id: "F23", rate: 10, fault: "an agent and its function are paused for 15 s during a call that may run twice",
			promise: "every call is answered; maybe for the one that ran there at most",
			allow:   maybes(1), run: pauseAgent,
		},
	}
}

func killIdleAgents(ctx context.Context, s *faultEnv) error {
	for range 3 {
		s.killAgentOf(work)
		s.call(ctx, 10, toWork(s.rng))
	}
	return nil
}

// killAgentOf kills the agent of a function's pod at random.
func (s *faultEnv) killAgentOf(function string) {
	pods := s.Kubelet.PodsOf(function)
	s.shows(len(pods) > 0, "%s has no pod whose agent can be killed", function)
	if len(pods) > 0 {
		anyOf(s, pods).Agent().Kill()
	}
}

func killAgents(next func(*rand.Rand) request) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.strike(ctx, slowly(next, "ms=250"), 3, func(pod *lab.Pod) error {
			pod.Agent().Kill()
			sleep.For(ctx, 1500*time.Millisecond)
			return nil
		})
	}
}

// soon is when a caller is to know that its call has failed, with time to spare
// on a machine that is busy.
const soon = 8 * time.Second

// misbehaving makes calls in which the function of its own does something wrong and that fail in one way,
// each followed by one that it answers.
func misbehaving(what string, times int, failed func(verdict.Call) bool) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		short := func(spec *v1alpha1.FunctionSpec) { spec.Template.Timeout.Duration = 2 * time.Second }
		return s.with(ctx, "wrong", short, func(*v1alpha1.Function) error {
			s.call(ctx, 1, request{Function: "faults/wrong", Body: 10})
			for range times {
				bad := s.call(ctx, 1, request{Function: "faults/wrong", Query: "do=" + what, Body: 10})
				s.holds(len(bad) == 1 && inTime(failed)(bad[0]), "a call that had to fail in another way: %+v", bad)
				s.call(ctx, 1, request{Function: "faults/wrong", Body: 10})
			}
			return nil
		})
	}
}

// inTime adds that the caller knows soon.
func inTime(as func(verdict.Call) bool) func(verdict.Call) bool {
	return func(c verdict.Call) bool { return as(c) && c.Latency() < soon }
}

// maybeWith is how a call ends that has this status and "maybe".
func maybeWith(status int) func(verdict.Call) bool {
	return func(c verdict.Call) bool {
		return c.Outcome == verdict.Answered && c.Status == status && c.Executed == verdict.Maybe
	}
}

// cutOff is how a call ends whose answer breaks off.
func cutOff(c verdict.Call) bool { return c.Outcome == verdict.Broken }

// badAnswer is how a call may end whose function does not answer as HTTP has it.
func badAnswer(c verdict.Call) bool {
	return c.Succeeded() || cutOff(c) || maybeWith(http.StatusBadGateway)(c)
}

// agentMemory is how much memory an agent may hold at the very most, in KiB.
const agentMemory = 64 << 10

func ignoredBody(ctx context.Context, s *faultEnv) error {
	const large = 16 << 20
	return s.under(ctx, func(*rand.Rand) request {
		return request{Function: "faults/" + work, Query: "do=ignore-body&ms=500", Body: large}
	}, func() error {
		sleep.For(ctx, 3*time.Second)
		pods := s.Kubelet.PodsOf(work)
		s.shows(len(pods) > 0, "%s has no pods", work)
		for _, pod := range pods {
			resident := residentKiB(pod.Agent().PID)
			s.holds(resident < agentMemory, "the agent %s holds %d KiB", pod.CID, resident)
		}
		return nil
	})
}

// residentKiB is how much memory a process has, 0 if it has ended.
func residentKiB(pid int) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	text, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.Atoi(text)
	return n
}

func badAnswers(ctx context.Context, s *faultEnv) error {
	return s.with(ctx, "wrong", func(*v1alpha1.FunctionSpec) {}, func(*v1alpha1.Function) error {
		var pods []*lab.Pod
		s.call(ctx, 1, request{Function: "faults/wrong", Body: 10})
		for _, what := range []string{"garbage", "two-lengths", "bad-chunk", "truncate", "twice", "storm"} {
			pods = append(pods, s.Kubelet.PodsOf("wrong")...)
			bad := s.call(ctx, 1, request{Function: "faults/wrong", Query: "do=" + what, Body: 10})
			s.holds(len(bad) == 1 && inTime(badAnswer)(bad[0]), "the call of %q: %+v", what, bad)
			good := s.call(ctx, 1, request{Function: "faults/wrong", Body: 10})
			s.holds(len(good) == 1 && good[0].Succeeded(), "the call after %q: %+v", what, good)
		}
		s.shows(len(pods) > 0, "the function has no pods")
		for _, pod := range pods {
			agent := pod.Agent()
			s.holds(agent.Alive() || agent.ExitCode() == 0, "an agent has crashed")
		}
		return nil
	})
}

func rollGateways(next func(*rand.Rand) request) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.under(ctx, next, func() error { return s.restartGateways(ctx) })
	}
}

func (s *faultEnv) restartGateways(ctx context.Context) error {
	for _, m := range s.Gateways {
		if err := m.Restart(ctx); err != nil {
			return err
		}
		// The balancer must know it before the next one goes.
		sleep.For(ctx, time.Second)
	}
	return nil
}

func rollSchedulers(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error { return s.restartSchedulers(ctx) })
}

func (s *faultEnv) restartSchedulers(ctx context.Context) error {
	for _, m := range s.Schedulers {
		if err := m.Restart(ctx); err != nil {
			return err
		}
	}
	return nil
}

func rollPods(next func(*rand.Rand) request) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.under(ctx, next, func() error { return s.deletePods(ctx, work) })
	}
}

// deletePods deletes each pod that a function has now, as a drain does.
func (s *faultEnv) deletePods(ctx context.Context, function string) error {
	pods := s.Kubelet.PodsOf(function)
	s.shows(len(pods) > 0, "%s has no pods that can be deleted", function)
	for _, pod := range pods {
		if err := s.Kubelet.Delete(ctx, pod); err != nil {
			return err
		}
		sleep.For(ctx, 700*time.Millisecond)
	}
	return nil
}

func changeFunction(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		fn := &v1alpha1.Function{}
		if err := s.Cluster.Get(ctx, work, fn); err != nil {
			return err
		}
		fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "LAB_VERSION", Value: strconv.FormatUint(s.rng.Uint64(), 36)}}
		if err := s.Cluster.Objects.Update(ctx, fn); err != nil {
			return err
		}
		sleep.For(ctx, 5*time.Second)
		return nil
	})
}

func rollAll(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error { return s.restartEverything(ctx) })
}

func shortGrace(ctx context.Context, s *faultEnv) error {
	calls, err := s.underLoad(ctx, s.config(slowly(toWork, "ms=4000")), func() error {
		if _, _, err := s.busy(ctx, work); err != nil {
			return err
		}
		for _, pod := range s.Kubelet.PodsOf(work) {
			if err := s.Kubelet.DeleteWithin(ctx, pod, 1); err != nil {
				return err
			}
		}
		return nil
	})
	cut := slices.ContainsFunc(calls, func(c verdict.Call) bool { return c.Executed == verdict.Maybe })
	s.shows(cut, "no call was cut off")
	return err
}

func pauseAgent(ctx context.Context, s *faultEnv) error {
	return s.strike(ctx, slowly(toAgain, "ms=250"), 1, func(pod *lab.Pod) error {
		if err := pod.Hurt(syscall.SIGSTOP); err != nil {
			return err
		}
		sleep.For(ctx, 15*time.Second)
		return pod.Hurt(syscall.SIGCONT)
	})
}
