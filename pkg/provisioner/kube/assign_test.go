package kube

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

var testPool = warmpool.Pool{Scheduler: "scheduler-1", Namespace: "shop", Runtime: "python3.13", Name: "small"}

func poolFunction() *v1alpha1.Function {
	rt, _ := pythonRuntime{}.Get("python3.13")
	return warmpool.PoolFunction(testPool, rt)
}

// pythonFunction is one that can take a spare instance.
func pythonFunction(name string) *v1alpha1.Function {
	f := testFunction(name)
	f.Spec.Template.Image, f.Spec.Template.Protocol = "", "" // that of a Runtime is another one
	f.Spec.Template.RuntimeRef.Name, f.Spec.Template.Handler = "python3.13", "app.handler"
	f.Spec.Template.Code = &v1alpha1.Code{Inline: "def handler(event, context): pass"}
	v1alpha1.Default(f)
	return f
}

// take takes the spare instance 1 as the instance of a function and waits. Until it
// is told what came of it, what is -1.
func (th *harness) take(f *v1alpha1.Function, cid invocation.CID) (begun bool, what *int) {
	th.t.Helper()
	what = new(-1)
	begun = th.Assign(testPool.UID(), "1", provisioner.InstanceSpec{Function: f, CID: cid, Node: "node-1"}, func(result provisioner.AssignResult) {
		if *what != -1 {
			th.t.Error("it was told twice")
		}
		*what = 0
		if result == provisioner.AssignTaken {
			*what = 1
		}
	})
	synctest.Wait()
	return begun, what
}

// withSpare is a stage on which the spare instance 1 runs.
func withSpare(t *testing.T, act func(th *harness)) {
	runHarness(t, testConfig(), []runtime.Object{readyNode("node-1")}, func(th *harness) {
		th.start(poolFunction(), "1")
		pod := th.pod(poolFunction(), "1")
		if pod == nil {
			t.Fatal("there is no spare pod")
		}
		th.report(pod)
		act(th)
	})
}

func TestAFunctionTakesASpareInstance(t *testing.T) {
	withSpare(t, func(th *harness) {
		pod, f := th.pod(poolFunction(), "1"), pythonFunction("f")
		before := th.requested("node-1")
		if uid, cid, known := th.Identify(string(pod.UID), "shop", pod.Name); uid != testPool.UID() || cid != "1" || !known {
			t.Errorf("the spare pod is %s %s", uid, cid)
		}
		begun, what := th.take(f, "00000007-000001")
		if !begun || *what != 1 {
			t.Fatalf("it was not taken: %v, %d", begun, *what)
		}
		if uid, cid, _ := th.Identify(string(pod.UID), "shop", pod.Name); uid != string(f.UID) || cid != "00000007-000001" {
			t.Errorf("the pod is %s %s", uid, cid)
		}
		assigned := th.pod(poolFunction(), "1")
		of, ours := identity(assigned)
		if !ours || of != (id{string(f.UID), "00000007-000001"}) || assigned.Labels[wellknown.LabelRevision] != f.Revision() || assigned.Labels[wellknown.LabelFunction] != "f" {
			t.Errorf("its labels say %v: %v", of, assigned.Labels)
		}
		if len(assigned.OwnerReferences) != 1 || assigned.OwnerReferences[0].Kind != v1alpha1.KindFunctionRevision || assigned.OwnerReferences[0].Name != "f-00001" {
			t.Errorf("its owners are %v", assigned.OwnerReferences)
		}
		if after := th.requested("node-1"); after != before {
			t.Errorf("the node had requests of %+v, and has %+v", before, after)
		}
		// Nobody else gets it.
		if begun, _ := th.take(pythonFunction("g"), "00000007-000001"); begun {
			t.Error("another function takes it")
		}
		// From now on it lives and ends as every instance of the function.
		if found := th.Adopt(f); len(found) != 1 || found[0].Revision != f.Revision() {
			t.Errorf("instances of the function: %+v", found)
		}
		th.report(assigned, ended(podspec.ContainerAgent, "Error", 1, 5, ""))
		if e := th.exit(); e.FunctionUID != string(f.UID) || e.CID != "00000007-000001" {
			t.Errorf("the exit is %+v", e)
		}
		th.noExit()
	})
}

