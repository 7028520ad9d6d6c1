// The house style: every panel is made here, so that all look and behave alike.

import * as bargauge from '@grafana/grafana-foundation-sdk/bargauge';
import * as common from '@grafana/grafana-foundation-sdk/common';
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as heatmap from '@grafana/grafana-foundation-sdk/heatmap';
import * as prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as statetimeline from '@grafana/grafana-foundation-sdk/statetimeline';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';

import { bad, good, plain, warning } from './palette';

export const source: common.DataSourceRef = { type: 'prometheus', uid: '${datasource}' };

/** A query of a panel. */
export interface Query {
  expr: string;
  legend?: string;
  /** Asks for exemplars: dots that lead to the trace of a single call. */
  exemplar?: boolean;
}

/** What every panel has. Widths are of 24 columns, heights in rows of 30 pixels. */
export interface Common {
  title: string;
  /** What it shows, and what to do about it. Markdown. */
  description: string;
  unit: string;
  width: number;
  height?: number;
  links?: dashboard.DashboardLinkBuilder[];
}

/** Values from which on a thing is worth a look, and from which on it is wrong. */
export interface Limits {
  warn?: number;
  bad: number;
}

const refs = 'ABCDEFGHIJ';

export function range(query: Query, at: number): prometheus.DataqueryBuilder {
  const target = new prometheus.DataqueryBuilder().refId(refs.charAt(at)).datasource(source).expr(query.expr).range();
  if (query.legend !== undefined) target.legendFormat(query.legend);
  if (query.exemplar) target.exemplar(true);
  return target;
}

/** Asks for one value at the end of the time range, as rows of a table. */
export function instant(query: Query, at: number): prometheus.DataqueryBuilder {
  return new prometheus.DataqueryBuilder().refId(refs.charAt(at)).datasource(source).expr(query.expr).instant()
    .format(prometheus.PromQueryFormat.Table);
}

export const fixed = (colour: string): dashboard.DynamicConfigValue =>
  ({ id: 'color', value: { mode: 'fixed', fixedColor: colour } });

export function thresholds(limits: Limits | undefined, base = good): dashboard.ThresholdsConfigBuilder {
  const steps: dashboard.Threshold[] = [{ value: null, color: base }];
  if (limits?.warn !== undefined) steps.push({ value: limits.warn, color: warning });
  if (limits) steps.push({ value: limits.bad, color: bad });
  return new dashboard.ThresholdsConfigBuilder().mode(dashboard.ThresholdsMode.Absolute).steps(steps);
}

/** A number with its course behind it. Without limits it has one plain colour. */
export function number(o: Common & { query: Query; limits?: Limits; calc?: string; course?: boolean }): stat.PanelBuilder {
  return new stat.PanelBuilder()
    .title(o.title).description(o.description).unit(o.unit).datasource(source).span(o.width).height(o.height ?? 4)
    .links(o.links ?? [])
    .min(0).noValue('0')
    .withTarget(range(o.query, 0))
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs([o.calc ?? 'lastNotNull']))
    .graphMode(o.course === false ? common.BigValueGraphMode.None : common.BigValueGraphMode.Area)
    .colorMode(common.BigValueColorMode.Value)
    .justifyMode(common.BigValueJustifyMode.Auto)
    .textMode(common.BigValueTextMode.Value)
    .thresholds(thresholds(o.limits, o.limits ? good : plain))
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.Thresholds));
}

/** How a graph looks that does not look as usual. */
export interface Looks {
  /** Fixed colours of series by their legend. */
  colours?: Record<string, string>;
  stacked?: boolean;
  bars?: boolean;
  /** Draws a line where it begins to be wrong. */
  limit?: Limits;
  max?: number;
  /** Values that say most of these series; they stand in the legend's columns. */
  calcs?: string[];
  legendRight?: boolean;
  /** Series, by legend, that lie as a bold line over stacked ones. */
  over?: Record<string, string>;
  /** Series, by legend, with an axis of their own at the right. */
  right?: Record<string, { unit: string; label: string; colour: string }>;
  logarithmic?: boolean;
  dataLinks?: dashboard.DashboardLinkBuilder[];
}

