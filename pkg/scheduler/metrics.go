package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// metrics are what the scheduler counts beside its functions' tallies. The series of a
// function go with it. It is nil if nobody wants to know.
type metrics struct {
	decisions *prometheus.CounterVec
	failures  *prometheus.CounterVec
	refusals  *prometheus.CounterVec

	ticks, lags, starts prometheus.Histogram
	stages              [coldstart.NumStages]prometheus.Observer
	gained, lost        prometheus.Counter
	reconciled          *prometheus.CounterVec
	// Refusals that found no stream of their gateway, and such as it did not take.
	unreached, untaken prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, s *Scheduler) *metrics {
	if reg == nil {
		return nil
	}
	stages, moves, unheard := stageDecl.Vec(), slotMovesDecl.Vec(), unheardDecl.Vec()
	m := &metrics{
		decisions: decisionsDecl.Vec(), failures: failedDecl.Vec(), refusals: refusedDecl.Vec(),
		ticks: ticksDecl.New(), lags: lagDecl.New(), starts: coldStartDecl.New(),
		reconciled: reconciledDecl.Vec(),
		gained:     moves.WithLabelValues("gained"), lost: moves.WithLabelValues("lost"),
		unreached: unheard.WithLabelValues("no stream"), untaken: unheard.WithLabelValues("not taken"),
	}
	for stage := range coldstart.NumStages {
		m.stages[stage] = stages.WithLabelValues(stage.String())
	}
	for _, l := range s.levels {
		m.reconciled.WithLabelValues(l.kind)
	}
	reg.MustRegister(m.decisions, m.failures, m.refusals, m.ticks, m.lags, m.starts, stages, moves, unheard, m.reconciled,
		stateCollector{s}, exposition.NewCollector(ofFunctions, s.rows))
	return m
}

func (m *metrics) decided(key invoke.FunctionKey, d fpcs.Decision) {
	m.decisions.WithLabelValues(key.Namespace, key.Name, string(d.Why)).Inc()
}

func (m *metrics) startFailed(key invoke.FunctionKey, reason string) {
	m.failures.WithLabelValues(key.Namespace, key.Name, reason).Inc()
}

func (m *metrics) refused(key invoke.FunctionKey, reason invoke.RefusalReason, n int) {
	m.refusals.WithLabelValues(key.Namespace, key.Name, string(reason)).Add(float64(n))
}

// late notes how much later than due a tick begins.
func (m *metrics) late(by time.Duration) {
	if m != nil {
		m.lags.Observe(max(0, by).Seconds())
	}
}

func (m *metrics) ticked(took time.Duration) {
	if m != nil {
		m.ticks.Observe(took.Seconds())
	}
}

func (m *metrics) moved(gained, lost int) {
	if m != nil {
		m.gained.Add(float64(gained))
		m.lost.Add(float64(lost))
	}
}

// mended notes differences that were mended.
func (m *metrics) mended(kind string, n int) {
	if m != nil {
		m.reconciled.WithLabelValues(kind).Add(float64(n))
	}
}

// notReached counts a refusal that found no stream of its gateway.
func (m *metrics) notReached() {
	if m != nil {
		m.unreached.Inc()
	}
}

// notTaken counts a refusal that its gateway's stream had no room for.
func (m *metrics) notTaken() {
	if m != nil {
		m.untaken.Inc()
	}
}

// started notes how the start of an instance went.
func (m *metrics) started(stages coldstart.Durations) {
	if m == nil {
		return
	}
	for stage, took := range stages {
		m.stages[stage].Observe(took.Seconds())
	}
	m.starts.Observe(stages.Total().Seconds())
}

// record writes to the series of a function, unless it is gone and they with it.
func (s *Scheduler) record(f *function, write func(m *metrics, key invoke.FunctionKey)) {
	if s.metrics == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.functions.of(f.uid) == f {
		write(s.metrics, f.current().Key())
	}
}

func (m *metrics) forget(key invoke.FunctionKey) {
	if m == nil {
		return
	}
	labels := prometheus.Labels{"namespace": key.Namespace, "function": key.Name}
	for _, vec := range []*prometheus.CounterVec{m.decisions, m.failures, m.refusals} {
		vec.DeletePartialMatch(labels)
	}
}

// event is something that is counted for a function.
type event int

const (
	instanceOrdered event = iota
	orderDeferred
	spareTaken
	instanceStarted
	instanceEvicted
	instanceWithdrawn
	instanceReleased
	instanceExpired
	pulledInVain

	events
)

// eventDecls are the counters that tell of events.
var eventDecls = [events]metric.Counter{
	instanceOrdered: orderedDecl, orderDeferred: deferredDecl, spareTaken: sparesTakenDecl,
	instanceStarted: startedDecl, instanceEvicted: evictedDecl, instanceWithdrawn: withdrawnDecl,
	instanceReleased: releasedDecl, instanceExpired: expiredDecl, pulledInVain: pullsInVainDecl,
}

// tally is how often each event happened to a function.
type tally [events]uint64

// note counts an event that happened n times.
func (f *function) note(e event, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tally[e] += uint64(n)
}
