package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

func TestAFirstCallTakesASpareInstance(t *testing.T) {
	inPoolHarness(t, 2, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, g *v1alpha1.Function) {
		spares := w.started(poolFunction(rt), 2)
		first, second := w.helloSpare(spares[0]), w.helloSpare(spares[1])
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		w.after(takeTime)
		w.expectCounts(f, provisioner.Counts{Creating: 1})
		first.expect("assigned to ns/f as 00000007-000001")
		second.expect()
		if got := first.assignment; got.GetFunctionUid() != "uid-f" || got.GetConcurrency() != 1 || got.GetRevision() == "" ||
			got.GetStartupTimeoutNs() != int64(10*time.Second) || len(got.GetFiles()) != 1 || got.GetFiles()[0].GetPath() != "app.py" {
			t.Errorf("the assignment is %v", got)
		}
		if !slices.ContainsFunc(first.assignment.GetVariables(), func(v *agentwire.Variable) bool { return v.GetName() == "GREETING" && v.GetValue() == "hello" }) {
			t.Errorf("the variables are %v", first.assignment.GetVariables())
		}
		a := first.become()
		a.expect("ticket 0001 at g:1")
		w.expectCounts(f, provisioner.Counts{Created: 1})
		// What was taken is replaced.
		w.ticks(1)
		w.started(poolFunction(rt), 1)
		if got := w.scrape("function")["spare_instances_assigned_total{f,ns}"]; got != 1 {
			t.Errorf("%v were taken, as is counted", got)
		}
		// The other function gets the other one.
		gw.offer(g, 2)
		w.after(takeTime)
		first.expect()
		second.expect("assigned to ns/g as 00000007-000001")
		second.become().expect("ticket 0002 at g:1")
	})
}

// A spare instance on a calm node is taken before one on a busy node, and as long as there is one, an
// instance more does find a core.
func TestSpareInstancesOfCalmNodesAreTakenFirst(t *testing.T) {
	inPoolHarness(t, 2, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, g *v1alpha1.Function) {
		specs := w.started(poolFunction(rt), 2)
		busy, calm := w.helloSpare(specs[0]), w.helloSpare(specs[1])
		w.scheduler.shell.busyNodes.hear(specs[0].Node, true) // it is the only one with room
		nodesBusy := func() bool {
			of := w.scheduler.shell.lookup(string(f.UID))
			return w.scheduler.ticker.observe(of, of.spec()).NodesBusy
		}
		if !nodesBusy() {
			t.Error("both spare instances are on the busy node, and a calm one counts")
		}
		w.scheduler.pools.spares.move(calm.key, "calm")
		if nodesBusy() {
			t.Error("the spare instance on a calm node does not count")
		}
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		w.after(takeTime)
		busy.expect()
		calm.expect("assigned to ns/f as 00000007-000001")
		gw.offer(g, 2)
		w.after(takeTime)
		busy.expect("assigned to ns/g as 00000007-000001")
	})
}

// move lets a spare instance be on another node.
func (s *spares) move(key provisioner.Key, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byUID[key.FunctionUID].ready[key.CID].node = node
}

// A Runtime has pools of several sizes and for several namespaces. Each function has the
// one of its size, and a pool that admits no namespace with functions has no instance.
func TestFunctionsTakeFromThePoolOfTheirSize(t *testing.T) {
	rt := pythonWith(1)
	large := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	of := func(name, namespace string) v1alpha1.WarmPool {
		return v1alpha1.WarmPool{Name: name, Size: 1, Resources: v1alpha1.Resources{Requests: large},
			NamespaceSelector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}}
	}
	rt.Spec.WarmPools = append(rt.Spec.WarmPools, of("other", "elsewhere"), of("large", "ns"))
	config := defaults()
	config.runtimes = only(rt)
	inHarness(t, config, func(w *harness) {
		w.ownership.owns("self")
		small := w.put("f", inPython)
		big := w.put("g", inPython, func(fn *v1alpha1.Function) { fn.Spec.Template.Resources.Requests = large.DeepCopy() })
		w.after(computeSharesEvery + time.Second/2)
		agents := map[string]*agent{}
		synctest.Wait()
		for _, spec := range w.runtime.take() {
			p, _ := warmpool.PoolOf(string(spec.Function.UID))
			agents[p.Name] = w.helloSpare(spec)
		}
		if got := slices.Sorted(maps.Keys(agents)); !slices.Equal(got, []string{"large", "small"}) {
			t.Fatalf("the pools %v have instances", got)
		}
		gw := w.gateway("g:1")
		gw.offer(big, 1)
		w.after(takeTime)
		agents["small"].expect()
		agents["large"].expect("assigned to ns/g as 00000007-000001")
		gw.offer(small, 2)
		w.after(takeTime)
		agents["small"].expect("assigned to ns/f as 00000007-000001")
	})
}

