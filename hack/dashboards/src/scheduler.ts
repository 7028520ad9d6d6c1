// The control plane itself: who owns what, whether it keeps its pace, and who is throttled.

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { frame, uids } from './frame';
import { graph, heading, number, spread } from './kit';
import { bad, good, plain, warning } from './palette';
import { added, orNone, orZero, quantile, rate, whole } from './queries';

export function scheduler(): dashboard.DashboardBuilder {
  const board = frame('Scheduler and ownership', uids.scheduler, 'Schedulers, the slots they own, their ticks, and the gateways\' claims and limits.', 'none');
  glance(board);
  ownership(board);
  ticks(board);
  claims(board);
  processes(board);
  return board;
}

function glance(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(number({
      title: 'Schedulers', unit: 'none', width: 3, course: false,
      description: 'Schedulers that Prometheus sees.',
      query: { expr: orZero('count(windlass_scheduler_ownership_unconfirmed)') },
    }))
    .withPanel(number({
      title: 'Unowned slots', unit: 'none', width: 3, limits: { bad: 1 },
      description: 'Slots, of 1024, that no scheduler serves: calls of their functions wait. After a failure, some for a second are normal. An owner that other schedulers cannot reach and Prometheus can counts beside its standby, and hides as many.',
      query: { expr: 'clamp_min(1024 - (sum(windlass_scheduler_slots) or vector(0)), 0)' },
    }))
    .withPanel(number({
      title: 'Unconfirmed owners', unit: 'none', width: 3, limits: { bad: 1 },
      description: 'Schedulers whose ownership etcd does not confirm. Calls go on, few instances are created, and slots do not move.',
      query: { expr: orZero('sum(windlass_scheduler_ownership_unconfirmed)') },
    }))
    .withPanel(number({
      title: 'Silent peers', unit: 'none', width: 3, limits: { bad: 1 },
      description: 'Schedulers that do not answer some gateway or other scheduler.',
      query: { expr: orZero('max(windlass_peers_silent)') },
    }))
    .withPanel(number({
      title: 'Slots moved', unit: 'none', width: 3, course: false,
      description: 'Slots that a scheduler gained within the time shown.',
      query: { expr: orZero(whole('sum(increase(windlass_scheduler_slot_moves_total{direction="gained"}[$__range]))')) },
    }))
    .withPanel(number({
      title: 'Tick p99', unit: 's', width: 3, limits: { warn: 0.05, bad: 0.1 },
      description: 'The 99th percentile of the time that a tick takes. Ten are due per second.',
      query: { expr: `${quantile(0.99, 'windlass_scheduler_tick_duration_seconds')} >= 0 or vector(0)` },
    }))
    .withPanel(number({
      title: 'Tick lag p99', unit: 's', width: 3, limits: { warn: 0.05, bad: 0.5 },
      description: 'The 99th percentile of how much later than due a tick began. High: the scheduler lacks CPU.',
      query: { expr: `${quantile(0.99, 'windlass_scheduler_tick_lag_seconds')} >= 0 or vector(0)` },
    }))
    .withPanel(number({
      title: 'Silent agents', unit: 'none', width: 3, limits: { warn: 1, bad: 10 },
      description: 'Connected agents that have stopped reporting, and whose instances are not known to have ended.',
      query: { expr: orZero('sum(max by (function_namespace, function, revision) (windlass_scheduler_agents_silent))') },
    }));
}

function ownership(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Ownership'))
    .withPanel(graph({
      title: 'Slots by scheduler', unit: 'none', width: 8, stacked: true, max: 1024,
      description: 'Slots that each scheduler serves as their *owner*, or as their *standby* while the owner does not answer. Together they are 1024, in equal shares.',
      queries: [{ expr: 'sum by (instance, role) (windlass_scheduler_slots) > 0', legend: '{{instance}} {{role}}' }],
    }))
    .withPanel(graph({
      title: 'Slots that move', unit: 'none', width: 8, bars: true, colours: { gained: good, lost: warning },
      description: 'Slots that schedulers gained and lost. Steady moves while no scheduler starts or stops are a fault.',
      queries: [{ expr: orNone('direction', added('windlass_scheduler_slot_moves_total', ['direction'])), legend: '{{direction}}' }],
    }))
    .withPanel(graph({
      title: 'Unconfirmed owners and silent peers', unit: 'none', width: 4, colours: { unconfirmed: bad, 'silent peers': warning },
      description: 'Schedulers that etcd does not confirm, and peers that do not answer.',
      queries: [
        { expr: orZero('sum(windlass_scheduler_ownership_unconfirmed)'), legend: 'unconfirmed' },
        { expr: orZero('max(windlass_peers_silent)'), legend: 'silent peers' },
      ],
    }))
    .withPanel(graph({
      title: 'Highest epoch', unit: 'none', width: 4,
      description: 'The highest epoch of the slots that a scheduler owns. It rises with every move, and the highest of all schedulers never falls.',
      queries: [{ expr: 'max by (instance) (windlass_scheduler_highest_epoch)', legend: '{{instance}}' }],
    }));
}

