package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

var oneNode = []runtime.Object{readyNode("node-1")}

func TestALifeIsTwoWrites(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		th.start(f, "c-1")
		th.report(th.pod(f, "c-1"))
		th.noExit()
		th.Stop(string(f.UID), "c-1", false)
		if e := th.exit(); e.CID != "c-1" || e.Reason != reasonStopped || e.Code != "" {
			t.Errorf("exit %+v", e)
		}
		th.noExit()
		if th.pod(f, "c-1") != nil {
			t.Error("the pod is still there")
		}
		if c, d, all := th.count("create"), th.count("delete"), th.requests; c != 1 || d != 1 || len(all) != 3 {
			t.Errorf("requests %v, want one create, one delete and the informer's list", all)
		}
		if g := th.deleted[0].GracePeriodSeconds; g != nil {
			t.Errorf("the pod had %d s, want its own grace period", *g)
		}
	})
}

func TestAPodCountsFromItsStartToItsEnd(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		want := placement.Amount{MilliCPU: 110, Memory: 96 << 20, Pods: 1}
		th.Start(provisioner.InstanceSpec{Function: f, CID: "c-1", Node: "node-1"})
		if got := th.requested("node-1"); got != want {
			t.Errorf("at once %+v, want %+v", got, want)
		}
		synctest.Wait()
		if got := th.requested("node-1"); got != want {
			t.Errorf("when it is there %+v, want %+v", got, want)
		}
		th.Stop(string(f.UID), "c-1", false)
		th.exit()
		if got := th.requested("node-1"); got != (placement.Amount{}) {
			t.Errorf("afterwards %+v, want nothing", got)
		}
		th.fail = func(verb string, _ int) error {
			if verb == "create" {
				return apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("exceeded quota: small"))
			}
			return nil
		}
		th.start(f, "c-2")
		if e := th.exit(); e.Code != v1alpha1.ReasonQuotaExceeded {
			t.Errorf("exit %+v", e)
		}
		if got := th.requested("node-1"); got != (placement.Amount{}) {
			t.Errorf("after a refusal %+v, want nothing", got)
		}
	})
}

func TestWhateverEndsAPodEndsItsInstanceOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		code   string
	}{
		"the image is missing": {waiting(functionC, "ErrImagePull", "manifest unknown"), v1alpha1.ReasonImagePullFailed},
		"the function exits":   {ended(functionC, "Error", 3, 1, "Traceback"), v1alpha1.ReasonFunctionExited},
		"the agent leaves":     {ended(agentC, "Completed", 0, 1, ""), ""},
		"the node refuses":     {failed("OutOfcpu", "no"), v1alpha1.ReasonNodeFull},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				f := testFunction("hello")
				th.start(f, "c-1")
				th.report(th.pod(f, "c-1"), c.change)
				if e := th.exit(); e.Code != c.code || e.Reason == "" {
					t.Errorf("exit %+v, want code %q", e, c.code)
				}
				th.Stop(string(f.UID), "c-1", false)
				th.noExit()
				if th.pod(f, "c-1") != nil {
					t.Error("the pod is still there")
				}
				if len(th.deleted) != 1 || *th.deleted[0].GracePeriodSeconds != brokenGrace || th.deleted[0].Preconditions == nil {
					t.Errorf("deleted with %+v", th.deleted)
				}
			})
		})
	}
}

// A pod that admission has made larger than the room would be rejected again and again. Where a
// pod is as large as it was chosen for, the node has room as soon as others have ended there.
func TestANodeIsFullForAWhileForAPodThatIsLargerThanItsRoom(t *testing.T) {
	const requested, added = 110, 40
	for name, c := range map[string]struct {
		used    int64
		changes []func(*corev1.Pod)
		room    int
	}{
		"larger":                               {1000 - requested - added + 1, []func(*corev1.Pod){overhead(added), failed("OutOfcpu", "no")}, 0},
		"as expected":                          {1000 - requested, []func(*corev1.Pod){failed("OutOfcpu", "no")}, 1},
		"larger, but ended for another reason": {1000 - requested - added, []func(*corev1.Pod){overhead(added), ended(functionC, "Error", 3, 1, "")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]runtime.Object{somePod("other", "node-1", c.used)}, oneNode...)
			runHarness(t, testConfig(), objects, func(th *harness) {
				f := testFunction("hello")
				expectRoom := func(when string, want int) {
					t.Helper()
					if got := placement.NewSite(th.Candidates(f)).Room(th.Requests(f)); got != want {
						t.Errorf("%s: room for %d, want %d", when, got, want)
					}
				}
				expectRoom("at first", 1)
				for _, cid := range []invocation.CID{"c-1", "c-2"} {
					th.start(f, cid)
					th.report(th.pod(f, cid), c.changes...)
					th.exit()
					expectRoom("after the exit", c.room)
				}
				time.Sleep(rejectedFor - time.Nanosecond)
				expectRoom("a little later", c.room)
				time.Sleep(time.Nanosecond)
				expectRoom("after a while", 1)
				if got := th.requested("node-1"); got.MilliCPU != c.used {
					t.Errorf("in the end %dm are requested, want %dm", got.MilliCPU, c.used)
				}
			})
		})
	}
}

