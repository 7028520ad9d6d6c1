// How nodes order the calls on them: which are busy, what waits there, who yields, and what fails.

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { frame, toBoardOfAll, uids } from './frame';
import { graph, heading, number, states } from './kit';
import { bad, classes, good, onNode, plain, quantiles, warning } from './palette';
import { added, orNone, orZero, quantile, rate, whole } from './queries';

/** Node agents are one on each node; in local mode there is one, without the label node. */
const byNode = 'node, instance';
const node = '{{node}} {{instance}}';

const wait = (q: number): string => quantile(q, 'windlass_node_core_wait_seconds');
const inAll = (counter: string): string => `sum(${rate(counter)})`;

export function nodeScheduling(): dashboard.DashboardBuilder {
  const board = frame('Nodes', uids.nodeScheduling, 'How nodes order calls: which are busy, what waits for cores, who yields to whom, and what fails.', 'none');
  glance(board);
  nodes(board);
  calls(board);
  yielding(board);
  coLocation(board);
  faults(board);
  return board;
}

function glance(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(number({
      title: 'Node agents', unit: 'none', width: 3, course: false,
      description: 'Node agents that Prometheus sees: one on each node that orders calls.',
      query: { expr: orZero('count(windlass_node_busy)') },
    }))
    .withPanel(number({
      title: 'Busy nodes', unit: 'none', width: 3,
      description: 'Nodes on which more threads want to run than there are cores. Only there calls need core tickets.',
      query: { expr: orZero('sum(windlass_node_busy)') },
    }))
    .withPanel(number({
      title: 'Waiting for cores', unit: 'none', width: 3,
      description: 'Calls that wait for a core of their node, and have not begun.',
      query: { expr: orZero('sum(windlass_node_calls{state="waiting"})') },
    }))
    .withPanel(number({
      title: 'Wait for a core p99', unit: 's', width: 3, limits: { warn: 1, bad: 25 },
      description: 'The 99th percentile of the wait for a core. A wait of 30 s ends without one.',
      query: { expr: `${wait(0.99)} >= 0 or vector(0)` },
    }))
    .withPanel(number({
      title: 'In the low band', unit: 'none', width: 3,
      description: 'Instances that get what others leave of the cores.',
      query: { expr: orZero('sum(windlass_node_low_instances)') },
    }))
    .withPanel(number({
      title: 'Failed open', unit: 'percentunit', width: 3, limits: { warn: 0.001, bad: 0.01 },
      description: 'Share of the calls that asked and began without an answer. Above 1 % for 10 minutes *WindlassNodeAgentFailOpen* fires: node agents hang, or nodes have too much to do.',
      query: { expr: `${inAll('windlass_agent_failed_open_total')} / (${inAll('windlass_agent_core_asks_total')} > 0) or vector(0)` },
    }))
    .withPanel(number({
      title: 'Failed writes', unit: 'none', width: 3, limits: { bad: 1 },
      description: 'Moves between bands, or notes of them in the journal, that failed within the time shown. Any is worth a look at the log of the node agent.',
      query: { expr: orZero(whole('sum(increase(windlass_node_failed_writes_total[$__range]))')) },
    }))
    .withPanel(number({
      title: 'Alerts about nodes', unit: 'none', width: 3, limits: { bad: 1 }, course: false,
      description: 'Alerts *WindlassNodeAgentFailOpen* and *WindlassNodeBusyLong* that fire. Each has a runbook.',
      query: { expr: orZero('count(ALERTS{alertname=~"WindlassNode.*", alertstate="firing"})') },
    }));
}

function nodes(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Nodes'))
    .withPanel(states({
      title: 'Mode of each node', unit: 'none', width: 24,
      description: 'A node is *busy* while more threads want to run than it has cores. Busy for most of an hour, *WindlassNodeBusyLong* fires: the node has too little CPU for its work.',
      queries: [{ expr: `max by (${byNode}) (windlass_node_busy)`, legend: node }],
      values: { 0: { text: 'calm', colour: good }, 1: { text: 'busy', colour: warning } },
      links: [toBoardOfAll('Node scale-out', uids.nodes)],
    }))
    .withPanel(graph({
      title: 'Calls that wait', unit: 'none', width: 8,
      description: 'Calls that wait for a core, on each node. If one node has nearly all of them while others are calm, its calls came by loans, or the calm ones have no instance of their functions.',
      queries: [{ expr: `sum by (${byNode}) (windlass_node_calls{state="waiting"})`, legend: node }],
    }))
    .withPanel(graph({
      title: 'Instances in the low band', unit: 'none', width: 8,
      description: 'Instances that get what others leave of their node\'s cores.',
      queries: [{ expr: `sum by (${byNode}) (windlass_node_low_instances)`, legend: node }],
    }))
    .withPanel(graph({
      title: 'Calls on cores', unit: 'percentunit', width: 8,
      description: 'Calls that hold a core ticket, as a share of the node\'s tickets. On a busy node with waiting calls it is 100 %, or less by the cores that `LatencyCritical` instances use.',
      queries: [{ expr: `sum by (${byNode}) (windlass_node_calls{state="holding"}) / sum by (${byNode}) (windlass_node_cores)`, legend: node }],
    }));
}

