package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/gateway"
)

func common() role.Common {
	return role.Common{LogFormat: "json", LogLevel: "info", OpsListen: ":8081", TLSDir: "/tls", TLSDomain: "windlass.ns.windlass"}
}

func goodScheduler() SchedulerConfig {
	return SchedulerConfig{
		Common: common(), Etcd: Etcd{Endpoints: []string{"https://etcd:2379"}, Prefix: "/windlass"},
		ID: "scheduler-1", WireListen: ":9443", Advertise: "10.0.0.7:9443",
		AgentImage: "windlass/podagent", AgentScheduler: "windlass-scheduler.windlass.svc:9443",
		AgentCPU: "10m", AgentMemory: "32Mi", AgentMemoryLimit: "256Mi", CreateQPS: 100, Decider: "Horizon", LeaseTTL: 10 * time.Second,
		Tracing: tracing.DefaultConfig(),
	}
}

func goodGateway() GatewayConfig {
	return GatewayConfig{
		Common: common(), Etcd: Etcd{Endpoints: []string{"https://etcd:2379"}, Prefix: "/windlass"},
		Listen: ":8080", WireListen: ":9443", Advertise: "[fd00::7]:9443", Callers: CallersConfig{Gateways: 1},
		LogCalls: gateway.LogFailed, ProblemDetail: gateway.DetailNone, Tracing: tracing.DefaultConfig(),
		Schedulers: "windlass-scheduler.windlass.svc:9443",
	}
}

func goodController() ControllerConfig {
	return ControllerConfig{Common: common(), Namespace: "windlass", Schedulers: "windlass-scheduler-peers"}
}

func TestAProblemIsNamedByItsFlag(t *testing.T) {
	for flag, err := range map[string]error{
		"":                     goodScheduler().Validate(),
		" ":                    goodGateway().Validate(),
		"  ":                   goodController().Validate(),
		"     ":                with(goodScheduler, func(c *SchedulerConfig) { c.NodeAgent = "windlass-node.windlass.svc:9443" }).Validate(),
		"--node-agent":         with(goodScheduler, func(c *SchedulerConfig) { c.NodeAgent = "windlass-node" }).Validate(),
		"--tls-dir":            with(goodScheduler, func(c *SchedulerConfig) { c.TLSDir = "" }).Validate(),
		"--tls-domain":         with(goodScheduler, func(c *SchedulerConfig) { c.TLSDomain = "" }).Validate(),
		"--log-format":         with(goodScheduler, func(c *SchedulerConfig) { c.LogFormat = "xml" }).Validate(),
		"--log-level":          with(goodController, func(c *ControllerConfig) { c.LogLevel = "loud" }).Validate(),
		"--ops-listen":         with(goodGateway, func(c *GatewayConfig) { c.OpsListen = "8081" }).Validate(),
		"--etcd-endpoints":     with(goodGateway, func(c *GatewayConfig) { c.Etcd.Endpoints = nil }).Validate(),
		"--schedulers \"":      with(goodGateway, func(c *GatewayConfig) { c.Schedulers = "" }).Validate(),
		"--advertise":          with(goodGateway, func(c *GatewayConfig) { c.Advertise = ":9443" }).Validate(),
		"--listen":             with(goodGateway, func(c *GatewayConfig) { c.Listen = "" }).Validate(),
		"--wire-listen":        with(goodScheduler, func(c *SchedulerConfig) { c.WireListen = "x" }).Validate(),
		"--drain-delay":        with(goodGateway, func(c *GatewayConfig) { c.DrainDelay = -1 }).Validate(),
		"--log-calls":          with(goodGateway, func(c *GatewayConfig) { c.LogCalls = "some" }).Validate(),
		"--problem-detail":     with(goodGateway, func(c *GatewayConfig) { c.ProblemDetail = "some" }).Validate(),
		"--trusted-proxies":    with(goodGateway, func(c *GatewayConfig) { c.TrustedProxies = []string{"10.0.0.1"} }).Validate(),
		"--hosts-domain":       with(goodGateway, func(c *GatewayConfig) { c.Hosts = HostsConfig{Domain: "FN", Template: "{name}--{namespace}.{domain}"} }).Validate(),
		"--hosts-template":     with(goodGateway, func(c *GatewayConfig) { c.Hosts.Domain = "fn.example.com" }).Validate(),
		"--hosts-template ":    with(goodController, func(c *ControllerConfig) { c.Hosts.Domain = "fn.example.com" }).Validate(),
		"--external-url":       with(goodController, func(c *ControllerConfig) { c.Hosts.ExternalURL = "fn.example.com" }).Validate(),
		"--tracing-endpoint":   with(goodGateway, func(c *GatewayConfig) { c.Tracing.Endpoint = "collector" }).Validate(),
		"--tracing-sample":     with(goodScheduler, func(c *SchedulerConfig) { c.Tracing.SampleRatio = 2 }).Validate(),
		"--gateways":           with(goodGateway, func(c *GatewayConfig) { c.Callers.Gateways = 0 }).Validate(),
		"--id":                 with(goodScheduler, func(c *SchedulerConfig) { c.ID = "" }).Validate(),
		"--agent-image":        with(goodScheduler, func(c *SchedulerConfig) { c.AgentImage = "" }).Validate(),
		"--agent-scheduler":    with(goodScheduler, func(c *SchedulerConfig) { c.AgentScheduler = "" }).Validate(),
		"--agent-cpu":          with(goodScheduler, func(c *SchedulerConfig) { c.AgentCPU = "much" }).Validate(),
		"--algorithm":          with(goodScheduler, func(c *SchedulerConfig) { c.Decider = "best" }).Validate(),
		"--agent-memory":       with(goodScheduler, func(c *SchedulerConfig) { c.AgentMemory = "" }).Validate(),
		"--agent-memory-limit": with(goodScheduler, func(c *SchedulerConfig) { c.AgentMemoryLimit = "" }).Validate(),
		"--create-qps":         with(goodScheduler, func(c *SchedulerConfig) { c.CreateQPS = 0 }).Validate(),
		"--image-pull":         with(goodScheduler, func(c *SchedulerConfig) { c.ImagePullPolicy = "sometimes" }).Validate(),
		"--schedulers":         with(goodController, func(c *ControllerConfig) { c.Schedulers = "" }).Validate(),
		"--functions-egress":   with(goodController, func(c *ControllerConfig) { c.Egress.Mode = "closed" }).Validate(),
		"--pod-namespace":      with(goodController, func(c *ControllerConfig) { c.Namespace = "" }).Validate(),
	} {
		good := strings.TrimSpace(flag) == ""
		if good != (err == nil) || !good && !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: error %v", flag, err)
		}
	}
}