func TestASpareInstanceGetsNoTickets(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		a := w.helloSpare(w.started(poolFunction(rt), 1)[0])
		a.ping(time.Second)
		a.expect()
		a.pull(1)
		a.expectEnded(codes.InvalidArgument)
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		w.after(takeTime)
		a.expect()
	})
}

// Of many functions that want an instance at once each gets one of its own.
func TestNoSpareInstanceIsGivenTwice(t *testing.T) {
	rt := pythonWith(5)
	config := defaults()
	config.runtimes = only(rt)
	inHarness(t, config, func(w *harness) {
		w.ownership.owns("self")
		gw := w.gateway("g:1")
		var functions []*v1alpha1.Function
		for i := range 8 {
			functions = append(functions, w.put(fmt.Sprint("f", i), inPython))
		}
		w.after(computeSharesEvery + time.Second/2)
		var agents []*agent
		for _, spec := range w.started(poolFunction(rt), 5) {
			agents = append(agents, w.helloSpare(spec))
		}
		for i, fn := range functions {
			gw.offer(fn, i)
		}
		w.after(takeTime)
		owners := make(map[string]bool)
		for _, a := range agents {
			said := a.heard()
			if len(said) != 1 || owners[a.assignment.GetFunction()] {
				t.Errorf("%s heard %v", a.key.CID, said)
			}
			owners[a.assignment.GetFunction()] = true
		}
		// The others get pods of their own.
		pods := 0
		for _, spec := range w.runtime.take() {
			if _, ofPool := warmpool.PoolOf(string(spec.Function.UID)); !ofPool {
				pods++
				if owners[spec.Function.Key().String()] {
					t.Errorf("%s has a spare instance and a pod", spec.Function.Name)
				}
			}
		}
		if pods != 3 {
			t.Errorf("%d pods were launched, want 3", pods)
		}
		for _, fn := range functions {
			w.expectCounts(fn, provisioner.Counts{Creating: 1})
		}
	})
}

func TestWhatCannotBeTakenIsOrderedAtOnce(t *testing.T) {
	for name, corrupt := range map[string]func(*fakePods){
		"refused": func(p *fakePods) { p.refuse = true },
		"failed":  func(p *fakePods) { p.result = provisioner.AssignFailed },
	} {
		t.Run(name, func(t *testing.T) {
			inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
				a := w.helloSpare(w.started(poolFunction(rt), 1)[0])
				corrupt(&w.runtime.pods)
				w.gateway("g:1").offer(f, 1)
				w.after(2 * takeTime)
				a.expect()
				var own []provisioner.InstanceSpec
				for _, spec := range w.runtime.take() {
					if spec.Function.UID == f.UID {
						own = append(own, spec)
					}
				}
				if len(own) != 1 {
					t.Fatalf("%d pods were launched, want 1", len(own))
				}
				w.expectCounts(f, provisioner.Counts{Creating: 1})
				b := w.connectHello(&agentwire.Hello{FunctionUid: "uid-f", Cid: string(own[0].CID), Token: podName(keyOf("uid-f", own[0].CID))})
				b.pull(1)
				b.expect("ticket 0001 at g:1")
			})
		})
	}
}

