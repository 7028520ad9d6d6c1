package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
)

// Metrics are what a scheduler tells.
var Metrics metric.Set

// The bounds of histograms, in seconds.
var (
	tickBuckets = prometheus.ExponentialBuckets(0.00001, 4, 9)
	lagBuckets  = prometheus.ExponentialBuckets(0.0001, 4, 9)
	// startBuckets reach from what a spare instance takes to the longest startup
	// timeout that makes sense.
	startBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// Calls and instances of a function.
var (
	queuedDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_queue_length",
		"Calls that wait for an instance.", "function_namespace", "function", "revision")
	oldestDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_queue_oldest_wait_seconds",
		"How long the first waiting call has waited. Absent if the function was never called.", "function_namespace", "function", "revision")
	newestFirstDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_queue_newest_first",
		"1 while the newest call is served first, since the queue is hopeless; otherwise 0. Absent if the function was never called.", "function_namespace", "function", "revision")
	instancesDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_instances",
		"Instances by state: creating, busy, idle or leaving.", "function_namespace", "function", "revision", "state")
	silentDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_agents_silent",
		"Instances whose agents were there and have no stream now, and which are not known to have ended. Absent for a function whose instances have never asked for a call.", "function_namespace", "function", "revision")
	backedOffDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_instances_backed_off",
		"Idle instances that say less often that they are there, having waited in vain.", "function_namespace", "function", "revision")
	pullsDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_pulls_total",
		"Calls that instances asked for.", "function_namespace", "function", "revision")
	pullsWaitingDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_pulls_waiting",
		"Calls that instances have asked for and not been given yet.", "function_namespace", "function", "revision")
	pullsInVainDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_pulls_in_vain_total",
		"Requests of instances to leave, since they had waited for calls in vain, granted or not.", "function_namespace", "function", "revision")
	executionDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_estimated_execution_seconds",
		"Mean of the last execution times; absent if unknown.", "function_namespace", "function", "revision")
	executionsDecl = Metrics.Native(metric.Experimental, "windlass_function_execution_duration_seconds",
		"Time that the function itself took for each call that it ran, as its instances' agents say; a call that timed out counts as the timeout.", "function_namespace", "function", "revision")
	startDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_estimated_start_seconds",
		"Mean of the times that the last instances took from their order until they asked for work; absent if unknown.", "function_namespace", "function", "revision")
	refusedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_invocations_refused_total",
		"Calls that were refused, when they came or while they waited, by reason.", "function_namespace", "function", "revision", "reason")
	unheardDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_refusals_unheard_total",
		"Refusals of waiting calls that did not reach their gateway, by reason: it has no stream here (NoStream), or has not taken what was sent before (NotTaken). It offers the calls again, so they are refused later.", "reason")
)

// Decisions on a function and what became of them.
var (
	requiredDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_desired_instances",
		"Instances that the last decision on calls held to be needed; 0 if for ten seconds no call has come, or each has found an idle instance. Absent if the function was never called and has no instance.", "function_namespace", "function", "revision")
	rateDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_estimated_arrivals_per_second",
		"Calls per second that the last decision on calls counted on. Absent if that is ten seconds ago, or if the function's decider does not estimate it.", "function_namespace", "function", "revision")
	horizonDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_horizon_seconds",
		"How far ahead the last decision on calls planned. Absent if that is ten seconds ago, or if the function's decider does not plan.", "function_namespace", "function", "revision")
	decisionsDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_decisions_total",
		"Decisions to create instances, by reason.", "function_namespace", "function", "revision", "reason")
	orderedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_ordered_total",
		"Instances that were ordered.", "function_namespace", "function", "revision")
	deferredDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_orders_deferred_total",
		"Decisions to create instances that could not create any at that tick, since --create-qps was used up.", "function_namespace", "function", "revision")
	sparesTakenDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_spare_instances_taken_total",
		"Spare instances of warm pools that became the function's.", "function_namespace", "function", "revision")
	startedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_started_total",
		"Instances that have asked for work.", "function_namespace", "function", "revision")
	failedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_failed_total",
		"Instances that ended before they asked for work, by reason, which is a condition reason of the Function.", "function_namespace", "function", "revision", "reason")
	evictedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_evicted_total",
		"Idle instances that were retired to make room for another function's.", "function_namespace", "function", "revision")
	withdrawnDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_withdrawn_total",
		"Instances that were ended while they were being created, since they were not wanted any more.", "function_namespace", "function", "revision")
	releasedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_released_total",
		"Idle instances that were retired, since the function's idle times say that no call is near or there were more than scaling.maxInstances.", "function_namespace", "function", "revision")
	expiredDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_expired_total",
		"Instances that left because they had waited for calls in vain.", "function_namespace", "function", "revision")
)

