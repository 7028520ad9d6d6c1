// Writes every dashboard as JSON into the folder that is named.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';

import { coldStarts } from './coldstarts';
import { oneFunction } from './function';
import { scaleOut } from './nodes';
import { nodeScheduling } from './nodescheduling';
import { overview } from './overview';
import { provisioning } from './provisioning';
import { scheduler } from './scheduler';

const all: Record<string, () => dashboard.DashboardBuilder> = {
  overview,
  function: oneFunction,
  provisioning,
  'cold-starts': coldStarts,
  scheduler,
  nodes: scaleOut,
  'node-scheduling': nodeScheduling,
};

// Panels need numbers of their own within a dashboard, which links and pictures name. The
// library fills in some defaults of other kinds of variables and of an older table.
function finished(board: dashboard.Dashboard): dashboard.Dashboard {
  board.panels?.forEach((panel, at) => {
    panel.id = at + 1;
    if (panel.type === 'table') delete (panel as dashboard.Panel).options.footer;
  });
  for (const variable of board.templating.list ?? []) {
    for (const key of ['auto', 'auto_min', 'auto_count'] as const) delete variable[key];
  }
  return board;
}

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: node build/main.js FOLDER');
mkdirSync(folder, { recursive: true });
for (const [name, make] of Object.entries(all)) {
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(finished(make().build()), null, 2)}\n`);
}