// What a rejected pod had in excess is all that its successor needs besides what it is placed by.
func TestAfterARejectionNoMoreInstancesAreEvictedThanThePodNeeds(t *testing.T) {
	const requested, added, idle = 110, 40, 100
	for name, c := range map[string]struct {
		short   int64 // of room for the pod, in millicores
		evicted int
	}{
		"one is enough":     {1, 1},
		"one is just it":    {idle, 1},
		"two are necessary": {idle + 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			used := 1000 - requested - added + c.short
			objects := append([]runtime.Object{somePod("other", "node-1", used)}, oneNode...)
			runHarness(t, testConfig(), objects, func(th *harness) {
				f := testFunction("hello")
				th.start(f, "c-1")
				th.report(th.pod(f, "c-1"), overhead(added), failed("OutOfcpu", "no"))
				th.exit()
				instances := make([]placement.Idle, 3)
				for i := range instances {
					instances[i] = placement.Idle{Node: "node-1", Requests: placement.Amount{MilliCPU: idle}, For: time.Minute}
				}
				plan := placement.NewEvictionPlanner(th.Candidates(f).Nodes, instances)
				if _, out, ok := plan.Find(placement.EvictionRequest{Want: th.Requests(f)}); len(out) != c.evicted || !ok {
					t.Errorf("%d instances make room: %v, want %d", len(out), ok, c.evicted)
				}
			})
		})
	}
}

// overhead is that of a RuntimeClass, which the API server adds.
func overhead(milli int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
	}
}

// Which volume is missing is known only when its instance is late.
func TestAPodThatIsStoppedBeforeItsVolumesAreMountedNamesThem(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		code  string
	}{
		"at once": {time.Second, ""},
		"late":    {time.Minute, v1alpha1.ReasonStartTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				f := testFunction("hello")
				f.Spec.Template.Mounts = []v1alpha1.Mount{{Name: "tls", MountPath: "/tls", Secret: &v1alpha1.SecretMount{SecretName: "partner-tls"}}}
				th.start(f, "c-1")
				pod := th.pod(f, "c-1")
				th.report(pod, func(p *corev1.Pod) {
					volumes := p.Spec.Volumes
					mounting()(p)
					p.Spec.Volumes = volumes
				})
				time.Sleep(c.after)
				th.Stop(string(f.UID), "c-1", false)
				if e := th.exit(); e.Code != c.code || (c.code != "") != strings.Contains(e.Reason, `the Secret "partner-tls" (the mount tls)`) {
					t.Errorf("exit %+v, want code %q", e, c.code)
				}
			})
		})
	}
}

func TestAPodThatSomebodyDeletesIsLost(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		th.start(f, "c-1")
		if err := th.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "shop", "hello-c-1"); err != nil {
			t.Fatal(err)
		}
		if e := th.exit(); e.Code != v1alpha1.ReasonNodeLost || !strings.Contains(e.Reason, "not by Windlass") {
			t.Errorf("exit %+v", e)
		}
		if th.count("delete") != 0 {
			t.Error("it was deleted again")
		}
	})
}

func TestCreationsAreTriedAgainForAWhile(t *testing.T) {
	t.Run("it passes", func(t *testing.T) {
		runHarness(t, testConfig(), oneNode, func(th *harness) {
			th.fail = func(verb string, attempt int) error {
				if verb == "create" && attempt <= 3 {
					return apierrors.NewServiceUnavailable("starting")
				}
				return nil
			}
			f := testFunction("hello")
			th.start(f, "c-1")
			time.Sleep(retryWindow)
			th.noExit()
			if th.pod(f, "c-1") == nil || th.count("create") != 4 {
				t.Errorf("%d attempts, pod %v", th.count("create"), th.pod(f, "c-1"))
			}
		})
	})
	t.Run("it does not", func(t *testing.T) {
		runHarness(t, testConfig(), oneNode, func(th *harness) {
			th.fail = func(verb string, _ int) error {
				if verb == "create" {
					return apierrors.NewServiceUnavailable("starting")
				}
				return nil
			}
			f := testFunction("hello")
			th.start(f, "c-1")
			time.Sleep(retryWindow)
			if e := th.exit(); e.Code != v1alpha1.ReasonClusterUnavailable || !strings.Contains(e.Reason, "starting") {
				t.Errorf("exit %+v", e)
			}
			if n := th.count("create"); n < 4 || n > 12 {
				t.Errorf("%d attempts in %v", n, retryWindow)
			}
			for result, want := range map[string]float64{"unavailable": 1, "refused": 0} {
				if n := testutil.ToFloat64(th.creator.metrics.creations.WithLabelValues(result)); n != want {
					t.Errorf("%v requests count as %s, want %v", n, result, want)
				}
			}
		})
	})
}

// startFailures keeps the failed starts that a provisioner tells.
type startFailures struct {
	noEvents
	told []provisioner.StartFailure
}

func (e *startFailures) StartFailed(_ provisioner.Key, why provisioner.StartFailure) {
	e.told = append(e.told, why)
}

