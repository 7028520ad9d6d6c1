package e2e

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/local"
	"github.com/windlass-dev/windlass/internal/tracetest"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// collector starts a collector, and is what makes a Windlass send it its traces.
func collector(ratio float64) (*tracetest.Collector, func(*local.Config)) {
	GinkgoHelper()
	c, err := tracetest.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Stop)
	return c, func(config *local.Config) {
		config.Tracing.Endpoint, config.Tracing.SampleRatio, config.Tracing.TrustClients = c.URL(), ratio, true
	}
}

// spans waits for the trace of a call and returns its whole span and, by name, those
// below it.
func spans(c *tracetest.Collector, id string) (whole tracetest.Span, phases map[string]tracetest.Span) {
	GinkgoHelper()
	Eventually(func() []tracetest.Span { return c.Trace(id) }, "10s").ShouldNot(BeEmpty())
	phases = map[string]tracetest.Span{}
	for _, s := range c.Trace(id) {
		if strings.HasPrefix(s.Name, "invoke ") {
			whole = s
			continue
		}
		Expect(phases).NotTo(HaveKey(s.Name))
		phases[s.Name] = s
	}
	return whole, phases
}

// expectWhole expects the phases of a call that was answered, and next to no time of
// it that is in none of them.
func expectWhole(whole tracetest.Span, phases map[string]tracetest.Span) {
	GinkgoHelper()
	at, gaps := whole.Start, time.Duration(0)
	for _, name := range []string{"admit", "queue", "claim", "execute", "return"} {
		Expect(phases).To(HaveKey(name))
		s := phases[name]
		Expect(s.Parent).To(Equal(whole.ID), name)
		Expect(s.End).NotTo(BeTemporally("<", s.Start), name)
		gaps += s.Start.Sub(at).Abs()
		at = s.End
	}
	gaps += whole.End.Sub(at).Abs()
	Expect(phases).To(HaveLen(5))
	Expect(gaps.Seconds()).To(BeNumerically("<=", 0.05*whole.Duration().Seconds()))
}

