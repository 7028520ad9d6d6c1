package podagent

import (
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// identity is what an instance says of itself.
type identity struct {
	// spare says that it is of no function so far, and all else is empty.
	spare      bool
	uid        string
	generation int64
	cid        string
}

// toWire is what an agent says, for the wire.
func toWire(m core.Message, who identity, token string) *agentwire.PullRequest {
	switch m := m.(type) {
	case core.Hello:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{
			FunctionUid: who.uid, Generation: who.generation, Cid: who.cid, Spare: who.spare, Token: token,
			AgeNs: int64(m.Age), ReadyAfterNs: int64(m.ReadyAfter),
		}}}
	case core.Pull:
		done := make([]*agentwire.Done, 0, len(m.Done))
		for _, d := range m.Done {
			done = append(done, &agentwire.Done{InvocationId: d.ID[:], ExecNs: int64(d.Exec), Unclaimed: d.Unclaimed})
		}
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: uint32(m.Credits), Done: done}}}
	case core.LeaveRequest:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{IdleNs: int64(m.Idle)}}}
	case core.Goodbye:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{Reason: goodbyeReason(m.Reason), Detail: m.Detail}}}
	case core.Ping:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{EveryNs: int64(m.Every), Report: report(m.Report)}}}
	}
	return &agentwire.PullRequest{}
}

func goodbyeReason(r core.Reason) agentwire.Goodbye_Reason {
	switch r {
	case core.ReasonDone:
		return agentwire.Goodbye_REASON_DONE
	case core.ReasonStartFailed:
		return agentwire.Goodbye_REASON_START_FAILED
	case core.ReasonStartTimedOut:
		return agentwire.Goodbye_REASON_START_TIMED_OUT
	case core.ReasonFunctionEnded:
		return agentwire.Goodbye_REASON_FUNCTION_ENDED
	case core.ReasonCallBroken:
		return agentwire.Goodbye_REASON_CALL_BROKEN
	case core.ReasonStopped:
		return agentwire.Goodbye_REASON_STOPPED
	}
	return agentwire.Goodbye_REASON_UNSPECIFIED
}

// fromWire reads what a scheduler says. What it says about time is said about now, so
// a ticket has no times.
func fromWire(wire *agentwire.PullReply) (core.Reply, error) {
	switch kind := wire.GetKind().(type) {
	case *agentwire.PullReply_Ticket:
		t := kind.Ticket
		id, err := invoke.IDFromBytes(t.GetInvocationId())
		if err != nil {
			return nil, err
		}
		return core.Ticket{
			Ticket:  invoke.Ticket{ID: id, Token: invoke.TokenFromBytes(t.GetToken()), Gateway: t.GetGateway()},
			Request: t.GetRequest().GetWhole(),
		}, nil
	case *agentwire.PullReply_Leave:
		return core.LeaveAnswer{Granted: kind.Leave.GetGranted(), AskAgain: time.Duration(kind.Leave.GetAskAgainNs())}, nil
	case *agentwire.PullReply_Retire:
		return core.Retire{Reason: kind.Retire.GetReason()}, nil
	case *agentwire.PullReply_Ended:
		return core.Ended{How: kind.Ended.GetHow()}, nil
	case *agentwire.PullReply_Moved:
		return core.Moved{Addr: kind.Moved.GetAddress(), Epoch: kind.Moved.GetEpoch()}, nil
	case *agentwire.PullReply_Assignment:
		return assignment(kind.Assignment), nil
	case *agentwire.PullReply_Welcome:
		return core.Welcome{Epoch: kind.Welcome.GetEpoch()}, nil
	}
	// Whatever else a scheduler says, it says that it is there.
	return core.Pong{}, nil
}

// assignment is what the core needs to know of one.
func assignment(wire *agentwire.Assignment) core.Assignment {
	return core.Assignment{
		StartupTimeout: time.Duration(wire.GetStartupTimeoutNs()),
		Concurrency:    int(wire.GetConcurrency()),
		BackoffAfter:   time.Duration(wire.GetBackoffAfterNs()),
		IdleTimeout:    time.Duration(wire.GetIdleTimeoutNs()),
	}
}

// report is what was counted, and what this process uses now.
func report(r core.Report) *agentwire.AgentReport {
	cpu, resident := usage()
	return &agentwire.AgentReport{
		Calls: r.Calls, Broken: r.Broken, ClaimsRefused: r.ClaimsRefused, Reconnects: r.Reconnects,
		CpuNs: uint64(cpu), ResidentBytes: resident, BackedOff: r.BackedOff,
	}
}