// Whatever else a request that fails may have done: nobody was given the pod, and so
// it is deleted.
func TestASpareInstanceThatCannotBeTakenIsDeleted(t *testing.T) {
	for name, corrupt := range map[string]func(th *harness, pod *corev1.Pod){
		"no answer": func(th *harness, _ *corev1.Pod) {
			th.fail = func(verb string, _ int) error {
				if verb == "patch" {
					return errors.New("connection lost")
				}
				return nil
			}
		},
		"another scheduler's": func(th *harness, pod *corev1.Pod) {
			pod.Labels[wellknown.LabelScheduler] = "scheduler-2"
			_ = th.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "shop")
		},
		"another function's": func(th *harness, pod *corev1.Pod) {
			pod.Labels[wellknown.LabelComponent] = wellknown.ComponentFunction
			_ = th.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "shop")
		},
	} {
		t.Run(name, func(t *testing.T) {
			withSpare(t, func(th *harness) {
				pod, f := th.pod(poolFunction(), "1"), pythonFunction("f")
				corrupt(th, pod)
				begun, what := th.take(f, "00000007-000001")
				if !begun || *what != 0 {
					t.Errorf("it was taken: %v, %d", begun, *what)
				}
				if th.pod(poolFunction(), "1") != nil {
					t.Error("the pod is there")
				}
				if len(th.deleted) == 0 || *th.deleted[0].Preconditions.UID != pod.UID {
					t.Errorf("deletions: %+v", th.deleted)
				}
				if n := testutil.ToFloat64(th.creator.metrics.creations.WithLabelValues("unavailable")); name == "no answer" && n != 1 {
					t.Errorf("%v requests count as unavailable", n)
				}
				// It is nobody's: neither the pool nor the function is told of its end.
				th.noExit()
				if found := append(th.Adopt(f), th.Adopt(poolFunction())...); len(found) != 0 {
					t.Errorf("instances: %+v", found)
				}
			})
		})
	}
}

// Where its node is drained, the other spare instances can be taken.
func TestASpareInstanceThatIsGoneSaysNothingOfOthers(t *testing.T) {
	pod, deleted := &corev1.Pod{}, &corev1.Pod{}
	deleted.DeletionTimestamp = new(metav1.Now())
	of := corev1.Resource("pods")
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		err  error
		want provisioner.AssignResult
	}{
		"taken":           {pod, nil, provisioner.AssignTaken},
		"being deleted":   {deleted, nil, provisioner.AssignGone},
		"gone":            {nil, apierrors.NewNotFound(of, "p"), provisioner.AssignGone},
		"no answer":       {nil, context.DeadlineExceeded, provisioner.AssignFailed},
		"too many":        {nil, apierrors.NewTooManyRequests("later", 1), provisioner.AssignFailed},
		"refused by rule": {nil, apierrors.NewForbidden(of, "p", errors.New("by a policy")), provisioner.AssignFailed},
	} {
		if got := assignResult(c.pod, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSpareInstancesThatCannotBeTakenDoNotFloodTheLog(t *testing.T) {
	withSpare(t, func(th *harness) {
		var log strings.Builder
		th.creator.log = slog.New(slog.NewTextHandler(&log, nil))
		th.creator.untaken.log = th.creator.log
		th.fail = func(verb string, _ int) error {
			if verb == "patch" {
				return errors.New("connection lost")
			}
			return nil
		}
		th.take(pythonFunction("f"), "00000007-000001")
		th.start(poolFunction(), "1")
		th.report(th.pod(poolFunction(), "1"))
		th.take(pythonFunction("g"), "00000007-000001")
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "failures=1 function=shop/f") || th.count("patch") != 2 {
			t.Errorf("%d lines for %d failures, want one with the function:\n%s", n, th.count("patch"), log.String())
		}
	})
}

func TestASpareInstanceThatHasEndedCannotBeTaken(t *testing.T) {
	withSpare(t, func(th *harness) {
		pod := th.pod(poolFunction(), "1")
		th.report(pod, ended(podspec.ContainerAgent, "Error", 1, 5, ""))
		if e := th.exit(); e.FunctionUID != testPool.UID() || e.CID != "1" {
			t.Errorf("the exit is %+v", e)
		}
		if begun, _ := th.take(pythonFunction("f"), "00000007-000001"); begun {
			t.Error("it is taken")
		}
		th.start(poolFunction(), "2")
		th.Stop(testPool.UID(), "2", false)
		synctest.Wait()
		if last := th.deleted[len(th.deleted)-1]; last.GracePeriodSeconds == nil || *last.GracePeriodSeconds != brokenGrace {
			t.Errorf("it has time to finish nothing: %v", last.GracePeriodSeconds)
		}
		if th.Assign(testPool.UID(), "2", provisioner.InstanceSpec{Function: pythonFunction("f"), CID: "00000007-000002"}, nil) {
			t.Error("one that was told to end is taken")
		}
	})
}

// The pod ends between the choice and the request.
func TestTheEndOfAPodRacesWithItsTaking(t *testing.T) {
	withSpare(t, func(th *harness) {
		if err := th.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "shop", th.pod(poolFunction(), "1").Name); err != nil {
			t.Fatal(err)
		}
		begun, what := th.take(pythonFunction("f"), "00000007-000001")
		if begun && *what != 0 {
			t.Errorf("it was taken: %d", *what)
		}
		if !begun {
			th.exit()
		}
		th.noExit()
		if th.requested("node-1") != th.requested("nowhere") {
			t.Errorf("the node has requests of %+v", th.requested("node-1"))
		}
	})
}