/** Lines over time. */
export function graph(o: Common & { queries: Query[] } & Looks): timeseries.PanelBuilder {
  const panel = new timeseries.PanelBuilder()
    .title(o.title).description(o.description).unit(o.unit).datasource(source).span(o.width).height(o.height ?? 8)
    .links(o.links ?? [])
    .targets(o.queries.map(range))
    .legend(legend(o))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending))
    .lineWidth(o.stacked || o.bars ? 1 : 2)
    .fillOpacity(o.bars ? 90 : o.stacked ? 60 : o.logarithmic ? 0 : 8)
    .showPoints(common.VisibilityMode.Never)
    .drawStyle(o.bars ? common.GraphDrawStyle.Bars : common.GraphDrawStyle.Line)
    .lineInterpolation(common.LineInterpolation.Linear)
    .stacking(new common.StackingConfigBuilder().mode(o.stacked ? common.StackingMode.Normal : common.StackingMode.None).group('A'))
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.PaletteClassicByName));
  // A logarithm has no zero; and without a soft maximum an axis of zeros alone ends at 100.
  if (o.logarithmic) panel.scaleDistribution(new common.ScaleDistributionConfigBuilder().type(common.ScaleDistribution.Log).log(10));
  else if (o.max === undefined) panel.min(0).axisSoftMax(softMax(o.unit));
  else panel.min(0).max(o.max);
  if (o.unit === counted) panel.decimals(0);
  if (o.queries.some((query) => query.expr.includes('$__interval_ms'))) panel.interval(apart);
  if (o.dataLinks) panel.dataLinks(o.dataLinks);
  if (o.limit) {
    panel.thresholds(thresholds(o.limit, 'transparent'))
      .thresholdsStyle(new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed));
  }
  paint(panel, o);
  return panel;
}

// How far apart points are at least that show what was added since the one before. An event is in
// one of them if that is three scrapes or more; else in two, as a part of itself.
const apart = '2m';

// The unit of whole things in graphs, whose axes then have whole numbers only. Grafana's "short"
// would make 2 K of 1500 without decimals.
const counted = 'none';

// Where an axis ends at least, in its unit.
function softMax(unit: string): number {
  if (unit === 's') return 0.001;
  return unit === counted ? 1 : 0.1;
}

function legend(o: Looks): common.VizLegendOptionsBuilder {
  return new common.VizLegendOptionsBuilder().showLegend(true)
    .displayMode(o.calcs ? common.LegendDisplayMode.Table : common.LegendDisplayMode.List)
    .placement(o.legendRight ? common.LegendPlacement.Right : common.LegendPlacement.Bottom)
    .calcs(o.calcs ?? []);
}

function paint(panel: timeseries.PanelBuilder, o: Common & Looks & { queries: Query[] }): void {
  // What stands for "none" keeps the panel's axis, and must neither draw a line over the others
  // nor stand beside them in the legend.
  if (o.queries.some((query) => query.expr.includes('"none"'))) {
    panel.overrideByRegexp('/\\bnone\\s*$/', [
      fixed('#6E7681'),
      { id: 'custom.lineWidth', value: 0 },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'custom.hideFrom', value: { legend: true, tooltip: false, viz: false } },
    ]);
  }
  for (const [name, colour] of Object.entries(o.colours ?? {})) panel.overrideByName(name, [fixed(colour)]);
  for (const [name, colour] of Object.entries(o.over ?? {})) {
    panel.overrideByName(name, [
      fixed(colour),
      { id: 'custom.stacking', value: { mode: 'none', group: 'B' } },
      { id: 'custom.drawStyle', value: 'line' },
      { id: 'custom.lineWidth', value: 2 },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 6] } },
    ]);
  }
  for (const [name, axis] of Object.entries(o.right ?? {})) {
    panel.overrideByName(name, [
      fixed(axis.colour),
      { id: 'unit', value: axis.unit },
      ...(axis.unit === counted ? [{ id: 'decimals', value: 0 }] : o.unit === counted ? [{ id: 'decimals', value: 1 }] : []),
      { id: 'custom.axisPlacement', value: 'right' },
      { id: 'custom.axisLabel', value: axis.label },
      { id: 'custom.axisSoftMax', value: softMax(axis.unit) },
      { id: 'custom.stacking', value: { mode: 'none', group: 'C' } },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'custom.lineWidth', value: 2 },
    ]);
  }
}

