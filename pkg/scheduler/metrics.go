package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// metrics are the scheduler's series. Those of a function go with it. States
// are read from the queues and the inventory when they are scraped, so they
// cannot drift.
type metrics struct {
	decisions *prometheus.CounterVec
	ordered   *prometheus.CounterVec
	starts    *prometheus.CounterVec
	failures  *prometheus.CounterVec
	evictions *prometheus.CounterVec
	withdrawn *prometheus.CounterVec
	released  *prometheus.CounterVec
	deferrals *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	ticks     prometheus.Histogram
}

var functionLabels = []string{"namespace", "function"}

func newMetrics(reg prometheus.Registerer, s *Scheduler) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_scheduler_" + name, Help: help,
		}, append(functionLabels[:2:2], labels...))
	}
	m := &metrics{
		decisions: counter("decisions_total", "Decisions to create instances, by reason.", "reason"),
		ordered:   counter("instances_ordered_total", "Instances that were ordered."),
		starts:    counter("instances_started_total", "Instances that have asked for work."),
		failures:  counter("instances_failed_total", "Instances that ended before they asked for work."),
		evictions: counter("instances_evicted_total", "Idle instances that were retired to make room for another function's."),
		withdrawn: counter("instances_withdrawn_total", "Instances that were ended while they were being created, since they were not wanted any more."),
		released:  counter("instances_released_total", "Idle instances that were retired, since the function's idle times say that no call is near."),
		deferrals: counter("orders_deferred_total", "Decisions to create instances of which none could be created at that tick, since the rate was used up."),
		refusals:  counter("refused_total", "Calls that were refused, when they came or while they waited, by reason.", "reason"),
		ticks: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "windlass_scheduler_tick_duration_seconds",
			Help:    "Time that one tick took over all functions.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 4, 9),
		}),
	}
	reg.MustRegister(m.decisions, m.ordered, m.starts, m.failures, m.evictions, m.withdrawn, m.released, m.deferrals, m.refusals, m.ticks, stateCollector{s})
	return m
}

func (m *metrics) decided(key invoke.FunctionKey, d fpcs.Decision, ordered int) {
	m.decisions.WithLabelValues(key.Namespace, key.Name, string(d.Why)).Inc()
	m.ordered.WithLabelValues(key.Namespace, key.Name).Add(float64(ordered))
}

func (m *metrics) started(key invoke.FunctionKey) {
	m.starts.WithLabelValues(key.Namespace, key.Name).Inc()
}

func (m *metrics) startFailed(key invoke.FunctionKey) {
	m.failures.WithLabelValues(key.Namespace, key.Name).Inc()
}

func (m *metrics) evicted(key invoke.FunctionKey) {
	m.evictions.WithLabelValues(key.Namespace, key.Name).Inc()
}

func (m *metrics) withdrew(key invoke.FunctionKey, n int) {
	m.withdrawn.WithLabelValues(key.Namespace, key.Name).Add(float64(n))
}

func (m *metrics) releasedOne(key invoke.FunctionKey) {
	m.released.WithLabelValues(key.Namespace, key.Name).Inc()
}

func (m *metrics) putOff(key invoke.FunctionKey) {
	m.deferrals.WithLabelValues(key.Namespace, key.Name).Inc()
}

func (m *metrics) refused(key invoke.FunctionKey, reason invoke.RefusalReason, n int) {
	m.refusals.WithLabelValues(key.Namespace, key.Name, string(reason)).Add(float64(n))
}

func (m *metrics) ticked(took time.Duration) { m.ticks.Observe(took.Seconds()) }

// record writes to the series of a function, unless it is gone and they with it.
func (s *Scheduler) record(f *function, write func(m *metrics, key invoke.FunctionKey)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.functions[f.uid] == f {
		write(s.metrics, f.current().Key())
	}
}

