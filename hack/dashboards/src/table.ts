// Tables with one row for each function, node or the like.

import * as common from '@grafana/grafana-foundation-sdk/common';
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as table from '@grafana/grafana-foundation-sdk/table';

import { Common, Limits, fixed, instant, source, thresholds } from './kit';
import { good, plain } from './palette';

/** A column, and the query whose rows have the table's labels. */
export interface Column {
  name: string;
  expr: string;
  unit: string;
  decimals?: number;
  limits?: Limits;
  /** Draws a bar behind the number, in this colour. */
  bar?: string;
}

/** A table whose rows are told apart by labels, named as their columns shall be. */
export interface Rows extends Common {
  labels: Record<string, string>;
  columns: Column[];
  /** The column that is sorted by, largest first. */
  sortBy: string;
  /** Links by the name of a label's column. */
  linked?: Record<string, { title: string; url: string }>;
}

export function rows(o: Rows): table.PanelBuilder {
  const panel = new table.PanelBuilder()
    .title(o.title).description(o.description).unit(o.unit).datasource(source).span(o.width).height(o.height ?? 10)
    .links(o.links ?? [])
    .targets(o.columns.map(instant))
    .sortBy([new common.TableSortByFieldStateBuilder().displayName(o.sortBy).desc(true)])
    .cellHeight(common.TableCellHeight.Sm)
    .filterable(true)
    .minWidth(90)
    .noValue('–')
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.Thresholds))
    .thresholds(thresholds(undefined, plain))
    .withTransformation({ id: 'merge', options: {} })
    .withTransformation({ id: 'organize', options: arrangement(o) });
  for (const [name, link] of Object.entries(o.linked ?? {})) {
    panel.overrideByName(name, [{ id: 'links', value: [{ title: link.title, url: link.url }] }]);
  }
  for (const column of o.columns) panel.overrideByName(column.name, looks(column));
  return panel;
}

function looks(column: Column): dashboard.DynamicConfigValue[] {
  const values: dashboard.DynamicConfigValue[] = [
    { id: 'unit', value: column.unit },
    { id: 'decimals', value: column.decimals ?? null },
  ];
  if (column.limits) {
    const config = thresholds(column.limits, good).build();
    values.push({ id: 'thresholds', value: config }, { id: 'custom.cellOptions', value: { type: 'color-text' } });
  } else if (column.bar) {
    values.push(fixed(column.bar), { id: 'min', value: 0 },
      { id: 'custom.cellOptions', value: { type: 'gauge', mode: 'basic', valueDisplayMode: 'text' } });
  }
  return values.filter((v) => v.value !== null);
}

// The order that Grafana's own transformation wants, with its names for values of queries.
function arrangement(o: Rows): Record<string, unknown> {
  const renamed: Record<string, string> = { ...o.labels };
  o.columns.forEach((column, at) => {
    renamed[o.columns.length === 1 ? 'Value' : `Value #${'ABCDEFGHIJ'.charAt(at)}`] = column.name;
  });
  return {
    excludeByName: { Time: true },
    indexByName: Object.fromEntries(['Time', ...Object.keys(renamed)].map((name, at) => [name, at])),
    renameByName: renamed,
  };
}
