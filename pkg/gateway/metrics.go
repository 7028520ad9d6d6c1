package gateway

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// Metrics are the gateway's metrics.
var Metrics metric.Set

// longCalls adds few bounds, in seconds, to those of a histogram: each is a series of each function, and most calls
// are short.
func longCalls(bounds []float64) []float64 { return append(bounds, 300, 900, 3600) }

var (
	invocationsTotal = Metrics.Counter(metric.Stable, "windlass_gateway_invocations_total",
		"Calls that finished, by revision, HTTP status code (499 if the client left first) and whether the function ran.",
		"function_namespace", "function", "revision", "code", "executed")
	invocationSeconds = Metrics.Histogram(metric.Stable, "windlass_gateway_invocation_duration_seconds",
		"Time from the arrival of a call until its answer was complete.",
		longCalls(prometheus.ExponentialBuckets(0.001, 2, 18)), "function_namespace", "function")
	brokenTotal = Metrics.Counter(metric.Stable, "windlass_gateway_answers_broken_total",
		"Answers that broke off after their head, by reason. Their calls also count with the status of that head.",
		"function_namespace", "function", "reason")
	inFlightNow = Metrics.Gauge(metric.Stable, "windlass_gateway_invocations_in_flight",
		"Calls that wait or run.", "function_namespace", "function")
	phaseDurationSeconds = Metrics.Histogram(metric.Stable, "windlass_gateway_phase_duration_seconds",
		"Time that calls spent in each phase: admit (until the call waited for an instance), queue (until the gateway gave it to one), core (until it had a core of its busy node), claim (until the function had it), execute, return (until the answer was complete). A call counts only in the phases that it reached.",
		longCalls(prometheus.ExponentialBuckets(0.00005, 2, 22)), "phase")
	phaseSecondsTotal = Metrics.Counter(metric.Stable, "windlass_gateway_phase_seconds_total",
		"Total time that calls spent in each phase, by function.", "function_namespace", "function", "phase")
	coldTotal = Metrics.Counter(metric.Stable, "windlass_gateway_cold_invocations_total",
		"Calls that were the first on their instance.", "function_namespace", "function")
	refusedTotal = Metrics.Counter(metric.Stable, "windlass_gateway_invocations_refused_total",
		"Calls that the gateway refused before it admitted them, by reason. The namespace is empty if the function does not exist or the caller may not know about it.",
		"function_namespace", "reason")
	claimsTotal = Metrics.Counter(metric.Stable, "windlass_gateway_claims_total",
		"Claims that instances made on calls by their tickets, whether granted or refused. Calls by loans are not claimed.")
	badClaimsTotal = Metrics.Counter(metric.Stable, "windlass_gateway_claims_refused_total",
		"Claims that the gateway refused, by reason: the call no longer waited (NotWaiting), the token was none of its tickets (WrongToken), or gateway and agent have no protocol in common (Unsupported).", "reason")
	offeredTotal = Metrics.Counter(metric.Experimental, "windlass_gateway_tickets_offered_total",
		"Tickets that the gateway offered to schedulers. Most warm calls have none.")
	reofferedTotal = Metrics.Counter(metric.Experimental, "windlass_gateway_tickets_reoffered_total",
		"Tickets that the gateway offered again, because it retries the call or because the ticket or its scheduler may be lost.")
	overtakenTotal = Metrics.Counter(metric.Stable, "windlass_gateway_tickets_overtaken_total",
		"Tickets whose calls went to a lent pull first. An instance that comes with such a ticket is refused (NotWaiting).")
	givenUpTotal = Metrics.Counter(metric.Experimental, "windlass_gateway_calls_given_up_total",
		"Calls by lent pulls that waited for a core of a busy node, and that their instances gave up for an instance on a calm node.")
	heldNow = Metrics.Gauge(metric.Stable, "windlass_gateway_invocations_held",
		"Calls that the gateway holds, including those with a body that is still arriving.")
	heldLimit = Metrics.Gauge(metric.Stable, "windlass_gateway_invocations_limit",
		"Most calls that the gateway holds at a time. It refuses further calls.")
	bytesNow = Metrics.Gauge(metric.Stable, "windlass_gateway_bodies_held_bytes",
		"Memory that the bodies of held calls use.")
	bytesLimit = Metrics.Gauge(metric.Stable, "windlass_gateway_bodies_limit_bytes",
		"Most memory that the bodies of held calls may use. The gateway refuses calls that need more.")
)

