// What every dashboard has around its panels: variables, links and settings.

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { source } from './kit';

/** Identifiers of the dashboards, by which they link to each other. */
export const uids = {
  overview: 'windlass-overview',
  function: 'windlass-function',
  provisioning: 'windlass-provisioning',
  coldStarts: 'windlass-cold-starts',
  scheduler: 'windlass-scheduler',
  nodes: 'windlass-nodes',
  nodeScheduling: 'windlass-node-scheduling',
};

/** The variables that a dashboard offers besides the data sources. */
export type Scope = 'none' | 'many' | 'one';

/** An empty dashboard with the variables of its scope. */
export function frame(title: string, uid: string, description: string, scope: Scope): dashboard.DashboardBuilder {
  const board = new dashboard.DashboardBuilder(`Windlass / ${title}`)
    .uid(uid).description(description).tags(['windlass'])
    .time({ from: 'now-1h', to: 'now' }).refresh('30s').timezone('browser')
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .withVariable(new dashboard.DatasourceVariableBuilder('datasource').label('Metrics')
      .description('The Prometheus that scrapes Windlass.').type('prometheus'))
    .withVariable(new dashboard.DatasourceVariableBuilder('traces').label('Traces')
      .description('The Tempo that receives the traces of Windlass, for links from panels.').type('tempo'))
    .link(new dashboard.DashboardLinkBuilder('Windlass').type(dashboard.DashboardLinkType.Dashboards).tags(['windlass'])
      .asDropdown(true).includeVars(true).keepTime(true).icon('external link').tooltip('The other dashboards of Windlass'));
  if (scope === 'none') return board;
  const many = scope === 'many';
  return board
    .withVariable(labels('namespace', 'Namespace', 'label_values(windlass_scheduler_queue_length, function_namespace)', many))
    .withVariable(labels('function', 'Function', 'label_values(windlass_scheduler_queue_length{function_namespace=~"$namespace"}, function)', many));
}

function labels(name: string, label: string, query: string, many: boolean): dashboard.QueryVariableBuilder {
  const variable = new dashboard.QueryVariableBuilder(name).label(label).query({ query, refId: name })
    .datasource(source).refresh(dashboard.VariableRefresh.OnTimeRangeChanged).sort(dashboard.VariableSort.AlphabeticalAsc)
    .multi(many).includeAll(many);
  return many ? variable.allValue('.*').current({ selected: true, text: ['All'], value: ['$__all'] }) : variable;
}

const keptVariables = 'var-datasource=${datasource}&var-traces=${traces}&${__url_time_range}';

/** The Function dashboard of the row that is clicked. */
export const toFunction = {
  title: 'Open the function',
  url: `/d/${uids.function}?var-namespace=\${__data.fields.Namespace}&var-function=\${__data.fields.Function}&${keptVariables}`,
};

/** The Function dashboard of the series that is clicked. */
export const seriesToFunction = (): dashboard.DashboardLinkBuilder =>
  new dashboard.DashboardLinkBuilder('Open the function').type(dashboard.DashboardLinkType.Link)
    .url(`/d/${uids.function}?var-namespace=\${__field.labels.function_namespace}&var-function=\${__field.labels.function}&${keptVariables}`);

/** Another dashboard, from a panel's title. */
export const toBoard = (title: string, uid: string): dashboard.DashboardLinkBuilder =>
  new dashboard.DashboardLinkBuilder(title).type(dashboard.DashboardLinkType.Link)
    .url(`/d/${uid}?\${namespace:queryparam}&\${function:queryparam}&${keptVariables}`);

/** The same, from a dashboard without the variables of functions. */
export const toBoardOfAll = (title: string, uid: string): dashboard.DashboardLinkBuilder =>
  new dashboard.DashboardLinkBuilder(title).type(dashboard.DashboardLinkType.Link).url(`/d/${uid}?${keptVariables}`);

/** Traces that match, in Explore, over the time that the dashboard shows. */
export function toTraces(title: string, traceql: string): dashboard.DashboardLinkBuilder {
  const panes = JSON.stringify({
    traces: {
      datasource: '${traces}',
      queries: [{ refId: 'A', datasource: { type: 'tempo', uid: '${traces}' }, queryType: 'traceql', query: traceql, limit: 20 }],
      range: { from: '${__from}', to: '${__to}' },
    },
  });
  // Grafana fills in variables before the address is decoded, so these stay as they are.
  const encoded = encodeURIComponent(panes).replace(/%24%7B(\w+)%7D/g, '${$1}');
  return new dashboard.DashboardLinkBuilder(title).type(dashboard.DashboardLinkType.Link)
    .url(`/explore?schemaVersion=1&orgId=1&panes=${encoded}`).targetBlank(true);
}
