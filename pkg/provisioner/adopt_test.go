package provisioner

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// adoptingDriver has an instance that ends while it is adopted: its exit is on its way
// before Adopt returns.
type adoptingDriver struct {
	*fakeDriver
	log logBuffer
}

// logBuffer is a log that remembers that something was written to it.
type logBuffer struct{ atomic.Bool }

func (h *logBuffer) Write(p []byte) (int, error) {
	h.Store(true)
	return len(p), nil
}

func (r *adoptingDriver) Adopt(fn *v1alpha1.Function) []Existing {
	r.exits <- Exit{FunctionUID: string(fn.UID), CID: cid1, Reason: "the pod has ended"}
	// The reader of exits has all the time it needs to find no such instance.
	for i := 0; i < 100_000 && !r.log.Load(); i++ {
		runtime.Gosched()
	}
	return []Existing{{CID: cid1, Node: "n", Started: time.Now()}}
}

func (r *adoptingDriver) Release(string) {}

func TestM3AnInstanceThatEndsWhileItIsAdoptedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := &adoptingDriver{fakeDriver: &fakeDriver{exits: make(chan Exit, 16)}}, &eventRecorder{}
		p := New(
			Config{Nodes: []placement.Node{{Name: "n", Allocatable: placement.Amount{MilliCPU: 400, Memory: 1 << 30}}}},
			Deps{Driver: r, Adopting: r, Now: time.Now, Log: slog.New(slog.NewTextHandler(&r.log, nil))},
		)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx, e) }()
		p.Adopt(function())
		synctest.Wait()
		if c := p.Observe("u").Counts; c != (Counts{}) {
			t.Errorf("counts %+v, want none: the instance has ended", c)
		}
		expectEvents(t, e, "00000007-000001 gone, lost true: the pod has ended")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Where etcd was wiped, an epoch comes again in which instances were launched that are
// still there.
func TestAnOrderPassesOverTheNamesOfInstancesThatWereAdopted(t *testing.T) {
	v := newInventory(time.Now)
	there := Key{FunctionUID: "u", CID: cid1}
	adopted(v, Instance{Key: there, Ran: true})
	v.Connect(there)
	v.Pulled(there)
	launched := v.launch("u", invocation.Term{Epoch: 7}.CID, 1, func() (Instance, bool) { return Instance{}, true })
	if len(launched) != 1 || launched[0].CID != cid2 {
		t.Errorf("launched %v, want %s", launched, cid2)
	}
	if c := v.Observe("u").Counts; c != (Counts{Created: 1, Creating: 1}) {
		t.Errorf("counts %+v, want those of both", c)
	}
}

func TestASchedulerEndsASpareInstanceThatDoesNotStartBeforeTheControllerDoes(t *testing.T) {
	rt := &v1alpha1.ClusterRuntime{Spec: v1alpha1.ClusterRuntimeSpec{WarmPools: []v1alpha1.WarmPool{{Name: "small", Size: 1}}}}
	rt.Name = "python3.13"
	fn := warmpool.PoolFunction(warmpool.Pool{Scheduler: "s", Namespace: "shop", Runtime: rt.Name, Name: "small"}, rt)
	launched := time.Unix(1_000_000, 0)
	byController := warmpool.LeaveBy(launched, v1alpha1.DefaultStartupTimeout)
	if limit := launched.Add(startLimit(fn) + adoptTimeout); !limit.Before(byController) {
		t.Errorf("a scheduler waits until %v, and the controller until %v", limit, byController)
	}
}
