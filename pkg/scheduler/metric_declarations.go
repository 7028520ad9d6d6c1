package scheduler

import "github.com/windlass-dev/windlass/internal/metric"

// Metrics declares the metrics of a scheduler.
var Metrics metric.Set

// The bounds of histograms, in seconds. What alerts and dashboards compare quantiles with is among
// them: between two bounds a quantile is a guess.
var (
	tickBuckets = []float64{0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1}
	lagBuckets  = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	// startBuckets reach from the start of a spare instance to the longest useful startup
	// timeout.
	startBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300}
)

// Calls and instances of a function.
var (
	queuedDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_queue_length",
		"Calls that wait for an instance.", "function_namespace", "function", "revision")
	oldestDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_queue_oldest_wait_seconds",
		"How long the oldest waiting call has waited. Absent if the function was never called.", "function_namespace", "function", "revision")
	newestFirstDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_queue_newest_first",
		"1 while the scheduler serves the newest call first, because calls wait too long to be served in order; otherwise 0. Absent if the function was never called.", "function_namespace", "function", "revision")
	instancesDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_instances",
		"Instances by state: creating, busy, idle or leaving.", "function_namespace", "function", "revision", "state")
	silentDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_agents_silent",
		"Instances with an agent that lost its connection, and that are not known to have ended. Absent until an instance of the function has asked for a call.", "function_namespace", "function", "revision")
	backedOffDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_instances_backed_off",
		"Idle instances that ask for calls less often, because they have waited for a long time.", "function_namespace", "function", "revision")
	pullsDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_pulls_total",
		"Requests of instances for a call.", "function_namespace", "function", "revision")
	pullsWaitingDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_pulls_waiting",
		"Requests of instances for a call that still wait for one.", "function_namespace", "function", "revision")
	loansDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_loans",
		"Calls at a time that gateways can hand directly to the function's instances, without asking a scheduler. Those that run count.", "function_namespace", "function", "revision")
	recallsDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_recalls_total",
		"Calls at a time that the scheduler took back from gateways: calls of others waited, a call waited for a core of a busy node, the function got limits, or the gateway does not know of the loan.", "function_namespace", "function", "revision")
	reboundDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_tickets_rebound_total",
		"Tickets that the scheduler handed to a second instance, because the first one waits for a core of its busy node. The gateway refuses one of the two (NotWaiting).", "function_namespace", "function", "revision")
	pullsInVainDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_leave_requests_total",
		"Requests of instances to stop because no call came, whether granted or refused.", "function_namespace", "function", "revision")
	executionDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_estimated_execution_seconds",
		"Mean of recent execution times. Absent if unknown.", "function_namespace", "function", "revision")
	executionsDecl = Metrics.Native(metric.Experimental, "windlass_function_execution_duration_seconds",
		"Time that the function itself took for each call, as measured by the agents. A call that timed out counts with its timeout. Calls that a gateway hands directly to instances count with the mean of each tenth of a second.", "function_namespace", "function", "revision")
	startDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_estimated_start_seconds",
		"Mean time that recent instances took from their launch until they asked for their first call. Absent if unknown.", "function_namespace", "function", "revision")
	refusedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_invocations_refused_total",
		"Calls that the scheduler refused, on arrival or while they waited, by reason.", "function_namespace", "function", "revision", "reason")
	unheardDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_refusals_undelivered_total",
		"Refusals of waiting calls that did not reach their gateway, by reason: the gateway is not connected to this scheduler (NoStream), or has not read earlier messages (NotTaken). The gateway offers such calls again, and the scheduler then refuses them.", "reason")
)

// Decisions on a function, and their outcomes.
var (
	requiredDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_desired_instances",
		"Instances that the function needed at the last decision. 0 if for ten seconds no call has come or every call has found an idle instance. Absent if the function was never called and has no instance.", "function_namespace", "function", "revision")
	rateDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_estimated_arrivals_per_second",
		"Calls per second that the last decision expected. Absent if that decision is ten seconds old, or if the function's decider does not estimate arrivals.", "function_namespace", "function", "revision")
	horizonDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_horizon_seconds",
		"How far ahead the last decision planned. Absent if that decision is ten seconds old, or if the function's decider does not plan ahead.", "function_namespace", "function", "revision")
	decisionsDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_decisions_total",
		"Decisions to create instances, by reason. NoRoom if no node had room for any of them.", "function_namespace", "function", "revision", "reason")
	launchedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_launched_total",
		"Instances that the scheduler launched.", "function_namespace", "function", "revision")
	deferredDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_launches_deferred_total",
		"Decisions to create instances that had to wait for a later tick, because --create-qps was used up.", "function_namespace", "function", "revision")
	sparesAssignedDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_spare_instances_assigned_total",
		"Spare instances of warm pools that the scheduler assigned to the function.", "function_namespace", "function", "revision")
	startedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_started_total",
		"Instances that started and asked for their first call. Those that a scheduler takes over from another one count once.", "function_namespace", "function", "revision")
	failedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_failed_total",
		"Instances that ended before they asked for their first call, by reason. The reasons are those of the Function's conditions.", "function_namespace", "function", "revision", "reason")
	lostDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_lost_total",
		"Instances that ended unexpectedly after they had asked for their first call, by reason. The reasons are those of the Function's conditions.", "function_namespace", "function", "revision", "reason")
	evictedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_evicted_total",
		"Idle instances that the scheduler stopped to make room for an instance of another function.", "function_namespace", "function", "revision")
	cancelledDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_cancelled_total",
		"Instances that the scheduler cancelled before they had started, because the function no longer needed them.", "function_namespace", "function", "revision")
	releasedDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_released_total",
		"Idle instances that the scheduler stopped, because by the function's idle times no call is likely soon, or because there were more than scaling.maxInstances.", "function_namespace", "function", "revision")
	expiredDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_instances_expired_total",
		"Instances that left because they had waited for a call for too long.", "function_namespace", "function", "revision")
)