// An instance that is told to end while it is taken does so.
func TestAnInstanceMayBeStoppedWhileItIsTaken(t *testing.T) {
	withSpare(t, func(th *harness) {
		f := pythonFunction("f")
		release := make(chan struct{})
		th.fail = func(verb string, _ int) error {
			if verb == "patch" {
				th.mu.Unlock()
				<-release
				th.mu.Lock()
			}
			return nil
		}
		begun, what := th.take(f, "00000007-000001")
		th.Stop(string(f.UID), "00000007-000001", false)
		synctest.Wait()
		close(release)
		time.Sleep(time.Second)
		synctest.Wait()
		if !begun || *what != 1 {
			t.Errorf("begun %v, told %d", begun, *what)
		}
		if e := th.exit(); e.FunctionUID != string(f.UID) || e.Reason != reasonStopped {
			t.Errorf("the exit is %+v", e)
		}
		if th.pod(poolFunction(), "1") != nil {
			t.Error("the pod is there")
		}
	})
}

// A scheduler that starts again under its name has its spare instances still; those of
// others are none of its business.
func TestSpareInstancesAreFoundByTheirScheduler(t *testing.T) {
	rt, _ := pythonRuntime{}.Get("python3.13")
	podOf := func(p warmpool.Pool, cid invocation.CID) *corev1.Pod {
		pod, err := podspec.Spare(podspec.Input{Config: testConfig().Pod, Function: warmpool.PoolFunction(p, rt), Runtime: rt, CID: cid, Node: "node-1"})
		if err != nil {
			t.Fatal(err)
		}
		pod.UID = types.UID("pod-" + cid)
		return pod
	}
	other := testPool
	other.Scheduler = "scheduler-2"
	forged := podOf(testPool, "3")
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "python3.13", Controller: new(true)}}
	runHarness(t, testConfig(), []runtime.Object{readyNode("node-1"), podOf(testPool, "1"), podOf(other, "2"), forged}, func(th *harness) {
		found := th.Adopt(poolFunction())
		if len(found) != 1 || found[0].CID != "1" || found[0].Revision != poolFunction().Revision() {
			t.Errorf("found %+v", found)
		}
		if begun, what := th.take(pythonFunction("f"), "00000007-000001"); !begun || *what != 1 {
			t.Errorf("it cannot be taken: %v, %d", begun, *what)
		}
	})
}
