package controller

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// given is a function that was deployed a minute ago and is called, and what
// change makes of it.
func given(change func(*input)) input {
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "example.com/a:1"}}}
	f.Name, f.Namespace, f.UID, f.Generation = "f", "team", "uid-f", 3
	f.Finalizers = []string{v1alpha1.FinalizerDrain}
	f.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	in := input{
		now: now, function: f, gateway: "https://fn.example.com/",
		facts: &facts{generation: 3, created: 2, busy: 1},
	}
	if change != nil {
		change(&in)
	}
	return in
}

// settled is in, once its status has been written.
func settled(in input) input {
	in.function.Status = statusOf(in)
	return in
}

// brief shows conditions as "Ready=True/Accepted".
func brief(conditions []metav1.Condition) string {
	var words []string
	for _, c := range conditions {
		words = append(words, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return strings.Join(words, " ")
}

func TestStatusSaysWhatIsObserved(t *testing.T) {
	deleted := metav1.NewTime(now.Add(-time.Second))
	for name, c := range map[string]struct {
		change func(*input)
		want   string
		// ready is a part of the message of the condition Ready.
		ready string
	}{
		"nothing special": {nil,
			"Ready=True/Accepted Provisioned=True/Provisioned Progressing=False/Stable", "can be called"},
		"an instance has started": {func(in *input) { in.facts.started = true },
			"Ready=True/Started Provisioned=True/Provisioned Progressing=False/Stable", "an instance of it has started"},
		"no instance": {func(in *input) { in.facts.created, in.facts.busy = 0, 0 },
			"Ready=True/Accepted Provisioned=True/Provisioned Progressing=False/Stable", "can be called"},
		"a cold start": {func(in *input) { in.facts.creating = 1 },
			"Ready=True/Accepted Provisioned=True/Provisioned Progressing=True/Creating", "can be called"},
		"a minimum that is there": {func(in *input) { in.function.Spec.Scaling.MinInstances = 2 },
			"Ready=True/Accepted Provisioned=True/Provisioned Progressing=False/Stable", "can be called"},
		"a minimum on its way": {func(in *input) { in.function.Spec.Scaling.MinInstances, in.facts.creating = 3, 1 },
			"Ready=True/Accepted Provisioned=False/Creating Progressing=True/Creating", "can be called"},
		"a minimum that cannot be had": {func(in *input) {
			in.function.Spec.Scaling.MinInstances, in.facts.noRoom = 3, "no node has 2 CPUs left"
		}, "Ready=True/Accepted Provisioned=False/NoCapacity Progressing=False/Stable",
			"can be called, but further instances do not start: NoCapacity: no node has 2 CPUs left"},
		"an image that cannot be pulled": {func(in *input) {
			in.facts.created, in.facts.busy = 0, 0
			in.facts.problem = &problem{v1alpha1.ReasonImagePullFailed, "not found"}
		}, "Ready=False/ImagePullFailed Provisioned=True/Provisioned Progressing=False/Stable", "image example.com/a:1: not found"},
		"an image whose name is in the message": {func(in *input) {
			in.facts.created, in.facts.busy = 0, 0
			in.facts.problem = &problem{v1alpha1.ReasonImagePullFailed, `"example.com/a:1": not found`}
		}, "Ready=False/ImagePullFailed Provisioned=True/Provisioned Progressing=False/Stable", `"example.com/a:1": not found`},
		"a problem while instances are there": {func(in *input) { in.facts.problem = &problem{v1alpha1.ReasonOutOfMemory, "used 65Mi"} },
			"Ready=True/Accepted Provisioned=True/Provisioned Progressing=False/Stable", "do not start: OutOfMemory: used 65Mi"},
		"a problem without a reason": {func(in *input) {
			in.facts.created, in.facts.busy = 0, 0
			in.facts.problem = &problem{reason: "no reason!"}
		}, "Ready=False/StartFailed Provisioned=True/Provisioned Progressing=False/Stable", "could not start"},
		"no room at all": {func(in *input) { in.facts.created, in.facts.busy, in.facts.noRoom = 0, 0, "no node is ready" },
			"Ready=False/NoCapacity Provisioned=True/Provisioned Progressing=False/Stable", "no node is ready"},
		"etcd is away": {func(in *input) { in.function.Spec.Scaling.MinInstances, in.facts.unconfirmed = 3, true },
			"Ready=True/Accepted Provisioned=Unknown/Unconfirmed Progressing=False/Stable", "can be called"},
		"an update": {func(in *input) { in.facts.outdated = 1 },
			"Ready=True/Accepted Provisioned=True/Provisioned Progressing=True/Replacing", "can be called"},
		"a change that has not arrived": {func(in *input) { in.facts.generation = 2 },
			"Ready=True/Accepted Provisioned=True/Provisioned Progressing=True/Replacing", "can be called"},
		"nobody tells": {func(in *input) { in.facts = nil },
			"Ready=Unknown/Unobserved Provisioned=Unknown/Unobserved Progressing=False/Unobserved", "no scheduler tells"},
		"nobody tells of a new function yet": {func(in *input) { in.facts, in.settling = nil, true },
			"Ready=Unknown/Unobserved Provisioned=Unknown/Unobserved Progressing=False/Unobserved", "no scheduler tells"},
		"a runtime that is missing": {func(in *input) {
			in.function.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "ruby"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}}
		}, "Ready=False/UnknownRuntime Provisioned=False/UnknownRuntime Progressing=False/UnknownRuntime", `there is no ClusterRuntime "ruby"; make it`},
		"a runtime that is there": {func(in *input) {
			in.function.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "ruby"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}}
			in.runtime = &v1alpha1.ClusterRuntime{}
		}, "Ready=True/Accepted Provisioned=True/Provisioned Progressing=False/Stable", "can be called"},
		"what no schema sees": {func(in *input) { in.function.Spec.Template.Args = []string{"\x00"} },
			"Ready=False/Invalid Provisioned=False/Invalid Progressing=False/Invalid",
			`spec.template.args[0]: Invalid value: "\x00": must not contain a NUL byte; remove it`},
		"what a cluster cannot run": {func(in *input) {
			in.function.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Command: []string{"x"}}}
		}, "Ready=False/Invalid Provisioned=False/Invalid Progressing=False/Invalid", "add image:"},
		"a function that is being deleted": {func(in *input) { in.function.DeletionTimestamp = &deleted },
			"Ready=False/Draining Provisioned=False/Draining Progressing=True/Draining", "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusOf(given(c.change))
			if diff := cmp.Diff(c.want, brief(status.Conditions)); diff != "" {
				t.Error(diff)
			}
			if got := status.Conditions[0].Message; !strings.Contains(got, c.ready) {
				t.Errorf("Ready says %q, want %q in it", got, c.ready)
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != status.ObservedGeneration {
					t.Errorf("%s is about generation %d, the status about %d", c.Type, c.ObservedGeneration, status.ObservedGeneration)
				}
			}
		})
	}
}

