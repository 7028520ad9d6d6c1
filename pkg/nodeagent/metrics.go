package nodeagent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// Metrics declares the metrics of a node agent.
var Metrics metric.Set

// The bounds of histograms.
var (
	waitBuckets  = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 30, 60}
	errorBuckets = []float64{0.1, 0.25, 0.5, 0.8, 0.9, 1, 1.1, 1.25, 2, 4, 10}
)

var (
	coresDecl = Metrics.Gauge(metric.Experimental, "windlass_node_cores",
		"Core tickets of the node: how many calls compute at a time while it is busy.")
	busyDecl = Metrics.Gauge(metric.Stable, "windlass_node_busy",
		"1 while more threads want to run than the node has cores, and calls need core tickets; otherwise 0.")
	agentsDecl = Metrics.Gauge(metric.Experimental, "windlass_node_agents",
		"Instances whose agents are connected.")
	fillerDecl = Metrics.Gauge(metric.Experimental, "windlass_node_filler_pods",
		"Ordinary pods, which are no instances, in the low band because an annotation asks for it.")
	callsDecl = Metrics.Gauge(metric.Experimental, "windlass_node_calls",
		"Calls that asked, by state: waiting for a core ticket, holding one, preempted by a shorter call, blocked on something other than the processor, or demoted after their slice.", "state")
	instancesDecl = Metrics.Gauge(metric.Experimental, "windlass_node_instances",
		"Instances whose agents are connected, and ordinary pods that are filler, by the class that they have here (LatencyCritical only where their namespace may have it) and the band that they belong to: normal or low.", "class", "band")
	lowDecl = Metrics.Gauge(metric.Experimental, "windlass_node_low_instances",
		"Instances in the low band.")
	waitDecl = Metrics.Histogram(metric.Experimental, "windlass_node_core_wait_seconds",
		"Time that calls waited for a core ticket, by the order in use: until they got one, were given up or, for calls that began without one, until their end.", waitBuckets, "order")
	asksDecl = Metrics.Counter(metric.Experimental, "windlass_node_asks_total",
		"Calls that asked for a core ticket.")
	grantsDecl = Metrics.Counter(metric.Experimental, "windlass_node_grants_total",
		"Core tickets given to calls that had not begun.")
	demotionsDecl = Metrics.Counter(metric.Experimental, "windlass_node_demotions_total",
		"Times that an instance was moved into the low band, by reason: slice, preempted or overload of its call, unasked if it computed too much without a ticket, or batch for its class.", "reason")
	blockedDecl = Metrics.Counter(metric.Experimental, "windlass_node_blocked_total",
		"Core tickets that calls gave back because they waited for something other than the processor.")
	sliceDecl = Metrics.Gauge(metric.Experimental, "windlass_node_slice_seconds",
		"Processor time after which a call of a function that is new here yields; 0 if it need not. With the slices sfs and p95 it holds for all functions.")
	bandsDecl = Metrics.Counter(metric.Experimental, "windlass_node_band_writes_total",
		"Times that an instance was moved between bands, breaths included.")
	breathsDecl = Metrics.Counter(metric.Experimental, "windlass_node_breaths_total",
		"Times that an instance which starved in the low band was normal for some milliseconds.")
	failedDecl = Metrics.Counter(metric.Experimental, "windlass_node_failed_writes_total",
		"Moves between bands, and changes of what co-location keeps back, that failed, by the file that could not be written; empty if it was no file. Moves to the normal band and changes are tried again.", "file")
	coLocationDecl = Metrics.Gauge(metric.Experimental, "windlass_node_colocation",
		"1 while co-location is switched on and both latency-critical and batch instances are on the node; otherwise 0.")
	reservedDecl = Metrics.Gauge(metric.Experimental, "windlass_node_reserved_cores",
		"Cores on which no batch instance may run, because latency-critical ones need them.")
	frozenDecl = Metrics.Gauge(metric.Experimental, "windlass_node_frozen_instances",
		"Batch instances whose functions are frozen, because latency-critical ones wait for cores.")
	freezesDecl = Metrics.Counter(metric.Experimental, "windlass_node_freezes_total",
		"Times that the function of a batch instance was frozen.")
	frozenTimeDecl = Metrics.Counter(metric.Experimental, "windlass_node_frozen_seconds_total",
		"Time for which functions of batch instances were frozen, added up.")
	vainDecl = Metrics.Counter(metric.Experimental, "windlass_node_ineffective_holds_total",
		"Times that co-location gave back what it had kept back, because a latency-critical instance waited no longer without it: it waits for something other than batch instances.")
	batchCPUDecl = Metrics.Counter(metric.Experimental, "windlass_node_batch_cpu_seconds_total",
		"Processor time of batch instances, by function, and of ordinary pods that are filler, by namespace, with an empty function. Its rate is the cores that they get. Exists as long as the node has a batch instance of the function, or such a pod of the namespace.", "function_namespace", "function")
	criticalCPUDecl = Metrics.Counter(metric.Experimental, "windlass_node_critical_cpu_seconds_total",
		"Processor time of latency-critical instances while batch instances were beside them. Its rate is the cores that they use.")
	criticalWaitDecl = Metrics.Counter(metric.Experimental, "windlass_node_critical_wait_seconds_total",
		"Time for which a latency-critical instance waited for a core while batch instances were beside it, of the one that waited longest. Its rate is what co-location decides by: above 0.02 cores are reserved. Stays 0 where nothing on the node says how long instances wait.")
	executionDecl = Metrics.Counter(metric.Experimental, "windlass_node_execution_seconds_total",
		"Time from core ticket to end of the calls that asked. Divided by their processor time, it says how much longer calls take for having to share cores. Exists as long as the node has an instance of the function.", "function_namespace", "function")
	cpuDecl = Metrics.Counter(metric.Experimental, "windlass_node_cpu_seconds_total",
		"Processor time of the same calls.", "function_namespace", "function")
	errorDecl = Metrics.Histogram(metric.Experimental, "windlass_node_estimate_error_ratio",
		"Processor time of calls, divided by the mean that was expected when they began.", errorBuckets)
)

