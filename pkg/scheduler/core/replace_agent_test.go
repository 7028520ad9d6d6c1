package core

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestOneOutdatedAgentGoesWhenItMay(t *testing.T) {
	f := New(&Config{Tick: DefaultTick, MaxQueued: 10, ClaimGrace: DefaultClaimGrace, Executions: 1}, Spec{Concurrency: 1})
	now := time.Unix(1000, 0)
	f.instances = make(instances)
	for cid, agent := range map[invocation.CID]Agent{"1": AgentCurrent, "2": AgentOutdated, "3": AgentOutdated} {
		if err := f.queue.Join(cid, 1); err != nil {
			t.Fatal(err)
		}
		f.instances[cid] = agent
	}
	until := now.Add(time.Hour)
	for i, step := range []struct {
		may  bool
		gone invocation.CID
		rest time.Time
	}{
		{false, "", now.Add(ReplaceAgentRetry)},
		{true, "2", now.Add(ReplaceAgentRetry)},
		{false, "", now.Add(ReplaceAgentRetry)},
		{true, "3", now.Add(ReplaceAgentRetry)},
		{true, "", until},
	} {
		f.out = f.out[:0]
		rest := f.replaceOutdated(step.may, until, now)
		var gone invocation.CID
		if let, is := AnswerOf[Terminate](f.out); is {
			gone = let.CID
		}
		if drain, is := AnswerOf[Drain](f.out); is && !drain.Unsupported {
			t.Errorf("step %d: %q is not said to have an agent that goes out of support", i, drain.CID)
		}
		if gone != step.gone || !rest.Equal(step.rest) {
			t.Errorf("step %d: %q goes and the function rests until %v, want %q and %v", i, gone, rest, step.gone, step.rest)
		}
	}
	if at := f.replaceOutdated(false, time.Time{}, now); !at.IsZero() {
		t.Errorf("a function without outdated agents is looked at again at %v", at)
	}
}

func TestADrainSaysWhetherTheAgentIsUnsupported(t *testing.T) {
	for _, tt := range []struct {
		joined Joined
		want   Drain
	}{
		{Joined{CID: "a", Capacity: 1, Agent: AgentUnsupported}, Drain{CID: "a", Reason: string(BecauseUnsupported), Unsupported: true}},
		{Joined{CID: "a", Capacity: 1, Draining: true}, Drain{CID: "a", Reason: becauseDraining}},
		{Joined{CID: "a", Capacity: 1, Draining: true, Agent: AgentUnsupported}, Drain{CID: "a", Reason: becauseDraining, Unsupported: true}},
	} {
		f := newTestFunction()
		f.Step(start, OwnershipChanged{Term: invocation.Term{Epoch: 1}})
		if got, _ := AnswerOf[Drain](f.Step(start, tt.joined)); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.joined, got, tt.want)
		}
	}
}
