// Whether more nodes carry more: throughput against nodes, and how evenly they are used.

import * as common from '@grafana/grafana-foundation-sdk/common';
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as xychart from '@grafana/grafana-foundation-sdk/xychart';

import { frame, toBoardOfAll, uids } from './frame';
import { bars, graph, heading, number, range, source } from './kit';
import { callPhases, plain, warning } from './palette';
import { orZero, quantile, rate, share } from './queries';

const executed = `sum(${rate('windlass_gateway_invocations_total{executed="yes"}')})`;
const perNode = 'sum by (node_name) (windlass_scheduler_node_instances)';
const used = `count(${perNode} > 0)`;

export function scaleOut(): dashboard.DashboardBuilder {
  const board = frame('Node scale-out', uids.nodes, 'Throughput against the number of nodes, and how evenly nodes are used.', 'none');
  glance(board);
  throughput(board);
  evenness(board);
  return board;
}

function glance(board: dashboard.DashboardBuilder): void {
  board
    .withPanel(number({
      title: 'Nodes in use', unit: 'none', width: 4, description: 'Nodes that have instances.',
      query: { expr: orZero(used) },
    }))
    .withPanel(number({
      title: 'Executed', unit: 'reqps', width: 4, description: 'Calls per second whose function ran.',
      query: { expr: orZero(executed) },
    }))
    .withPanel(number({
      title: 'Executed on each node', unit: 'reqps', width: 4,
      description: 'Calls executed per second, divided by the number of nodes in use. It stays level while throughput grows with the nodes.',
      query: { expr: orZero(`${executed} / (${used} > 0)`) },
    }))
    .withPanel(number({
      title: 'Fullest node', unit: 'percentunit', width: 4, limits: { warn: 0.9, bad: 0.99 },
      description: 'The largest share of a node\'s CPU or memory that is requested.',
      query: { expr: orZero('max(windlass_scheduler_node_requested_ratio)') },
    }))
    .withPanel(number({
      title: 'Imbalance', unit: 'none', width: 4, limits: { warn: 2, bad: 4 },
      description: 'Instances on the fullest node, divided by the mean. 1 is even. Much more, with nodes of one size, is a fault.',
      query: { expr: orZero(`max(${perNode}) / avg(${perNode} > 0)`) },
    }))
    .withPanel(number({
      title: 'Refused for lack of capacity', unit: 'reqps', width: 4, limits: { warn: 0.001, bad: 1 },
      description: 'Calls that were refused because no node has capacity. Add nodes, or lower resource requests.',
      query: { expr: orZero(`sum(${rate('windlass_scheduler_invocations_refused_total{reason="NoCapacity"}')})`) },
    }));
}

function throughput(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('Throughput'))
    .withPanel(graph({
      title: 'Throughput and nodes', unit: 'reqps', width: 12, height: 9,
      description: 'Calls executed per second, and nodes in use. Under full load both rise together.',
      queries: [{ expr: orZero(executed), legend: 'executed' }, { expr: orZero(used), legend: 'nodes' }],
      colours: { executed: '#56A64B' },
      right: { nodes: { unit: 'none', label: 'nodes in use', colour: '#B877D9' } },
    }))
    .withPanel(against());
  board
    .withPanel(graph({
      title: 'Executed by busy instance', unit: 'reqps', width: 8,
      description: 'Calls executed per second, divided by the number of busy instances. It falls when nodes are overcommitted.',
      queries: [{ expr: share(executed, 'sum(max by (function_namespace, function, revision, state) (windlass_scheduler_instances{state="busy"}))'), legend: 'executed' }],
      colours: { executed: plain },
    }))
    .withPanel(graph({
      title: 'What Windlass adds (p99)', unit: 's', width: 8, colours: callPhases,
      description: 'The 99th percentile of the phases that do not wait for an instance and are not the function. It should not grow with the number of nodes.',
      queries: [{ expr: quantile(0.99, 'windlass_gateway_phase_duration_seconds', 'phase=~"admit|claim|return"', ['phase']), legend: '{{phase}}', exemplar: true }],
    }))
    .withPanel(graph({
      title: 'Waiting', unit: 'none', width: 8, colours: { waiting: warning },
      description: 'Calls that wait. It grows while all nodes are full: add nodes, or reduce the load.',
      queries: [{ expr: orZero('sum(max by (function_namespace, function, revision) (windlass_scheduler_queue_length))'), legend: 'waiting' }],
    }));
}

/** Calls executed in a second, each moment a dot over the nodes in use at that moment. */
function against(): xychart.PanelBuilder {
  return new xychart.PanelBuilder()
    .title('Throughput against nodes').datasource(source).span(12).height(9).unit('reqps').min(0)
    .description('A dot for each moment: calls executed per second by nodes in use. Under full load the dots lie on a line through zero. Where they bend, something other than nodes is the bottleneck.')
    .targets([range({ expr: used, legend: 'nodes' }, 0), range({ expr: executed, legend: 'executed' }, 1)])
    .withTransformation({ id: 'joinByField', options: { byField: 'Time', mode: 'inner' } })
    .mapping(xychart.SeriesMapping.Manual)
    .series([new Dots()])
    .show(xychart.XYShowMode.Points)
    .pointSize({ fixed: 6 })
    .legend(new common.VizLegendOptionsBuilder().showLegend(false).displayMode(common.LegendDisplayMode.List).placement(common.LegendPlacement.Bottom).calcs([]))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Single).sort(common.SortOrder.None))
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.Fixed).fixedColor('#56A64B'))
    .overrideByName('nodes', [{ id: 'unit', value: 'none' }, { id: 'custom.axisLabel', value: 'nodes in use' }]);
}

/** The series of the chart above: which field is across and which is up. */
class Dots {
  build(): xychart.XYSeriesConfig {
    const named = (name: string) => ({ matcher: { id: 'byName', options: name } });
    return { name: { fixed: 'executed' }, frame: { matcher: { id: 'byIndex', options: 0 } }, x: named('nodes'), y: named('executed') };
  }
}

function evenness(board: dashboard.DashboardBuilder): void {
  board
    .withRow(heading('How evenly nodes are used'))
    .withPanel(graph({
      title: 'Instances by node', unit: 'none', width: 8, stacked: true,
      description: 'Instances on each node.',
      queries: [{ expr: perNode, legend: '{{node_name}}' }],
      links: [toBoardOfAll('Provisioning', uids.provisioning)],
    }))
    .withPanel(graph({
      title: 'CPU requested', unit: 'percentunit', width: 8, max: 1, limit: { warn: 0.9, bad: 0.99 },
      description: 'Share of each node\'s CPU that pods of any kind request.',
      queries: [{ expr: 'max by (node_name) (windlass_scheduler_node_requested_ratio{resource="cpu"})', legend: '{{node_name}}' }],
    }))
    .withPanel(graph({
      title: 'Memory requested', unit: 'percentunit', width: 8, max: 1, limit: { warn: 0.9, bad: 0.99 },
      description: 'Share of each node\'s memory that pods of any kind request.',
      queries: [{ expr: 'max by (node_name) (windlass_scheduler_node_requested_ratio{resource="memory"})', legend: '{{node_name}}' }],
    }))
    .withPanel(bars({
      title: 'Instances now', unit: 'short', width: 24, height: 6,
      description: 'The twenty nodes with most instances.',
      queries: [{ expr: `sort_desc(topk(20, ${perNode}))`, legend: '{{node_name}}' }],
    }));
}