// metrics has the gateway's series. A function's series are deleted with it. A nil value
// counts nothing.
type metrics struct {
	invocations *prometheus.CounterVec
	broken      *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	inFlight    *prometheus.GaugeVec
	phaseSums   *prometheus.CounterVec
	cold        *prometheus.CounterVec
	refused     *prometheus.CounterVec
	claims      prometheus.Counter
	badClaims   *prometheus.CounterVec
	phases      [timeline.Phases]prometheus.Observer
	offers      prometheus.Counter
	reoffers    prometheus.Counter
	overtaken   prometheus.Counter
	givenUp     prometheus.Counter

	catalog catalog.Reader
	// mu guards functions, and is held for reading while series of a function are made:
	// a call that outlives its function must not bring them back.
	mu sync.RWMutex
	// functions are the series of functions with calls.
	functions map[invocation.FunctionKey]*functionSeries
}

// newMetrics makes the series; nil without a registry.
func newMetrics(reg prometheus.Registerer, functions catalog.Reader, admitter *admitter) *metrics {
	if reg == nil {
		return nil
	}
	m := &metrics{
		catalog:     functions,
		functions:   make(map[invocation.FunctionKey]*functionSeries),
		invocations: invocationsTotal.Vec(),
		broken:      brokenTotal.Vec(),
		duration:    invocationSeconds.Vec(),
		inFlight:    inFlightNow.Vec(),
		phaseSums:   phaseSecondsTotal.Vec(),
		cold:        coldTotal.Vec(),
		refused:     refusedTotal.Vec(),
		claims:      claimsTotal.New(),
		badClaims:   badClaimsTotal.Vec(),
		offers:      offeredTotal.New(),
		reoffers:    reofferedTotal.New(),
		overtaken:   overtakenTotal.New(),
		givenUp:     givenUpTotal.New(),
	}
	phases := phaseDurationSeconds.Vec()
	for s := range timeline.Phase(timeline.Phases) {
		m.phases[s] = phases.WithLabelValues(s.String())
	}
	for _, reason := range []string{notWaiting, wrongToken, unsupported} {
		m.badClaims.WithLabelValues(reason)
	}
	reg.MustRegister(m.invocations, m.broken, m.duration, m.inFlight, m.phaseSums, m.cold, m.refused, m.claims, m.badClaims, phases, m.offers, m.reoffers, m.overtaken, m.givenUp,
		heldNow.Func(func() float64 { return float64(admitter.held().Calls) }),
		heldLimit.Func(func() float64 { return float64(admitter.capacity.Calls) }),
		bytesNow.Func(func() float64 { return float64(admitter.held().Bytes) }),
		bytesLimit.Func(func() float64 { return float64(admitter.capacity.Bytes) }))
	return m
}

// ticketOffered counts a ticket.
func (m *metrics) ticketOffered(again bool) {
	if m == nil {
		return
	}
	m.offers.Inc()
	if again {
		m.reoffers.Inc()
	}
}

// ticketOvertaken counts a ticket that came to nothing.
func (m *metrics) ticketOvertaken() {
	if m != nil {
		m.overtaken.Inc()
	}
}

// callGivenUp counts a call that its instance gave up for another one.
func (m *metrics) callGivenUp() {
	if m != nil {
		m.givenUp.Inc()
	}
}

// Reasons to refuse a claim.
const (
	notWaiting = "NotWaiting"
	wrongToken = "WrongToken"
	// unsupported counts agents that share no protocol with this release.
	unsupported = "Unsupported"
)

func (m *metrics) claimGranted() {
	if m != nil {
		m.claims.Inc()
	}
}

// claimRefused counts a claim that was refused.
func (m *metrics) claimRefused(err error) {
	if m == nil {
		return
	}
	reason := notWaiting
	switch {
	case errors.Is(err, core.ErrBadToken):
		reason = wrongToken
	case errors.Is(err, errUnsupported):
		reason = unsupported
	}
	m.claims.Inc()
	m.badClaims.WithLabelValues(reason).Inc()
}

