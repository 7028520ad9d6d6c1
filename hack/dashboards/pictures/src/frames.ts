// Turns recorded answers of Prometheus into the data frames that Grafana draws, as its
// Prometheus data source and its panels would.

import {
  applyFieldOverrides, FieldType, Registry, standardTransformers, standardTransformersRegistry, toDataFrame, transformDataFrame,
} from '@grafana/data';
import type { DataFrame, FieldConfigOptionsRegistry, FieldConfigPropertyItem, GrafanaTheme2 } from '@grafana/data';
import { lastValueFrom } from 'rxjs';

export interface Series { metric: Record<string, string>; values?: [number, string][]; value?: [number, string] }
export interface Target { refId: string; expr: string; legendFormat?: string; format?: string; instant?: boolean }
export interface Panel {
  id: number; type: string; title: string; description?: string; targets: Target[];
  gridPos: { x: number; y: number; w: number; h: number };
  options: any; fieldConfig: any; transformations?: any[];
}
export interface Span { from: number; to: number; step: number }

// Some are known by an older name as well.
const transformers = new Map(Object.values(standardTransformers).map((transformer) => [transformer.id, transformer]));
standardTransformersRegistry.setInit(() => [...transformers.values()].map((transformation) => ({
  id: transformation.id, aliasIds: [], name: transformation.name, transformation: () => Promise.resolve(transformation), description: '',
  editor: () => null, imageDark: '', imageLight: '',
})) as any);

// The settings of fields that dashboards override: those with a path below "custom" belong
// to a kind of panel, the others to all.
const settings = ['unit', 'min', 'max', 'decimals', 'noValue', 'thresholds', 'links', 'color', 'custom.stacking', 'custom.drawStyle',
  'custom.lineWidth', 'custom.axisSoftMax', 'custom.showPoints', 'custom.scaleDistribution', 'custom.thresholdsStyle', 'custom.minWidth', 'custom.fillOpacity', 'custom.lineStyle', 'custom.axisPlacement', 'custom.axisLabel', 'custom.cellOptions', 'custom.hideFrom'];

const registry = new Registry<FieldConfigPropertyItem>(() => settings.map((id) => ({
  id, name: id, path: id.replace('custom.', ''), isCustom: id.startsWith('custom.'),
  editor: () => null, override: () => null, process: (value: unknown) => value, shouldApply: () => true, getItemsCount: () => 1,
})) as any) as unknown as FieldConfigOptionsRegistry;

const legend = (format: string | undefined, labels: Record<string, string>): string =>
  (format ?? '').replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label: string) => labels[label] ?? '') || JSON.stringify(labels);

const number = (text: string): number | null => {
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
};

/** One frame for each series of a range, on a common time axis so that gaps are seen. */
function ofRange(target: Target, series: Series[], span: Span): DataFrame[] {
  const times: number[] = [];
  for (let time = span.from; time <= span.to; time += span.step) times.push(time * 1000);
  return series.map((one) => {
    const at = new Map((one.values ?? []).map(([time, text]) => [time * 1000, number(text)]));
    const name = legend(target.legendFormat, one.metric);
    return toDataFrame({
      refId: target.refId, name,
      fields: [
        { name: 'Time', type: FieldType.time, values: times, config: {} },
        { name: 'Value', type: FieldType.number, values: times.map((time) => at.get(time) ?? null), labels: one.metric, config: { displayNameFromDS: name } },
      ],
    });
  });
}

/** One frame for each series of an instant. */
function ofInstant(target: Target, series: Series[]): DataFrame[] {
  return series.map((one) => toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: [one.value![0] * 1000], config: {} },
      { name: 'Value', type: FieldType.number, values: [number(one.value![1])], labels: one.metric, config: { displayNameFromDS: legend(target.legendFormat, one.metric) } },
    ],
  }));
}

/** One frame with a column for each label, as the format "table" asks for. */
function ofTable(target: Target, series: Series[], several: boolean): DataFrame[] {
  const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))];
  return [toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: series.map((one) => one.value![0] * 1000) },
      ...labels.map((label) => ({ name: label, type: FieldType.string, values: series.map((one) => one.metric[label] ?? '') })),
      { name: several ? `Value #${target.refId}` : 'Value', type: FieldType.number, values: series.map((one) => number(one.value![1])) },
    ],
  })];
}

/** What a panel draws. */
export async function framesOf(panel: Panel, answers: Series[][], span: Span, theme: GrafanaTheme2): Promise<DataFrame[]> {
  let frames = panel.targets.flatMap((target, at) => {
    const series = answers[at] ?? [];
    if (target.format === 'table') return ofTable(target, series, panel.targets.length > 1);
    return target.instant ? ofInstant(target, series) : ofRange(target, series, span);
  });
  if (panel.transformations?.length) frames = await lastValueFrom(transformDataFrame(panel.transformations, frames));
  const drawn = applyFieldOverrides({
    data: frames, fieldConfig: panel.fieldConfig, fieldConfigRegistry: registry, replaceVariables: (text) => text, theme, timeZone: 'utc',
  });
  // Names that were reckoned before fields were renamed are kept otherwise.
  for (const frame of drawn) {
    for (const field of frame.fields) {
      if (field.config.displayName) field.state = { ...field.state, displayName: field.config.displayName };
    }
  }
  return drawn;
}