// metrics are what the agent counts. Its collectors exist without a Registry, too.
type metrics struct {
	cores, busy, agents, low, slice       prometheus.Gauge
	filler                                prometheus.Gauge
	calls, instances                      *prometheus.GaugeVec
	wait                                  prometheus.Observer
	asks, grants, blocked, bands, breaths prometheus.Counter
	demotions, failed, execution, cpuTime *prometheus.CounterVec
	estimates                             prometheus.Histogram
	coLocation, reserved, frozen          prometheus.Gauge
	freezes, frozenTime, vain             prometheus.Counter
	batchCPU                              *prometheus.CounterVec
	criticalCPU, criticalWait             prometheus.Counter
	// gaveBack is how many tickets blocked counts.
	gaveBack int
}

func newMetrics(reg prometheus.Registerer, params callorder.Params) *metrics {
	waits := waitDecl.Vec()
	m := &metrics{
		cores: coresDecl.New(), busy: busyDecl.New(), agents: agentsDecl.New(), filler: fillerDecl.New(), low: lowDecl.New(), calls: callsDecl.Vec(), instances: instancesDecl.Vec(),
		wait: waits.WithLabelValues(string(params.Order)),
		asks: asksDecl.New(), grants: grantsDecl.New(), blocked: blockedDecl.New(), slice: sliceDecl.New(), bands: bandsDecl.New(), breaths: breathsDecl.New(),
		demotions: demotionsDecl.Vec(), failed: failedDecl.Vec(), execution: executionDecl.Vec(), cpuTime: cpuDecl.Vec(),
		estimates:  errorDecl.New(),
		coLocation: coLocationDecl.New(), reserved: reservedDecl.New(), frozen: frozenDecl.New(), freezes: freezesDecl.New(),
		frozenTime: frozenTimeDecl.New(), vain: vainDecl.New(), batchCPU: batchCPUDecl.Vec(), criticalCPU: criticalCPUDecl.New(), criticalWait: criticalWaitDecl.New(),
	}
	m.cores.Set(float64(params.Cores))
	for _, why := range []callorder.Why{callorder.WhySlice, callorder.WhyPreempted, callorder.WhyOverload, callorder.WhyUnasked, callorder.WhyBatch} {
		m.demotions.WithLabelValues(string(why))
	}
	m.showInstances(nil)
	if reg != nil {
		reg.MustRegister(m.cores, m.busy, m.agents, m.filler, m.low, m.calls, m.instances, waits, m.asks, m.grants, m.blocked, m.slice, m.bands, m.breaths,
			m.demotions, m.failed, m.execution, m.cpuTime, m.estimates,
			m.coLocation, m.reserved, m.frozen, m.freezes, m.frozenTime, m.vain, m.batchCPU, m.criticalCPU, m.criticalWait)
	}
	return m
}