function calls(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Calls'))
    .withPanel(graph({
      title: 'Calls that asked', unit: 'none', width: 8, stacked: true, colours: onNode,
      description: 'Calls by state: *waiting* for a core ticket, *holding* one, and those that have begun and go on without one: *preempted* by a shorter call, *demoted* after their slice, or *blocked* on something other than the processor.',
      queries: [{ expr: orNone('state', 'sum by (state) (windlass_node_calls)'), legend: '{{state}}' }],
    }))
    .withPanel(graph({
      title: 'Wait for a core', unit: 's', width: 8, colours: quantiles,
      description: 'How long calls waited for a core ticket. A wait of 30 s ends without one.',
      queries: [{ expr: wait(0.5), legend: 'p50' }, { expr: wait(0.99), legend: 'p99' }],
    }))
    .withPanel(graph({
      title: 'Asks', unit: 'reqps', width: 8, colours: { asked: plain, 'failed open': bad },
      description: 'Calls per second that asked their node agent for a core, and those that began without an answer. Many of the latter mean that node agents hang.',
      queries: [
        { expr: orZero(inAll('windlass_agent_core_asks_total')), legend: 'asked' },
        { expr: orZero(inAll('windlass_agent_failed_open_total')), legend: 'failed open' },
      ],
    }))
    .withPanel(graph({
      title: 'Execution over CPU time', unit: 'percentunit', width: 12, legendRight: true,
      description: 'The time of a function\'s calls from core ticket to end, as a share of the time that they compute. 100 % means that they do not share cores. The ten functions with most.',
      queries: [{ expr: `topk(10, ${perFunction('windlass_node_execution_seconds_total')} / (${perFunction('windlass_node_cpu_seconds_total')} > 0))`, legend: '{{function_namespace}}/{{function}}' }],
    }))
    .withPanel(graph({
      title: 'CPU time of calls', unit: 'count:cores', width: 12, legendRight: true,
      description: 'Cores that the calls of a function use, as far as they asked. The ten functions with most.',
      queries: [{ expr: `topk(10, sum by (function_namespace, function) (${rate('windlass_node_cpu_seconds_total')}))`, legend: '{{function_namespace}}/{{function}}' }],
    }));
}

const perFunction = (counter: string): string => `sum by (function_namespace, function) (increase(${counter}[$__rate_interval]))`;

function yielding(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Who yields'))
    .withPanel(graph({
      title: 'Share of classes', unit: 'percentunit', width: 8, stacked: true, max: 1, colours: classes,
      description: 'Instances by the class that they have on their node. `LatencyCritical` counts only where the namespace may have it.',
      queries: [{ expr: orNone('class', 'sum by (class) (windlass_node_instances) / on () group_left () (sum(windlass_node_instances) > 0)'), legend: '{{class}}' }],
    }))
    .withPanel(graph({
      title: 'Bands', unit: 'none', width: 8, stacked: true,
      description: 'Instances by class and band. `Batch` ones are always *low*. Of the others those are low that computed for longer than their slice, or without a ticket.',
      queries: [{ expr: orNone('class', 'sum by (class, band) (windlass_node_instances) > 0'), legend: '{{class}} {{band}}' }],
    }))
    .withPanel(graph({
      title: 'Calls that yield', unit: 'count:calls/s', width: 8,
      description: 'Moves of instances into the low band per second: after the *slice* of their call, *preempted* by a much shorter one, for *overload*, because they computed *unasked*, or as *batch*.',
      queries: [{ expr: orNone('reason', `sum by (reason) (${rate('windlass_node_demotions_total')})`), legend: '{{reason}}' }],
    }))
    .withPanel(graph({
      title: 'Tickets given back', unit: 'count:tickets/s', width: 8, colours: { 'given back': plain },
      description: 'Core tickets per second that calls gave back because they waited for something other than the processor.',
      queries: [{ expr: orZero(inAll('windlass_node_blocked_total')), legend: 'given back' }],
    }))
    .withPanel(graph({
      title: 'Slice of new functions', unit: 's', width: 8,
      description: 'Processor time after which a call of a function that is new on its node yields; 0 if it need not.',
      queries: [{ expr: `max by (${byNode}) (windlass_node_slice_seconds)`, legend: node }],
    }))
    .withPanel(graph({
      title: 'Processor time over what was expected', unit: 'percentunit', width: 8, colours: quantiles,
      description: 'The processor time of a call, as a share of the mean that was expected when it began. The order is as good as this is near 100 %.',
      queries: [
        { expr: quantile(0.5, 'windlass_node_estimate_error_ratio'), legend: 'p50' },
        { expr: quantile(0.9, 'windlass_node_estimate_error_ratio'), legend: 'p90' },
      ],
    }));
}