func TestM9AFunctionIsNotBlamedWhileItsPodCannotBeRequested(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		th.fail = func(verb string, _ int) error {
			if verb == "create" {
				return apierrors.NewServiceUnavailable("starting")
			}
			return nil
		}
		p := provisioner.New(provisioner.Config{}, provisioner.Deps{
			Driver: th.Driver, StartObserver: th.Driver, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(th.t.Context())
		events := &startFailures{}
		var running sync.WaitGroup
		running.Go(func() { _ = p.Run(ctx, events) })
		f := testFunction("hello")
		f.Spec.Template.StartupTimeout.Duration = 100 * time.Millisecond
		// More than are requested at once, so that some wait for their turn.
		const many = 40
		p.LaunchOn(f, invocation.Term{Epoch: 1}, many, func() (string, bool) { return "node-1", true })
		time.Sleep(10 * time.Minute)
		cancel()
		running.Wait()
		if len(events.told) != many {
			t.Errorf("%d starts failed, want %d", len(events.told), many)
		}
		for _, why := range events.told {
			if !why.FromCluster() {
				t.Errorf("the function is blamed: %s, %s", why.Code, why)
				return
			}
		}
	})
}

// While the API is away, deletions of pods that never existed would pile up.
func TestAPodIsDeletedIfItsCreationMayHaveArrived(t *testing.T) {
	refused := &url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	lost := &url.Error{Op: "Post", Err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}}
	stop := func(th *harness, f *v1alpha1.Function) { th.Stop(string(f.UID), "c-1", false) }
	outlast := func(*harness, *v1alpha1.Function) { time.Sleep(retryWindow) }
	for name, c := range map[string]struct {
		errs    []error // of the attempts; the last one repeats
		end     func(*harness, *v1alpha1.Function)
		deleted bool
	}{
		"no connection":              {[]error{refused}, outlast, false},
		"no connection, and stopped": {[]error{refused}, stop, false},
		"no answer":                  {[]error{lost}, outlast, true},
		"no answer, and stopped":     {[]error{lost}, stop, true},
		"no answer to the first":     {[]error{lost, refused}, outlast, true},
		"first away, then unwilling": {[]error{refused, apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("no"))}, outlast, false},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				th.fail = func(verb string, attempt int) error {
					if verb == "create" {
						return c.errs[min(attempt, len(c.errs))-1]
					}
					return nil
				}
				f := testFunction("hello")
				th.start(f, "c-1")
				c.end(th, f)
				th.exit()
				if n := th.count("delete"); (n == 1) != c.deleted {
					t.Errorf("%d deletions", n)
				}
			})
		})
	}
}

func TestDeletionsOfPodsThatMayNotExistAreBounded(t *testing.T) {
	config := testConfig()
	config.setDefaults()
	config.MaxQueue = 2
	d := newDeleter(config, Deps{}, nil, nil)
	for i := range 5 {
		d.enqueue(deletion{flow: "f", pod: podKey{"shop", fmt.Sprint("unsure-", i)}})
	}
	if n := d.queue.length(); n != 2 || !d.isPending(podKey{"shop", "unsure-1"}) || d.isPending(podKey{"shop", "unsure-2"}) {
		t.Errorf("%d of 5 wait, want 2, and only these pending", n)
	}
	d.enqueue(deletion{flow: "f", pod: podKey{"shop", "sure"}, uid: "u"})
	if n := d.queue.length(); n != 3 || !d.isPending(podKey{"shop", "sure"}) {
		t.Errorf("%d wait, want also the pod that exists", n)
	}
}

// An answer that is lost leaves a pod behind that the next attempt finds.
func TestALostAnswerMakesNoSecondPod(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		lost := false
		th.fail = func(verb string, _ int) error {
			if verb != "create" || lost {
				return nil
			}
			lost = true
			pod, err := podspec.Pod(podspec.Input{Config: testConfig().Pod, Function: f, CID: "c-1", Node: "node-1"})
			if err != nil {
				return err
			}
			pod.UID = "pod-lost"
			if err := th.client.Tracker().Add(pod); err != nil {
				return err
			}
			return apierrors.NewTimeoutError("lost", 0)
		}
		th.start(f, "c-1")
		time.Sleep(retryWindow)
		th.noExit()
		th.Stop(string(f.UID), "c-1", false)
		if e := th.exit(); e.Reason != reasonStopped {
			t.Errorf("exit %+v", e)
		}
		if th.pod(f, "c-1") != nil {
			t.Error("the pod is still there")
		}
	})
}

func TestAPodThatTheClusterDoesNotWantIsRefused(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		th.fail = func(verb string, _ int) error {
			if verb == "create" {
				return apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("no"))
			}
			return nil
		}
		th.start(testFunction("hello"), "c-1")
		th.exit()
		if n := testutil.ToFloat64(th.creator.metrics.creations.WithLabelValues("refused")); n != 1 {
			t.Errorf("%v requests count as refused, want 1", n)
		}
	})
}

func TestANameThatAnotherPodHasIsRefused(t *testing.T) {
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hello-c-1", Namespace: "shop", UID: "foreign"}}
	runHarness(t, testConfig(), append([]runtime.Object{foreign}, oneNode...), func(th *harness) {
		th.start(testFunction("hello"), "c-1")
		if e := th.exit(); e.Code != v1alpha1.ReasonPodRefused || !strings.Contains(e.Reason, "another pod hello-c-1") {
			t.Errorf("exit %+v", e)
		}
		if th.count("delete") != 0 {
			t.Error("the other pod was deleted")
		}
	})
}

