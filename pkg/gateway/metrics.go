package gateway

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// Metrics are what a gateway tells.
var Metrics metric.Set

var (
	invocationsTotal = Metrics.Counter("windlass_gateway_invocations_total",
		"Calls that were answered or given up, by HTTP status code (499 if the client left before) and by whether the function ran.",
		"namespace", "function", "code", "executed")
	invocationSeconds = Metrics.Histogram("windlass_gateway_invocation_duration_seconds",
		"Time from the receipt of a call until its answer was complete.",
		prometheus.ExponentialBuckets(0.001, 2, 17), "namespace", "function")
	inFlightNow = Metrics.Gauge("windlass_gateway_invocations_in_flight",
		"Calls that wait or run.", "namespace", "function")
	stageDurationSeconds = Metrics.Histogram("windlass_gateway_stage_duration_seconds",
		"What the time of calls was spent on, by stage: admit (until the ticket was offered), queue (until an instance claimed the call), claim (until the function had it), execute, return (until the answer was complete). A call that did not come to a stage is not in it.",
		prometheus.ExponentialBuckets(0.00005, 2, 22), "stage")
	stageSecondsTotal = Metrics.Counter("windlass_gateway_stage_seconds_total",
		"Sum of the same time, by function and stage.", "namespace", "function", "stage")
	coldTotal = Metrics.Counter("windlass_gateway_cold_invocations_total",
		"Calls that were the first of their instance.", "namespace", "function")
	refusedTotal = Metrics.Counter("windlass_gateway_refused_total",
		"Calls that were refused before they were admitted, by reason; without a namespace if the caller may not know the function, or there is none.",
		"namespace", "reason")
	grantedTotal = Metrics.Counter("windlass_gateway_claims_granted_total",
		"Claims that were granted, so that an instance has the call.")
	badClaimsTotal = Metrics.Counter("windlass_gateway_claims_refused_total",
		"Claims that were refused: those that came too late (not waiting), or with a wrong token (wrong token).", "reason")
	offersTotal = Metrics.Counter("windlass_gateway_offers_total",
		"Offers of tickets to schedulers: of new calls (first), and of calls that are tried again, or whose ticket or scheduler may have been lost (again).", "kind")
	heldNow = Metrics.Gauge("windlass_gateway_invocations_held",
		"Calls that the gateway holds, those whose body it is still reading included.")
	heldLimit = Metrics.Gauge("windlass_gateway_invocations_limit",
		"How many calls the gateway may hold; more are refused.")
	bytesNow = Metrics.Gauge("windlass_gateway_body_bytes_held",
		"What the bodies of these calls take.")
	bytesLimit = Metrics.Gauge("windlass_gateway_body_bytes_limit",
		"How much the bodies of calls may take; calls with more are refused.")
)

// metrics are the gateway's series. Those of a function go with it. A nil one counts
// nothing.
type metrics struct {
	invocations *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	inFlight    *prometheus.GaugeVec
	stageSums   *prometheus.CounterVec
	cold        *prometheus.CounterVec
	refused     *prometheus.CounterVec
	granted     prometheus.Counter
	badClaims   *prometheus.CounterVec
	stages      [timeline.Stages]prometheus.Observer
	first       prometheus.Counter
	again       prometheus.Counter

	catalog catalog.Reader
	// mu guards functions, and is held for reading while series of a function are made:
	// a call that outlives its function must not bring them back.
	mu sync.RWMutex
	// functions are the series of those that were called.
	functions map[invoke.FunctionKey]*functionSeries
}

// newMetrics makes the series, or nothing if there is nobody to tell.
func newMetrics(reg prometheus.Registerer, functions catalog.Reader, door *door) *metrics {
	if reg == nil {
		return nil
	}
	m := &metrics{
		catalog:     functions,
		functions:   make(map[invoke.FunctionKey]*functionSeries),
		invocations: invocationsTotal.Vec(),
		duration:    invocationSeconds.Vec(),
		inFlight:    inFlightNow.Vec(),
		stageSums:   stageSecondsTotal.Vec(),
		cold:        coldTotal.Vec(),
		refused:     refusedTotal.Vec(),
		granted:     grantedTotal.New(),
		badClaims:   badClaimsTotal.Vec(),
	}
	stages, offers := stageDurationSeconds.Vec(), offersTotal.Vec()
	for s := range timeline.Stage(timeline.Stages) {
		m.stages[s] = stages.WithLabelValues(s.String())
	}
	m.first, m.again = offers.WithLabelValues("first"), offers.WithLabelValues("again")
	reg.MustRegister(m.invocations, m.duration, m.inFlight, m.stageSums, m.cold, m.refused, m.granted, m.badClaims, stages, offers,
		heldNow.Func(func() float64 { return float64(door.held().Calls) }),
		heldLimit.Func(func() float64 { return float64(door.capacity.Calls) }),
		bytesNow.Func(func() float64 { return float64(door.held().Bytes) }),
		bytesLimit.Func(func() float64 { return float64(door.capacity.Bytes) }))
	return m
}