// Starts. Only those are told of that the scheduler ordered itself.
var (
	phaseDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_cold_start_phase_duration_seconds",
		"Time that starts of instances spent with each phase: decide (from the arrival of the oldest call that waits to the order), create (until the pod or the processes are there), sandbox (until the pod has a network), containers (until the agent began), ready (until the function can be called), hello (until the scheduler knows the agent, if that is later), claim (until the instance has asked for its first call, and got it if one waits).",
		startBuckets, "phase")
	phaseSecondsDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_cold_start_phase_seconds_total",
		"Time that starts of the function's instances spent with each phase.", "function_namespace", "function", "revision", "phase")
	coldStartDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_cold_start_duration_seconds",
		"Time that a start took from the arrival of the oldest call that waited for it until the instance had asked for its first call: the sum of its phases.",
		startBuckets)
)

// What agents say of themselves, summed up.
var (
	agentCallsDecl = Metrics.Counter(metric.Experimental, "windlass_agent_calls_total",
		"Calls that the function's instances ran, as their agents say.", "function_namespace", "function", "revision")
	agentBrokenDecl = Metrics.Counter(metric.Experimental, "windlass_agent_calls_broken_total",
		"Calls that did not end as they should, as the agents say: the function ended, or did not answer properly.", "function_namespace", "function", "revision")
	agentRefusedDecl = Metrics.Counter(metric.Experimental, "windlass_agent_claims_refused_total",
		"Claims of the function's instances that gateways refused, as their agents say.", "function_namespace", "function", "revision")
	agentReconnectsDecl = Metrics.Counter(metric.Experimental, "windlass_agent_reconnects_total",
		"Streams to schedulers that agents lost and opened anew.", "function_namespace", "function", "revision")
	agentCPUDecl = Metrics.Counter(metric.Experimental, "windlass_agent_cpu_seconds_total",
		"CPU time that the agents of the function's instances used, without the function itself.", "function_namespace", "function", "revision")
	agentResidentDecl = Metrics.Gauge(metric.Experimental, "windlass_agent_resident_memory_bytes",
		"Memory that the agents of the function's instances hold, without the function itself.", "function_namespace", "function", "revision")
)

// The scheduler itself, its slots, and the nodes.
var (
	ticksDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_tick_duration_seconds",
		"Time that one tick took over all functions.", tickBuckets)
	lagDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_tick_lag_seconds",
		"How much later than it was due a tick began.", lagBuckets)
	slotsDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_slots",
		"Slots that the scheduler serves: as owner, or as heir while their owner is silent.", "role")
	slotMovesDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_slot_moves_total",
		"Slots that the scheduler has gained or lost as their owner, by direction.", "direction")
	epochDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_highest_epoch",
		"Highest epoch of the slots that the scheduler serves, which rises whenever it gains one; 0 if it serves none.")
	orphanDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_ownership_unconfirmed",
		"1 while etcd does not confirm that the scheduler owns its slots, else 0.")
	reconciledDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_reconciled_total",
		"Differences between what the scheduler believed and what was there, which no event explained within two looks, and which were mended, by kind: instance (in the inventory, and unknown to the runtime), pod (in the runtime's book and not in the cluster, or the other way round), stream (an instance connected, and noted as not, or the other way round), activity (a function at rest though calls wait) or ticket (a waiting call of a gateway that has no stream). None in health, but for pods that were being created as their scheduler was replaced, and for calls that waited at a gateway that was killed or cut off.", "kind")
	sparesDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_spare_instances",
		"Spare instances of the scheduler's warm pools by state: starting, ready or leaving.", "function_namespace", "runtime", "pool", "state")
	nodeInstancesDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_node_instances",
		"Instances of the scheduler's functions and pools by node, of nodes that have some.", "node_name")
	nodeRequestedDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_node_requested_ratio",
		"Share of what a node can give that is requested by all that runs there, by resource: cpu or memory. All schedulers tell the same, so take the highest.", "node_name", "resource")
)

// states are those that stateCollector reads.
var states = []metric.Gauge{orphanDecl, slotsDecl, epochDecl, sparesDecl, nodeInstancesDecl, nodeRequestedDecl}
