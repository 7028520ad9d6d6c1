// The first page to look at: is it well, who waits, and where does time go?

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { coldCalls } from './course';
import { frame, seriesToFunction, toBoard, toBoardOfAll, toFunction, toTraces, uids } from './frame';
import { bars, graph, heading, number } from './kit';
import { callPhases, plain, quantiles, states } from './palette';
import { chosen, failedCalls, inNamespace, orNone, orZero, quantile, rate, share } from './queries';
import { rows } from './table';

const calls = 'function_namespace_function:windlass_gateway_invocations:rate5m';
const failed = 'function_namespace_function:windlass_gateway_invocations_failed:rate5m';

// Drops the name of a recording rule, by which rows of a table would be told apart.
const each = (expr: string): string => `max by (function_namespace, function) (${expr})`;

/** Colours of answers by the first digit of their status. */
export const codes = { '2xx': '#56A64B', '3xx': '#8AB8FF', '4xx': '#F2CC0C', '5xx': '#E02F44' };

/** Calls per second by the first digit of their status. */
export const byClass = (matchers: string): string =>
  `sum by (class) (label_replace(${rate(`windlass_gateway_invocations_total{${matchers}}`)}, "class", "\${1}xx", "code", "(.).*"))`;

export function overview(): dashboard.DashboardBuilder {
  const board = frame('Overview', uids.overview, 'Whether calls are answered, what waits, and where time goes.', 'many');
  health(board);
  functions(board);
  time(board);
  instances(board);
  return board;
}

function health(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(number({
      title: 'Alerts', unit: 'none', width: 3, limits: { bad: 1 }, course: false, calc: 'lastNotNull',
      description: 'Alerts of Windlass that fire now. Also 0 if its alerting rules are not loaded.',
      query: { expr: orZero('count(ALERTS{alertname=~"Windlass.+", alertstate="firing"})') },
    }))
    .withPanel(number({
      title: 'Calls', unit: 'reqps', width: 3,
      description: 'Calls per second that were answered or abandoned.',
      query: { expr: orZero(`sum(${rate(`windlass_gateway_invocations_total{${chosen}}`)})`) },
    }))
    .withPanel(number({
      title: 'Failed', unit: 'percentunit', width: 3, limits: { warn: 0.001, bad: 0.01 },
      description: 'Share of calls that were answered with a status of 500 or more, or whose answer broke off.',
      query: { expr: share(failedCalls(chosen), `sum(${rate(`windlass_gateway_invocations_total{${chosen}}`)})`) },
    }))
    .withPanel(number({
      title: 'Waiting', unit: 'short', width: 3,
      description: 'Calls that wait for an instance.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_queue_length{${chosen}}))`) },
    }))
    .withPanel(number({
      title: 'Oldest wait', unit: 's', width: 3, limits: { warn: 2, bad: 10 },
      description: 'Wait of the oldest waiting call. Above some seconds instances do not start, or no node has capacity.',
      query: { expr: orZero(`max(windlass_scheduler_queue_oldest_wait_seconds{${chosen}})`) },
    }))
    .withPanel(number({
      title: 'Instances', unit: 'short', width: 3,
      description: 'Ready instances, busy or idle.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state=~"busy|idle"}))`) },
    }))
    .withPanel(number({
      title: 'Being created', unit: 'short', width: 3,
      description: 'Instances that were launched and have not pulled their first call yet.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state="creating"}))`) },
      links: [toBoard('Provisioning', uids.provisioning)],
    }))
    .withPanel(number({ ...coldCalls, width: 3, links: [toBoard('Cold starts', uids.coldStarts)] }));
}

function functions(board: dashboard.DashboardBuilder): void {
  board.withPanel(rows({
    title: 'Functions', unit: 'short', width: 24, height: 10,
    description: 'Every function, with the means of the last five minutes; a dash where it had no calls. A click on a name opens its dashboard.',
    labels: { function_namespace: 'Namespace', function: 'Function' },
    sortBy: 'Waiting',
    linked: { Function: toFunction },
    columns: [
      { name: 'Waiting', expr: each(`function_namespace_function:windlass_scheduler_queue_length:sum_max{${chosen}}`), unit: 'short', limits: { warn: 10, bad: 100 } },
      { name: 'Oldest wait', expr: each(`function_namespace_function:windlass_scheduler_queue_oldest_wait_seconds:max{${chosen}} > 0`), unit: 's', limits: { warn: 2, bad: 10 } },
      { name: 'Calls', expr: each(`${calls}{${chosen}} > 0`), unit: 'reqps', bar: plain },
      { name: 'Failed', expr: `${each(`${failed}{${chosen}}`)} / (${each(`${calls}{${chosen}}`)} > 0)`, unit: 'percentunit', limits: { warn: 0.001, bad: 0.01 } },
      { name: 'p50', expr: each(`function_namespace_function:windlass_gateway_invocation_duration_seconds:p50_5m{${chosen}} >= 0`), unit: 's' },
      { name: 'p99', expr: each(`function_namespace_function:windlass_gateway_invocation_duration_seconds:p99_5m{${chosen}} >= 0`), unit: 's' },
      { name: 'Busy', expr: each(`function_namespace_function_state:windlass_scheduler_instances:sum_max{${chosen}, state="busy"}`), unit: 'short', bar: states['busy']! },
      { name: 'Idle', expr: each(`function_namespace_function_state:windlass_scheduler_instances:sum_max{${chosen}, state="idle"}`), unit: 'short', bar: states['idle']! },
      { name: 'Creating', expr: each(`function_namespace_function_state:windlass_scheduler_instances:sum_max{${chosen}, state="creating"}`), unit: 'short', bar: states['creating']! },
    ],
  }));
}

