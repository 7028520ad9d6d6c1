// What a cold start costs, and which phase of it.

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { coldCalls } from './course';
import { frame, toFunction, toTraces, uids } from './frame';
import { bars, graph, heading, number, spread } from './kit';
import { quantiles, startPhases } from './palette';
import { added, chosen, orNone, orZero, quantile, rate, whole } from './queries';
import { Column, rows } from './table';

const total = 'windlass_scheduler_cold_start_duration_seconds';
const phase = 'windlass_scheduler_cold_start_phase_duration_seconds';
const spent = `windlass_scheduler_cold_start_phase_seconds_total{${chosen}}`;
const started = `windlass_scheduler_instances_started_total{${chosen}}`;
const traces = toTraces('Starts as traces', '{ name =~ "start instance .*" }');

/** What each phase is, for readers who meet the words here. */
const words = '*decide*: from the arrival of the oldest waiting call to the launch. *create*: until the API server or the process runtime has created it. *sandbox*: until its network is ready. *containers*: until the agent runs. *ready*: until the function is ready. *hello*: until the scheduler knows it. *claim*: until it has its first call.';

export function coldStarts(): dashboard.DashboardBuilder {
  const board = frame('Cold starts', uids.coldStarts, 'How long instances take from the call that needed them to their first call, phase by phase.', 'many');
  glance(board);
  board
    .withPanel(graph({
      title: 'Where a start\'s time goes', unit: 's', width: 12, height: 10, bars: true, stacked: true, colours: startPhases, legendRight: true, calcs: ['mean'],
      description: `Mean time of a cold start in each phase, of the chosen functions. ${words}`,
      queries: [{
        expr: orNone('phase', `sum by (phase) (${rate(spent)}) / on () group_left () (sum(${rate(started)}) > 0)`),
        legend: '{{phase}}',
      }],
      links: [traces],
    }))
    .withPanel(spread({
      title: 'How long starts take', unit: 's', width: 12, height: 10,
      description: 'Distribution of the durations of cold starts, over all functions. A second band high up often means image pulls, or a node under load.',
      query: added(`${total}_bucket`, ['le']),
      links: [traces],
    }));
  phases(board);
  byFunction(board);
  return board;
}

function glance(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(number({
      title: 'Starts', unit: 'short', width: 4, course: false,
      description: 'Instances that started within the time that the dashboard shows.',
      query: { expr: orZero(whole(`sum(increase(${started}[$__range]))`)) },
    }))
    .withPanel(number({ ...coldCalls, width: 4 }))
    .withPanel(number({
      title: 'Median start', unit: 's', width: 4, course: false,
      description: 'Median of the cold starts within the time shown, over all functions.',
      query: { expr: `histogram_quantile(0.5, sum by (le) (increase(${total}_bucket[$__range]))) >= 0 or vector(0)` },
    }))
    .withPanel(number({
      title: 'p90 of starts', unit: 's', width: 4, limits: { warn: 5, bad: 15 }, course: false,
      description: '90th percentile of the cold starts within the time shown, over all functions.',
      query: { expr: `histogram_quantile(0.9, sum by (le) (increase(${total}_bucket[$__range]))) >= 0 or vector(0)` },
    }))
    .withPanel(number({
      title: 'Starting now', unit: 'short', width: 4,
      description: 'Instances that were launched and have not pulled their first call yet.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}, state="creating"}))`) },
    }))
    .withPanel(number({
      title: 'Calls waiting for starts', unit: 'short', width: 4,
      description: 'Calls that wait for an instance now.',
      query: { expr: orZero(`sum(max by (function_namespace, function, revision) (windlass_scheduler_queue_length{${chosen}}))`) },
    }));
}

function phases(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Phases'))
    .withPanel(bars({
      title: 'Slowest phases (p90)', unit: 's', width: 8, colours: startPhases,
      description: `The 90th percentile of each phase of the starts within the time shown, over all functions. ${words}`,
      queries: [{ expr: `sort_desc(histogram_quantile(0.9, sum by (phase, le) (increase(${phase}_bucket[$__range]))) >= 0)`, legend: '{{phase}}' }],
    }))
    .withPanel(graph({
      title: 'Phases over time (p90)', unit: 's', width: 8, colours: startPhases, logarithmic: true,
      description: 'The 90th percentile of each phase in the last five minutes. Where a phase climbs, look there: *create* at the API server, *sandbox* at the network plugin, *containers* at images and nodes, *ready* at the function.',
      queries: [{ expr: orNone('phase', 'phase:windlass_scheduler_cold_start_phase_duration_seconds:p90_5m >= 0'), legend: '{{phase}}' }],
      links: [traces],
    }))
    .withPanel(graph({
      title: 'Whole starts over time', unit: 's', width: 8, colours: quantiles,
      description: 'From the call that needed an instance to the instance\'s first call, over all functions.',
      queries: [0.5, 0.9, 0.99].map((q) => ({ expr: `${quantile(q, total)} >= 0 or vector(0)`, legend: `p${q * 100}` })),
      links: [traces],
    }));
}

function byFunction(board: dashboard.DashboardBuilder): void {
  const perStart = (name: string): Column => ({
    name, unit: 's',
    expr: `sum by (function_namespace, function) (increase(windlass_scheduler_cold_start_phase_seconds_total{${chosen}, phase="${name}"}[$__range])) / (sum by (function_namespace, function) (increase(${started}[$__range])) > 0)`,
  });
  board
    .withRow(heading('Functions'))
    .withPanel(rows({
      title: 'Starts by function', unit: 's', width: 24, height: 9,
      description: 'Starts within the time shown and the mean time of each phase. A click on a name opens the function\'s dashboard.',
      labels: { function_namespace: 'Namespace', function: 'Function' },
      sortBy: 'Whole start',
      linked: { Function: toFunction },
      columns: [
        { name: 'Starts', expr: `${whole(`sum by (function_namespace, function) (increase(${started}[$__range]))`)} > 0`, unit: 'short', bar: '#8AB8FF' },
        {
          name: 'Whole start', unit: 's', limits: { warn: 5, bad: 15 },
          expr: `sum by (function_namespace, function) (increase(${spent}[$__range])) / (sum by (function_namespace, function) (increase(${started}[$__range])) > 0)`,
        },
        ...Object.keys(startPhases).map(perStart),
      ],
    }))
    .withPanel(graph({
      title: 'Cold calls by function', unit: 'reqps', width: 12,
      description: 'Calls per second that were the first of their instance: the ten functions with most of them.',
      queries: [{ expr: orNone('function', `topk(10, sum by (function_namespace, function) (${rate(`windlass_gateway_cold_invocations_total{${chosen}}`)}) > 0)`), legend: '{{function_namespace}} {{function}}' }],
    }))
    .withPanel(graph({
      title: 'Starts over time', unit: 'none', width: 12, bars: true, stacked: true,
      description: 'Instances that started: the ten functions with most of them.',
      queries: [{ expr: orNone('function', `topk(10, ${added(started, ['function_namespace', 'function'])} > 0)`), legend: '{{function_namespace}} {{function}}' }],
    }));
}
