package gateway

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// metrics are the gateway's series. Those of a function go with it.
type metrics struct {
	invocations *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	inFlight    *prometheus.GaugeVec
	refused     *prometheus.CounterVec
	badClaims   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		invocations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_gateway_invocations_total",
			Help: "Calls that were answered or given up, by HTTP status code and by whether the function ran.",
		}, []string{"namespace", "function", "code", "executed"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "windlass_gateway_invocation_duration_seconds",
			Help:    "Time from the admission of a call until its answer was complete.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 17),
		}, []string{"namespace", "function"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "windlass_gateway_invocations_in_flight",
			Help: "Calls that wait or run.",
		}, []string{"namespace", "function"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_gateway_refused_total",
			Help: "Calls that were refused before they were admitted, by reason.",
		}, []string{"reason"}),
		badClaims: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "windlass_gateway_claims_refused_total",
			Help: "Claims that were refused because the call did not wait any more or the token was wrong.",
		}),
	}
	reg.MustRegister(m.invocations, m.duration, m.inFlight, m.refused, m.badClaims)
	return m
}

func (m *metrics) refusedAtTheEdge(reason string) { m.refused.WithLabelValues(reason).Inc() }
func (m *metrics) claimRefused()                  { m.badClaims.Inc() }

func (m *metrics) begun(c *call) {
	m.inFlight.WithLabelValues(c.function.Namespace, c.function.Name).Inc()
	c.counted = true
}

func (m *metrics) ended(c *call) {
	ns, name := c.function.Namespace, c.function.Name
	if c.counted {
		m.inFlight.WithLabelValues(ns, name).Dec()
	}
	status, said := c.outcome()
	m.invocations.WithLabelValues(ns, name, status, string(said)).Inc()
	m.duration.WithLabelValues(ns, name).Observe(time.Since(c.admitted).Seconds())
}

// functionChanged deletes the series of a function that is gone.
func (m *metrics) functionChanged(e catalog.Event) {
	if e.Function != nil {
		return
	}
	labels := prometheus.Labels{"namespace": e.Key.Namespace, "function": e.Key.Name}
	m.invocations.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
	m.inFlight.DeletePartialMatch(labels)
}

// outcome is what the client was told; code 499 if it left before.
func (c *call) outcome() (code string, said invoke.Executed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		return "499", invoke.ExecutedMaybe
	}
	return strconv.Itoa(c.status), c.said
}