// callRejected counts a rejection; fn is nil if its namespace must not become a label, which
// callers could otherwise choose.
func (m *metrics) callRejected(fn *v1alpha1.Function, reason string) {
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

// callAdmitted counts an admitted call, and returns its series for callEnded; nil without a
// registry.
func (m *metrics) callAdmitted(fn *v1alpha1.Function) *functionSeries {
	if m == nil {
		return nil
	}
	series := m.seriesOf(fn)
	if series != nil {
		series.inFlight.Inc()
	}
	return series
}

// callEnded counts a call that is answered or given up; series is nil if it was not admitted.
// Counts for series that were deleted in the meantime are lost, as intended.
func (m *metrics) callEnded(c *call, series *functionSeries, end *callEnd) {
	if m == nil {
		return
	}
	if series != nil {
		series.inFlight.Dec()
	} else if series = m.seriesOf(c.function); series == nil {
		return
	}
	trace := c.traceID()
	m.countAnswer(c.function, series, end.outcome)
	if end.cut != "" {
		m.answerBroken(c.function, end.cut)
	}
	observeSeconds(series.duration, end.times.Total(), trace)
	if end.cold {
		series.cold.Inc()
	}
	for phase, span := range end.times.All() {
		observeSeconds(m.phases[phase], span.Duration(), trace)
		series.phases[phase].Add(span.Duration().Seconds())
	}
}

// answerBroken counts an answer that broke off.
func (m *metrics) answerBroken(fn *v1alpha1.Function, why string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.exists(fn) {
		m.broken.WithLabelValues(fn.Namespace, fn.Name, why).Inc()
	}
}

// observeSeconds adds to a histogram, with the call's trace as an exemplar if it has one.
func observeSeconds(histogram prometheus.Observer, d time.Duration, trace string) {
	if trace == "" {
		histogram.Observe(d.Seconds())
		return
	}
	histogram.(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": trace})
}

// deleteFunction deletes the series of a removed function and, if it was the last one of its
// namespace, those of the namespace.
func (m *metrics) deleteFunction(key invocation.FunctionKey, last bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.functions, key)
	labels := prometheus.Labels{"function_namespace": key.Namespace, "function": key.Name}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.invocations, m.broken, m.duration, m.inFlight, m.phaseSums, m.cold} {
		vec.DeletePartialMatch(labels)
	}
	if last {
		m.refused.DeletePartialMatch(prometheus.Labels{"function_namespace": key.Namespace})
	}
}

// deleteRevisions deletes the series of revisions that are no units of the function any more.
// A call of such a revision that ends later brings them back, until the function changes
// again.
func (m *metrics) deleteRevisions(e *rollout.Entry) {
	if m == nil {
		return
	}
	m.mu.RLock()
	s := m.functions[e.Key()]
	m.mu.RUnlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.answered {
		if !slices.ContainsFunc(e.Units, func(u *v1alpha1.Function) bool { return u.Revision() == o.revision }) {
			delete(s.answered, o)
			m.invocations.DeleteLabelValues(e.Key().Namespace, e.Key().Name, o.revision, strconv.Itoa(o.code), string(o.executed))
		}
	}
}

// functionSeries are the series of one function, found once for all its calls.
type functionSeries struct {
	duration prometheus.Observer
	inFlight prometheus.Gauge
	cold     prometheus.Counter
	phases   [timeline.Phases]prometheus.Counter

	mu sync.Mutex
	// answered are the counters by outcome, as far as calls had it.
	answered map[outcome]prometheus.Counter
}

// outcome is the answer that a client got, and the revision of its call.
type outcome struct {
	revision string
	code     int
	executed invocation.Executed
}

// exists reports whether a function has series. The catalog removes a function before it sends
// the event, and so before the series are deleted.
func (m *metrics) exists(fn *v1alpha1.Function) bool {
	now, exists := m.catalog.Get(fn.Key())
	return exists && now.UID() == string(fn.UID)
}

// seriesOf finds the series of a function; nil if it has none.
func (m *metrics) seriesOf(fn *v1alpha1.Function) *functionSeries {
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

func (m *metrics) newSeries(key invocation.FunctionKey) *functionSeries {
	s := &functionSeries{
		duration: m.duration.WithLabelValues(key.Namespace, key.Name),
		inFlight: m.inFlight.WithLabelValues(key.Namespace, key.Name),
		cold:     m.cold.WithLabelValues(key.Namespace, key.Name),
		answered: make(map[outcome]prometheus.Counter),
	}
	for phase := range timeline.Phase(timeline.Phases) {
		s.phases[phase] = m.phaseSums.WithLabelValues(key.Namespace, key.Name, phase.String())
	}
	return s
}

// countAnswer counts the answer to a call of a function.
func (m *metrics) countAnswer(fn *v1alpha1.Function, s *functionSeries, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counter, known := s.answered[o]
	if !known {
		m.mu.RLock()
		defer m.mu.RUnlock()
		if !m.exists(fn) {
			return
		}
		counter = m.invocations.WithLabelValues(fn.Namespace, fn.Name, o.revision, strconv.Itoa(o.code), string(o.executed))
		s.answered[o] = counter
	}
	counter.Inc()
}