func TestOneFunctionsTroubleHoldsNobodyUp(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		bad, good := testFunction("bad"), testFunction("good")
		th.client.PrependReactor("create", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
			if action.(k8stesting.CreateAction).GetObject().(*corev1.Pod).Labels[wellknown.LabelFunction] == bad.Name {
				return true, nil, apierrors.NewServiceUnavailable("its webhook is down")
			}
			return false, nil, nil
		})
		for i := range 100 {
			th.Start(provisioner.InstanceSpec{Function: bad, CID: invocation.Term{Epoch: 1}.CID(uint64(i)), Node: "node-1"})
		}
		time.Sleep(time.Second)
		th.start(good, "c-1")
		if th.pod(good, "c-1") == nil {
			t.Error("the good function waits for the bad one")
		}
	})
}

func TestWhatWasNotAskedForYetIsDropped(t *testing.T) {
	config := testConfig()
	config.QPS, config.Burst, config.MaxQueue = 1, 1, 3
	runHarness(t, config, oneNode, func(th *harness) {
		f := testFunction("hello")
		for i := range 6 {
			th.Start(provisioner.InstanceSpec{Function: f, CID: invocation.Term{Epoch: 1}.CID(uint64(i)), Node: "node-1"})
			synctest.Wait()
		}
		// One was created, one waits for the limiter, and three in the queue.
		if e := th.exit(); e.CID != (invocation.Term{Epoch: 1}).CID(5) || !strings.Contains(e.Reason, "3 pods wait") {
			t.Errorf("exit %+v", e)
		} else if why := (provisioner.StartFailure{Code: e.Code}); !why.FromCluster() {
			t.Errorf("%s is held against the function", e.Code)
		}
		th.Stop(string(f.UID), invocation.Term{Epoch: 1}.CID(4), false)
		th.Stop(string(f.UID), invocation.Term{Epoch: 1}.CID(1), false)
		for range 2 {
			if e := th.exit(); e.Reason != reasonStopped {
				t.Errorf("exit %+v", e)
			}
		}
		time.Sleep(time.Minute)
		if n := th.count("create"); n != 3 {
			t.Errorf("%d pods were created, want 3", n)
		}
	})
}

func TestDeletionsAreTriedUntilThePodIsGone(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		th.fail = func(verb string, attempt int) error {
			if verb == "delete" && attempt <= 6 {
				return apierrors.NewInternalError(errors.New("busy"))
			}
			return nil
		}
		f := testFunction("hello")
		th.start(f, "c-1")
		th.Stop(string(f.UID), "c-1", false)
		time.Sleep(time.Minute)
		if e := th.exit(); e.Reason != reasonStopped {
			t.Errorf("exit %+v", e)
		}
		if th.pod(f, "c-1") != nil {
			t.Error("the pod is still there")
		}
	})
}

// Its node could not ask the API for the pod's volumes either, or did not hear of the pod.
func TestAPodThatDidNotStartWhileTheAPIWasAwayIsNotToBlame(t *testing.T) {
	for name, c := range map[string]struct {
		started []func(*corev1.Pod)
		err     error
		cutOff  bool
	}{
		"not started":             {nil, refusedDial, true},
		"started before":          {[]func(*corev1.Pod){condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue)}, refusedDial, false},
		"not started with an API": {nil, apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("somebody looks at it")), false},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				th.fail = func(verb string, attempt int) error {
					if verb == "delete" && attempt <= 6 {
						return c.err
					}
					return nil
				}
				f := testFunction("hello")
				th.start(f, "c-1")
				th.report(th.pod(f, "c-1"), c.started...)
				th.Stop(string(f.UID), "c-1", false)
				time.Sleep(time.Minute)
				if e := th.exit(); e.Code != "" || e.CutOff != c.cutOff {
					t.Errorf("exit %+v, want cut off %v", e, c.cutOff)
				}
			})
		})
	}
}

// The API is back when the pod is deleted, but its node had too little time.
func TestAPodThatDidNotStartBecauseTheAPIWasAwayForAWhileIsNotToBlame(t *testing.T) {
	sandboxed := condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue)
	for name, c := range map[string]struct {
		before, after []func(*corev1.Pod)
		cutOff        bool
	}{
		"not started":    {nil, nil, true},
		"started after":  {nil, []func(*corev1.Pod){sandboxed}, true},
		"started before": {[]func(*corev1.Pod){sandboxed}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				f := testFunction("hello")
				th.start(f, "c-1")
				th.report(th.pod(f, "c-1"), c.before...)
				th.awayFor(30 * time.Second)
				th.report(th.pod(f, "c-1"), c.after...)
				th.start(f, "c-2")
				th.Stop(string(f.UID), "c-1", false)
				if e := th.exit(); e.Code != "" || e.CutOff != c.cutOff {
					t.Errorf("exit %+v, want cut off %v", e, c.cutOff)
				}
				th.Stop(string(f.UID), "c-2", false)
				if e := th.exit(); e.CutOff {
					t.Errorf("exit %+v of a pod that was created later", e)
				}
			})
		})
	}
}

