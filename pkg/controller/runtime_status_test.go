package controller

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// runtimeOf is a ClusterRuntime of generation 2 with a warm pool of each name, of sizes of
// their own.
func runtimeOf(pools ...string) *v1alpha1.ClusterRuntime {
	rt := &v1alpha1.ClusterRuntime{}
	rt.Name, rt.Generation = "python3.13", 2
	rt.Spec.Image, rt.Spec.FileExtension = "python:1", "py"
	for i, name := range pools {
		memory := *resource.NewQuantity(int64(i+1)<<28, resource.BinarySI)
		rt.Spec.WarmPools = append(rt.Spec.WarmPools, v1alpha1.WarmPool{
			Name: name, Size: 3, Resources: v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceMemory: memory}},
		})
	}
	return rt
}

// said are the conditions as "Type=Status/Reason", sorted.
func said(conditions []metav1.Condition) []string {
	var list []string
	for _, c := range conditions {
		list = append(list, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(list)
	return list
}

func TestConditionsOfRuntimes(t *testing.T) {
	pull := problem{v1alpha1.ReasonImagePullFailed, "in namespace shop: no such image"}
	observed := func(generation int64, pools map[string]poolFacts) runtimeFacts {
		return runtimeFacts{schedulers: 2, generation: generation, pools: pools}
	}
	const accepted = "Accepted=True/Accepted"
	for name, c := range map[string]struct {
		runtime  *v1alpha1.ClusterRuntime
		facts    runtimeFacts
		want     []string
		observed int64
		spare    v1alpha1.SpareCounts
	}{
		"no pools":                          {runtimeOf(), observed(0, nil), []string{accepted, "Ready=True/Accepted", "WarmPoolsReady=True/NoPools"}, 2, v1alpha1.SpareCounts{}},
		"no pools, no schedulers":           {runtimeOf(), runtimeFacts{generation: math.MaxInt64}, []string{accepted, "Ready=True/Accepted", "WarmPoolsReady=True/NoPools"}, 2, v1alpha1.SpareCounts{}},
		"no schedulers":                     {runtimeOf("a"), runtimeFacts{generation: math.MaxInt64}, []string{accepted, "Ready=True/Accepted", "WarmPoolsReady=Unknown/Unobserved"}, 2, v1alpha1.SpareCounts{}},
		"a scheduler that does not know it": {runtimeOf("a"), observed(0, nil), []string{accepted, "Ready=True/Accepted", "WarmPoolsReady=Unknown/SchedulerBehind"}, 0, v1alpha1.SpareCounts{}},
		"a scheduler with an earlier one": {runtimeOf("a"), observed(1, map[string]poolFacts{"a": {desired: 1, ready: 1}}),
			[]string{accepted, "Ready=True/Started", "WarmPoolsReady=Unknown/SchedulerBehind"}, 1, v1alpha1.SpareCounts{Ready: 1, Desired: 1}},
		"functions that cannot take any": {runtimeOf("a"), observed(2, nil), []string{accepted, "Ready=True/Accepted", "WarmPoolsReady=True/NotNeeded"}, 2, v1alpha1.SpareCounts{}},
		"all there": {runtimeOf("a", "b"), observed(2, map[string]poolFacts{"a": {desired: 3, ready: 3}, "b": {desired: 1, ready: 1}}),
			[]string{accepted, "Ready=True/Started", "WarmPoolsReady=True/Full"}, 2, v1alpha1.SpareCounts{Ready: 4, Desired: 4}},
		"some on their way": {runtimeOf("a", "b"), observed(2, map[string]poolFacts{"a": {desired: 3, ready: 3}, "b": {desired: 2, ready: 1}}),
			[]string{accepted, "Ready=True/Started", "WarmPoolsReady=False/Creating"}, 2, v1alpha1.SpareCounts{Ready: 4, Desired: 5}},
		"all on their way": {runtimeOf("a"), observed(2, map[string]poolFacts{"a": {desired: 2}}),
			[]string{accepted, "Ready=True/Accepted", "WarmPoolsReady=False/Creating"}, 2, v1alpha1.SpareCounts{Desired: 2}},
		"no room": {runtimeOf("a"), observed(2, map[string]poolFacts{"a": {desired: 2, noRoom: true}}),
			[]string{accepted, "Ready=True/Accepted", "WarmPoolsReady=False/NoCapacity"}, 2, v1alpha1.SpareCounts{Desired: 2}},
		"an image that cannot be pulled": {runtimeOf("a"), observed(2, map[string]poolFacts{"a": {desired: 2, problem: pull, noRoom: true}}),
			[]string{accepted, "Ready=False/ImagePullFailed", "WarmPoolsReady=False/ImagePullFailed"}, 2, v1alpha1.SpareCounts{Desired: 2}},
		"one namespace where they do not start": {runtimeOf("a"), observed(2, map[string]poolFacts{"a": {desired: 4, ready: 2, problem: pull}}),
			[]string{accepted, "Ready=True/Started", "WarmPoolsReady=False/ImagePullFailed"}, 2, v1alpha1.SpareCounts{Ready: 2, Desired: 4}},
		"one pool that does not start": {runtimeOf("a", "b"), observed(2, map[string]poolFacts{"a": {desired: 1, problem: pull}, "b": {desired: 1, ready: 1}}),
			[]string{accepted, "Ready=True/Started", "WarmPoolsReady=False/ImagePullFailed"}, 2, v1alpha1.SpareCounts{Ready: 1, Desired: 2}},
		"a pool that is gone":       {runtimeOf(), observed(2, map[string]poolFacts{"a": {ready: 1}}), []string{accepted, "Ready=True/Accepted", "WarmPoolsReady=True/NoPools"}, 2, v1alpha1.SpareCounts{}},
		"more than there are to be": {runtimeOf("a"), observed(2, map[string]poolFacts{"a": {ready: 1}}), []string{accepted, "Ready=True/Started", "WarmPoolsReady=True/NotNeeded"}, 2, v1alpha1.SpareCounts{Ready: 1}},
		"what the API server cannot see": {func() *v1alpha1.ClusterRuntime {
			rt := runtimeOf("a")
			rt.Spec.WarmPools[0].NamespaceSelector = &v1alpha1.NamespaceSelector{MatchLabels: map[string]string{"a b": "c"}}
			return rt
		}(), observed(2, nil), []string{"Accepted=False/Invalid", "Ready=False/Invalid", "Stalled=True/Invalid", "WarmPoolsReady=False/Invalid"}, 2, v1alpha1.SpareCounts{}},
	} {
		t.Run(name, func(t *testing.T) {
			in := runtimeInput{now: now, runtime: c.runtime, observed: c.facts}
			got := runtimeStatusOf(in)
			if diff := cmp.Diff(c.want, said(got.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if got.ObservedGeneration != c.observed || got.SpareInstances != c.spare {
				t.Errorf("observed %d, spare instances %+v; want %d, %+v", got.ObservedGeneration, got.SpareInstances, c.observed, c.spare)
			}
			for _, condition := range got.Conditions {
				if condition.ObservedGeneration != c.observed || condition.Message == "" || condition.LastTransitionTime.IsZero() {
					t.Errorf("the condition %+v", condition)
				}
			}
			c.runtime.Status = got
			in.now = now.Add(time.Hour)
			if again := planRuntime(in); again.status != nil {
				t.Errorf("nothing has changed, and written is %+v", again.status)
			}
		})
	}
}

func TestMessagesOfWarmPoolsSayWhatIsMissingAndWhy(t *testing.T) {
	for want, of := range map[string]poolFacts{
		"warm pool a has 1 of 3 spare instances":                                           {desired: 3, ready: 1},
		"warm pool a has 1 of 3 spare instances; nodes have no room, or functions need it": {desired: 3, ready: 1, noRoom: true},
		"warm pool a has 1 of 3 spare instances; in namespace n: no such image":            {desired: 3, ready: 1, noRoom: true, problem: problem{"R", "in namespace n: no such image"}},
	} {
		got := findCondition(runtimeStatusOf(runtimeInput{now: now, runtime: runtimeOf("a"), observed: runtimeFacts{schedulers: 1, generation: 2, pools: map[string]poolFacts{"a": of}}}).Conditions, v1alpha1.ConditionWarmPoolsReady)
		if got.Message != want {
			t.Errorf("%q, want %q", got.Message, want)
		}
	}
}

// A controller that has just started knows less than the one before it, and does not unsay
// what that said.
func TestAStatusStaysWhileSchedulersAreStillSilent(t *testing.T) {
	rt := runtimeOf("a")
	full := runtimeFacts{schedulers: 2, generation: 2, pools: map[string]poolFacts{"a": {desired: 3, ready: 3}}}
	rt.Status = runtimeStatusOf(runtimeInput{now: now, runtime: rt, observed: full})
	half := runtimeFacts{schedulers: 1, incomplete: true, generation: 2, pools: map[string]poolFacts{"a": {desired: 1, ready: 1}}}
	if out := planRuntime(runtimeInput{now: now, runtime: rt, observed: half, settles: 4 * time.Second}); out.status != nil || out.again != 4*time.Second {
		t.Errorf("%+v", out)
	}
	for name, in := range map[string]runtimeInput{
		"all have reported":    {now: now, runtime: rt, observed: runtimeFacts{schedulers: 1, generation: 2, pools: half.pools}, settles: 4 * time.Second},
		"one never reports":    {now: now, runtime: rt, observed: half},
		"it is another by now": {now: now, runtime: func() *v1alpha1.ClusterRuntime { c := rt.DeepCopy(); c.Generation = 3; return c }(), observed: half, settles: 4 * time.Second},
	} {
		if out := planRuntime(in); out.status == nil {
			t.Errorf("%s: nothing is written", name)
		}
	}
}

// However often instances come and go, there is one write in writeInterval in the long run,
// and in the end the status is what is known.
func TestStatusesOfRuntimesKeepTheirPace(t *testing.T) {
	const length, step = 20 * time.Minute, 500 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		rt, in, writes := runtimeOf("a"), runtimeInput{}, 0
		every := rapid.SampledFrom([]time.Duration{step, 3 * time.Second, time.Minute}).Draw(t, "every")
		observed := runtimeFacts{schedulers: 1, generation: 2}
		plan := func(at time.Duration) {
			in.now, in.runtime, in.observed = now.Add(at), rt, observed
			if out := planRuntime(in); out.status != nil {
				rt.Status, in.written, in.pace, writes = *out.status, in.now, out.pace, writes+1
			} else if out.again < 0 {
				t.Fatalf("planned again after %v", out.again)
			}
		}
		for at := time.Duration(0); at < length; at += step {
			if at%every == 0 {
				observed.pools = map[string]poolFacts{"a": {desired: 3, ready: rapid.Int64Range(0, 3).Draw(t, "ready")}}
			}
			plan(at)
		}
		if most := int(length/writeInterval) + int(maxAhead/writeInterval) + 2; writes > most {
			t.Fatalf("%d writes in %v, want at most %d", writes, length, most)
		}
		plan(length + maxAhead + writeInterval)
		if rt.Status.SpareInstances.Ready != int32(observed.pools["a"].ready) {
			t.Fatalf("the status says %+v at last, and known is %+v", rt.Status.SpareInstances, observed.pools["a"])
		}
	})
}

func poolsTold(generation int64, pools ...*controlwire.PoolFacts) *controlwire.WarmPools {
	return &controlwire.WarmPools{Runtimes: []*controlwire.RuntimeFacts{{Name: "r", Generation: generation, Pools: pools}}}
}

func TestSchedulersTogetherKeepAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var poked []string
		b := newPoolStore(func(name string) { poked = append(poked, name) })
		one, two := &stream{"one:1"}, &stream{"two:1"}
		expect := func(what string, want runtimeFacts, pokes ...string) {
			t.Helper()
			if diff := cmp.Diff(want, b.get("r"), cmp.AllowUnexported(runtimeFacts{}, poolFacts{}, problem{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			if !slices.Equal(poked, pokes) {
				t.Errorf("%s: %v were poked, want %v", what, poked, pokes)
			}
			poked = nil
		}
		expect("it is not known who should report", runtimeFacts{incomplete: true, generation: math.MaxInt64, pools: map[string]poolFacts{}})
		b.setAddresses(nil)
		expect("there are no schedulers", runtimeFacts{generation: math.MaxInt64, pools: map[string]poolFacts{}})
		b.setAddresses([]string{"one:1", "two:1"})
		b.setReport(one, nil)
		expect("nothing is said", runtimeFacts{incomplete: true, generation: math.MaxInt64, pools: map[string]poolFacts{}})
		b.setReport(one, poolsTold(2, &controlwire.PoolFacts{Name: "a", Desired: 2, Ready: 1, Problem: "not a reason!", Detail: "b"}))
		expect("one", runtimeFacts{schedulers: 1, incomplete: true, generation: 2, pools: map[string]poolFacts{
			"a": {desired: 2, ready: 1, problem: problem{v1alpha1.ReasonStartFailed, "b"}}}}, "r")
		b.setReport(two, &controlwire.WarmPools{})
		expect("two does not know it", runtimeFacts{schedulers: 2, pools: map[string]poolFacts{
			"a": {desired: 2, ready: 1, problem: problem{v1alpha1.ReasonStartFailed, "b"}}}}, "r")
		b.setReport(two, poolsTold(3, &controlwire.PoolFacts{Name: "a", Desired: 1, NoCapacity: true, Problem: v1alpha1.ReasonImagePullFailed, Detail: "c"}))
		both := runtimeFacts{schedulers: 2, generation: 2, pools: map[string]poolFacts{
			"a": {desired: 3, ready: 1, noRoom: true, problem: problem{v1alpha1.ReasonImagePullFailed, "c"}}}}
		expect("both", both, "r")
		b.setReport(two, poolsTold(3, &controlwire.PoolFacts{Name: "a", Desired: 1, NoCapacity: true, Problem: v1alpha1.ReasonImagePullFailed, Detail: "c"}))
		expect("the same again", both)

		b.close(two)
		expect("its stream is broken", both)
		second := &stream{"two:1"}
		b.setReport(second, poolsTold(3, &controlwire.PoolFacts{Name: "a", Desired: 1, NoCapacity: true, Problem: v1alpha1.ReasonImagePullFailed, Detail: "c"}))
		time.Sleep(2 * lostGrace)
		b.sweep()
		expect("it came back, and counts once", both)
		b.close(two) // late
		b.close(second)
		time.Sleep(lostGrace)
		b.sweep()
		expect("it is gone", runtimeFacts{schedulers: 1, incomplete: true, generation: 2, pools: map[string]poolFacts{
			"a": {desired: 2, ready: 1, problem: problem{v1alpha1.ReasonStartFailed, "b"}}}}, "r")

		b.setReport(second, &controlwire.WarmPools{})
		poked = nil
		b.close(second)
		time.Sleep(lostGrace)
		b.sweep()
		expect("one is gone that never knew it", runtimeFacts{schedulers: 1, incomplete: true, generation: 2, pools: map[string]poolFacts{
			"a": {desired: 2, ready: 1, problem: problem{v1alpha1.ReasonStartFailed, "b"}}}}, "r")
	})
}
