package podagent

import (
	"fmt"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// identity names an instance in its hello.
type identity struct {
	// spare says that it belongs to no function yet; all else is empty then.
	spare    bool
	uid      string
	function string // namespace/name
	revision string
	cid      string
	// class, slice and concurrency are for the node agent.
	class       string
	slice       time.Duration
	concurrency int
}

func identityOf(c agentenv.Config) identity {
	return identity{
		spare: c.Spare, uid: c.FunctionUID, function: c.Function, revision: c.Revision, cid: c.CID,
		class: c.Class, slice: c.Slice, concurrency: c.Concurrency,
	}
}

// toWire encodes a message of the agent.
func toWire(m core.Message, who identity, token string, speech wire.Speech) *agentwire.PullRequest {
	switch m := m.(type) {
	case core.Hello:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{
			FunctionUid: who.uid, Revision: who.revision, Cid: who.cid, Spare: who.spare, Token: token,
			AgeNs: int64(m.Age), ReadyAfterNs: int64(m.ReadyAfter),
			ProtocolMin: speech.Min, ProtocolMax: speech.Max, Release: buildinfo.Version, Features: speech.Features,
		}}}
	case core.Pull:
		done := make([]*agentwire.Done, 0, len(m.Done))
		for _, d := range m.Done {
			done = append(done, &agentwire.Done{
				InvocationId: d.ID[:], ExecNs: int64(d.Exec), CoreWaitNs: int64(d.CoreWait), Unclaimed: d.Unclaimed,
			})
		}
		loans := make([]*agentwire.Loan, 0, len(m.Loans))
		for _, l := range m.Loans {
			loans = append(loans, &agentwire.Loan{Gateway: l.Gateway, Calls: uint32(l.Calls)})
		}
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{
			Credits: uint32(m.Credits), Done: done, Loans: loans, IdleNs: int64(m.Idle),
			NodeBusy: m.NodeBusy, CoreWait: coreWaitToWire(m.LongWait), Low: m.Low,
		}}}
	case core.LeaveRequest:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{IdleNs: int64(m.Idle)}}}
	case core.Goodbye:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{
			Reason: goodbyeReason(m.Reason), Detail: strings.ToValidUTF8(m.Detail, "?"), // a function may have written a part of it
		}}}
	case core.Ping:
		return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{EveryNs: int64(m.Every), Report: reportToWire(m.Report)}}}
	}
	return &agentwire.PullRequest{}
}

func coreWaitToWire(w core.LongWait) *agentwire.CoreWait {
	if w.Waited == 0 {
		return nil
	}
	return &agentwire.CoreWait{InvocationId: w.ID[:], WaitedNs: int64(w.Waited), ByLoan: w.ByLoan}
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
	case core.ReasonUnsupported:
		return agentwire.Goodbye_REASON_UNSUPPORTED
	}
	return agentwire.Goodbye_REASON_UNSPECIFIED
}

// fromWire decodes a scheduler's message. The times of a ticket are relative to now and mean
// nothing to the core, so it leaves them out.
func fromWire(msg *agentwire.PullReply, speech wire.Speech) (core.Reply, error) {
	switch kind := msg.GetKind().(type) {
	case *agentwire.PullReply_Ticket:
		t := kind.Ticket
		id, err := invocation.IDFromBytes(t.GetInvocationId())
		if err != nil {
			return nil, err
		}
		return core.Ticket{
			Ticket: invocation.Ticket{ID: id, Token: invocation.TokenFromBytes(t.GetToken()), Gateway: t.GetGateway()},
			Lent:   t.GetLent(),
		}, nil
	case *agentwire.PullReply_Recall:
		return core.Recall{Gateway: kind.Recall.GetGateway(), Calls: int(kind.Recall.GetCalls()), Term: time.Duration(kind.Recall.GetTermNs())}, nil
	case *agentwire.PullReply_Leave:
		return core.LeaveAnswer{Granted: kind.Leave.GetGranted(), AskAgain: time.Duration(kind.Leave.GetAskAgainNs())}, nil
	case *agentwire.PullReply_Drain:
		return core.Drain{Detail: kind.Drain.GetDetail()}, nil
	case *agentwire.PullReply_Ended:
		return core.EndReported{How: kind.Ended.GetHow()}, nil
	case *agentwire.PullReply_Moved:
		return core.Moved{Addr: kind.Moved.GetAddress(), Epoch: kind.Moved.GetEpoch()}, nil
	case *agentwire.PullReply_Assignment:
		return assignment(kind.Assignment), nil
	case *agentwire.PullReply_Welcome:
		if _, ok := speech.Accept(kind.Welcome); !ok {
			return core.Drain{Reason: core.ReasonUnsupported, Detail: fmt.Sprintf(
				"the scheduler, of release %q, speaks protocol %d, and this agent %d to %d",
				kind.Welcome.GetRelease(), kind.Welcome.GetProtocol(), speech.Min, speech.Max)}, nil
		}
		return core.Welcome{Epoch: kind.Welcome.GetEpoch()}, nil
	}
	// Any other message proves that the scheduler is alive.
	return core.Pong{}, nil
}

// assignment is the part of an assignment that the core needs.
func assignment(msg *agentwire.Assignment) core.Assignment {
	return core.Assignment{
		StartupTimeout: time.Duration(msg.GetStartupTimeoutNs()),
		Concurrency:    int(msg.GetConcurrency()),
		BackoffAfter:   time.Duration(msg.GetBackoffAfterNs()),
		IdleTimeout:    time.Duration(msg.GetIdleTimeoutNs()),
	}
}

// reportToWire adds what this process uses now to the counters.
func reportToWire(r core.Report) *agentwire.AgentReport {
	cpu, resident := usage()
	return &agentwire.AgentReport{
		Calls: r.Calls, Broken: r.Broken, ClaimsRefused: r.ClaimsRefused, Reconnects: r.Reconnects,
		CoreAsks: r.CoreAsks, CoreTimeouts: r.CoreTimeouts,
		CpuNs: uint64(cpu), ResidentBytes: resident, BackedOff: r.BackedOff,
	}
}