var refusedDial = &url.Error{Op: "Delete", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}

func TestDeletionsThatFailDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("delete", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("busy"))
		})
		var log strings.Builder
		config := testConfig()
		config.setDefaults()
		d := newDeleter(config, Deps{Client: fakeClient{client.CoreV1()}, Log: slog.New(slog.NewTextHandler(&log, nil))}, nil, nil)
		fail := func(times int) {
			for i := range times {
				d.delete(t.Context(), deletion{flow: "f", pod: podKey{"shop", fmt.Sprint("p-", i)}})
			}
		}
		fail(100)
		time.Sleep(failureLogInterval)
		fail(1)
		for _, want := range []string{"failures=1 pod=p-0", "failures=100 pod=p-0"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %q", want)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d lines, want one for the first failure and one for all others", n)
		}
	})
}

// It may be an instance that another scheduler started, and run calls.
func TestAPodOfThatNameIsNotDeletedIfItCannotBeLookedAt(t *testing.T) {
	for name, end := range map[string]func(*harness, *v1alpha1.Function){
		"until it is given up": func(*harness, *v1alpha1.Function) { time.Sleep(retryWindow) },
		"until it is stopped":  func(th *harness, f *v1alpha1.Function) { th.Stop(string(f.UID), "c-1", false) },
	} {
		t.Run(name, func(t *testing.T) {
			foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hello-c-1", Namespace: "shop", UID: "foreign"}}
			runHarness(t, testConfig(), append([]runtime.Object{foreign}, oneNode...), func(th *harness) {
				th.fail = func(verb string, _ int) error {
					if verb == "get" {
						return apierrors.NewInternalError(errors.New("busy"))
					}
					return nil
				}
				f := testFunction("hello")
				th.start(f, "c-1")
				end(th, f)
				th.exit()
				if th.count("delete") != 0 {
					t.Error("the other pod was deleted")
				}
			})
		})
	}
}

func TestAPodThatCannotBeDeletedHoldsNoOtherOfItsFunctionUp(t *testing.T) {
	config := testConfig()
	config.setDefaults()
	runHarness(t, config, oneNode, func(th *harness) {
		f := testFunction("hello")
		// As many as are deleted at once.
		kept := config.Workers / 4
		th.client.PrependReactor("delete", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
			for i := range kept {
				if action.(k8stesting.DeleteAction).GetName() == fmt.Sprint("hello-c-", i) {
					return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("somebody looks at it"))
				}
			}
			return false, nil, nil
		})
		cids := make([]invocation.CID, kept+2)
		for i := range cids {
			cids[i] = invocation.CID(fmt.Sprint("c-", i))
			th.start(f, cids[i])
		}
		for _, cid := range cids {
			th.Stop(string(f.UID), cid, false)
		}
		time.Sleep(time.Second)
		for i, cid := range cids {
			if there := th.pod(f, cid) != nil; there != (i < kept) {
				t.Errorf("%s is there: %v", cid, there)
			}
		}
	})
}

// podOfOther is a pod that another scheduler created.
func podOfOther(t *testing.T, f *v1alpha1.Function, cid invocation.CID, node string) *corev1.Pod {
	t.Helper()
	pod, err := podspec.Pod(podspec.Input{Config: testConfig().Pod, Function: f, CID: cid, Node: node, Decided: epoch})
	if err != nil {
		t.Fatal(err)
	}
	pod.UID = types.UID("uid-of-" + string(f.UID) + "-" + string(cid))
	pod.Status = *running().Status.DeepCopy()
	return pod
}

func TestAdoptTakesOverAndReleaseLetsGo(t *testing.T) {
	f := testFunction("hello")
	good, broken, leaving := podOfOther(t, f, "c-1", "node-1"), podOfOther(t, f, "c-2", "node-1"), podOfOther(t, f, "c-3", "node-1")
	ended(agentC, "Completed", 0, 1, "")(broken)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.NewTime(epoch)), []string{"test/keep"}
	forged := podOfOther(t, f, "c-4", "node-1")
	forged.OwnerReferences = nil
	elsewhere := podOfOther(t, f, "c-5", "node-1")
	elsewhere.Namespace = "evil"
	objects := append([]runtime.Object{good, broken, leaving, forged, elsewhere}, oneNode...)
	runHarness(t, testConfig(), objects, func(th *harness) {
		th.noExit()
		found := th.Adopt(f)
		slices.SortFunc(found, func(a, b provisioner.Existing) int { return strings.Compare(string(a.CID), string(b.CID)) })
		if len(found) != 2 || found[0].CID != "c-1" || found[1].CID != "c-3" || found[0].Ending || !found[1].Ending {
			t.Fatalf("found %+v", found)
		}
		want := provisioner.Existing{
			CID: "c-1", Revision: f.Revision(), Node: "node-1", Started: epoch,
			Requests: placement.Amount{MilliCPU: 110, Memory: 96 << 20, Pods: 1},
		}
		if got := found[0]; !got.Started.Equal(want.Started) || got.Revision != want.Revision || got.Requests != want.Requests || got.Node != want.Node {
			t.Errorf("got %+v, want %+v", got, want)
		}
		synctest.Wait()
		if th.pod(f, "c-2") != nil {
			t.Error("the pod whose agent has left is still there")
		}
		th.noExit()
		if again := th.Adopt(f); len(again) != 2 {
			t.Errorf("the second time %+v", again)
		}
		th.report(th.pod(f, "c-1"), ended(functionC, "Error", 1, 1, ""))
		if e := th.exit(); e.CID != "c-1" || e.Code != v1alpha1.ReasonFunctionExited {
			t.Errorf("exit %+v", e)
		}
		th.Release(string(f.UID))
		th.report(th.pod(f, "c-3"), ended(functionC, "Error", 1, 1, ""))
		th.noExit()
	})
}

