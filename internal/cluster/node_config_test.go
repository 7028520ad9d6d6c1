package cluster

import (
	"runtime"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

func TestANodeAgentDecidesAsItIsTold(t *testing.T) {
	usual, err := goodNode().agent()
	if err != nil || usual.Calls.Cores != runtime.NumCPU() || usual.Calls.Order != callorder.SERPT || !usual.Calls.Preempt || usual.Breath.Share == 0 {
		t.Errorf("by default: %+v, %v", usual, err)
	}
	if u := usual.Calls.Unasked; u.Start < time.Minute || u.Burst < 100*time.Millisecond || u.Burst > time.Second {
		t.Errorf("pods may compute %+v without a ticket: a start must not be slowed down, nor what agents do", u)
	}
	config := with(goodNode, func(c *NodeConfig) { c.CallOrder, c.Slice, c.Preempt, c.Cores = "fair-choice", "50ms", false, 7 })
	other, err := config.agent()
	if err != nil || other.Calls.Cores != 7 || other.Calls.Order != callorder.FairChoice || other.Calls.Preempt || other.Calls.Slice.Length != 50*time.Millisecond {
		t.Errorf("otherwise: %+v, %v", other, err)
	}
}

// The flags' defaults are a configuration, but for what only the chart knows.
func TestTheDefaultsOfANodeAgentAreGood(t *testing.T) {
	flags := nodeCommand().Flags()
	if err := flags.Parse([]string{"--tls-dir=/tls", "--tls-domain=a.windlass"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"call-order": "serpt", "slice": "auto", "preempt": "true", "cores": "0", "co-location": "false", "cgroup-root": "/host/cgroup", "journal-dir": "/run/windlass/node"} {
		if got := flags.Lookup(name).DefValue; got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
}
