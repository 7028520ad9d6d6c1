package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

func TestWhichSpareInstancesMustGo(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	known := map[string]bool{"scheduler-1": true}
	aged := func(age time.Duration) pod { return pod{created: before(age)} }
	old := aged(time.Hour)
	late := warmpool.LeaveBy(now, v1alpha1.DefaultStartupTimeout).Sub(now)
	for name, c := range map[string]struct {
		pod        sparePod
		schedulers map[string]bool
		why        string
		again      time.Duration
	}{
		"one that waits":                                   {sparePod{old, "scheduler-1", true}, known, "", abandonedAge},
		"one whose agent has ended":                        {sparePod{pod{created: before(time.Hour), ended: before(endedGrace)}, "scheduler-1", true}, known, agentEnded, 0},
		"one that has just ended":                          {sparePod{pod{created: before(time.Hour), ended: before(endedGrace - time.Second)}, "scheduler-1", true}, known, "", time.Second},
		"one that is being deleted":                        {sparePod{pod{created: before(time.Hour), deleting: true}, "gone", false}, known, "", 0},
		"one whose scheduler is gone":                      {sparePod{old, "gone", true}, known, schedulerGone, 0},
		"one of a new scheduler":                           {sparePod{aged(abandonedAge - time.Second), "new", true}, known, "", time.Second},
		"one while nobody is known of":                     {sparePod{old, "gone", true}, nil, "", abandonedAge},
		"one that is to start":                             {sparePod{aged(abandonedAge), "scheduler-1", false}, known, "", late - abandonedAge},
		"one that does not start":                          {sparePod{aged(late), "scheduler-1", false}, known, neverStarted, 0},
		"one that does not start while nobody is known of": {sparePod{aged(late), "gone", false}, nil, neverStarted, 0},
	} {
		if why, again := spareDeletion(c.pod, c.schedulers, now); why != c.why || again != c.again {
			t.Errorf("%s: %q, again in %v; want %q, %v", name, why, again, c.why, c.again)
		}
	}
}

func TestAPodHasStartedOnceItsAgentRuns(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for name, c := range map[string]struct {
		containers []corev1.ContainerStatus
		want       bool
	}{
		"that no node has told of": {nil, false},
		"whose agent is waiting":   {[]corev1.ContainerStatus{{Name: "agent", State: waiting}, {Name: "function", State: running}}, false},
		"whose agent runs":         {[]corev1.ContainerStatus{{Name: "function", State: waiting}, {Name: "agent", State: running}}, true},
		"whose agent has ended":    {[]corev1.ContainerStatus{{Name: "agent", State: ended}}, true},
	} {
		p, err := slimPod(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: c.containers}})
		if err != nil {
			t.Fatal(err)
		}
		if got := hasStarted(p.(*corev1.Pod)); got != c.want {
			t.Errorf("a pod %s: %v, want %v", name, got, c.want)
		}
	}
}