// Another scheduler may delete it before this one sees it, and then no event comes of it.
func TestAPodThatWasNeverSeenTakesNoRoomOnceItIsReleased(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		th.client.PrependReactor("create", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
			pod := action.(k8stesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
			pod.UID = "unseen"
			return true, pod, nil
		})
		f := testFunction("hello")
		th.start(f, "c-1")
		if got := th.requested("node-1"); got.Pods != 1 {
			t.Errorf("%+v is requested, want one pod", got)
		}
		th.Release(string(f.UID))
		if got := th.requested("node-1"); got != (placement.Amount{}) {
			t.Errorf("%+v is requested after the release", got)
		}
	})
}

// The race detector sees whether the look and the event share what only one may use.
func TestAPodMayBeSeenWhileItIsLookedFor(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		pod := podOfOther(t, f, "c-1", "node-1")
		var seen sync.WaitGroup
		th.client.PrependReactor("*", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
			switch action.GetVerb() {
			case "create":
				return true, pod, nil
			case "get":
				seen.Go(func() { th.watcher.podChanged(pod) })
				return true, pod, nil
			}
			return false, nil, nil
		})
		th.start(f, "c-1")
		time.Sleep(observeTimeout + 2*time.Second)
		seen.Wait()
		th.noExit()
		if !th.byID[id{string(f.UID), "c-1"}].seen {
			t.Error("nobody looked for the pod")
		}
		th.MarkGone(id{string(f.UID), "c-1"}.key())
		th.exit()
	})
}

func TestIdentifyBelievesOnlyWhatFits(t *testing.T) {
	f := testFunction("hello")
	other := podOfOther(t, f, "c-1", "node-1")
	forged := podOfOther(t, f, "c-2", "node-1")
	forged.Name, forged.UID = "hello-c-9", "forged"
	elsewhere := podOfOther(t, f, "c-4", "node-1")
	elsewhere.Namespace, elsewhere.UID = "evil", "elsewhere"
	runHarness(t, testConfig(), append([]runtime.Object{other, forged, elsewhere}, oneNode...), func(th *harness) {
		th.start(f, "c-3")
		if uid, cid, known := th.Identify(string(other.UID), "shop", "hello-c-1"); uid != "" || cid != "" || !known {
			t.Errorf("a pod that was not adopted yet is %q %q, known %v", uid, cid, known)
		}
		th.Adopt(f)
		for _, c := range []struct {
			uid, namespace, name string
			cid                  invocation.CID
		}{
			{string(other.UID), "shop", "hello-c-1", "c-1"},
			{string(th.pod(f, "c-3").UID), "shop", "hello-c-3", "c-3"},
			{"another", "shop", "hello-c-1", ""},
			{"", "shop", "hello-c-7", ""},
			{string(other.UID), "elsewhere", "hello-c-1", ""},
			{"forged", "shop", "hello-c-9", ""},
			{"elsewhere", "evil", "hello-c-4", ""},
		} {
			uid, cid, known := th.Identify(c.uid, c.namespace, c.name)
			if cid != c.cid || cid != "" && (uid != string(f.UID) || !known) {
				t.Errorf("%s/%s of %q: %s %s %v, want %q", c.namespace, c.name, c.uid, uid, cid, known, c.cid)
			}
		}
	})
}

func TestALostNodeEndsItsInstances(t *testing.T) {
	runHarness(t, testConfig(), []runtime.Object{readyNode("node-1"), readyNode("node-2")}, func(th *harness) {
		f := testFunction("hello")
		nodes := corev1.SchemeGroupVersion.WithResource("nodes")
		for _, cid := range []invocation.CID{"c-1", "c-2"} {
			th.start(f, cid)
			th.report(th.pod(f, cid))
		}
		unready := readyNode("node-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		if err := th.client.Tracker().Update(nodes, unready, ""); err != nil {
			t.Fatal(err)
		}
		th.noExit()
		th.report(th.pod(f, "c-1"), func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"test/keep"}
		}, disruption("DeletionByTaintManager"))
		if e := th.exit(); e.CID != "c-1" || e.Code != v1alpha1.ReasonNodeLost {
			t.Errorf("exit %+v", e)
		}
		if err := th.client.Tracker().Delete(nodes, "", "node-1"); err != nil {
			t.Fatal(err)
		}
		if e := th.exit(); e.CID != "c-2" || e.Code != v1alpha1.ReasonNodeLost || !strings.Contains(e.Reason, "node-1 is gone") {
			t.Errorf("exit %+v", e)
		}
	})
}