/** Which of few states each of several things is in, over time. */
export function states(o: Common & { queries: Query[]; values: Record<string, { text: string; colour: string }> }): statetimeline.PanelBuilder {
  const options: Record<string, dashboard.ValueMappingResult> = {};
  Object.entries(o.values).forEach(([value, { text, colour }], index) => { options[value] = { text, color: colour, index }; });
  return new statetimeline.PanelBuilder()
    .title(o.title).description(o.description).unit(o.unit).datasource(source).span(o.width).height(o.height ?? 6)
    .links(o.links ?? [])
    .targets(o.queries.map(range))
    .mappings([{ type: dashboard.MappingType.ValueToText, options }])
    .mergeValues(true).showValue(common.VisibilityMode.Auto).rowHeight(0.8).lineWidth(0).fillOpacity(80)
    .legend(new common.VizLegendOptionsBuilder().showLegend(true).displayMode(common.LegendDisplayMode.List).placement(common.LegendPlacement.Bottom).calcs([]))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Single).sort(common.SortOrder.None))
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.Thresholds));
}

/** How a histogram's observations spread over time. The query says what was added to buckets by le. */
export function spread(o: Common & { query: string; exemplar?: boolean }): heatmap.PanelBuilder {
  const target = range({ expr: o.query, legend: '{{le}}', exemplar: o.exemplar ?? false }, 0).format(prometheus.PromQueryFormat.Heatmap);
  return new heatmap.PanelBuilder()
    .title(o.title).description(o.description).unit('short').datasource(source).span(o.width).height(o.height ?? 8)
    .links(o.links ?? [])
    .withTarget(target).interval(apart)
    .calculate(false)
    .cellGap(1)
    .filterValues(new heatmap.FilterValueRangeBuilder().le(1e-9))
    .color(new heatmap.HeatmapColorOptionsBuilder().mode(heatmap.HeatmapColorMode.Scheme).scheme('Oranges').steps(64)
      .scale(heatmap.HeatmapColorScale.Exponential).exponent(0.5).fill('dark-orange'))
    .yAxis(new heatmap.YAxisConfigBuilder().unit(o.unit).axisPlacement(common.AxisPlacement.Left))
    .tooltip(new heatmap.HeatmapTooltipBuilder().mode(common.TooltipDisplayMode.Single).yHistogram(true))
    .showLegend()
    .exemplarsColor('rgba(87, 148, 242, 0.9)');
}

/** Horizontal bars that compare few things at the end of the time range. */
export function bars(o: Common & { queries: Query[]; colours?: Record<string, string>; limits?: Limits; max?: number }): bargauge.PanelBuilder {
  const panel = new bargauge.PanelBuilder()
    .title(o.title).description(o.description).unit(o.unit).datasource(source).span(o.width).height(o.height ?? 8)
    .links(o.links ?? [])
    .min(0).noValue('0')
    .targets(o.queries.map((q, at) => {
      const target = new prometheus.DataqueryBuilder().refId(refs.charAt(at)).datasource(source).expr(q.expr).instant();
      return q.legend === undefined ? target : target.legendFormat(q.legend);
    }))
    .displayMode(common.BarGaugeDisplayMode.Basic)
    .valueMode(common.BarGaugeValueMode.Text)
    .orientation(common.VizOrientation.Horizontal)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .thresholds(thresholds(o.limits, o.limits ? good : plain))
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.Thresholds));
  if (o.max !== undefined) panel.max(o.max);
  for (const [name, colour] of Object.entries(o.colours ?? {})) panel.overrideByName(name, [fixed(colour)]);
  return panel;
}

/** A heading over the panels that follow. */
export const heading = (title: string): dashboard.RowBuilder => new dashboard.RowBuilder(title);
