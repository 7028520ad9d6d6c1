package provisioner

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestTheYoungestThatNobodyHasHeardOfAreCancelled(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		for range 3 {
			p.Launch(function(), invocation.Term{Epoch: 7}, 1)
			time.Sleep(time.Second)
		}
		second := Key{FunctionUID: "u", CID: r.started[1].CID}
		if _, err := p.Check(second, r.started[1].Token); err != nil {
			t.Fatal(err)
		}
		p.Connect(second)
		p.Disconnect(second)

		third, first := r.started[2].CID, r.started[0].CID
		if got := p.CancelLaunches("u", 1); len(got) != 1 || got[0].CID != third {
			t.Errorf("cancelled %v, want %s", got, third)
		}
		if got := p.CancelLaunches("u", 5); len(got) != 1 || got[0].CID != first {
			t.Errorf("cancelled %v, want %s, for the agent of the other was heard of", got, first)
		}
		if got := p.CancelLaunches("u", -1); got != nil {
			t.Errorf("cancelled %v of -1", got)
		}
		expectEvents(t, e, string(third)+" gone, lost false: stopped", string(first)+" gone, lost false: stopped")
		if c := p.Observe("u").Counts; c != (Counts{Creating: 1, Disconnected: 1}) {
			t.Errorf("counts %+v", c)
		}
		if _, _, failing := startsFail(p.Inventory, "u"); failing {
			t.Error("what was cancelled counts as failed")
		}
		if !slices.Equal(r.stopped, []invocation.CID{third, first}) {
			t.Errorf("stopped %v", r.stopped)
		}
	})
}

func TestTheTimeToStartIsKnownOnceUnlessItRanBefore(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, _ *eventRecorder) {
		p.Launch(function(), invocation.Term{Epoch: 7}, 1)
		time.Sleep(3 * time.Second)
		key := Key{FunctionUID: "u", CID: r.started[0].CID}
		if took, first := p.Pulled(key); took != 3*time.Second || !first {
			t.Errorf("took %v, first %v, want 3s", took, first)
		}
		if took, first := p.Pulled(key); took != 0 || first {
			t.Errorf("again: took %v, first %v", took, first)
		}
		ran := Key{FunctionUID: "u", CID: "00000006-000001"}
		adopted(p.Inventory, Instance{Key: ran, Ran: true, Launched: p.deps.Now().Add(-time.Hour), StartBy: p.deps.Now().Add(time.Hour)})
		if took, first := p.Pulled(ran); took != 0 || !first {
			t.Errorf("one that ran when it was adopted: took %v, first %v", took, first)
		}
		synctest.Wait()
	})
}

func TestL3AStartThatAnotherClockBeganIsNotLearnt(t *testing.T) {
	running(t, func(p *Provisioner, _ *fakeDriver, _ *eventRecorder) {
		another := Key{FunctionUID: "u", CID: "00000006-000001"}
		adopted(p.Inventory, Instance{Key: another, Launched: p.deps.Now().Add(-8 * time.Second), StartBy: p.deps.Now().Add(time.Hour)})
		if took, first := p.Pulled(another); took != 0 || !first {
			t.Errorf("took %v, first %v, want an unknown time", took, first)
		}
	})
}