func TestAPodThatDoesNotEndIsGivenUp(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		th.start(f, "c-1")
		th.report(th.pod(f, "c-1"), func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"test/keep"}
			pod.DeletionGracePeriodSeconds = new(int64(70))
		})
		time.Sleep(99 * time.Second)
		th.noExit()
		time.Sleep(3 * time.Second)
		if e := th.exit(); e.Code != v1alpha1.ReasonNodeLost || !strings.Contains(e.Reason, "in time") {
			t.Errorf("exit %+v", e)
		}
	})
}

func TestWhatCannotBeAPodIsSaidAtOnce(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		f.Spec.Template.Image, f.Spec.Template.RuntimeRef.Name, f.Spec.Template.Handler = "", "cobol", "a.b"
		th.start(f, "c-1")
		if e := th.exit(); e.Code != v1alpha1.ReasonRuntimeNotFound || !strings.Contains(e.Reason, "cobol") {
			t.Errorf("exit %+v", e)
		}
		f = testFunction("local")
		f.Spec.Template.Image, f.Spec.Template.Command = "", []string{"./server"}
		th.start(f, "c-1")
		if e := th.exit(); e.Code != v1alpha1.ReasonInvalid || !strings.Contains(e.Reason, "spec.template.image") {
			t.Errorf("exit %+v", e)
		}
	})
}

func TestExitsWaitForTheirReader(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		th.fail = func(verb string, _ int) error {
			if verb == "create" {
				return apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("exceeded quota: none"))
			}
			return nil
		}
		const many = 1000
		f := testFunction("hello")
		for i := range many {
			th.Start(provisioner.InstanceSpec{Function: f, CID: invocation.Term{Epoch: 1}.CID(uint64(i)), Node: "node-1"})
		}
		time.Sleep(10 * time.Second)
		seen := map[invocation.CID]bool{}
		for range many {
			seen[th.exit().CID] = true
		}
		th.noExit()
		if len(seen) != many {
			t.Errorf("%d different exits, want %d", len(seen), many)
		}
	})
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	config := testConfig()
	config.QPS, config.Workers, config.Pod.AgentImage = -1, -1, ""
	_, err := New(config, Deps{})
	for _, want := range []string{"QPS", "Workers", "AgentImage", "Client"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

func TestTheEndOfTheFunctionIsWaitedForWhenTheAgentsIsToldFirst(t *testing.T) {
	f := testFunction("hello")
	for name, c := range map[string]struct {
		stop bool
		end  func(*corev1.Pod)
		code string
	}{
		"killed for its memory, after a goodbye":      {true, ended(functionC, "OOMKilled", 137, 1, ""), v1alpha1.ReasonOutOfMemory},
		"killed for its memory, before the goodbye":   {false, ended(functionC, "OOMKilled", 137, 1, ""), v1alpha1.ReasonOutOfMemory},
		"exited in the second in which its agent did": {true, ended(functionC, "Error", 3, 1, "last words"), v1alpha1.ReasonFunctionExited},
		"ended when it was told to":                   {true, ended(functionC, "Error", 143, 2, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				th.lingering = true
				th.start(f, "c-1")
				th.report(th.pod(f, "c-1"))
				if c.stop {
					th.Stop(string(f.UID), "c-1", false)
				}
				th.report(th.pod(f, "c-1"), ended(agentC, "Completed", 0, 1, ""))
				th.noExit()
				th.report(th.pod(f, "c-1"), ended(agentC, "Completed", 0, 1, ""), c.end)
				if e := th.exit(); e.Code != c.code {
					t.Errorf("exit %+v, want the code %q", e, c.code)
				}
			})
		})
	}
}

// The pod's own grace period is for calls.
func TestAnInstanceThatHasFinishedGetsLittleTime(t *testing.T) {
	f := testFunction("hello")
	for name, c := range map[string]struct {
		stops []bool
		grace []int64
	}{
		"at once":                             {[]bool{true}, []int64{brokenGrace}},
		"after it was stopped, and only once": {[]bool{false, true, true, false}, []int64{-1, brokenGrace}},
		"or has not":                          {[]bool{false, false}, []int64{-1}},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				th.lingering = true
				th.start(f, "c-1")
				th.report(th.pod(f, "c-1"))
				for _, finished := range c.stops {
					th.Stop(string(f.UID), "c-1", finished)
					synctest.Wait()
				}
				var grace []int64
				for _, d := range th.deleted {
					grace = append(grace, *cmp.Or(d.GracePeriodSeconds, new(int64(-1))))
				}
				if !slices.Equal(grace, c.grace) {
					t.Errorf("deleted with %v s, want %v", grace, c.grace)
				}
			})
		})
	}
}

func TestAPodThatIsThereOnlyAfterItsInstanceHasFinishedGetsLittleTime(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		f := testFunction("hello")
		in := &instance{id: id{string(f.UID), "c-1"}, stage: stageCreating}
		th.registry.mu.Lock()
		th.addInstance(in)
		th.registry.mu.Unlock()
		th.Stop(string(f.UID), "c-1", true)
		th.registry.mu.Lock()
		th.podCreated(in, &corev1.Pod{})
		th.registry.mu.Unlock()
		synctest.Wait()
		if len(th.deleted) != 1 || *cmp.Or(th.deleted[0].GracePeriodSeconds, new(int64(-1))) != brokenGrace {
			t.Errorf("deleted with %+v", th.deleted)
		}
	})
}