// A slow API server fails the next attempt as well, and each costs a spare instance.
func TestAFailedAssignmentCostsOneSpareInstance(t *testing.T) {
	inPoolHarness(t, 3, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, g *v1alpha1.Function) {
		for _, spec := range w.started(poolFunction(rt), 3) {
			w.helloSpare(spec)
		}
		w.runtime.pods.result = provisioner.AssignFailed
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		w.after(4 * takeTime)
		gw.offer(g, 2)
		w.after(4 * takeTime)
		own := make(map[string]int)
		for _, spec := range w.runtime.take() {
			own[spec.Function.Name]++
		}
		left := 0
		for _, key := range w.runtime.Instances() {
			if key.FunctionUID == testPool.UID() {
				left++
			}
		}
		if own["f"] != 1 || own["g"] != 1 || left != 2 {
			t.Errorf("%v pods were launched and %d spare instances are left, want one for each function and 2", own, left)
		}
		w.runtime.pods.result = provisioner.AssignTaken
		w.after(assignBlockTime)
		h := w.put("h", inPython)
		gw.offer(h, 3)
		w.after(takeTime)
		w.expectCounts(h, provisioner.Counts{Creating: 1})
		if got := w.scrape("function")["spare_instances_assigned_total{h,ns}"]; got != 1 {
			t.Errorf("%v were assigned later, want 1", got)
		}
	})
}

// Its node is drained, for example.
func TestASpareInstanceThatIsGoneLeavesThePoolInUse(t *testing.T) {
	inPoolHarness(t, 3, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, g *v1alpha1.Function) {
		for _, spec := range w.started(poolFunction(rt), 3) {
			w.helloSpare(spec)
		}
		w.runtime.pods.result = provisioner.AssignGone
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		w.after(takeTime)
		w.runtime.pods.result = provisioner.AssignTaken
		gw.offer(g, 2)
		w.after(2 * takeTime)
		assigned := w.scrape("function")
		if got := assigned["spare_instances_assigned_total{f,ns}"] + assigned["spare_instances_assigned_total{g,ns}"]; got != 2 {
			t.Errorf("%v were assigned later, want 2", got)
		}
	})
}

// Its stream breaks between the choice and the answer: it says hello again, and is
// told then.
func TestAnAssignmentThatWasLostIsToldAgain(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, g *v1alpha1.Function) {
		spec := w.started(poolFunction(rt), 1)[0]
		a := w.helloSpare(spec)
		w.gateway("g:1").offer(f, 1)
		a.cut()
		// While it is being taken nobody can tell.
		early := w.helloSpare(spec)
		early.expect()
		early.expectEnded(codes.Unavailable)
		w.after(takeTime)
		again := w.helloSpare(spec)
		again.expect("assigned to ns/f as 00000007-000001")
		again.become().expect("ticket 0001 at g:1")
		w.helloSpare(spec).expectEnded(codes.Aborted)
	})
}

func TestAStrangerIsNoSpareInstance(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		w.connectHello(&agentwire.Hello{Spare: true, Token: "nobody"}).expectEnded(codes.Unavailable)
		// Nor is an instance that has a function.
		w.gateway("g:1").offer(f, 1)
		for _, spec := range w.runtime.take() {
			if spec.Function.UID == f.UID {
				b := w.connectHello(&agentwire.Hello{FunctionUid: "uid-f", Cid: string(spec.CID), Token: podName(keyOf("uid-f", spec.CID))})
				b.pull(1)
				w.helloSpare(spec).expectEnded(codes.Aborted)
			}
		}
	})
}

func TestOnlyFunctionsThatFitKeepAPoolAndTakeFromIt(t *testing.T) {
	rt := pythonWith(3)
	config := defaults()
	config.runtimes = only(rt)
	inHarness(t, config, func(w *harness) {
		w.ownership.owns("self")
		big := w.put("big", inPython, func(fn *v1alpha1.Function) {
			memory := resource.MustParse("1Gi")
			fn.Spec.Template.Resources.Requests[corev1.ResourceMemory] = memory
		})
		w.after(2 * computeSharesEvery)
		w.started(big, 0)
		small := w.put("small", inPython)
		w.after(2 * computeSharesEvery)
		spares := w.started(poolFunction(rt), 3)
		a := w.helloSpare(spares[0])
		w.gateway("g:1").offer(big, 1)
		w.after(takeTime)
		a.expect()
		w.started(big, 1)
		// The pool goes with the last function that it is for.
		w.catalog.Remove(small.Key())
		w.after(2 * computeSharesEvery)
		for _, spec := range spares {
			if !slices.Contains(w.runtime.stopped, keyOf(string(spec.Function.UID), spec.CID)) {
				t.Errorf("the spare instance %s was not stopped", spec.CID)
			}
		}
		a.expect()
	})
}

