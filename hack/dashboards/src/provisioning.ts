// Why instances are created: what decisions see, what they decide, and what becomes of it.

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { againstNeed, becoming, decisions, fatesMean, waiting } from './course';
import { frame, toBoard, toFunction, uids } from './frame';
import { bars, graph, heading, number } from './kit';
import { plain, states } from './palette';
import { added, chosen, inNamespace, mean, orNone, orZero, quantile, rate, share, whole } from './queries';
import { rows } from './table';

const made = `windlass_scheduler_instances_launched_total{${chosen}}`;

export function provisioning(): dashboard.DashboardBuilder {
  const board = frame('Provisioning', uids.provisioning, 'What decisions see, what they decide and why, and what happens to the instances.', 'many');
  glance(board);
  need(board);
  snapshot(board);
  outcome(board);
  nodes(board);
  return board;
}

function glance(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(number({
      title: 'Needed', unit: 'short', width: 3,
      description: 'Instances that the last decisions found necessary.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_desired_instances{${chosen}}))`) },
    }))
    .withPanel(number({
      title: 'Ready', unit: 'short', width: 3,
      description: 'Ready instances, busy or idle.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state=~"busy|idle"}))`) },
    }))
    .withPanel(number({
      title: 'Being created', unit: 'short', width: 3,
      description: 'Instances that were launched and have not pulled their first call yet.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state="creating"}))`) },
    }))
    .withPanel(number({
      title: 'Busy', unit: 'percentunit', width: 3,
      description: 'Share of the instances that run a call. If it stays low, idle instances wait for their idle timeout.',
      query: { expr: share(`sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state="busy"}))`, `sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state=~"busy|idle"}))`) },
    }))
    .withPanel(number({
      title: 'Launched', unit: 'short', width: 3, course: false,
      description: 'Instances that were launched within the time shown.',
      query: { expr: orZero(whole(`sum(increase(${made}[$__range]))`)) },
    }))
    .withPanel(number({
      title: 'Failed starts', unit: 'percentunit', width: 3, limits: { warn: 0.01, bad: 0.1 }, course: false,
      description: 'Share of the instances launched within the time shown that did not start.',
      query: { expr: share(`sum(increase(windlass_scheduler_instances_failed_total{${chosen}}[$__range]))`, `sum(increase(${made}[$__range]))`) },
    }))
    .withPanel(number({
      title: 'Cancelled launches', unit: 'percentunit', width: 3, limits: { warn: 0.2, bad: 0.5 }, course: false,
      description: 'Share of the instances launched within the time shown that were cancelled before they were ready. High: bursts are shorter than a start.',
      query: { expr: share(`sum(increase(windlass_scheduler_instances_cancelled_total{${chosen}}[$__range]))`, `sum(increase(${made}[$__range]))`) },
    }))
    .withPanel(number({
      title: 'Throttled', unit: 'count:decisions/s', width: 3, limits: { warn: 0.01, bad: 1 },
      description: 'Decisions per second that could not create an instance at once because `--create-qps` was used up.',
      query: { expr: orZero(`sum(${rate(`windlass_scheduler_launches_deferred_total{${chosen}}`)})`) },
    }));
}

function need(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(graph({
      ...againstNeed, title: 'Created against needed', width: 12, height: 9,
      description: 'Instances by state. The dashed line is what the last decisions found necessary. Instances above it are left from an earlier need, or wait for their idle timeout.',
    }))
    .withPanel(graph({
      ...decisions, title: 'Decisions by reason', width: 12, height: 9, legendRight: true,
      description: 'Decisions to create instances, by reason. The words are those of `windlass explain`.',
    }));
}