// Starts. Only those that the scheduler launched itself are counted.
var (
	phaseDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_cold_start_phase_duration_seconds",
		"Time that starts of instances spent in each phase: decide (from the arrival of the oldest waiting call to the launch), create (until the pod or the processes exist), sandbox (until the pod has a network), containers (until the agent runs), ready (until the function can be called), hello (until the scheduler knows the agent, if that is later), claim (until the instance has asked for its first call, and has it if one waits).",
		startBuckets, "phase")
	phaseSecondsDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_cold_start_phase_seconds_total",
		"Total time that starts of the function's instances spent in each phase.", "function_namespace", "function", "revision", "phase")
	coldStartDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_cold_start_duration_seconds",
		"Time from the arrival of the oldest call that waits for a start until the new instance has asked for its first call: the sum of the phases.",
		startBuckets)
)

// What agents say of themselves, summed up.
var (
	agentCallsDecl = Metrics.Counter(metric.Experimental, "windlass_agent_calls_total",
		"Calls that the function's instances ran, as reported by their agents.", "function_namespace", "function", "revision")
	agentBrokenDecl = Metrics.Counter(metric.Experimental, "windlass_agent_calls_broken_total",
		"Calls that broke off, as reported by the agents: the function exited, or did not answer properly.", "function_namespace", "function", "revision")
	agentRefusedDecl = Metrics.Counter(metric.Experimental, "windlass_agent_claims_refused_total",
		"Claims of the function's instances that gateways refused, as reported by their agents.", "function_namespace", "function", "revision")
	agentCoreAsksDecl = Metrics.Counter(metric.Stable, "windlass_agent_core_asks_total",
		"Calls that asked the node agent of a busy node for a core, as reported by the agents.", "function_namespace", "function", "revision")
	agentFailedOpenDecl = Metrics.Counter(metric.Stable, "windlass_agent_failed_open_total",
		"Calls that began without a core: the node agent gave no sign for 220 ms, gave no core within 30 s, or its stream ended. As reported by the agents.", "function_namespace", "function", "revision")
	agentReconnectsDecl = Metrics.Counter(metric.Experimental, "windlass_agent_reconnects_total",
		"Connections to schedulers that agents lost and opened again.", "function_namespace", "function", "revision")
	agentCPUDecl = Metrics.Counter(metric.Experimental, "windlass_agent_cpu_seconds_total",
		"CPU time that the agents of the function's instances used, without the function itself.", "function_namespace", "function", "revision")
	agentResidentDecl = Metrics.Gauge(metric.Experimental, "windlass_agent_resident_memory_bytes",
		"Memory that the agents of the function's instances use, without the function itself.", "function_namespace", "function", "revision")
)

// The scheduler itself, its slots, and the nodes.
var (
	ticksDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_tick_duration_seconds",
		"Time that a tick took, over all functions.", tickBuckets)
	lagDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_tick_lag_seconds",
		"How late a tick began.", lagBuckets)
	slotsDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_slots",
		"Slots that the scheduler serves, by role: as their owner, or as the standby of an owner that does not answer.", "role")
	slotMovesDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_slot_moves_total",
		"Slots that the scheduler gained or lost as their owner, by direction.", "direction")
	epochDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_highest_epoch",
		"Highest epoch of the slots that the scheduler serves. It rises whenever the scheduler gains a slot. 0 if it serves none.")
	unconfirmedDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_ownership_unconfirmed",
		"1 while etcd does not confirm that the scheduler owns its slots, otherwise 0.")
	reconciledDecl = Metrics.Counter(metric.Experimental, "windlass_scheduler_reconciled_total",
		"Differences between the scheduler's records and reality that two successive checks found, that no event explained, and that the scheduler repaired, by kind: instance (in the inventory, but unknown to the runtime), pod (recorded but not in the cluster, or the reverse), stream (an instance connected but recorded as disconnected, or the reverse), activity (a function recorded as inactive while calls wait), ticket (a waiting call or a report of a gateway that is not connected, or a loan that its gateway does not know). Should be 0, except for pods that were being created when their scheduler was replaced, and calls of a gateway that was killed or cut off.", "kind")
	sparesDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_spare_instances",
		"Spare instances of the scheduler's warm pools by state: starting, ready or leaving.", "function_namespace", "runtime", "pool", "state")
	nodeInstancesDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_node_instances",
		"Instances of the scheduler's functions and warm pools on each node. Absent for nodes with none.", "node_name")
	nodeRequestedDecl = Metrics.Gauge(metric.Experimental, "windlass_scheduler_node_requested_ratio",
		"Share of the node's allocatable resources that all its pods request, by resource: cpu or memory. All schedulers report the same, so take the maximum.", "node_name", "resource")
)

// states are those that stateCollector reads.
var states = []metric.Gauge{unconfirmedDecl, slotsDecl, epochDecl, sparesDecl, nodeInstancesDecl, nodeRequestedDecl}