func TestAPodWithAnIPv6AddressIsReachable(t *testing.T) {
	for flag, want := range map[string]string{
		"fd00::12:9443":             "[fd00::12]:9443",
		"fd00:1:2:3:4:5:6:7:9443":   "[fd00:1:2:3:4:5:6:7]:9443",
		"[fd00::12]:9443":           "[fd00::12]:9443",
		"10.0.0.7:9443":             "10.0.0.7:9443",
		"gateway.windlass.svc:9443": "gateway.windlass.svc:9443",
	} {
		var addr string
		flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
		advertiseFlag(flags, &addr, "")
		if err := flags.Parse([]string{"--advertise=" + flag}); err != nil || addr != want {
			t.Errorf("--advertise=%s is taken as %q, %v, want %q", flag, addr, err, want)
		}
		gateway := with(goodGateway, func(c *GatewayConfig) { c.Advertise = addr })
		scheduler := with(goodScheduler, func(c *SchedulerConfig) { c.Advertise = addr })
		if err := errors.Join(gateway.Validate(), scheduler.Validate()); err != nil {
			t.Errorf("--advertise=%s: %v", flag, err)
		}
	}
	for _, addr := range []string{"fd00::12", "fd00:1:2:3:4:5:6:7", "9443", ":9443"} {
		if err := with(goodGateway, func(c *GatewayConfig) { c.Advertise = bracketed(addr) }).Validate(); err == nil {
			t.Errorf("--advertise=%s has no host or no port, and is good enough", addr)
		}
	}
}

func with[T any](good func() T, change func(*T)) T {
	c := good()
	change(&c)
	return c
}

func TestFlagsComeFromTheEnvironmentToo(t *testing.T) {
	parse := func(args []string, env map[string]string) (GatewayConfig, error) {
		var c GatewayConfig
		flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
		c.ServingFlags(flags)
		c.Etcd.flags(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return c, role.FromEnvironment(flags, func(name string) string { return env[name] })
	}
	got, err := parse([]string{"--etcd-prefix=/flag"}, map[string]string{
		"WINDLASS_ETCD_PREFIX": "/env", "WINDLASS_ETCD_ENDPOINTS": "http://a:1,http://b:2",
	})
	if err != nil || got.Etcd.Prefix != "/flag" || len(got.Etcd.Endpoints) != 2 || got.OpsListen != ":8081" {
		t.Errorf("got %+v, %v", got, err)
	}
	var c GatewayConfig
	flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	flags.DurationVar(&c.DrainDelay, "drain-delay", 0, "")
	err = role.FromEnvironment(flags, func(string) string { return "soon" })
	if err == nil || !strings.Contains(err.Error(), "WINDLASS_DRAIN_DELAY") {
		t.Errorf("a wrong value: %v", err)
	}
}