var _ = Describe("Traces", func() {
	It("show a cold and a warm call from the client to the function", func() {
		c, on := collector(0)
		w := start(on)
		w.probe("hello")
		send := func(path string) answer {
			return w.do(http.MethodGet, path, nil, "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01", "Tracestate", "vendor=1")
		}

		cold := send("/function/hello/echo")
		whole, phases := spans(c, clientTrace)
		expectWhole(whole, phases)
		Expect(whole.Name).To(Equal("invoke default/hello"))
		Expect(whole.Service).To(Equal("windlass"))
		Expect(whole.Parent).To(Equal(clientSpan))
		Expect(whole.Kind).To(Equal(tracev1.Span_SPAN_KIND_SERVER))
		Expect(whole.State).To(Equal("vendor=1"))
		Expect(whole.Text("faas.invocation_id")).To(Equal(cold.Header.Get("Windlass-Invocation-Id")))
		Expect(whole.Attributes["faas.coldstart"].GetBoolValue()).To(BeTrue())
		Expect(whole.Text("http.route")).To(Equal("/function/{function}/{path...}"))
		Expect(whole.Text("faas.name")).To(Equal("hello"))
		Expect(whole.Text("k8s.namespace.name")).To(Equal("default"))
		Expect(phases["execute"].Text("faas.invoked_name")).To(Equal("hello"))
		Expect(phases["execute"].Text("faas.invoked_provider")).To(Equal("windlass"))
		Expect(phases["execute"].Text("faas.instance")).To(Equal(whole.Text("faas.instance")))
		Expect(whole.Attributes["http.response.status_code"].GetIntValue()).To(BeEquivalentTo(200))
		Expect(cold.Header.Get("Echo-Traceparent")).To(Equal("00-" + clientTrace + "-" + phases["execute"].ID + "-01"))
		Expect(cold.Header.Get("Echo-Tracestate")).To(Equal("vendor=1"))

		// The instance's start is a trace of its own, and leads to the call that waited
		// for it, as that leads to it.
		Expect(whole.Links).To(HaveLen(1))
		Eventually(func() []tracetest.Span { return c.Trace(whole.Links[0].Trace) }, "10s").ShouldNot(BeEmpty())
		starting := c.Trace(whole.Links[0].Trace)
		Expect(starting[0].Name).To(Equal("start instance default/hello"))
		Expect(starting[0].ID).To(Equal(whole.Links[0].Span))
		Expect(starting[0].Links).To(Equal([]tracetest.Link{{Trace: clientTrace, Span: whole.ID}}))
		Expect(starting[0].Text("faas.instance")).To(Equal(whole.Text("faas.instance")))
		at := starting[0].Start
		for _, phase := range starting[1:] {
			Expect(phase.Parent).To(Equal(starting[0].ID), phase.Name)
			Expect(phase.Start).To(BeTemporally("==", at), phase.Name)
			at = phase.End
		}
		Expect(at).To(BeTemporally("==", starting[0].End))

		const another = "5bf92f3577b34da6a3ce929d0e0e4736"
		warm := w.do(http.MethodGet, "/function/hello/echo", nil, "Traceparent", "00-"+another+"-"+clientSpan+"-01")
		Expect(warm.Header.Get("Server-Timing")).NotTo(ContainSubstring("start"))
		whole, phases = spans(c, another)
		expectWhole(whole, phases)
		Expect(whole.Attributes["faas.coldstart"].GetBoolValue()).To(BeFalse())
		Expect(whole.Links).To(BeEmpty())
		Expect(warm.Header.Get("Echo-Traceparent")).To(Equal("00-" + another + "-" + phases["execute"].ID + "-01"))
	})

	It("begin with the call if its client has none, and bear its id", func() {
		c, on := collector(1)
		w := start(on)
		w.probe("hello")
		a := w.get("/function/hello/echo?status=503")
		whole, phases := spans(c, a.Header.Get("Windlass-Invocation-Id"))
		expectWhole(whole, phases)
		Expect(whole.Parent).To(BeEmpty())
		Expect(whole.Error).NotTo(BeEmpty())

		// It is an example in the metrics of what it passed.
		request, err := http.NewRequest(http.MethodGet, w.OpsURL()+"/metrics", nil)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Accept", "application/openmetrics-text")
		metrics, err := w.send(request)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"invocation_duration_seconds", "phase_duration_seconds"} {
			Expect(metrics.body).To(MatchRegexp(`windlass_gateway_` + name + `_bucket{.*# {trace_id="` + whole.Trace + `"}`))
		}
		Expect(metrics.body).To(MatchRegexp(`windlass_traces_spans_total{result="exported"} [1-9]`))
	})

	It("are not sent of calls that nobody wants recorded", func() {
		c, on := collector(0)
		w := start(on)
		w.probe("hello")
		parent := "00-" + clientTrace + "-" + clientSpan + "-00"
		a := w.do(http.MethodGet, "/function/hello/echo", nil, "Traceparent", parent, "Tracestate", "vendor=1")
		Expect(a.Header.Get("Echo-Traceparent")).To(Equal(parent))
		Expect(a.Header.Get("Echo-Tracestate")).To(Equal("vendor=1"))
		Expect(w.get("/function/hello/echo").Header).NotTo(HaveKey("Echo-Traceparent"))
		// Whatever was recorded is sent before it has ended.
		w.stop()
		Expect(c.Spans()).To(BeEmpty())
	})

	It("reach functions of the Lambda Runtime API", func() {
		c, on := collector(1)
		needs("python3")
		w := start(on)
		fn := &v1alpha1.Function{}
		fn.Namespace, fn.Name = "default", "lambda"
		fn.Spec.Template.RuntimeRef.Name, fn.Spec.Template.Handler = v1alpha1.RuntimePython313, "app.handler"
		fn.Spec.Template.Code = &v1alpha1.Code{Inline: "import os\ndef handler(event, context):\n    return os.environ['_X_AMZN_TRACE_ID']\n"}
		w.apply(fn)
		a := w.get("/function/lambda")
		id := a.Header.Get("Windlass-Invocation-Id")
		_, phases := spans(c, id)
		Expect(a.body).To(ContainSubstring("Root=1-" + id[:8] + "-" + id[8:] + ";Parent=" + phases["execute"].ID + ";Sampled=1"))
	})

	It("do not matter to calls when the collector is away", func() {
		c, on := collector(1)
		c.Stop()
		w := start(on)
		w.probe("hello")
		for range 100 {
			Expect(w.get("/function/hello/echo").StatusCode).To(Equal(http.StatusOK))
		}
	})
})