func (m *metrics) forget(key invoke.FunctionKey) {
	labels := prometheus.Labels{"namespace": key.Namespace, "function": key.Name}
	for _, vec := range []*prometheus.CounterVec{m.decisions, m.ordered, m.starts, m.failures, m.evictions, m.withdrawn, m.released, m.deferrals, m.refusals} {
		vec.DeletePartialMatch(labels)
	}
}

// stateCollector reads the state of every function at each scrape.
type stateCollector struct{ s *Scheduler }

var (
	queuedDesc = prometheus.NewDesc("windlass_scheduler_queued",
		"Calls that wait for an instance.", functionLabels, nil)
	oldestDesc = prometheus.NewDesc("windlass_scheduler_oldest_wait_seconds",
		"How long the first waiting call has waited.", functionLabels, nil)
	newestFirstDesc = prometheus.NewDesc("windlass_scheduler_newest_first",
		"1 while the newest call is served first, since the queue is hopeless; otherwise 0.", functionLabels, nil)
	instancesDesc = prometheus.NewDesc("windlass_scheduler_instances",
		"Instances by state.", append(functionLabels[:2:2], "state"), nil)
	executionDesc = prometheus.NewDesc("windlass_scheduler_mean_execution_seconds",
		"Mean of the last execution times; absent if unknown.", functionLabels, nil)
	startDesc = prometheus.NewDesc("windlass_scheduler_mean_start_seconds",
		"Mean of the times that the last instances took from their order until they asked for work; absent if unknown.", functionLabels, nil)
)

var (
	orphanDesc = prometheus.NewDesc("windlass_scheduler_orphan",
		"1 while etcd does not confirm that the scheduler owns its slots, else 0.", nil, nil)
	servedDesc = prometheus.NewDesc("windlass_scheduler_slots",
		"Slots that the scheduler serves: owned, or provisionally for an owner that is silent.", []string{"as"}, nil)
)

// Describe implements prometheus.Collector.
func (c stateCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- queuedDesc
	ch <- oldestDesc
	ch <- newestFirstDesc
	ch <- instancesDesc
	ch <- executionDesc
	ch <- startDesc
	ch <- orphanDesc
	ch <- servedDesc
}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(ch chan<- prometheus.Metric) {
	c.collectSlots(ch)
	for _, f := range c.s.all() {
		key := f.current().Key()
		counts, view := c.s.deps.Instances.Count(f.uid), f.broker.View()
		gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
			labels = append([]string{key.Namespace, key.Name}, labels...)
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		}
		busy := min(view.Busy, counts.Created)
		gauge(queuedDesc, float64(view.Waiting))
		gauge(oldestDesc, view.OldestWait.Seconds())
		newestFirst := 0.0
		if view.NewestFirst {
			newestFirst = 1
		}
		gauge(newestFirstDesc, newestFirst)
		gauge(instancesDesc, float64(counts.Creating), "creating")
		gauge(instancesDesc, float64(busy), "busy")
		gauge(instancesDesc, float64(counts.Created-busy), "idle")
		gauge(instancesDesc, float64(counts.Leaving), "leaving")
		means := f.means()
		if means.Execution > 0 {
			gauge(executionDesc, means.Execution.Seconds())
		}
		if means.Start > 0 {
			gauge(startDesc, means.Start.Seconds())
		}
	}
}

func (c stateCollector) collectSlots(ch chan<- prometheus.Metric) {
	var orphaned, owned, provisional float64
	if _, orphan := c.s.deps.Keeper.Orphan(); orphan {
		orphaned = 1
	}
	for slot := range ownership.Slot(ownership.Slots) {
		switch term := c.s.term(slot); {
		case term == none:
		case term.Heir == "":
			owned++
		default:
			provisional++
		}
	}
	ch <- prometheus.MustNewConstMetric(orphanDesc, prometheus.GaugeValue, orphaned)
	ch <- prometheus.MustNewConstMetric(servedDesc, prometheus.GaugeValue, owned, "owner")
	ch <- prometheus.MustNewConstMetric(servedDesc, prometheus.GaugeValue, provisional, "heir")
}