function ticks(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Ticks'))
    .withPanel(graph({
      title: 'Tick duration (p99)', unit: 's', width: 8, limit: { bad: 0.1 },
      description: 'The 99th percentile of each scheduler\'s ticks. Above the dashed line it cannot keep ten per second.',
      queries: [{ expr: quantile(0.99, 'windlass_scheduler_tick_duration_seconds', '', ['instance']), legend: '{{instance}}' }],
    }))
    .withPanel(graph({
      title: 'Tick lag (p99)', unit: 's', width: 8, limit: { bad: 0.5 },
      description: 'How much later than due each scheduler\'s ticks began. Decisions are late by as much.',
      queries: [{ expr: quantile(0.99, 'windlass_scheduler_tick_lag_seconds', '', ['instance']), legend: '{{instance}}' }],
    }))
    .withPanel(spread({
      title: 'Tick durations', unit: 's', width: 8,
      description: 'Distribution of the durations of ticks, over all schedulers.',
      query: added('windlass_scheduler_tick_duration_seconds_bucket', ['le']),
    }));
}

function claims(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Claims, limits and refusals'))
    .withPanel(graph({
      title: 'Claims', unit: 'count:claims/s', width: 8, colours: { claims: good },
      description: 'Claims of instances per second, and claims that gateways refused. *NotWaiting*: another instance was faster, or the call was abandoned. *WrongToken*: the claim had no right to the call.',
      queries: [
        { expr: orZero(`sum(${rate('windlass_gateway_claims_total')})`), legend: 'claims' },
        { expr: orNone('reason', `sum by (reason) (${rate('windlass_gateway_claims_refused_total')})`), legend: 'refused: {{reason}}' },
      ],
    }))
    .withPanel(graph({
      title: 'Tickets offered', unit: 'count:tickets/s', width: 4, colours: { offered: good, again: warning },
      description: 'Tickets that gateways offered to owners per second, tickets offered *again* after a move or a failure, tickets *overtaken* by lent pulls, and tickets that a *second* instance got, too, because the first waits for a core.',
      queries: [
        { expr: orZero(`sum(${rate('windlass_gateway_tickets_offered_total')})`), legend: 'offered' },
        { expr: orZero(`sum(${rate('windlass_gateway_tickets_reoffered_total')})`), legend: 'again' },
        { expr: orZero(`sum(${rate('windlass_gateway_tickets_overtaken_total')})`), legend: 'overtaken' },
        { expr: orZero(`sum(${rate('windlass_scheduler_tickets_rebound_total')})`), legend: 'second' },
      ],
    }))
    .withPanel(graph({
      title: 'Rejected connections', unit: 'reqps', width: 4, stacked: true, bars: true,
      description: 'Requests that are not valid HTTP, and streams that were refused, per second.',
      queries: [
        { expr: orNone('code', `sum by (code) (${rate('windlass_http_requests_refused_total')})`), legend: 'HTTP {{code}}' },
        { expr: orNone('code', `sum by (code) (${rate('windlass_wire_streams_refused_total')})`), legend: 'stream {{code}}' },
      ],
    }))
    .withPanel(graph({
      title: 'Gateways: calls held', unit: 'percentunit', width: 4, max: 1, limit: { warn: 0.8, bad: 0.95 },
      description: 'Calls that each gateway holds, as a share of its limit. At 1 it refuses calls.',
      queries: [{ expr: 'windlass_gateway_invocations_held / windlass_gateway_invocations_limit', legend: '{{instance}}' }],
    }))
    .withPanel(graph({
      title: 'Gateways: bodies held', unit: 'percentunit', width: 4, max: 1, limit: { warn: 0.8, bad: 0.95 },
      description: 'Bytes of request bodies that each gateway holds, as a share of its limit. At 1 it refuses calls.',
      queries: [{ expr: 'windlass_gateway_bodies_held_bytes / windlass_gateway_bodies_limit_bytes', legend: '{{instance}}' }],
    }));
}

function processes(board: dashboard.DashboardBuilder): void {
  // Each kind of process is known by a series that no other process has.
  const ours = 'and on (job, instance) {__name__=~"windlass_gateway_invocations_limit|windlass_scheduler_ownership_unconfirmed|windlass_controller_schedulers"}';
  board
    .withRow(heading('Processes'))
    .withPanel(graph({
      title: 'CPU', unit: 'count:cores', width: 8,
      description: 'Cores that each process of the control plane uses.',
      queries: [{ expr: `${rate('process_cpu_seconds_total')} ${ours}`, legend: '{{component}} {{instance}}' }],
    }))
    .withPanel(graph({
      title: 'Memory', unit: 'bytes', width: 8,
      description: 'Resident memory of each process of the control plane.',
      queries: [{ expr: `process_resident_memory_bytes ${ours}`, legend: '{{component}} {{instance}}' }],
    }))
    .withPanel(graph({
      title: 'Controller', unit: 'count:writes/s', width: 4,
      description: 'Work of the controller per second: statuses written, pods deleted, Events written. In a cluster only.',
      queries: [
        { expr: orZero(`sum(${rate('windlass_controller_status_writes_total')})`), legend: 'statuses' },
        { expr: orZero(`sum(${rate('windlass_controller_pods_deleted_total')})`), legend: 'pods deleted' },
        { expr: orZero(`sum(${rate('windlass_controller_events_total')})`), legend: 'events' },
      ],
    }))
    .withPanel(graph({
      title: 'Log and traces', unit: 'count:records/s', width: 4, colours: { 'log lines dropped': bad, 'spans dropped': warning, 'spans failed': bad, 'spans exported': plain },
      description: 'Log lines that were dropped because their reader was too slow, and spans by result, per second.',
      queries: [
        { expr: orZero(`sum(${rate('windlass_log_lines_dropped_total')})`), legend: 'log lines dropped' },
        { expr: orNone('result', `sum by (result) (${rate('windlass_traces_spans_total')})`), legend: 'spans {{result}}' },
      ],
    }));
}
