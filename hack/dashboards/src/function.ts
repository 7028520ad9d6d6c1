// One function: what its callers feel, and what is done about it.

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { againstNeed, becoming, coldCalls, decisions, fatesMean, waiting } from './course';
import { frame, toBoard, toTraces, uids } from './frame';
import { graph, heading, number, spread } from './kit';
import { byClass, codes } from './overview';
import { callPhases, plain, quantiles, startPhases } from './palette';
import { added, chosen, failedCalls, nativeMean, nativeQuantile, orNone, orZero, quantile, rate, share } from './queries';

const calls = `windlass_gateway_invocations_total{${chosen}}`;
const executions = 'windlass_function_execution_duration_seconds';
const traces = '{ name = "invoke ${namespace}/${function}" }';
const slowTraces = '{ name = "invoke ${namespace}/${function}" && duration > 1s }';

export function oneFunction(): dashboard.DashboardBuilder {
  const board = frame('Function', uids.function, 'One function: its calls, its queue, its instances and why they are created.', 'one');
  glance(board);
  callers(board);
  provisioning(board);
  instances(board);
  return board;
}

function glance(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(number({
      title: 'Calls', unit: 'reqps', width: 3, description: 'Calls per second that were answered or abandoned.',
      query: { expr: orZero(`sum(${rate(calls)})`) },
    }))
    .withPanel(number({
      title: 'Failed', unit: 'percentunit', width: 3, limits: { warn: 0.001, bad: 0.01 },
      description: 'Share of calls that were answered with a status of 500 or more, or whose answer broke off.',
      query: { expr: share(failedCalls(chosen), `sum(${rate(calls)})`) },
      links: [toTraces('Failed calls as traces', '{ name = "invoke ${namespace}/${function}" && status = error }')],
    }))
    .withPanel(number({
      title: 'p50', unit: 's', width: 3, description: 'Median, from admission to the end of the answer.',
      query: { expr: `${quantile(0.5, 'windlass_gateway_invocation_duration_seconds', chosen)} >= 0 or vector(0)` },
    }))
    .withPanel(number({
      title: 'p99', unit: 's', width: 3, description: '99th percentile, from admission to the end of the answer.',
      query: { expr: `${quantile(0.99, 'windlass_gateway_invocation_duration_seconds', chosen)} >= 0 or vector(0)` },
      links: [toTraces('Slow calls as traces', slowTraces)],
    }))
    .withPanel(number({
      title: 'Waiting', unit: 'short', width: 3, description: 'Calls that wait for an instance.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_queue_length{${chosen}}))`) },
    }))
    .withPanel(number({
      title: 'Oldest wait', unit: 's', width: 3, limits: { warn: 2, bad: 10 },
      description: 'Wait of the oldest waiting call.',
      query: { expr: orZero(`max(windlass_scheduler_queue_oldest_wait_seconds{${chosen}})`) },
    }))
    .withPanel(number({
      title: 'Instances', unit: 'short', width: 3, description: 'Ready instances, busy or idle.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state=~"busy|idle"}))`) },
    }))
    .withPanel(number({ ...coldCalls, width: 3, links: [toBoard('Cold starts', uids.coldStarts)] }));
}

function callers(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('What callers see'))
    .withPanel(graph({
      title: 'Calls by status', unit: 'reqps', width: 8, stacked: true, colours: codes,
      description: 'Calls per second by the first digit of their status.',
      queries: [{ expr: orNone('class', byClass(chosen)), legend: '{{class}}' }],
    }))
    .withPanel(graph({
      title: 'Duration', unit: 's', width: 8, colours: quantiles,
      description: 'From admission to the end of the answer. A dot is one call, and links to its trace.',
      queries: [0.5, 0.9, 0.99].map((q) => ({
        expr: quantile(q, 'windlass_gateway_invocation_duration_seconds', chosen), legend: `p${q * 100}`, exemplar: q === 0.99,
      })),
      links: [toTraces('Calls as traces', traces)],
    }))
    .withPanel(graph({
      title: 'Where a call\'s time goes', unit: 's', width: 8, stacked: true, colours: callPhases,
      description: 'Mean time of a call in each phase. *queue* is the wait for an instance, *core* that for a core of a busy node, *execute* the function itself; the rest is what Windlass costs.',
      queries: [{
        expr: `sum by (phase) (${rate(`windlass_gateway_phase_seconds_total{${chosen}}`)}) / on () group_left () sum(${rate(calls)})`,
        legend: '{{phase}}',
      }],
    }))
    .withPanel(spread({
      title: 'Durations', unit: 's', width: 8,
      description: 'Distribution of the durations of calls. Two bands are often warm and cold calls.',
      query: added(`windlass_gateway_invocation_duration_seconds_bucket{${chosen}}`, ['le']), exemplar: true,
      links: [toTraces('Calls as traces', traces)],
    }))
    .withPanel(graph({
      title: 'Failed calls, and whether the function ran', unit: 'reqps', width: 8, bars: true, stacked: true,
      description: 'Calls per second with a status of 500 or more, by whether the function ran. *no*: it did not, so the call can be sent again. *maybe*: unknown. *yes*: it ran. And answers that broke off after their head, by reason.',
      queries: [
        { expr: orNone('code', `sum by (code, executed) (${rate(`windlass_gateway_invocations_total{${chosen}, code=~"5.."}`)})`), legend: '{{code}} {{executed}}' },
        { expr: `sum by (reason) (${rate(`windlass_gateway_answers_broken_total{${chosen}}`)})`, legend: 'broken off: {{reason}}' },
      ],
    }))
    .withPanel(graph({
      title: 'Refused calls', unit: 'reqps', width: 8, bars: true, stacked: true,
      description: 'Calls that were refused on arrival or while they waited, by reason.',
      queries: [{ expr: orNone('reason', `sum by (reason) (${rate(`windlass_scheduler_invocations_refused_total{${chosen}}`)})`), legend: '{{reason}}' }],
    }));
}

