package podagent

import (
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
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
func toWire(m core.Message, who identity, token string) *wirev1.PullRequest {
	switch m := m.(type) {
	case core.Hello:
		return &wirev1.PullRequest{Kind: &wirev1.PullRequest_Hello{Hello: &wirev1.Hello{
			FunctionUid: who.uid, Generation: who.generation, Cid: who.cid, Spare: who.spare, Token: token,
			AgeNs: int64(m.Age), ReadyAfterNs: int64(m.ReadyAfter),
		}}}
	case core.Pull:
		done := make([]*wirev1.Done, 0, len(m.Done))
		for _, d := range m.Done {
			done = append(done, &wirev1.Done{InvocationId: d.ID[:], ExecNs: int64(d.Exec), Unclaimed: d.Unclaimed})
		}
		return &wirev1.PullRequest{Kind: &wirev1.PullRequest_Pull{Pull: &wirev1.Pull{Credits: uint32(m.Credits), Done: done}}}
	case core.LeaveRequest:
		return &wirev1.PullRequest{Kind: &wirev1.PullRequest_Leave{Leave: &wirev1.LeaveRequest{IdleNs: int64(m.Idle)}}}
	case core.Goodbye:
		return &wirev1.PullRequest{Kind: &wirev1.PullRequest_Goodbye{Goodbye: &wirev1.Goodbye{Reason: goodbyeReason(m.Reason), Detail: m.Detail}}}
	case core.Ping:
		return &wirev1.PullRequest{Kind: &wirev1.PullRequest_Ping{Ping: &wirev1.Ping{EveryNs: int64(m.Every), Report: report(m.Report)}}}
	}
	return &wirev1.PullRequest{}
}

func goodbyeReason(r core.Reason) wirev1.Goodbye_Reason {
	switch r {
	case core.ReasonDone:
		return wirev1.Goodbye_REASON_DONE
	case core.ReasonStartFailed:
		return wirev1.Goodbye_REASON_START_FAILED
	case core.ReasonStartTimedOut:
		return wirev1.Goodbye_REASON_START_TIMED_OUT
	case core.ReasonFunctionEnded:
		return wirev1.Goodbye_REASON_FUNCTION_ENDED
	case core.ReasonCallBroken:
		return wirev1.Goodbye_REASON_CALL_BROKEN
	case core.ReasonStopped:
		return wirev1.Goodbye_REASON_STOPPED
	}
	return wirev1.Goodbye_REASON_UNSPECIFIED
}

// fromWire reads what a scheduler says. What it says about time is said about now, so
// a ticket has no times.
func fromWire(wire *wirev1.PullReply) (core.Reply, error) {
	switch kind := wire.GetKind().(type) {
	case *wirev1.PullReply_Ticket:
		t := kind.Ticket
		id, err := invoke.IDFromBytes(t.GetInvocationId())
		if err != nil {
			return nil, err
		}
		return core.Ticket{
			Ticket:  invoke.Ticket{ID: id, Token: invoke.TokenFromBytes(t.GetToken()), Gateway: t.GetGateway()},
			Request: t.GetRequest().GetWhole(),
		}, nil
	case *wirev1.PullReply_Leave:
		return core.LeaveAnswer{Granted: kind.Leave.GetGranted(), AskAgain: time.Duration(kind.Leave.GetAskAgainNs())}, nil
	case *wirev1.PullReply_Retire:
		return core.Retire{Reason: kind.Retire.GetReason()}, nil
	case *wirev1.PullReply_Ended:
		return core.Ended{How: kind.Ended.GetHow()}, nil
	case *wirev1.PullReply_Moved:
		return core.Moved{Addr: kind.Moved.GetAddress(), Epoch: kind.Moved.GetEpoch()}, nil
	case *wirev1.PullReply_Assignment:
		return assignment(kind.Assignment), nil
	case *wirev1.PullReply_Welcome:
		return core.Welcome{Epoch: kind.Welcome.GetEpoch()}, nil
	}
	// Whatever else a scheduler says, it says that it is there.
	return core.Pong{}, nil
}

// assignment is what the core needs to know of one.
func assignment(wire *wirev1.Assignment) core.Assignment {
	return core.Assignment{
		StartupTimeout: time.Duration(wire.GetStartupTimeoutNs()),
		Concurrency:    int(wire.GetConcurrency()),
		BackoffAfter:   time.Duration(wire.GetBackoffAfterNs()),
		IdleTimeout:    time.Duration(wire.GetIdleTimeoutNs()),
	}
}

// report is what was counted, and what this process uses now.
func report(r core.Report) *wirev1.AgentReport {
	cpu, resident := usage()
	return &wirev1.AgentReport{
		Calls: r.Calls, Broken: r.Broken, ClaimsRefused: r.ClaimsRefused, Reconnects: r.Reconnects,
		CpuNs: uint64(cpu), ResidentBytes: resident, BackedOff: r.BackedOff,
	}
}
