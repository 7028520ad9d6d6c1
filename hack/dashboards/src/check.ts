// Writes the dashboards of a folder as TypeScript, for the compiler to compare with the
// types of Grafana itself: a dashboard as a whole, and the options of each kind of panel.

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const [from, to] = process.argv.slice(2);
if (from === undefined || to === undefined) throw new Error('usage: node build/check.js DASHBOARDS FOLDER');

/** Panels, as Grafana calls them, and where their types are. */
const kinds: Record<string, string> = {
  bargauge: 'BarGauge', heatmap: 'Heatmap', stat: 'Stat', 'state-timeline': 'StateTimeline', table: 'Table', timeseries: 'TimeSeries', xychart: 'XYChart',
};

/** Panels whose fields have options of their own. Those of tables are a type that all panels share. */
const custom: Record<string, string> = {
  heatmap: 'Heatmap.FieldConfig', 'state-timeline': 'StateTimeline.FieldConfig', timeseries: 'TimeSeries.FieldConfig', xychart: 'XYChart.FieldConfig',
};

interface Panel { type: string; title: string; options?: unknown; fieldConfig?: { defaults?: { custom?: unknown } } }

function typed(board: { panels: Panel[] }): string {
  const lines = [
    'import type { Dashboard } from "@grafana/schema";',
    ...Object.entries(kinds).map(([kind, name]) =>
      `import type * as ${name} from "@grafana/schema/dist/esm/raw/composable/${kind.replace('-', '')}/panelcfg/x/${name}PanelCfg_types.gen";`),
    // JSON has the texts of enumerations, which TypeScript tells from their members.
    'type Plain<T> = unknown extends T ? T : T extends string ? `${T}` : T extends number | boolean ? T',
    '  : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;',
    `export const board: Plain<Dashboard> = ${JSON.stringify(board, null, 1)};`,
  ];
  board.panels.forEach((panel, at) => {
    const name = kinds[panel.type];
    if (panel.type === 'row') return;
    if (name === undefined) throw new Error(`${panel.title}: nothing is known of panels of type ${panel.type}`);
    lines.push(`// ${panel.title}`, `export const options${at}: Plain<${name}.Options> = ${JSON.stringify(panel.options, null, 1)};`);
    const fields = panel.fieldConfig?.defaults?.custom;
    const type = custom[panel.type];
    if (fields !== undefined && type !== undefined) {
      lines.push(`export const custom${at}: Plain<${type}> = ${JSON.stringify(fields, null, 1)};`);
    }
  });
  return `${lines.join('\n')}\n`;
}

mkdirSync(to, { recursive: true });
const files = readdirSync(from).filter((file) => file.endsWith('.json'));
if (files.length === 0) throw new Error(`there is no dashboard in ${from}`);
for (const file of files) {
  writeFileSync(join(to, `${basename(file, '.json')}.ts`), typed(JSON.parse(readFileSync(join(from, file), 'utf8'))));
}
console.log(`${files.length} dashboards are compared with Grafana's types`);