function coLocation(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Co-location'))
    .withPanel(graph({
      title: 'Wait of latency-critical instances', unit: 's', width: 8,
      description: 'For how long in each second a latency-critical instance waits for a core, of the one that waits longest, while batch instances are beside it. Above 20 ms cores are reserved. 0 without co-location, and where the node does not say how long instances wait.',
      queries: [{ expr: `sum by (${byNode}) (${rate('windlass_node_critical_wait_seconds_total')})`, legend: node }],
    }))
    .withPanel(graph({
      title: 'Reserved cores', unit: 'none', width: 8,
      description: 'Cores on which no batch instance may run.',
      queries: [{ expr: `sum by (${byNode}) (windlass_node_reserved_cores)`, legend: node }],
    }))
    .withPanel(graph({
      title: 'Frozen batch instances', unit: 'none', width: 8,
      description: 'Batch instances whose functions are stopped for a while. None is frozen for longer than 30 s at a time.',
      queries: [{ expr: `sum by (${byNode}) (windlass_node_frozen_instances)`, legend: node }],
    }))
    .withPanel(graph({
      title: 'Batch work', unit: 'count:cores', width: 8, legendRight: true,
      description: 'Cores that batch instances of a function use, on all nodes. The ten functions with most. They get what others leave, and less while they are kept off cores or frozen.',
      queries: [{ expr: `topk(10, sum by (function_namespace, function) (${rate('windlass_node_batch_cpu_seconds_total')}))`, legend: '{{function_namespace}}/{{function}}' }],
    }))
    .withPanel(graph({
      title: 'Frozen time', unit: 's', width: 8,
      description: 'For how long in each second functions of batch instances are frozen, added up over the instances of a node.',
      queries: [{ expr: `sum by (${byNode}) (${rate('windlass_node_frozen_seconds_total')})`, legend: node }],
    }))
    .withPanel(graph({
      title: 'Given back without effect', unit: 'none', width: 8, bars: true,
      description: 'How often batch was given back because latency-critical instances waited no longer for it. If that goes on while they wait, look for other programs on the node.',
      queries: [{ expr: added('windlass_node_ineffective_holds_total', [byNode]), legend: node }],
    }));
}

function faults(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Faults'))
    .withPanel(graph({
      title: 'Failed writes by file', unit: 'none', width: 8, bars: true,
      description: 'Moves between bands that failed, by the file of the control group or the journal that could not be written. Moves to the normal band are tried again.',
      queries: [{ expr: orNone('file', added('windlass_node_failed_writes_total', ['file'])), legend: '{{file}}' }],
    }))
    .withPanel(graph({
      title: 'Moves and breaths', unit: 'count:moves/s', width: 8, colours: { moves: plain, breaths: warning },
      description: 'Moves of instances between bands per second, and the *breaths* among them: some normal milliseconds for an instance that starved. Many breaths mean that the low band gets nothing.',
      queries: [
        { expr: orZero(inAll('windlass_node_band_writes_total')), legend: 'moves' },
        { expr: orZero(inAll('windlass_node_breaths_total')), legend: 'breaths' },
      ],
    }))
    .withPanel(graph({
      title: 'Connected agents', unit: 'none', width: 8,
      description: 'Instances whose agents are connected to the node agent of their node. Instances without it compute as if there were no order.',
      queries: [{ expr: `sum by (${byNode}) (windlass_node_agents)`, legend: node }],
    }));
}
