package kube

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// noEvents hears nothing.
type noEvents struct{}

func (noEvents) StartFailed(provisioner.Key, provisioner.StartFailure) {}
func (noEvents) Owns(string) bool                                      { return true }
func (noEvents) Gone(provisioner.Key, bool, provisioner.StartFailure)  {}

func namesOf(functions []*v1alpha1.Function) (names []provisioner.Served) {
	for _, f := range functions {
		names = append(names, provisioner.Served{UID: string(f.UID), Namespace: f.Namespace})
	}
	return names
}

// provide runs a provisioner over the theatre's Runtime. Look compares its levels once,
// and returns what was mended.
func provide(t *testing.T, act func(th *harness, p *provisioner.Provisioner, look func(...*v1alpha1.Function) (instances, pods int))) {
	runHarness(t, testConfig(), oneNode, func(th *harness) {
		p := provisioner.New(provisioner.Config{}, provisioner.Deps{
			Driver: th.Driver, Adopting: th.Driver, Nodes: th.Driver, Lister: th.Driver, Drift: th.Driver,
			Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(th.t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = p.Run(ctx, noEvents{}) })
		act(th, p, func(served ...*v1alpha1.Function) (instances, pods int) {
			instances, pods = p.Reconcile(), p.ReconcilePods(namesOf(served), func(uid string) {
				p.Adopt(served[slices.IndexFunc(served, func(f *v1alpha1.Function) bool { return string(f.UID) == uid })])
			})
			synctest.Wait()
			return instances, pods
		})
		cancel()
		running.Wait()
	})
}

func TestM4APodThatCameAfterTheTakeoverIsJudged(t *testing.T) {
	provide(t, func(th *harness, p *provisioner.Provisioner, look func(...*v1alpha1.Function) (int, int)) {
		f, other := testFunction("hello"), testFunction("other")
		p.Adopt(f)
		// The owner before asked for it as it lost the function, and its agent never starts.
		late := podOfOther(t, f, "c-1", "node-1")
		late.UID, late.CreationTimestamp.Time = "late", time.Now()
		unserved := podOfOther(t, other, "c-1", "node-1")
		unserved.UID = "unserved"
		elsewhere := podOfOther(t, f, "c-2", "node-1")
		elsewhere.UID, elsewhere.Namespace = "elsewhere", "evil"
		for _, pod := range []*corev1.Pod{late, unserved, elsewhere} {
			if err := th.client.Tracker().Add(pod); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if _, pods := look(f); pods != 0 {
			t.Errorf("%d are mended at the first look: it may be news", pods)
		}
		if _, pods := look(f); pods != 1 {
			t.Errorf("%d are mended, want the one that is late", pods)
		}
		if c := p.Observe(string(f.UID)).Counts; c != (provisioner.Counts{Creating: 1}) {
			t.Errorf("counts %+v, want one that is being created", c)
		}
		for range 3 {
			if instances, pods := look(f); instances+pods != 0 {
				t.Errorf("%d instances and %d pods are mended again", instances, pods)
			}
		}
		time.Sleep(f.Spec.Template.StartupTimeout.Duration + 30*time.Second)
		synctest.Wait()
		if th.pod(f, "c-1") != nil || th.pod(other, "c-1") == nil || th.count("delete") != 1 {
			t.Errorf("%d pods were deleted, want only the one whose agent never came", th.count("delete"))
		}
		if c := p.Observe(string(f.UID)).Counts; c != (provisioner.Counts{}) {
			t.Errorf("counts %+v, want none", c)
		}
	})
}

// Its agent cannot say hello, and the controller waits for it.
func TestM4APodThatCameAfterTheTakeoverAndCannotStartIsDeleted(t *testing.T) {
	provide(t, func(th *harness, p *provisioner.Provisioner, look func(...*v1alpha1.Function) (int, int)) {
		f := testFunction("hello")
		p.Adopt(f)
		late := podOfOther(t, f, "c-1", "node-1")
		waiting(agentC, "ImagePullBackOff", "the registry is away")(late)
		if err := th.client.Tracker().Add(late); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		look(f)
		if _, pods := look(f); pods != 1 || th.pod(f, "c-1") != nil {
			t.Errorf("%d are mended, want one, which is deleted", pods)
		}
		if instances, pods := look(f); instances+pods != 0 {
			t.Errorf("%d instances and %d pods are mended again", instances, pods)
		}
	})
}

func TestM4APodThatGoesWithoutAnEventIsForgotten(t *testing.T) {
	provide(t, func(th *harness, p *provisioner.Provisioner, look func(...*v1alpha1.Function) (int, int)) {
		f := testFunction("hello")
		p.LaunchOn(f, invocation.Term{Epoch: 1}, 2, func() (string, bool) { return "node-1", true })
		synctest.Wait()
		lost := p.Instances(string(f.UID))[0]
		pod := th.pod(f, lost.CID)
		if err := th.watcher.cluster.pods.GetIndexer().Delete(pod); err != nil {
			t.Fatal(err)
		}
		look(f)
		if _, pods := look(f); pods != 1 {
			t.Errorf("%d are mended, want 1", pods)
		}
		if c := p.Observe(string(f.UID)).Counts; c != (provisioner.Counts{Creating: 1}) {
			t.Errorf("counts %+v, want the other one", c)
		}
		if instances, pods := look(f); instances+pods != 0 {
			t.Errorf("%d instances and %d pods are mended again", instances, pods)
		}
	})
}

func TestNothingIsMendedOfALifeThatGoesAsItShould(t *testing.T) {
	provide(t, func(th *harness, p *provisioner.Provisioner, look func(...*v1alpha1.Function) (int, int)) {
		f := testFunction("hello")
		healthy := func(when string) {
			t.Helper()
			for range 4 {
				if instances, pods := look(f); instances+pods != 0 {
					t.Errorf("%s: %d instances and %d pods are mended", when, instances, pods)
				}
			}
		}
		p.LaunchOn(f, invocation.Term{Epoch: 1}, 2, func() (string, bool) { return "node-1", true })
		healthy("launched")
		in := p.Instances(string(f.UID))
		th.report(th.pod(f, in[0].CID))
		healthy("running")
		// The API does not answer, so that what was launched stays to be done.
		th.mu.Lock()
		th.fail = func(verb string, _ int) error {
			if verb == "delete" {
				return context.DeadlineExceeded
			}
			return nil
		}
		th.mu.Unlock()
		th.report(th.pod(f, in[0].CID), ended(agentC, "Completed", 0, 1, ""))
		p.End(in[1].Key, provisioner.Ending{})
		healthy("stopping")
		p.Release(string(f.UID))
		healthy("released")
	})
}
