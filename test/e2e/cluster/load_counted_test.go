package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// counted are two functions that write down every call that they begin to run.
type counted struct {
	*tenant
	runLog *runLog
}

// mostCalls bounds the calls of one spec's traffic.
const mostCalls = 40_000

// newCounted makes them, with so many instances each.
func newCounted(ctx context.Context, instances int32) *counted {
	GinkgoHelper()
	runLogReachable()
	recorded, err := openRunLog()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(recorded.close)
	c := &counted{newTenant(ctx), recorded}
	address := fmt.Sprintf("%s:%d", own.MachineAddress(), recorded.port)
	function := func(name string, runtime v1alpha1.RuntimeName, protocol v1alpha1.Protocol, entry, code string) *v1alpha1.Function {
		fn := handler(name, runtime, v1alpha1.Code{Inline: code})
		fn.Spec.Template.Handler, fn.Spec.Template.Protocol = "main."+entry, protocol
		fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "LEDGER", Value: address}}
		fn.Spec.Scaling = v1alpha1.Scaling{MinInstances: instances, MaxInstances: new(2 * instances), ScaleDown: v1alpha1.ScaleDown{IdleTimeout: duration(600)}}
		return fn
	}
	c.deploy(
		function("http", v1alpha1.RuntimePython313, v1alpha1.ProtocolHTTP, "application", loggingPython),
		function("event", v1alpha1.RuntimeNodeJS22, v1alpha1.ProtocolLambdaRuntime, "handler", loggingNode))
	for _, name := range []string{"http", "event"} {
		Eventually(func() int32 { return c.status(name).Instances.Ready }, "60s", "200ms").Should(BeNumerically(">=", instances), c.explain(name))
	}
	return c
}

// runLogReachable skips a spec whose functions could not reach this machine.
func runLogReachable() {
	GinkgoHelper()
	if own == nil {
		Skip("its functions write into a run log on this machine, which a foreign cluster does not reach: unset KUBECONFIG")
	}
}

// streams are calls of all kinds: with and without connections that are kept,
// with no body, a small one and one that is streamed, and, on connections that
// are kept, so rarely that they are idle most of the time.
func (c *counted) streams(clients int) []stream {
	const short, long = 100 * time.Millisecond, 7 * time.Second
	url := fmt.Sprintf("%s/function/http.%s/?call=CALL&ms=100", world.gateway, c.namespace)
	event := fmt.Sprintf("%s/function/event.%s", world.gateway, c.namespace)
	const payload = `{"call": "CALL", "ms": 50}`
	return []stream{
		{name: "get-kept", method: "GET", url: url, takes: short, clients: clients},
		{name: "get-single", method: "GET", url: url, takes: short, clients: clients, oneCall: true},
		{name: "post-kept", method: "POST", url: url, body: "the call CALL", takes: short, clients: clients},
		{name: "post-large", method: "POST", url: url, body: strings.Repeat("0123456789", 10<<10), takes: short, clients: 1, oneCall: true},
		{name: "post-slow", method: "POST", url: strings.Replace(url, "ms=100", "ms=7000", 1), body: "the call CALL", takes: long, clients: 1},
		{name: "event-kept", method: "POST", url: event, body: payload, takes: 50 * time.Millisecond, clients: clients, pause: 50 * time.Millisecond},
		{name: "event-single", method: "POST", url: event, body: payload, takes: 50 * time.Millisecond, clients: clients, oneCall: true, pause: 50 * time.Millisecond},
		{name: "event-rare", method: "POST", url: event, body: payload, takes: 50 * time.Millisecond, clients: 2, pause: 3 * time.Second},
	}
}

// start makes calls of all kinds.
func (c *counted) start(clients int) *traffic {
	t := startTraffic(context.Background(), mostCalls, c.streams(clients)...)
	DeferCleanup(func() { t.stop() })
	return t
}

// flows waits until calls of every stream have been answered from now on.
func (c *counted) flows(t *traffic) {
	GinkgoHelper()
	from := time.Now()
	Eventually(func() map[string]bool {
		answered := map[string]bool{}
		for _, call := range t.since(from).calls {
			if call.kind == "" {
				answered[call.stream] = true
			}
		}
		return answered
	}, callLimit+10*time.Second, "200ms").Should(HaveLen(len(c.streams(1))))
}

// report lets calls of every stream be answered once more, ends the traffic,
// prints its figures, and checks what is always true: no call ran twice, what
// was answered ran, and what was said not to have run did not.
func (c *counted) report(what string, t *traffic) trafficResult {
	GinkgoHelper()
	t.ending.Store(true)
	c.flows(t)
	r := t.stop()
	say("%s: %s", what, r)
	Expect(r.exhausted).To(BeFalse(), "the spec ended before its traffic should have")
	wrong := c.runLog.check(r.calls)
	Expect(wrong[:min(20, len(wrong))]).To(BeEmpty(), r.String())
	return r
}

// say prints to the output of the suite, also if the spec succeeds.
func say(format string, args ...any) {
	AddReportEntry(fmt.Sprintf(format, args...))
}
