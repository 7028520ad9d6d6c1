package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// functions answer as a gateway does, every third call with an error.
func functions(t *testing.T, fail bool) (*caller, *atomic.Int64) {
	var came atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := came.Add(1); fail && n%3 == 0 {
			http.Error(w, "no node has room", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(invocation.HeaderTiming, "queue;dur=1.5, start, function;dur=1")
	}))
	t.Cleanup(server.Close)
	calls := newCaller(server.URL, 10)
	t.Cleanup(calls.close)
	return calls, &came
}

func TestACallSaysHowLongItWaited(t *testing.T) {
	calls, _ := functions(t, false)
	a := calls.call(t.Context())
	if a.err != nil || a.waited != 1500*time.Microsecond || !a.cold {
		t.Errorf("got %+v", a)
	}
}

func TestAnOpenLoopReturnsEveryCall(t *testing.T) {
	calls, came := functions(t, true)
	answers := calls.open(t.Context(), 1000, 200*time.Millisecond, 7)
	var failed []error
	for _, a := range answers {
		if a.err != nil {
			failed = append(failed, a.err)
		}
	}
	if n := int(came.Load()); n < 3 || len(answers) != n || len(failed) != n/3 {
		t.Fatalf("%d came, %d are known and %d failed", n, len(answers), len(failed))
	}
	if !strings.Contains(failed[0].Error(), "503 Service Unavailable: no node has room") {
		t.Errorf("a failure is told as %v", failed[0])
	}
}

func TestClosedLoopEndsWithItsCalls(t *testing.T) {
	calls, came := functions(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	counts, stop := calls.closed(ctx, 3)
	for came.Load() < 30 {
		if counts.failed.Load() > 0 {
			t.Fatal("a call failed")
		}
	}
	stop()
	if came.Load() != counts.answered.Load() {
		t.Errorf("%d came and %d were answered", came.Load(), counts.answered.Load())
	}
}

func TestWhatCountsOfAPodsRequests(t *testing.T) {
	container := func(cpu string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("90m"), container("10m")}}}
	if got := requestedCPU(pod); got != 100 {
		t.Errorf("%dm, want 100m", got)
	}
	pod.Spec.InitContainers = []corev1.Container{container("1"), container("300m")}
	if got := requestedCPU(pod); got != 1000 {
		t.Errorf("%dm with an init container, want 1000m", got)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if got := requestedCPU(pod); got != 0 {
		t.Errorf("%dm of one that has ended", got)
	}
}

func TestNumbersOfNodes(t *testing.T) {
	got, err := counts("1,2,4")
	if diff := cmp.Diff([]int{1, 2, 4}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, wrong := range []string{"", "0", "1,x", "1, 2"} {
		if _, err := counts(wrong); err == nil || !strings.Contains(err.Error(), "such as 1,2,4") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestReports(t *testing.T) {
	ms := time.Millisecond
	for name, tc := range map[string]struct {
		print func(*strings.Builder)
		want  string
	}{
		"scale-out": {func(out *strings.Builder) {
			reportScaleOut(out, options{instances: 8}, []throughput{
				{nodes: 1, instances: 8, perSecond: 15.8, ramp: 9 * time.Second}, {nodes: 4, instances: 32, perSecond: 60.04, ramp: 12 * time.Second, failed: 1}})
		}, "instances_per_node=8\ncall_ms=500\nthroughput_1=15.80\nideal_1=16.00\nramp_1_s=9.0\nfailed_1=0\n" +
			"throughput_4=60.04\nideal_4=64.00\nramp_4_s=12.0\nfailed_4=1\nratio_4_1=3.800\ngoal_reached=true\n"},
		"too little": {func(out *strings.Builder) {
			reportScaleOut(out, options{}, []throughput{{nodes: 1, perSecond: 10}, {nodes: 2, perSecond: 18}})
		}, "instances_per_node=0\ncall_ms=500\nthroughput_1=10.00\nideal_1=0.00\nramp_1_s=0.0\nfailed_1=0\n" +
			"throughput_2=18.00\nideal_2=0.00\nramp_2_s=0.0\nfailed_2=0\nratio_2_1=1.800\ngoal_reached=false\n"},
		"burst": {func(out *strings.Builder) {
			o := options{rate: 150, length: 30 * time.Second}
			reportBurst(out, o, burst{calls: 4500, created: 13, needed: needed(o), most: 12, waits: []time.Duration{ms, 2 * ms, 3 * time.Second}})
		}, "rate=150\nlength_s=30\ncalls=4500\nfailed=0\ncreated=13\nneeded=8\ncreated_by_needed=1.625\ninstances_at_the_end=12\n" +
			"wait_p50_ms=2.0\nwait_p99_ms=3000.0\nwait_max_ms=3000.0\ngoal_reached=false\n"},
		"no answer": {func(out *strings.Builder) {
			reportBurst(out, options{rate: 1, length: time.Second}, burst{calls: 1, failed: 1, needed: 1})
		}, "rate=1\nlength_s=1\ncalls=1\nfailed=1\ncreated=0\nneeded=1\ncreated_by_needed=0.000\ninstances_at_the_end=0\n" +
			"wait_p50_ms=unknown\nwait_p99_ms=unknown\nwait_max_ms=unknown\ngoal_reached=false\n"},
		"warm pool": {func(out *strings.Builder) {
			reportWarmPool(out, []start{{answer: answer{waited: 900 * ms}}}, []start{{answer: answer{waited: 80 * ms}, spare: true}})
		}, "runs=1\nserved_by_spares=1\npod_start_p50_ms=900.0\npod_start_p99_ms=900.0\npod_start_max_ms=900.0\n" +
			"spare_start_p50_ms=80.0\nspare_start_p99_ms=80.0\nspare_start_max_ms=80.0\ngoal_reached=true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tc.print(&out)
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarmCallsCostWhatContainersUsed(t *testing.T) {
	at := time.Now()
	c := func(role, pod string) container { return container{role, "ns", pod, "main"} }
	before := map[container]cpuTime{
		c("gateway", "a"): {at, time.Second}, c("gateway", "b"): {at, 0}, c("agent", "i"): {at, time.Minute},
		c("function", "i"): {at, 0}, c("scheduler", "left"): {at, 0}, c("scheduler", "unread"): {at, time.Second},
	}
	after := map[container]cpuTime{
		c("gateway", "a"): {at.Add(10 * time.Second), 3 * time.Second}, c("gateway", "b"): {at.Add(20 * time.Second), 2 * time.Second},
		c("agent", "i"): {at.Add(10 * time.Second), time.Minute + time.Second}, c("function", "i"): {at.Add(10 * time.Second), 5 * time.Second},
		c("scheduler", "unread"): {at, time.Second}, c("scheduler", "new"): {at.Add(time.Second), time.Second},
	}
	used := cores(before, after)
	if diff := cmp.Diff(map[string]float64{"gateway": 0.3, "agent": 0.1, "function": 0.5}, used, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("cores of roles: %s", diff)
	}
	var out strings.Builder
	reportWarm(&out, 1000, 0, used)
	for _, line := range []string{"cpu_us_per_warm_call_function=500.0\n", "cpu_us_per_warm_call=400.0\n", "goal_reached=false\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing of\n%s", line, out.String())
		}
	}
}