function snapshot(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('What decisions see'))
    .withPanel(graph({ ...waiting, title: 'Calls', width: 8, description: 'Calls that wait, and the wait of the oldest.' }))
    .withPanel(graph({
      title: 'Arrivals', unit: 'reqps', width: 8,
      description: 'Calls per second: the decider\'s estimate, which looks ahead, and what gateways answered.',
      queries: [
        { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_estimated_arrivals_per_second{${chosen}}))`), legend: 'estimated' },
        { expr: orZero(`sum(${rate(`windlass_gateway_invocations_total{${chosen}}`)})`), legend: 'answered' },
      ],
      colours: { estimated: '#B877D9', answered: '#56A64B' },
    }))
    .withPanel(graph({
      title: 'Times', unit: 's', width: 8, logarithmic: true,
      description: 'Means over the chosen functions of how long a call holds an instance, how long a start takes, and how far ahead the decider plans.',
      queries: [
        { expr: `avg(max by (function_namespace, function) (windlass_scheduler_estimated_execution_seconds{${chosen}}) > 0)`, legend: 'execution' },
        { expr: `avg(max by (function_namespace, function) (windlass_scheduler_estimated_start_seconds{${chosen}}) > 0)`, legend: 'start' },
        { expr: `avg(max by (function_namespace, function) (windlass_scheduler_horizon_seconds{${chosen}}) > 0)`, legend: 'horizon' },
      ],
      colours: { execution: '#56A64B', start: '#FF9830', horizon: '#B877D9' },
    }))
    .withPanel(rows({
      title: 'By function', unit: 'short', width: 24, height: 9,
      description: 'The inputs of each function\'s last decision. A click on a name opens its dashboard.',
      labels: { function_namespace: 'Namespace', function: 'Function' },
      sortBy: 'Needed',
      linked: { Function: toFunction },
      columns: [
        { name: 'Needed', expr: `sum by (function_namespace, function) (max by (function_namespace, function, revision) (windlass_scheduler_desired_instances{${chosen}}))`, unit: 'short', bar: plain },
        { name: 'Busy', expr: `sum by (function_namespace, function) (max by (function_namespace, function, revision) (windlass_scheduler_instances{${chosen}, state="busy"}))`, unit: 'short', bar: states['busy']! },
        { name: 'Idle', expr: `sum by (function_namespace, function) (max by (function_namespace, function, revision) (windlass_scheduler_instances{${chosen}, state="idle"}))`, unit: 'short', bar: states['idle']! },
        { name: 'Creating', expr: `sum by (function_namespace, function) (max by (function_namespace, function, revision) (windlass_scheduler_instances{${chosen}, state="creating"}))`, unit: 'short', bar: states['creating']! },
        { name: 'Waiting', expr: `sum by (function_namespace, function) (max by (function_namespace, function, revision) (windlass_scheduler_queue_length{${chosen}}))`, unit: 'short', limits: { warn: 10, bad: 100 } },
        { name: 'Arrivals', expr: `sum by (function_namespace, function) (max by (function_namespace, function, revision) (windlass_scheduler_estimated_arrivals_per_second{${chosen}}))`, unit: 'reqps', decimals: 1 },
        { name: 'Execution', expr: `max by (function_namespace, function) (windlass_scheduler_estimated_execution_seconds{${chosen}})`, unit: 's' },
        { name: 'Start', expr: `max by (function_namespace, function) (windlass_scheduler_estimated_start_seconds{${chosen}})`, unit: 's' },
        { name: 'Launched', expr: whole(`sum by (function_namespace, function) (increase(${made}[$__range]))`), unit: 'short' },
      ],
    }));
}

function outcome(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('What happens to instances'))
    .withPanel(graph({ ...becoming, title: 'Launched, started, ended', width: 12, legendRight: true, description: fatesMean }))
    .withPanel(graph({
      title: 'Why instances fail', unit: 'none', width: 6, bars: true, stacked: true,
      description: 'Instances that did not start, and those that were *lost* after it, by reason. docs/troubleshooting.md explains each.',
      queries: [
        { expr: orNone('reason', added(`windlass_scheduler_instances_failed_total{${chosen}}`, ['reason'])), legend: '{{reason}}' },
        { expr: `${added(`windlass_scheduler_instances_lost_total{${chosen}}`, ['reason'])} > 0`, legend: 'lost: {{reason}}' },
      ],
    }))
    .withPanel(graph({
      title: 'Throttled and refused', unit: 'count:decisions/s', width: 6, colours: { throttled: '#F2CC0C' },
      description: 'Decisions that `--create-qps` throttled, and calls refused because no node has capacity, per second.',
      queries: [
        { expr: orZero(`sum(${rate(`windlass_scheduler_launches_deferred_total{${chosen}}`)})`), legend: 'throttled' },
        { expr: orZero(`sum(${rate(`windlass_scheduler_invocations_refused_total{${chosen}, reason="NoCapacity"}`)})`), legend: 'no room' },
      ],
      right: { 'no room': { unit: 'reqps', label: 'calls refused', colour: '#E02F44' } },
    }))
    .withPanel(graph({
      title: 'Pod creations', unit: 'reqps', width: 6, bars: true, stacked: true,
      description: 'Requests per second to the API server to create a pod, by result, and pods that wait for their request. In a cluster only.',
      queries: [
        { expr: orNone('result', `sum by (result) (${rate('windlass_scheduler_pod_creates_total')})`), legend: '{{result}}' },
        { expr: orZero('sum(windlass_scheduler_pod_create_queue_length)'), legend: 'waiting' },
      ],
      right: { waiting: { unit: 'none', label: 'waiting', colour: '#B877D9' } },
    }))
    .withPanel(graph({
      title: 'API server latency', unit: 's', width: 6, colours: { mean: '#8AB8FF', p99: '#B877D9' },
      description: 'Time that the API server took to create a pod. In a cluster only.',
      queries: [
        { expr: `${mean('windlass_scheduler_pod_create_duration_seconds')} >= 0 or vector(0)`, legend: 'mean' },
        { expr: `${quantile(0.99, 'windlass_scheduler_pod_create_duration_seconds')} >= 0 or vector(0)`, legend: 'p99' },
      ],
    }))
    .withPanel(graph({
      title: 'Spare instances', unit: 'none', width: 12, stacked: true, colours: states,
      description: 'Spare instances of warm pools by state, and how many were assigned to functions per second. In a cluster with warm pools only.',
      queries: [
        { expr: orNone('state', `sum by (state) (windlass_scheduler_spare_instances{${inNamespace}})`), legend: '{{state}}' },
        { expr: orZero(`sum(${rate(`windlass_scheduler_spare_instances_assigned_total{${chosen}}`)})`), legend: 'assigned' },
      ],
      right: { assigned: { unit: 'count:instances/s', label: 'assigned', colour: '#37872D' } },
    }));
}

function nodes(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Where instances are'))
    .withPanel(graph({
      title: 'Instances by node', unit: 'none', width: 12, stacked: true,
      description: 'Instances of all functions on each node. Windlass picks nodes at random among those that fit, so nodes of one size get equal shares.',
      queries: [{ expr: 'sum by (node_name) (windlass_scheduler_node_instances)', legend: '{{node_name}}' }],
      links: [toBoard('Node scale-out', uids.nodes)],
    }))
    .withPanel(bars({
      title: 'Requested on each node', unit: 'percentunit', width: 12, max: 1, limits: { warn: 0.8, bad: 0.95 },
      description: 'Share of each node\'s allocatable resources that pods of any kind request. An instance never goes to a node where it does not fit.',
      queries: [{ expr: 'sort_desc(max by (node_name, resource) (windlass_scheduler_node_requested_ratio))', legend: '{{node_name}} {{resource}}' }],
    }));
}
