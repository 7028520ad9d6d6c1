package cli

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestTheStoryOfAnInvocation(t *testing.T) {
	th := open(t)
	id := invocation.ID{1, 2, 3}
	th.stories = map[invocation.ID]invocation.Findings{id: {
		Record: &invocation.Record{
			ID: id, Function: invocation.FunctionKey{Namespace: "default", Name: "hello"}, Trace: "abc", CID: "00000001-000001", Attempt: 2,
			Code: 502, Executed: invocation.ExecutedMaybe, Reason: "InstanceLost", Cold: true, Received: now, Ended: now.Add(time.Second),
			Phases: []invocation.PhaseTime{{Phase: "admit", Took: 1234567}, {Phase: "queue", Took: time.Second}, {Phase: "core", Took: 120 * time.Millisecond}},
		},
		Lines: []invocation.Line{{Source: "00000001-000001", Text: "hi"}},
		Notes: []string{"there is more"},
	}}
	got := th.run(t, "logs", "--invocation", "01020300000000000000000000000000")
	got.expect(t, exitOK, "err", "there is more\n")
	golden(t, "story.txt", got.out)
	story := th.stories[id]
	story.Node = "node-2"
	th.stories[id] = story
	th.run(t, "logs", "--invocation", "01020300000000000000000000000000").expect(t, exitOK, "out",
		"00000001-000001 on node node-2, the 2.", "120.000 ms, waited for a core of node node-2\n")
	story.Record.Code, story.Record.Executed, story.Record.Broken = 200, invocation.ExecutedYes, true
	th.run(t, "logs", "--invocation", "01020300000000000000000000000000").expect(t, exitOK, "out", "200, executed: yes, broken off by InstanceLost,")
	th.run(t, "logs", "--invocation", "ff020300000000000000000000000000").expect(t, exitPlatform, "err", "no invocation ff0203")
	th.run(t, "logs", "--invocation", "short").expect(t, exitUsage, "err", "Windlass-Invocation-Id")
	th.run(t, "logs", "hello", "--invocation", "01020300000000000000000000000000").expect(t, exitUsage, "err", "--invocation ID alone finds the call")
	th.run(t, "logs", "--invocation", "01020300000000000000000000000000", "--windlass-namespace", "w").expect(t, exitUsage, "err", "for a cluster")
}
