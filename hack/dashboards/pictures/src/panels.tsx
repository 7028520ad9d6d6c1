// Draws a panel with the components that Grafana itself is made of.

import {
  dateTime, getDisplayValueAlignmentFactors, getFieldDisplayName, getFieldDisplayValues,
} from '@grafana/data';
import type { DataFrame, DisplayValue, FieldDisplay, GrafanaTheme2, TimeRange } from '@grafana/data';
import { BarGaugeValueMode, VizOrientation } from '@grafana/schema';
import { BarGauge, BigValue, BigValueColorMode, BigValueGraphMode, BigValueTextMode, TimeSeries } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Heatmap } from './heatmap';
import type { Panel, Span } from './frames';

interface Props { panel: Panel; frames: DataFrame[]; span: Span; theme: GrafanaTheme2; width: number; height: number }

export const timeRange = (span: Span): TimeRange => {
  const [from, to] = [dateTime(span.from * 1000), dateTime(span.to * 1000)];
  return { from, to, raw: { from, to } };
};

function values({ panel, frames, theme }: Props, sparkline: boolean): FieldDisplay[] {
  return getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text,
    theme, data: frames, sparkline, timeZone: 'utc',
  });
}

function Stat(props: Props) {
  const [shown] = values(props, true);
  if (shown === undefined) return <>No data</>;
  return (
    <BigValue
      value={shown.display} sparkline={shown.sparkline} width={props.width} height={props.height} theme={props.theme}
      colorMode={BigValueColorMode.Value} textMode={BigValueTextMode.Value} graphMode={props.panel.options.graphMode === 'area' ? BigValueGraphMode.Area : BigValueGraphMode.None}
    />
  );
}

function Bars(props: Props) {
  const all = values(props, false).slice(0, 12);
  const height = Math.min(40, props.height / Math.max(1, all.length));
  const titled = (display: DisplayValue): DisplayValue => ({ ...display, title: display.title ?? '' });
  const aligned = getDisplayValueAlignmentFactors(all);
  const numeric = all.map((one) => one.display.numeric);
  const [min, max] = [0, props.panel.fieldConfig.defaults.max ?? Math.max(...numeric, 1e-9)];
  return (
    <>
      {all.map((one, at) => (
        <BarGauge
          key={at} value={titled(one.display)} field={{ ...one.field, min, max }} width={props.width} height={height - 4} orientation={VizOrientation.Horizontal}
          alignmentFactors={aligned}
          display={one.view?.getFieldDisplayProcessor(one.colIndex ?? 1)} displayMode={props.panel.options.displayMode}
          valueDisplayMode={BarGaugeValueMode.Text} theme={props.theme} showUnfilled={false} text={{ titleSize: 13, valueSize: 13 }}
        />
      ))}
    </>
  );
}

function Lines({ panel, frames, span, width, height }: Props) {
  if (frames.length === 0) return <>No data</>;
  return (
    <TimeSeries
      frames={frames} width={width} height={height} timeRange={timeRange(span)} timeZone="utc" legend={panel.options.legend} options={panel.options}
    />
  );
}

function Rows({ panel, frames, span, width, height }: Props) {
  const [frame] = frames;
  if (frame === undefined) return <>No data</>;
  const sortBy = panel.options.sortBy ?? [];
  return <TableNG data={frame} width={width} height={height} timeRange={timeRange(span)} sortBy={sortBy} cellHeight={panel.options.cellHeight} noHeader={false} />;
}

export function Drawn(props: Props) {
  switch (props.panel.type) {
    case 'stat': return <Stat {...props} />;
    case 'bargauge': return <Bars {...props} />;
    case 'timeseries': return <Lines {...props} />;
    case 'heatmap': return <Heatmap {...props} unit={props.panel.options.yAxis.unit} />;
    case 'table': return <Rows {...props} />;
    default: return <>{props.frames.map((frame) => frame.fields.map((field) => getFieldDisplayName(field, frame))).join(', ')}</>;
  }
}
