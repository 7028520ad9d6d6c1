// Grafana's heatmap is not among its published components, so this draws one with the same
// plotting library and configuration: buckets in rows, the darker the more.

import { formattedValueToString, getValueFormat } from '@grafana/data';
import type { DataFrame, GrafanaTheme2 } from '@grafana/data';
import { AxisPlacement, ScaleDirection, ScaleOrientation, GraphDrawStyle, VisibilityMode, ScaleDistribution } from '@grafana/schema';
import { UPlotChart, UPlotConfigBuilder } from '@grafana/ui';
import type { Span } from './frames';

interface Props { frames: DataFrame[]; unit: string; span: Span; theme: GrafanaTheme2; width: number; height: number }

interface Cells { times: number[]; bounds: number[]; counts: number[][]; most: number }

/** The counts of each bucket alone, from the smallest bound with any to the largest. */
function cells(frames: DataFrame[]): Cells {
  const sorted = frames
    .map((frame) => ({ le: Number(frame.fields[1]!.labels!['le']!.replace('+Inf', 'Infinity')), values: frame.fields[1]!.values as (number | null)[] }))
    .sort((a, b) => a.le - b.le);
  let rows = sorted.map((row, at) => ({
    le: row.le,
    counts: row.values.map((value, i) => Math.max(0, (value ?? 0) - (at > 0 ? sorted[at - 1]!.values[i] ?? 0 : 0))),
  }));
  const used = (row: { counts: number[] }) => row.counts.some((count) => count > 1e-9);
  const first = rows.findIndex(used);
  rows = rows.slice(Math.max(0, first), rows.findLastIndex(used) + 1);
  const counts = rows.map((row) => row.counts);
  return { times: frames[0]?.fields[0]!.values as number[] ?? [], bounds: rows.map((row) => row.le), counts, most: Math.max(1e-9, ...counts.flat()) };
}

// The colours of d3's "Oranges", which is the scheme that the dashboards name.
const shades = ['#2d1c0e', '#5a2c0b', '#8f3b06', '#c44e02', '#e8711a', '#fb9a4b', '#fdc38d', '#fee6ce'];

export function Heatmap({ frames, unit, span, theme, width, height }: Props) {
  const data = cells(frames);
  const format = getValueFormat(unit);
  const config = new UPlotConfigBuilder('utc');
  config.addScale({ scaleKey: 'x', isTime: true, orientation: ScaleOrientation.Horizontal, direction: ScaleDirection.Right, range: () => [span.from * 1000, span.to * 1000] });
  config.addScale({ scaleKey: 'y', orientation: ScaleOrientation.Vertical, direction: ScaleDirection.Up, distribution: ScaleDistribution.Linear, range: () => [0, Math.max(1, data.bounds.length)] });
  config.addAxis({ scaleKey: 'x', isTime: true, placement: AxisPlacement.Bottom, theme });
  config.addAxis({
    scaleKey: 'y', placement: AxisPlacement.Left, theme, size: 70, splits: () => data.bounds.map((_, at) => at + 1),
    values: (_, splits) => splits.map((split) => formattedValueToString(format(data.bounds[split - 1]))),
  });
  config.addSeries({
    scaleKey: 'y', theme, pxAlign: false, drawStyle: GraphDrawStyle.Points, showPoints: VisibilityMode.Never, lineColor: 'transparent', pointColor: 'transparent', pointSize: 1,
  });
  config.addHook('draw', (plot) => {
    const wide = (plot.valToPos(span.from * 1000 + span.step * 1000, 'x', true) - plot.valToPos(span.from * 1000, 'x', true));
    data.counts.forEach((row, at) => row.forEach((count, i) => {
      if (count <= 1e-9) return;
      const top = plot.valToPos(at + 1, 'y', true);
      plot.ctx.fillStyle = shades[Math.min(shades.length - 1, Math.floor(Math.sqrt(count / data.most) * shades.length))]!;
      // The first window began before what is shown.
      const right = plot.valToPos(data.times[i]!, 'x', true);
      const left = Math.max(plot.bbox.left, right - wide);
      if (right > left) plot.ctx.fillRect(left, top + 1, Math.max(1, right - left - 1), plot.valToPos(at, 'y', true) - top - 1);
    }));
  });
  return <UPlotChart config={config} data={[data.times, data.times.map(() => null)] as any} width={width} height={height} />;
}
