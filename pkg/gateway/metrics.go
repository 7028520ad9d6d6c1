package gateway

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/table"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// metrics are the gateway's series. Those of a function go with it.
type metrics struct {
	invocations *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	inFlight    *prometheus.GaugeVec
	refused     *prometheus.CounterVec
	badClaims   *prometheus.CounterVec

	catalog catalog.Reader
	// gone is held to delete a function's series, and for reading while they
	// are made: a call that outlives its function must not bring them back.
	gone sync.RWMutex
	// functions are those of each namespace that has any.
	functions map[string]map[string]bool
}

func newMetrics(reg prometheus.Registerer, functions catalog.Reader) *metrics {
	m := &metrics{
		catalog:   functions,
		functions: make(map[string]map[string]bool),
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
			Help: "Calls that were refused before they were admitted, by reason; without a namespace if the caller may not know the function, or there is none.",
		}, []string{"namespace", "reason"}),
		badClaims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_gateway_claims_refused_total",
			Help: "Claims that were refused, by whether the call did not wait any more or the token was wrong.",
		}, []string{"reason"}),
	}
	reg.MustRegister(m.invocations, m.duration, m.inFlight, m.refused, m.badClaims)
	return m
}

// claimRefused counts a claim that the table refused.
func (m *metrics) claimRefused(err error) {
	reason := "not waiting"
	if errors.Is(err, table.ErrBadToken) {
		reason = "wrong token"
	}
	m.badClaims.WithLabelValues(reason).Inc()
}

// refusedAtTheEdge counts a refusal; fn is nil if its namespace is not to be a
// label, which whoever calls could otherwise choose.
func (m *metrics) refusedAtTheEdge(fn *v1alpha1.Function, reason string) {
	m.gone.RLock()
	defer m.gone.RUnlock()
	namespace := ""
	if fn != nil && m.exists(fn) {
		namespace = fn.Namespace
	}
	m.refused.WithLabelValues(namespace, reason).Inc()
}

func (m *metrics) begun(c *call) {
	m.gone.RLock()
	defer m.gone.RUnlock()
	if m.exists(c.function) {
		c.inFlight = m.inFlight.WithLabelValues(c.function.Namespace, c.function.Name)
		c.inFlight.Inc()
	}
}

func (m *metrics) ended(c *call) {
	if c.inFlight != nil {
		c.inFlight.Dec()
	}
	m.gone.RLock()
	defer m.gone.RUnlock()
	if !m.exists(c.function) {
		return
	}
	ns, name := c.function.Namespace, c.function.Name
	status, said := c.outcome()
	m.invocations.WithLabelValues(ns, name, status, string(said)).Inc()
	m.duration.WithLabelValues(ns, name).Observe(time.Since(c.admitted).Seconds())
}

// exists tells whether a function has series. The catalog forgets a function
// before it tells of that, and so before the series are deleted.
func (m *metrics) exists(fn *v1alpha1.Function) bool {
	now, exists := m.catalog.Get(fn.Key())
	return exists && now.UID == fn.UID
}

// functionChanged deletes the series of a function that is gone. It tells whether
// that was the last one of its namespace, whose series then go as well.
func (m *metrics) functionChanged(e catalog.Event) (last bool) {
	m.gone.Lock()
	defer m.gone.Unlock()
	of := m.functions[e.Key.Namespace]
	if e.Function != nil {
		if of == nil {
			of = make(map[string]bool)
			m.functions[e.Key.Namespace] = of
		}
		of[e.Key.Name] = true
		return false
	}
	labels := prometheus.Labels{"namespace": e.Key.Namespace, "function": e.Key.Name}
	m.invocations.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
	m.inFlight.DeletePartialMatch(labels)
	delete(of, e.Key.Name)
	if len(of) > 0 {
		return false
	}
	delete(m.functions, e.Key.Namespace)
	m.refused.DeletePartialMatch(prometheus.Labels{"namespace": e.Key.Namespace})
	return true
}

// codeLeft stands for the status of a call whose client left before it was answered.
const codeLeft = 499

// outcome is what the client was told; codeLeft if it left before.
func (c *call) outcome() (code string, said invoke.Executed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		return strconv.Itoa(codeLeft), invoke.ExecutedMaybe
	}
	return strconv.Itoa(c.status), c.said
}