// Those that a function has taken stay when the pool goes.
func TestAPoolThatIsRemovedTakesNoFunctionsInstance(t *testing.T) {
	inPoolHarness(t, 2, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		spares := w.started(poolFunction(rt), 2)
		a, b := w.helloSpare(spares[0]), w.helloSpare(spares[1])
		w.gateway("g:1").offer(f, 1)
		w.after(takeTime)
		a.heard()
		a.become()
		w.scheduler.pools.RemoveSpares()
		w.after(3 * computeSharesEvery)
		w.expectCounts(f, provisioner.Counts{Created: 1})
		if !slices.Contains(w.runtime.stopped, b.key) {
			t.Error("the other one was not stopped")
		}
		w.expectCounts(poolFunction(rt), provisioner.Counts{})
	})
}

func TestSpareInstancesOfAnEarlierImageAreReplaced(t *testing.T) {
	inPoolHarness(t, 2, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
		before := w.started(poolFunction(rt), 2)
		for _, spec := range before {
			w.helloSpare(spec)
		}
		rt = rt.DeepCopy()
		rt.Spec.Image = "python:2"
		w.scheduler.shell.deps.Runtimes.(*oneRuntime).Store(rt)
		w.after(2 * computeSharesEvery)
		after := w.started(poolFunction(rt), 2)
		if after[0].Function.Spec.Template.Image != "python:2" {
			t.Errorf("the new ones are of %s", after[0].Function.Spec.Template.Image)
		}
		for _, spec := range before {
			if !slices.Contains(w.runtime.stopped, keyOf(string(spec.Function.UID), spec.CID)) {
				t.Errorf("the spare instance %s was not stopped", spec.CID)
			}
		}
	})
}

// A full node: what has no function goes before anything is refused or evicted.
func TestSpareInstancesYieldToFunctions(t *testing.T) {
	config := defaults()
	config.node = 300
	inPoolHarness(t, 3, config, func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
		for _, spec := range w.started(poolFunction(rt), 3) {
			w.helloSpare(spec)
		}
		gw := w.gateway("g:1")
		other := w.put("other", minInstances(2))
		gw.offer(other, 1, 2)
		w.ticks(5)
		w.started(other, 2)
		w.expectCounts(poolFunction(rt), provisioner.Counts{Created: 1})
		gw.expectRefused(controlwire.Refusal_REASON_NO_CAPACITY)
		// None is created as long as functions lack room, and for a while after.
		w.after(refillBlockTime / 2)
		w.expectCounts(poolFunction(rt), provisioner.Counts{Created: 1})
	})
}

// A function that no node can hold has nothing from an instance less of a pool.
func TestPoolsAreRefilledBesideAFunctionThatNoNodeCanHold(t *testing.T) {
	tooLarge := func(fn *v1alpha1.Function) {
		cpu := resource.MustParse("400m")
		fn.Spec.Template.Resources.Requests[corev1.ResourceCPU] = cpu
	}
	for name, lackRoom := range map[string]func(w *harness, d time.Duration){
		"of this scheduler": func(w *harness, d time.Duration) {
			w.put("large", tooLarge, minInstances(1))
			w.after(d)
		},
		"of another scheduler": func(w *harness, d time.Duration) {
			fn := w.put("large", tooLarge)
			for range d / time.Second {
				w.scheduler.receiveRequests(&controlwire.HeartbeatRequest{
					Scheduler: "another", CapacityRequests: []*controlwire.CapacityRequest{{FunctionUid: string(fn.UID), Instances: 1, WaitedNs: 1e9}},
				})
				w.after(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := defaults()
			config.node = 200
			inPoolHarness(t, 2, config, func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
				spares := w.started(poolFunction(rt), 2)
				for _, spec := range spares {
					w.helloSpare(spec)
				}
				lackRoom(w, time.Second)
				w.runtime.end(keyOf(string(spares[0].Function.UID), spares[0].CID), "killed")
				lackRoom(w, 2*refillBlockTime)
				w.started(poolFunction(rt), 1)
			})
		})
	}
}

