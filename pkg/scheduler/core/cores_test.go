package core

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Deciders learn what calls waited for cores, once: while a call waits for long by its instance,
// and what came before by its end. Executions do not have it.
func TestDecidersLearnWhatCallsWaitForCores(t *testing.T) {
	var seen autoscaler.Snapshot
	f := newTestFunction(func(s *Spec) {
		s.Decide = func(s autoscaler.Snapshot, _ autoscaler.Params) autoscaler.Decision {
			seen = s
			return autoscaler.Decision{}
		}
	})
	f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	look := func() autoscaler.Snapshot {
		f.Step(start, &Ticked{Observed: Observed{Created: 2, Room: -1, NodesBusy: true}})
		return seen
	}
	for _, cid := range []invocation.CID{"a", "b"} {
		f.Step(start, Joined{CID: cid, Capacity: 1})
		f.Step(start, &Pulled{CID: cid, Wants: true, Credits: 1})
	}
	f.Step(start, &Offered{Ticket: ticketOf(1, start)})
	f.Step(start, &Pulled{CID: "a", Wants: true, AwaitsCore: true})
	if s := look(); s.AwaitingCore != 1 || s.CoreWaited != 0 || !s.NodesBusy {
		t.Errorf("while a call waits: %+v", s)
	}
	f.Step(start, &Pulled{CID: "a", Wants: true})
	f.Step(start, &Pulled{CID: "a", Wants: true, Credits: 1, Done: []Done{{ID: ticketOf(1, start).ID, Execution: 10 * time.Millisecond, CoreWait: time.Hour}}})
	f.Step(start, &Reported{Gateway: "g", Stream: 1, Report: LoanReport{Executions: 2, ExecutionTime: 20 * time.Millisecond, CoreWaited: 30 * time.Millisecond}})
	if s := look(); s.AwaitingCore != 0 || s.CoreWaited != 80*time.Millisecond || s.MeanExecution != 10*time.Millisecond {
		t.Errorf("when three have ended: %d await, they waited %v, and took %v", s.AwaitingCore, s.CoreWaited, s.MeanExecution)
	}
	f.Step(start, &Reported{Gateway: "g", Stream: 1, Report: LoanReport{Executions: 3, ExecutionTime: 30 * time.Millisecond, CoreWaited: 40 * time.Millisecond}})
	if s := look(); s.CoreWaited != 10*time.Millisecond {
		t.Errorf("after one more: %v, want 10ms", s.CoreWaited)
	}
	f.Step(start, &Pulled{CID: "b", Wants: true, AwaitsCore: true})
	f.Step(start, DrainRequested{CID: "b"})
	if s := look(); s.AwaitingCore != 0 {
		t.Error("an instance that drains counts")
	}
}
