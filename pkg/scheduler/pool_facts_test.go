package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// poolReply is a message that says this of the pools of python3.13, and nothing else.
func poolReply(generation int64, pools ...*controlwire.PoolFacts) *controlwire.WatchReply {
	return &controlwire.WatchReply{WarmPools: &controlwire.WarmPools{Runtimes: []*controlwire.RuntimeFacts{
		{Name: "python3.13", Generation: generation, Pools: pools},
	}}}
}

func TestAWatcherIsToldOfWarmPools(t *testing.T) {
	rt := pythonWith(2)
	rt.Generation = 7
	config := defaults()
	runtimes := only(rt)
	config.runtimes = runtimes
	inHarness(t, config, func(w *harness) {
		w.ownership.owns("self")
		v := w.watch()
		v.expect(&controlwire.WatchReply{Welcome: &controlwire.Welcome{Protocol: 1, Release: buildinfo.Version}})
		w.after(computeSharesEvery + time.Second/2)
		// No function could take one, which is told as well.
		v.expect(poolReply(7))

		w.put("f", inPython)
		w.after(computeSharesEvery)
		v.expectPools(poolReply(7, &controlwire.PoolFacts{Name: "small", Desired: 2}))
		specs := w.started(poolFunction(rt), 2)
		w.helloSpare(specs[0])
		w.after(watchEvery)
		v.expectPools(poolReply(7, &controlwire.PoolFacts{Name: "small", Desired: 2, Ready: 1}))
		w.after(5 * watchEvery)
		v.expectPools()

		w.runtime.exits <- provisioner.Exit{
			FunctionUID: testPool.UID(), CID: specs[1].CID, Code: v1alpha1.ReasonImagePullFailed, Reason: "no such image",
		}
		w.after(watchEvery)
		v.expectPools(poolReply(7, &controlwire.PoolFacts{Name: "small", Desired: 2, Ready: 1,
			Problem: v1alpha1.ReasonImagePullFailed, Detail: "in namespace ns: no such image"}))

		// A watcher that comes later learns all of it at once.
		late := w.watch()
		w.after(0)
		if got := (<-late.replies).GetWarmPools().GetRuntimes(); len(got) != 1 || got[0].GetPools()[0].GetDesired() != 2 {
			t.Errorf("a later watcher is told of %v", got)
		}

		changed := rt.DeepCopy()
		changed.Generation, changed.Spec.WarmPools[0].Size = 8, 1
		runtimes.Store(changed)
		w.after(computeSharesEvery)
		v.expectPools(poolReply(8, &controlwire.PoolFacts{Name: "small", Desired: 1, Ready: 1,
			Problem: v1alpha1.ReasonImagePullFailed, Detail: "in namespace ns: no such image"}))
	})
}

func TestAWatcherIsToldThatAPoolFindsNoRoom(t *testing.T) {
	rt := pythonWith(1)
	rt.Spec.WarmPools[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("900"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	config := defaults()
	config.runtimes = only(rt)
	inHarness(t, config, func(w *harness) {
		w.ownership.owns("self")
		w.put("f", inPython, func(fn *v1alpha1.Function) { fn.Spec.Template.Resources = *rt.Spec.WarmPools[0].Resources.DeepCopy() })
		w.after(computeSharesEvery + time.Second)
		v := w.watch()
		w.after(0)
		p := (<-v.replies).GetWarmPools().GetRuntimes()[0].GetPools()[0]
		if !p.GetNoCapacity() || p.GetDesired() != 1 || p.GetReady() != 0 || p.GetProblem() != "" {
			t.Errorf("the pool that no node has room for: %v", p)
		}
	})
}

// expectPools expects these messages by now, apart from what they say of functions.
func (v *watcher) expectPools(want ...*controlwire.WatchReply) {
	v.w.t.Helper()
	v.dropFunctions = true
	v.expect(want...)
}

// A large pool is filled in as many ticks as its size asks for.
func TestALargePoolIsFilledTickByTick(t *testing.T) {
	config, rt := defaults(), pythonWith(20)
	config.runtimes = only(rt)
	inHarness(t, config, func(w *harness) {
		w.ownership.owns("self")
		w.put("f", inPython)
		w.ticks(3)
		w.started(poolFunction(rt), 20)
	})
}