// offered counts a ticket.
func (m *metrics) offered(again bool) {
	switch {
	case m == nil:
	case again:
		m.again.Inc()
	default:
		m.first.Inc()
	}
}

func (m *metrics) claimGranted() {
	if m != nil {
		m.granted.Inc()
	}
}

// claimRefused counts a claim that was refused.
func (m *metrics) claimRefused(err error) {
	if m == nil {
		return
	}
	reason := "not waiting"
	if errors.Is(err, core.ErrBadToken) {
		reason = "wrong token"
	}
	m.badClaims.WithLabelValues(reason).Inc()
}

// refusedAtTheEdge counts a refusal; fn is nil if its namespace is not to be a
// label, which callers could otherwise choose.
func (m *metrics) refusedAtTheEdge(fn *v1alpha1.Function, reason string) {
	if m == nil {
		return
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	namespace := ""
	if fn != nil && m.exists(fn) {
		namespace = fn.Namespace
	}
	m.refused.WithLabelValues(namespace, reason).Inc()
}

// begun counts a call that was admitted, and returns the series to end it with; nil if
// nobody counts.
func (m *metrics) begun(fn *v1alpha1.Function) *functionSeries {
	if m == nil {
		return nil
	}
	series := m.of(fn)
	if series != nil {
		series.inFlight.Inc()
	}
	return series
}

// ended counts a call that is answered or given up; series is nil if it was not
// admitted. What is added to series that were deleted meanwhile is lost, as it should be.
func (m *metrics) ended(c *call, series *functionSeries) {
	if m == nil {
		return
	}
	if series != nil {
		series.inFlight.Dec()
	} else if series = m.of(c.function); series == nil {
		return
	}
	trace, times := c.traceID(), c.timeline()
	status, said, cold := c.outcome()
	m.answered(c.function, series, outcome{status, said})
	observe(series.duration, times.Total(), trace)
	if cold {
		series.cold.Inc()
	}
	for stage, span := range times.All() {
		observe(m.stages[stage], span.Duration(), trace)
		series.stages[stage].Add(span.Duration().Seconds())
	}
}

// observe adds to a histogram, with the call's trace as an example if it has one.
func observe(histogram prometheus.Observer, d time.Duration, trace string) {
	if trace == "" {
		histogram.Observe(d.Seconds())
		return
	}
	histogram.(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": trace})
}

// forget deletes the series of a function that is gone and, if it was the last one of
// its namespace, those of that.
func (m *metrics) forget(key invoke.FunctionKey, last bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.functions, key)
	labels := prometheus.Labels{"namespace": key.Namespace, "function": key.Name}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.invocations, m.duration, m.inFlight, m.stageSums, m.cold} {
		vec.DeletePartialMatch(labels)
	}
	if last {
		m.refused.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace})
	}
}

// functionSeries are the series of one function, found once for all its calls.
type functionSeries struct {
	duration prometheus.Observer
	inFlight prometheus.Gauge
	cold     prometheus.Counter
	stages   [timeline.Stages]prometheus.Counter

	mu sync.Mutex
	// answered is by what clients were told, as far as there was a call of it.
	answered map[outcome]prometheus.Counter
}

// outcome is what a client was told.
type outcome struct {
	code     string
	executed invoke.Executed
}

// exists tells whether a function has series. The catalog forgets a function
// before it tells of that, and so before the series are deleted.
func (m *metrics) exists(fn *v1alpha1.Function) bool {
	now, exists := m.catalog.Get(fn.Key())
	return exists && now.UID == fn.UID
}

// of finds the series of a function; nil if it has none.
func (m *metrics) of(fn *v1alpha1.Function) *functionSeries {
	key := fn.Key()
	m.mu.RLock()
	s, known := m.functions[key]
	exists := m.exists(fn)
	m.mu.RUnlock()
	switch {
	case !exists:
		return nil
	case known:
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.exists(fn) {
		return nil
	}
	if s, known := m.functions[key]; known {
		return s
	}
	s = m.newSeries(key)
	m.functions[key] = s
	return s
}

func (m *metrics) newSeries(key invoke.FunctionKey) *functionSeries {
	s := &functionSeries{
		duration: m.duration.WithLabelValues(key.Namespace, key.Name),
		inFlight: m.inFlight.WithLabelValues(key.Namespace, key.Name),
		cold:     m.cold.WithLabelValues(key.Namespace, key.Name),
		answered: make(map[outcome]prometheus.Counter),
	}
	for stage := range timeline.Stage(timeline.Stages) {
		s.stages[stage] = m.stageSums.WithLabelValues(key.Namespace, key.Name, stage.String())
	}
	return s
}

// answered counts the answer to a call of a function.
func (m *metrics) answered(fn *v1alpha1.Function, s *functionSeries, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counter, known := s.answered[o]
	if !known {
		m.mu.RLock()
		defer m.mu.RUnlock()
		if !m.exists(fn) {
			return
		}
		counter = m.invocations.WithLabelValues(fn.Namespace, fn.Name, o.code, string(o.executed))
		s.answered[o] = counter
	}
	counter.Inc()
}