// show sets what the core knows: how many calls there are by state, and the slice of newcomers.
func (m *metrics) show(core *callorder.Core) {
	slice, limited := core.NewcomerSlice()
	if !limited {
		slice = 0
	}
	m.slice.Set(slice.Seconds())
	n := core.Counts()
	m.blocked.Add(float64(n.GaveBack - m.gaveBack))
	m.gaveBack = n.GaveBack
	for state, calls := range map[string]int{
		"waiting": n.Waiting, "holding": n.Holding, "preempted": n.Preempted, "blocked": n.Blocked, "demoted": n.Demoted,
	} {
		m.calls.WithLabelValues(state).Set(float64(calls))
	}
}

// showSessions sets how many agents are connected, and how many pods have none.
func (m *metrics) showSessions(sessions map[callorder.InstanceID]*session) {
	fillers := 0
	for _, s := range sessions {
		if s.filler {
			fillers++
		}
	}
	m.agents.Set(float64(len(sessions) - fillers))
	m.filler.Set(float64(fillers))
}

// showInstances sets how many instances there are by class and band.
func (m *metrics) showInstances(sessions map[callorder.InstanceID]*session) {
	type kind struct {
		class callorder.Class
		low   bool
	}
	counts := map[kind]int{}
	for _, s := range sessions {
		counts[kind{s.class, s.low}]++
	}
	for _, class := range callorder.Classes() {
		m.instances.WithLabelValues(class.String(), "normal").Set(float64(counts[kind{class, false}]))
		m.instances.WithLabelValues(class.String(), "low").Set(float64(counts[kind{class, true}]))
	}
}

// showCoLocation sets what is kept back.
func (m *metrics) showCoLocation(c *coLocation) {
	on, reserved, frozen := 0, 0, 0
	if c.core != nil {
		on, reserved = 1, c.core.Reserved()
	}
	for _, h := range c.held {
		if h.frozen {
			frozen++
		}
	}
	m.coLocation.Set(float64(on))
	m.reserved.Set(float64(reserved))
	m.frozen.Set(float64(frozen))
}

// showBusy sets whether the node is busy.
func (m *metrics) showBusy(busy bool) {
	m.busy.Set(0)
	if busy {
		m.busy.Set(1)
	}
}

// countCall counts a call that has ended. expected is 0 if nothing was known of its function.
func (m *metrics) countCall(s *session, took, used, expected time.Duration) {
	if s.execution == nil {
		s.execution = m.execution.WithLabelValues(s.function.namespace, s.function.name)
		s.cpuTime = m.cpuTime.WithLabelValues(s.function.namespace, s.function.name)
	}
	s.execution.Add(max(0, took).Seconds())
	s.cpuTime.Add(max(0, used).Seconds())
	if expected > 0 {
		m.estimates.Observe(used.Seconds() / expected.Seconds())
	}
}

// countBatch counts what a batch instance has used since it was counted the last time.
func (m *metrics) countBatch(s *session) {
	if s.class != callorder.Batch {
		return
	}
	m.batchCPU.WithLabelValues(s.function.namespace, s.function.name).Add(max(0, s.usage-s.counted).Seconds())
	s.counted = s.usage
}

// dropBatch deletes the series of a function that has no batch instance here any more.
func (m *metrics) dropBatch(of functionKey) { m.batchCPU.DeleteLabelValues(of.namespace, of.name) }

// dropFunction deletes the series of a function that has no instance here any more.
func (m *metrics) dropFunction(of functionKey) {
	m.execution.DeleteLabelValues(of.namespace, of.name)
	m.cpuTime.DeleteLabelValues(of.namespace, of.name)
}