function time(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Calls'))
    .withPanel(graph({
      title: 'Calls by status', unit: 'reqps', width: 8, stacked: true, colours: codes,
      description: 'Calls per second by the first digit of their status. 499, counted in 4xx: the client closed the connection.',
      queries: [{ expr: orNone('class', byClass(chosen)), legend: '{{class}}' }],
    }))
    .withPanel(graph({
      title: 'Duration', unit: 's', width: 8, colours: quantiles,
      description: 'From a call\'s admission to the end of its answer, over all functions of the namespaces.',
      queries: [0.5, 0.9, 0.99].map((q) => ({
        expr: `histogram_quantile(${q}, sum by (le) (function_namespace_le:windlass_gateway_invocation_duration_seconds_bucket:rate5m{${inNamespace}}))`,
        legend: `p${q * 100}`,
      })),
      links: [toTraces('Slow calls as traces', '{ name =~ "invoke .*" && duration > 1s }')],
    }))
    .withPanel(graph({
      title: 'Where a call\'s time goes', unit: 's', width: 8, stacked: true, colours: callPhases,
      description: 'Mean time of a call in each phase: *admit*, *queue* until an instance takes it, *core* until it has a core of its busy node, *claim* until the instance has the request, *execute* the function, *return* the rest of the answer.',
      queries: [{
        expr: `sum by (phase) (${rate(`windlass_gateway_phase_seconds_total{${chosen}}`)}) / on () group_left () sum(${rate(`windlass_gateway_invocations_total{${chosen}}`)})`,
        legend: '{{phase}}',
      }],
    }))
    .withPanel(graph({
      title: 'Waiting and running', unit: 'none', width: 8, colours: { waiting: '#FF9830', 'in flight': '#56A64B' },
      description: 'Calls in flight at the gateways, and how many of them wait for an instance.',
      queries: [
        { expr: orZero(`sum(windlass_gateway_invocations_in_flight{${chosen}})`), legend: 'in flight' },
        { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_queue_length{${chosen}}))`), legend: 'waiting' },
      ],
    }))
    .withPanel(graph({
      title: 'Slowest phases (p99)', unit: 's', width: 8, colours: callPhases,
      description: 'The 99th percentile of every phase over all functions. A dot is one call, and links to its trace.',
      queries: [{ expr: quantile(0.99, 'windlass_gateway_phase_duration_seconds', '', ['phase']), legend: '{{phase}}', exemplar: true }],
      links: [toTraces('Calls as traces', '{ name =~ "invoke .*" }')],
    }))
    .withPanel(graph({
      title: 'Refused', unit: 'reqps', width: 8, bars: true, stacked: true,
      description: 'Refused calls by reason: by a gateway before admission, or by a scheduler on arrival or while they waited.',
      queries: [
        { expr: orNone('reason', `sum by (reason) (${rate(`windlass_gateway_invocations_refused_total{function_namespace=~"$namespace|"}`)})`), legend: 'gateway: {{reason}}' },
        { expr: orNone('reason', `sum by (reason) (${rate(`windlass_scheduler_invocations_refused_total{${chosen}}`)})`), legend: 'scheduler: {{reason}}' },
      ],
    }));
}

function instances(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Instances'))
    .withPanel(graph({
      title: 'Instances by state', unit: 'none', width: 8, stacked: true, colours: states,
      description: 'Instances of the chosen functions. Many that stay *creating* do not start; many *idle* ones wait for their idle timeout.',
      queries: [{ expr: `sum by (state) (max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}}))`, legend: '{{state}}' }],
      links: [toBoard('Provisioning', uids.provisioning)],
    }))
    .withPanel(graph({
      title: 'Longest queues', unit: 'none', width: 8, dataLinks: [seriesToFunction()],
      description: 'The ten functions with most waiting calls. A click on a line opens the function.',
      queries: [{ expr: `topk(10, function_namespace_function:windlass_scheduler_queue_length:sum_max{${chosen}} > 0) or on () label_replace(vector(0), "function", "none", "", "")`, legend: '{{function_namespace}} {{function}}' }],
    }))
    .withPanel(bars({
      title: 'Phases of a cold start', unit: 's', width: 8,
      description: 'The 90th percentile of each phase of the cold starts of the last five minutes. 0 without any.',
      queries: [{ expr: orNone('phase', 'sort_desc(phase:windlass_scheduler_cold_start_phase_duration_seconds:p90_5m >= 0)'), legend: '{{phase}}' }],
      links: [toBoardOfAll('Cold starts', uids.coldStarts)],
    }));
}
