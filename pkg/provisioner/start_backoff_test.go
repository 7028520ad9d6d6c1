package provisioner

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// One cause ends all instances of a burst.
func TestABurstThatDoesNotStartIsOneFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		launched  int
		code      string
		transient bool
	}{
		"of the function": {8, v1alpha1.ReasonImagePullFailed, false},
		"of the node":     {nodeTries, v1alpha1.ReasonNodeRefused, true},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, func(p *Provisioner, r *fakeDriver, _ *eventRecorder) {
				p.NodeView.config.Nodes[0].Allocatable.MilliCPU = 800
				launched := p.Launch(function(), invocation.Term{Epoch: 7}, tt.launched).Keys
				if len(launched) != tt.launched {
					t.Fatalf("%d were launched, want %d", len(launched), tt.launched)
				}
				begun := time.Now()
				for i, key := range launched {
					r.exits <- Exit{FunctionUID: "u", CID: key.CID, Code: tt.code, Reason: fmt.Sprint("no ", i)}
					synctest.Wait()
					time.Sleep(firstBackoff / 16)
				}
				why, _, failing := startsFail(p.Inventory, "u")
				if !failing || why.InARow != 1 || why.RetryAt.Sub(begun) != firstBackoff || why.Transient() != tt.transient {
					t.Errorf("failing %v, %d in a row, again after %v, transient %v", failing, why.InARow, why.RetryAt.Sub(begun), why.Transient())
				}
				if last := fmt.Sprint("no ", tt.launched-1); why.Reason != last {
					t.Errorf("the reason is %q, want the last one, %q", why.Reason, last)
				}
			})
		})
	}
}

// A long back-off of the function outlasts the short one of the cluster.
func TestAFailureOfTheClusterShortensNoBackoff(t *testing.T) {
	var g StartBackoff
	now := time.Unix(1000, 0)
	for range 6 {
		g.Failed(now, now, StartFailure{Code: v1alpha1.ReasonFunctionExited})
		now = now.Add(time.Minute)
	}
	now = now.Add(-time.Minute)
	g.Failed(now, now.Add(-time.Second), StartFailure{Code: v1alpha1.ReasonClusterUnavailable})
	if n := g.Allowed(now.Add(maxBackoff-1), 1, 0); n != 0 {
		t.Errorf("%d may be launched before %v have passed", n, maxBackoff)
	}
	if n := g.Allowed(now.Add(maxBackoff), 1, 0); n != 1 {
		t.Errorf("%d may be launched after %v, want 1", n, maxBackoff)
	}
}

// An API server that is slow or away holds up the creation, not the function.
func TestAnInstanceHasItsWholeTimeToStartOnceItWasCreated(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		observer := &lateStartObserver{}
		p.deps.StartObserver = observer
		fn := function()
		p.Launch(fn, invocation.Term{Epoch: 7}, 1)
		time.Sleep(time.Hour)
		expectEvents(t, e)
		observer.created.Store(new(time.Now()))
		time.Sleep(startLimit(fn) - time.Second)
		expectEvents(t, e)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if want := []string{v1alpha1.ReasonStartTimeout}; !slices.Equal(e.codes, want) {
			t.Errorf("the codes are %v, want %v", e.codes, want)
		}
	})
}

// lateStartObserver has seen no creation until the test sets one.
type lateStartObserver struct{ created atomic.Pointer[time.Time] }

func (o *lateStartObserver) Progress(string, invocation.CID) (created, sandboxed time.Time) {
	if at := o.created.Load(); at != nil {
		created = *at
	}
	return created, time.Time{}
}
