package node

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

func goodNode() Config {
	return Config{
		Common:     role.Common{LogFormat: "json", LogLevel: "info", OpsListen: ":8081", TLSDir: "/tls", TLSDomain: "windlass.ns.windlass"},
		WireListen: ":9443", CgroupRoot: "/host/cgroup", JournalDir: "/run/windlass/node",
		CallOrder: "serpt", Slice: "auto", Preempt: true,
	}
}

func with(good func() Config, change func(*Config)) Config {
	c := good()
	change(&c)
	return c
}

func TestAProblemIsNamedByItsFlag(t *testing.T) {
	for flag, err := range map[string]error{
		"   ":                goodNode().Validate(),
		"    ":               with(goodNode, func(c *Config) { c.CoLocation, c.LatencyCritical = true, []string{"shop"} }).Validate(),
		"      ":             with(goodNode, func(c *Config) { c.BatchNamespaces, c.NodeName = []string{"*"}, "n1" }).Validate(),
		"--batch-namespaces": with(goodNode, func(c *Config) { c.BatchNamespaces = []string{"reports"} }).Validate(),
		"--cgroup-root":      with(goodNode, func(c *Config) { c.CgroupRoot = "" }).Validate(),
		"--journal-dir":      with(goodNode, func(c *Config) { c.JournalDir = "run" }).Validate(),
		"--call-order":       with(goodNode, func(c *Config) { c.CallOrder = "FIFO" }).Validate(),
		"--slice":            with(goodNode, func(c *Config) { c.Slice = "50" }).Validate(),
		"--cores":            with(goodNode, func(c *Config) { c.Cores = -1 }).Validate(),
		"--co-location":      with(goodNode, func(c *Config) { c.CoLocation = true }).Validate(),
		"--wire-listen ":     with(goodNode, func(c *Config) { c.WireListen = "" }).Validate(),
	} {
		good := strings.TrimSpace(flag) == ""
		if good != (err == nil) || !good && !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: error %v", flag, err)
		}
	}
}

func TestANodeAgentDecidesAsItIsTold(t *testing.T) {
	usual, err := goodNode().agent()
	if err != nil || usual.Calls.Cores != runtime.NumCPU() || usual.Calls.Order != callorder.SERPT || !usual.Calls.Preempt || usual.Breath.Share == 0 {
		t.Errorf("by default: %+v, %v", usual, err)
	}
	if u := usual.Calls.Unasked; u.Start < time.Minute || u.Burst < 100*time.Millisecond || u.Burst > time.Second {
		t.Errorf("pods may compute %+v without a ticket: a start must not be slowed down, nor what agents do", u)
	}
	config := with(goodNode, func(c *Config) { c.CallOrder, c.Slice, c.Preempt, c.Cores = "fair-choice", "50ms", false, 7 })
	other, err := config.agent()
	if err != nil || other.Calls.Cores != 7 || other.Calls.Order != callorder.FairChoice || other.Calls.Preempt || other.Calls.Slice.Length != 50*time.Millisecond {
		t.Errorf("otherwise: %+v, %v", other, err)
	}
}

// The flags' defaults are a configuration, except for what only the chart knows.
func TestTheDefaultsOfANodeAgentAreGood(t *testing.T) {
	flags := NewCommand().Flags()
	if err := flags.Parse([]string{"--tls-dir=/tls", "--tls-domain=a.windlass"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"call-order": "serpt", "slice": "auto", "preempt": "true", "cores": "0", "co-location": "false", "cgroup-root": "/host/sys/fs/cgroup", "journal-dir": "/run/windlass/node"} {
		if got := flags.Lookup(name).DefValue; got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
}