function provisioning(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Queue and provisioning'))
    .withPanel(graph({
      ...waiting, title: 'Waiting calls', width: 8,
      description: 'Calls that wait for an instance, and the wait of the oldest. A queue that does not shrink while instances are idle is a fault.',
    }))
    .withPanel(graph({
      ...againstNeed, title: 'Instances and need', width: 8,
      description: 'Instances by state, and how many the last decision found necessary.',
      links: [toBoard('Provisioning', uids.provisioning)],
    }))
    .withPanel(graph({
      ...decisions, title: 'Decisions', width: 8,
      description: 'Decisions to create instances, by reason. `windlass explain` describes the last ones in words.',
    }))
    .withPanel(graph({ ...becoming, title: 'Instance lifecycle', width: 8, description: fatesMean }))
    .withPanel(graph({
      title: 'How long it runs and starts', unit: 's', width: 8, logarithmic: true,
      description: 'Inputs of decisions: the means of the last ten executions and of the last ten starts.',
      queries: [
        { expr: `max(windlass_scheduler_estimated_execution_seconds{${chosen}})`, legend: 'execution' },
        { expr: `max(windlass_scheduler_estimated_start_seconds{${chosen}})`, legend: 'start' },
      ],
      colours: { execution: '#56A64B', start: '#FF9830' },
    }))
    .withPanel(graph({
      title: 'Where a start\'s time goes', unit: 's', width: 8, bars: true, stacked: true, colours: startPhases,
      description: 'Mean time of a cold start in each phase. 0 while no instance starts.',
      queries: [{
        expr: orNone('phase', `sum by (phase) (${rate(`windlass_scheduler_cold_start_phase_seconds_total{${chosen}}`)}) / on () group_left () (sum(${rate(`windlass_scheduler_instances_started_total{${chosen}}`)}) > 0)`),
        legend: '{{phase}}',
      }],
      links: [toTraces('Starts as traces', '{ name = "start instance ${namespace}/${function}" }'), toBoard('Cold starts', uids.coldStarts)],
    }));
}

function instances(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Instances at work'))
    .withPanel(graph({
      title: 'Execution time', unit: 's', width: 8, logarithmic: true, colours: { ...quantiles, mean: '#56A64B' },
      description: 'Execution time of the function itself. p50 and p99 need a Prometheus that stores native histograms; the mean does not.',
      queries: [
        { expr: nativeMean(executions, chosen), legend: 'mean' },
        ...[0.5, 0.99].map((q) => ({ expr: nativeQuantile(q, executions, chosen), legend: `p${q * 100}` })),
      ],
    }))
    .withPanel(graph({
      title: 'Pulls', unit: 'count:pulls/s', width: 8,
      description: 'Pulls per second; *leave requests* are idle instances that asked to leave. On the right: pulls that wait for a call now, and idle instances that report less often.',
      queries: [
        { expr: orZero(`sum(${rate(`windlass_scheduler_pulls_total{${chosen}}`)})`), legend: 'pulls' },
        { expr: orZero(`sum(${rate(`windlass_scheduler_leave_requests_total{${chosen}}`)})`), legend: 'leave requests' },
        { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_pulls_waiting{${chosen}}))`), legend: 'waiting now' },
        { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_instances_backed_off{${chosen}}))`), legend: 'backed off now' },
      ],
      colours: { pulls: '#56A64B', 'leave requests': '#E02F44' },
      right: {
        'waiting now': { unit: 'none', label: 'now', colour: '#8AB8FF' },
        'backed off now': { unit: 'none', label: 'now', colour: '#9FA7B3' },
      },
    }))
    .withPanel(graph({
      title: 'Agents in trouble', unit: 'none', width: 8,
      description: 'Broken calls, refused claims and reconnected streams, as reported by the agents, and agents that do not report. All should be 0, but each change of owner brings reconnects.',
      queries: [
        { expr: orZero(added(`windlass_agent_calls_broken_total{${chosen}}`)), legend: 'calls broken' },
        { expr: orZero(added(`windlass_agent_claims_refused_total{${chosen}}`)), legend: 'claims refused' },
        { expr: orZero(added(`windlass_agent_reconnects_total{${chosen}}`)), legend: 'reconnects' },
        { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_agents_silent{${chosen}}))`), legend: 'silent' },
      ],
      colours: { 'calls broken': '#E02F44', 'claims refused': '#FF9830', reconnects: '#8AB8FF', silent: '#B877D9' },
    }))
    .withPanel(graph({
      title: 'CPU', unit: 'count:cores', width: 12,
      description: 'CPU that the agents of all its instances use, in cores.',
      queries: [{ expr: orZero(`sum(${rate(`windlass_agent_cpu_seconds_total{${chosen}}`)})`), legend: 'cores' }],
      colours: { cores: plain },
    }))
    .withPanel(graph({
      title: 'Memory', unit: 'bytes', width: 12,
      description: 'Resident memory of the agents of all its instances.',
      queries: [{ expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_agent_resident_memory_bytes{${chosen}}))`), legend: 'resident' }],
      colours: { resident: plain },
    }));
}