func TestAFailingFunctionTakesNoSpareInstances(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, g *v1alpha1.Function) {
		a := w.helloSpare(w.started(poolFunction(rt), 1)[0])
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		w.after(takeTime)
		a.heard()
		// Its code cannot be loaded.
		b := w.connectHello(&agentwire.Hello{FunctionUid: "uid-f", Cid: a.assignment.GetCid(), Token: podName(a.key)})
		b.goodbye(agentwire.Goodbye_REASON_START_FAILED, "no module named app")
		w.ticks(1)
		spec := w.started(poolFunction(rt), 1)[0]
		c := w.helloSpare(spec)
		w.after(time.Second)
		gw.offer(f, 2)
		w.ticks(2)
		c.expect()
		gw.offer(g, 3)
		w.after(takeTime)
		c.expect("assigned to ns/g as 00000007-000001")
	})
}

func TestSpareInstancesThatDoNotStartAreTriedOneByOne(t *testing.T) {
	inPoolHarness(t, 3, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
		for _, spec := range w.started(poolFunction(rt), 3) {
			w.runtime.end(keyOf(string(spec.Function.UID), spec.CID), "no such image")
		}
		w.after(time.Minute)
		if tried := len(w.runtime.take()); tried == 0 || tried > 2 {
			t.Errorf("%d were tried within a minute", tried)
		}
	})
}

// A spare instance that is lost is replaced, and is not taken in between.
func TestASpareInstanceThatIsLostIsReplaced(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		spec := w.started(poolFunction(rt), 1)[0]
		a := w.helloSpare(spec)
		a.cut()
		w.gateway("g:1").offer(f, 1)
		w.after(takeTime)
		w.started(f, 1)
		w.after(20 * time.Second)
		w.started(poolFunction(rt), 1)
		if !slices.Contains(w.runtime.stopped, a.key) {
			t.Error("the silent one was not stopped")
		}
	})
}

func TestSharesFollowOwnership(t *testing.T) {
	inPoolHarness(t, 2, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
		w.started(poolFunction(rt), 2)
		w.ownership.owns("other")
		w.after(2 * computeSharesEvery)
		w.expectCounts(poolFunction(rt), provisioner.Counts{})
	})
}

// How a start went from a spare instance says nothing of those without; what the
// spare instances themselves took does.
func TestStartsOfSpareInstancesAreLearntAsTheRuntimes(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		spec := w.started(poolFunction(rt), 1)[0]
		w.after(3 * time.Second)
		a := w.helloSpare(spec)
		w.gateway("g:1").offer(f, 1)
		w.after(takeTime)
		a.heard()
		a.become()
		took := w.meanStart(f)
		if took < 3*time.Second || took > 6*time.Second {
			t.Errorf("an instance is said to take %v", took)
		}
	})
}

func TestSeriesOfPools(t *testing.T) {
	inPoolHarness(t, 2, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
		w.helloSpare(w.started(poolFunction(rt), 2)[0])
		got := w.scrape("runtime")
		want := map[string]float64{
			"spare_instances{ns,small,python3.13,starting}": 1, "spare_instances{ns,small,python3.13,ready}": 1, "spare_instances{ns,small,python3.13,leaving}": 0,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the series are %v, want %v", got, want)
		}
	})
}

func TestL8APoolThatIsPlannedAnewGivesOtherNames(t *testing.T) {
	s, now, before := newSpares(), time.Unix(1_800_000_000, 0), uint64(0)
	for range 3 { // in the same moment
		epoch := s.nextEpoch(now)
		if epoch <= before {
			t.Errorf("epoch %d comes after %d", epoch, before)
		}
		before = epoch
	}
	if later := newSpares().nextEpoch(now.Add(time.Second)); later <= before {
		t.Errorf("a process that begins a second later has the epoch %d, not after %d", later, before)
	}
}