// hangingClient never answers for a pod.
type hangingClient struct{ Client }

func (hangingClient) Pods(string) typed.PodInterface { return hangingPods{} }

type hangingPods struct{ typed.PodInterface }

func (hangingPods) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Pod, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Lost nodes are noticed in the same round.
func TestARoundOfQuestionsToAnAPIThatHangsTakesNoLongerThanOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := make(map[podKey]types.UID)
		for i := range maxVerified {
			pods[podKey{"shop", fmt.Sprint(i)}] = "uid"
		}
		begin := time.Now()
		(&watcher{client: hangingClient{}}).verifyAll(t.Context(), pods)
		if took := time.Since(begin); took > requestTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// The function may have missed its SIGTERM.
func TestAPodWhoseAgentHasEndedIsHurriedOnce(t *testing.T) {
	f := testFunction("hello")
	deleted := func(grace int64) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), &grace
		}
	}
	for name, c := range map[string]struct {
		stop    bool
		changes []func(*corev1.Pod)
		deleted int
	}{
		"stopped, while the function runs":        {true, []func(*corev1.Pod){deleted(70)}, 2},
		"stopped, before the function has begun":  {true, []func(*corev1.Pod){deleted(70), waiting(functionC, "ContainerCreating", "")}, 2},
		"stopped, and its deletion is not seen":   {true, nil, 2},
		"deleted by somebody":                     {false, []func(*corev1.Pod){deleted(70)}, 1},
		"deleted by somebody who is in a hurry":   {false, []func(*corev1.Pod){deleted(1)}, 0},
		"in a pod that nobody has deleted so far": {false, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			runHarness(t, testConfig(), oneNode, func(th *harness) {
				th.lingering = true
				th.start(f, "c-1")
				th.report(th.pod(f, "c-1"))
				if c.stop {
					th.Stop(string(f.UID), "c-1", false)
				}
				synctest.Wait()
				for range 2 {
					th.report(th.pod(f, "c-1"), append(c.changes, ended(agentC, "Completed", 0, 1, ""))...)
				}
				if len(th.deleted) != c.deleted {
					t.Fatalf("%d deletions, want %d: %+v", len(th.deleted), c.deleted, th.deleted)
				}
				if c.deleted == 0 {
					return
				}
				if last := th.deleted[c.deleted-1]; *last.GracePeriodSeconds != brokenGrace {
					t.Errorf("the last has %d s", *last.GracePeriodSeconds)
				}
			})
		})
	}
}

func TestANodeThatWasLostIsWhyAPodThatWasStoppedEnds(t *testing.T) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		th.lingering = true
		f := testFunction("hello")
		th.start(f, "c-1")
		th.report(th.pod(f, "c-1"))
		th.Stop(string(f.UID), "c-1", false) // nothing was heard of it
		th.report(th.pod(f, "c-1"), func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(70))
		})
		defer func() {
			if len(th.deleted) != 1 {
				t.Errorf("deleted %d times: its calls may still run, and need their time", len(th.deleted))
			}
		}()
		th.noExit()
		silent := readyNode("node-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		if err := th.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), silent, ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if e := th.exit(); e.Code != v1alpha1.ReasonNodeLost || !strings.Contains(e.Reason, "node-1 is not ready") {
			t.Errorf("exit %+v, want one because of the node", e)
		}
	})
}

// All pods of a function have its label, and each revision adopts its own.
func TestEachRevisionHasPodsOfItsOwn(t *testing.T) {
	old, fresh := testUnit("hello", 1), testUnit("hello", 2)
	objects := append([]runtime.Object{podOfOther(t, old, "00001-1", "node-1"), podOfOther(t, fresh, "00002-1", "node-1")}, oneNode...)
	runHarness(t, testConfig(), objects, func(th *harness) {
		for f, cid := range map[*v1alpha1.Function]invocation.CID{old: "00001-1", fresh: "00002-1"} {
			if found := th.Adopt(f); len(found) != 1 || found[0].CID != cid || found[0].Revision != f.Revision() {
				t.Errorf("%s has %+v", f.FunctionRevisionName(), found)
			}
			if labels := th.pod(f, cid).Labels; labels[wellknown.LabelFunctionUID] != "uid-hello" || labels[wellknown.LabelRevisionUID] != string(f.UID) {
				t.Errorf("the pod of %s has the labels %v", f.FunctionRevisionName(), labels)
			}
		}
		if difference := th.Drift(namesOf([]*v1alpha1.Function{old, fresh})); len(difference.Gone)+len(difference.Unknown) > 0 {
			t.Errorf("the survey finds %+v", difference)
		}
		// One may not pass for the other's.
		forged := podOfOther(t, old, "00001-2", "node-1")
		forged.Labels[wellknown.LabelRevisionUID] = string(fresh.UID)
		if of, ours := identity(forged); ours {
			t.Errorf("a pod that the first revision owns counts as %v", of)
		}
	})
}
