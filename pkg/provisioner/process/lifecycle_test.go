package process

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Wait statuses as the kernel encodes them.
const (
	exited0 = syscall.WaitStatus(0)
	exited3 = syscall.WaitStatus(3 << 8)
	killed9 = syscall.WaitStatus(syscall.SIGKILL)
)

func TestLife(t *testing.T) {
	type step struct {
		on   event
		want []action
	}
	for name, c := range map[string]struct {
		steps           []step
		function, agent syscall.WaitStatus
		reason          string
	}{
		"the agent leaves and the function follows": {
			[]step{{eventAgentEnded, []action{startGrace, termGroup}}, {eventFunctionEnded, nil}},
			killed9, exited0, "the agent exited with status 0",
		},
		"the function fails and the agent says goodbye": {
			[]step{{eventFunctionEnded, []action{startGrace, notifyAgent}}, {eventAgentEnded, nil}},
			exited3, exited0, "the function exited with status 3",
		},
		"stopped, the agent leaves before the function is asked": {
			[]step{{eventStop, []action{startGrace, termAgent}}, {eventAgentEnded, []action{termGroup}}, {eventFunctionEnded, nil}},
			exited0, exited0, "stopped",
		},
		"A3: stopped, the function breaks off before the agent has left, which is told": {
			[]step{{eventStop, []action{startGrace, termAgent}}, {eventFunctionEnded, []action{notifyAgent}}, {eventAgentEnded, nil}},
			exited3, exited0, "stopped",
		},
		"stopped while it ends by itself": {
			[]step{{eventFunctionEnded, []action{startGrace, notifyAgent}}, {eventStop, nil}, {eventAgentEnded, nil}},
			killed9, exited0, "the function was killed by signal killed",
		},
		"neither obeys": {
			[]step{{eventStop, []action{startGrace, termAgent}}, {eventGraceOver, []action{killGroup}}, {eventAgentEnded, []action{termGroup}}, {eventFunctionEnded, nil}},
			killed9, killed9, "stopped",
		},
		"the function does not follow its agent": {
			[]step{{eventAgentEnded, []action{startGrace, termGroup}}, {eventGraceOver, []action{killGroup}}, {eventFunctionEnded, nil}},
			killed9, killed9, "the agent was killed by signal killed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l lifecycle
			for i, s := range c.steps {
				if l.over() {
					t.Fatalf("over before step %d", i)
				}
				if diff := cmp.Diff(s.want, l.handle(s.on)); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
			}
			if !l.over() {
				t.Error("not over")
			}
			if got := l.reason(c.function, c.agent); got != c.reason {
				t.Errorf("reason %q, want %q", got, c.reason)
			}
		})
	}
}

func TestEveryLifeHasOneGraceAndASignalForProcessesThatAreLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lifecycle
		graces, terms := 0, 0
		left := []event{eventStop, eventFunctionEnded, eventAgentEnded}
		for len(left) > 0 && !l.over() {
			i := rapid.IntRange(0, len(left)-1).Draw(t, "next")
			actions := l.handle(left[i])
			left = append(left[:i:i], left[i+1:]...)
			for _, a := range actions {
				switch a {
				case startGrace:
					graces++
				case notifyAgent, termAgent, termGroup:
					terms++
				}
			}
			if !l.over() && terms == 0 {
				t.Fatal("an end has begun and nobody was told")
			}
		}
		if graces != 1 {
			t.Fatalf("%d graces", graces)
		}
	})
}