func TestStatusCounts(t *testing.T) {
	status := statusOf(given(func(in *input) {
		in.facts = &facts{generation: 2, creating: 1, created: 5, busy: 7, queued: 9, means: estimate.Means{Execution: 123456789, Start: 3456789012}}
	}))
	status.Conditions = nil
	want := v1alpha1.FunctionStatus{
		ObservedGeneration: 2,
		Instances:          v1alpha1.InstanceCounts{Creating: 1, Created: 5, Busy: 5},
		Queued:             9,
		MeanExecutionTime:  &metav1.Duration{Duration: 123 * time.Millisecond},
		MeanStartTime:      &metav1.Duration{Duration: 3460 * time.Millisecond},
		URL:                "https://fn.example.com/function/f.team",
		Selector:           "windlass.dev/function-uid=uid-f",
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
}

func TestURLLeavesOutTheDefaultNamespace(t *testing.T) {
	in := given(func(in *input) { in.function.Namespace = "default" })
	if got, want := statusOf(in).URL, "https://fn.example.com/function/f"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	in.gateway = ""
	if got := statusOf(in).URL; got != "" {
		t.Errorf("got %s without a gateway", got)
	}
}

func TestMeanHasThreeDigits(t *testing.T) {
	for given, want := range map[time.Duration]string{
		999: "999ns", 1234567: "1.23ms", 12345 * time.Millisecond: "12.3s", 61 * time.Second: "1m1s",
	} {
		if got := meanOf(given).Duration.String(); got != want {
			t.Errorf("%d is %s, want %s", given, got, want)
		}
	}
	if meanOf(0) != nil {
		t.Error("an unknown mean has a value")
	}
}

// What was said is not unsaid only because the controller, or the function's
// scheduler, starts anew.
func TestStatusStaysWhileSchedulersSettle(t *testing.T) {
	in := settled(given(nil))
	in.now = now.Add(time.Hour)
	in.facts, in.settling = nil, true
	if diff := cmp.Diff(in.function.Status, statusOf(in)); diff != "" {
		t.Error(diff)
	}
	in.settling = false
	status := statusOf(in)
	if got := brief(status.Conditions[:1]); got != "Ready=Unknown/Unobserved" {
		t.Errorf("later it is %s", got)
	}
	if status.Instances.Created != 2 {
		t.Error("the last known numbers are gone")
	}
}

func TestTransitionTimeIsThatOfTheTransition(t *testing.T) {
	in := settled(given(nil))
	in.now = now.Add(time.Hour)
	in.facts.outdated = 1
	status := statusOf(in)
	if got := find(status.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !got.Time.Equal(now) {
		t.Errorf("Ready has not changed, but since %v", got)
	}
	if got := find(status.Conditions, v1alpha1.ConditionProgressing).LastTransitionTime; !got.Time.Equal(in.now) {
		t.Errorf("Progressing has changed, but not since %v", got)
	}
}

func TestStatusIsWrittenAtMeasuredPace(t *testing.T) {
	count := func(in *input) { in.facts.queued++ }
	change := func(in *input) { in.facts.creating++ }
	for name, c := range map[string]struct {
		change func(*input)
		ago    time.Duration
		// wait is 0 if it is written at once.
		wait time.Duration
	}{
		"numbers after a pause":     {count, countPause, 0},
		"numbers at once":           {count, 500 * time.Millisecond, countPause - 500*time.Millisecond},
		"a condition after a pause": {change, urgentPause, 0},
		"a condition at once":       {change, 300 * time.Millisecond, urgentPause - 300*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			in := settled(given(nil))
			in.written = now.Add(-c.ago)
			c.change(&in)
			out := plan(in)
			if written := out.status != nil; written != (c.wait == 0) {
				t.Errorf("written is %t", written)
			}
			if out.again != c.wait {
				t.Errorf("again in %v, want %v", out.again, c.wait)
			}
		})
	}
	if out := plan(settled(given(nil))); out.status != nil || out.again != 0 {
		t.Errorf("nothing has changed, but %+v", out)
	}
}

func TestFinalizerComesFirstAndGoesLast(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	for name, c := range map[string]struct {
		change func(*input)
		want   finalizerChange
	}{
		"a new function":  {func(in *input) { in.function.Finalizers = nil }, finalizerAdd},
		"one that has it": {nil, finalizerKeep},
		"one that ends without it": {func(in *input) {
			in.function.Finalizers, in.function.DeletionTimestamp = []string{"other"}, ago(0)
		}, finalizerKeep},
		"instances that finish": {func(in *input) {
			in.function.DeletionTimestamp, in.pods = ago(0), []pod{{name: "p"}}
		}, finalizerKeep},
		"a pod that is going": {func(in *input) {
			in.function.DeletionTimestamp, in.facts, in.pods = ago(time.Hour), nil, []pod{{name: "p", deleting: true}}
		}, finalizerKeep},
		"an instance that only the scheduler sees": {func(in *input) { in.function.DeletionTimestamp = ago(0) }, finalizerKeep},
		"such an instance after the time to drain": {func(in *input) { in.function.DeletionTimestamp = ago(time.Hour) }, finalizerRemove},
		"no instance": {func(in *input) {
			in.function.DeletionTimestamp, in.facts = ago(0), &facts{}
		}, finalizerRemove},
		"no instance and no scheduler": {func(in *input) { in.function.DeletionTimestamp, in.facts = ago(0), nil }, finalizerRemove},
	} {
		t.Run(name, func(t *testing.T) {
			out := plan(given(c.change))
			if out.finalizer != c.want {
				t.Errorf("got %d, want %d", out.finalizer, c.want)
			}
			if c.want == finalizerRemove {
				want := []happening{{reason: reasonDrained, message: "the last instance is gone"}}
				if diff := cmp.Diff(want, out.changes, cmp.AllowUnexported(happening{})); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestPodsThatMustGo(t *testing.T) {
	deletedAgo := func(d time.Duration) func(*input) {
		return func(in *input) {
			in.function.DeletionTimestamp = &metav1.Time{Time: now.Add(-d)}
			in.function.Spec.Template.Timeout.Duration = 10 * time.Second
		}
	}
	for name, c := range map[string]struct {
		change func(*input)
		pod    pod
		want   []doomed
		again  time.Duration
	}{
		"one that runs":            {nil, pod{name: "p"}, nil, 0},
		"one that has just ended":  {nil, pod{name: "p", ended: now.Add(-time.Second)}, nil, endedGrace - time.Second},
		"one that has ended":       {nil, pod{name: "p", ended: now.Add(-endedGrace)}, []doomed{{"p", agentEnded}}, 0},
		"one that is going":        {nil, pod{name: "p", ended: now.Add(-time.Hour), deleting: true}, nil, 0},
		"one that drains":          {deletedAgo(time.Second), pod{name: "p"}, nil, 39 * time.Second},
		"one that drains too long": {deletedAgo(40 * time.Second), pod{name: "p"}, []doomed{{"p", drainTimedOut}}, 0},
		"one that has drained":     {deletedAgo(10 * time.Second), pod{name: "p", ended: now.Add(-endedGrace)}, []doomed{{"p", agentEnded}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(c.change)
			in.pods = []pod{c.pod}
			out := plan(settled(in))
			if diff := cmp.Diff(c.want, out.deletePods, cmp.AllowUnexported(doomed{})); diff != "" {
				t.Error(diff)
			}
			if out.again != c.again {
				t.Errorf("again in %v, want %v", out.again, c.again)
			}
		})
	}
}

func TestEventsTellOfChanges(t *testing.T) {
	failing := func(in *input) {
		in.facts.created, in.facts.busy = 0, 0
		in.facts.problem = &problem{v1alpha1.ReasonFunctionExited, "exit code 1"}
	}
	for name, c := range map[string]struct {
		before, after func(*input)
		want          []happening
	}{
		"nothing happens": {nil, func(in *input) { in.facts.queued = 7 }, nil},
		"it fails":        {nil, failing, []happening{{v1alpha1.ReasonFunctionExited, "exit code 1", true}}},
		"it still fails":  {failing, func(in *input) { failing(in); in.facts.queued = 1 }, nil},
		"it fails otherwise": {failing, func(in *input) { failing(in); in.facts.problem = &problem{"OutOfMemory", "65Mi"} },
			[]happening{{"OutOfMemory", "65Mi", true}}},
		"it works again": {failing, nil, []happening{{reasonReady, "the function can be called again", false}}},
		"it is observed": {func(in *input) { in.facts = nil }, nil, nil},
		"it is updated": {nil, func(in *input) { in.facts.outdated = 1 },
			[]happening{{v1alpha1.ReasonReplacing, "instances of an older revision finish, and new ones take their place", false}}},
		"it is deleted": {nil, func(in *input) { in.function.DeletionTimestamp = &metav1.Time{Time: now} },
			[]happening{{v1alpha1.ReasonDraining, "the function is being deleted: it takes no calls any more, and its instances finish", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := given(c.before), given(c.after)
			after.function.Status = statusOf(before)
			if diff := cmp.Diff(c.want, plan(after).changes, cmp.AllowUnexported(happening{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	told := []happening{{"NodeLost", "node-3 does not answer", true}}
	in := settled(given(func(in *input) { in.happenings = told }))
	if diff := cmp.Diff(told, plan(in).events, cmp.AllowUnexported(happening{})); diff != "" {
		t.Error(diff)
	}
}

func TestEndedAt(t *testing.T) {
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(d)) }
	ended := func(name string, d time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(d)}}}
	}
	running := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   time.Time
	}{
		"a pod that waits":        {corev1.PodStatus{Phase: corev1.PodPending}, time.Time{}},
		"a pod that runs":         {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{running("agent"), running("function")}}, time.Time{}},
		"a function that ended":   {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{running("agent"), ended("function", 1)}}, time.Time{}},
		"an agent that ended":     {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{ended("agent", time.Second), running("function")}}, now.Add(time.Second)},
		"a pod that was evicted":  {corev1.PodStatus{Phase: corev1.PodFailed}, now.Add(-time.Hour)},
		"an end without a time":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}}, now.Add(-time.Hour)},
		"all containers finished": {corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{ended("function", time.Minute)}}, now.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Status: c.status}
			p.CreationTimestamp = at(-time.Hour)
			slim, err := slimPod(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []*corev1.Pod{p, slim.(*corev1.Pod)} {
				if got := endedAt(p); !got.Equal(c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	long := strings.Repeat("é", maxMessage)
	for _, s := range []string{"short", long, "x" + long, "bad \xff"} {
		if got := cut(s); len(got) > maxMessage || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid is %t", len(got), utf8.ValidString(got))
		}
	}
}
