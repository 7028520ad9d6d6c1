// Asks a Prometheus every query of the dashboards and keeps the answers:
//   PROMETHEUS=URL BEGAN=SECONDS ENDED=SECONDS FUNCTION=NAMESPACE/NAME node record.mjs DASHBOARDS FILE
// The dashboard of one function shows FUNCTION. Panels that have no data are left out.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder, out] = process.argv.slice(2);
const { PROMETHEUS, BEGAN, ENDED, FUNCTION } = process.env;
if (!folder || !out || !PROMETHEUS || !FUNCTION) throw new Error('usage: PROMETHEUS=URL BEGAN=SECONDS ENDED=SECONDS FUNCTION=NAMESPACE/NAME node record.mjs DASHBOARDS FILE');

/** Seconds between the points of a graph, and the window of a rate. A window ends where the next begins if points are to be apart. */
const step = 2;
const window = 8;

async function ask(path, parameters) {
  const response = await fetch(`${PROMETHEUS}/api/v1/${path}`, { method: 'POST', body: new URLSearchParams(parameters) });
  const answer = await response.json();
  if (answer.status !== 'success') throw new Error(`${parameters.query}: ${answer.error}`);
  return answer.data.result;
}

// The numbers of the last moment say most while calls wait: some seconds after the most did,
// when instances for them begin to come.
async function busyMoment(last) {
  const [waiting] = await ask('query_range', { query: 'sum(windlass_scheduler_queue_length)', start: last - 12, end: last, step: 1 });
  const [peak] = waiting.values.reduce((best, sample) => (Number(sample[1]) > Number(best[1]) ? sample : best));
  return Math.min(peak + 3, last);
}

const to = await busyMoment(Number(ENDED) - 1);
const from = Number(BEGAN);
const [namespace, name] = FUNCTION.split('/');

function filled(expr, one, every) {
  const values = {
    __rate_interval: `${window}s`, __range: `${to - from}s`, __interval: `${every}s`,
    namespace: one ? namespace : '.*', function: one ? name : '.*',
  };
  return expr.replace(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced, bare) => values[braced ?? bare] ?? all);
}

/** Whether there is more to see than zeros. */
const saysSomething = (series) => (series.values ?? [series.value]).some(([, text]) => Number(text) !== 0 && Number.isFinite(Number(text)));

/** Leaves out panels without data; their neighbours take their room. */
function withoutEmpty(board, answers) {
  const empty = board.panels.filter(({ id, type }) => type !== 'row' && type !== 'stat' && !answers[id].flat().some(saysSomething));
  const kept = board.panels.filter((panel) => !empty.includes(panel));
  for (const y of new Set(empty.map(({ gridPos }) => gridPos.y))) {
    const row = kept.filter(({ gridPos }) => gridPos.y === y);
    const wide = row.reduce((sum, { gridPos }) => sum + gridPos.w, 0);
    let x = 0;
    for (const { gridPos } of row) {
      Object.assign(gridPos, { x, w: (gridPos.w * 24) / wide });
      x += gridPos.w;
    }
  }
  for (const { title } of empty) console.log(`${board.title}: left out "${title}", which has no data`);
  board.panels = kept;
}

const recorded = { from, to, step, boards: [] };
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const board = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const one = board.templating.list.some((variable) => variable.name === 'function' && !variable.multi);
  const answers = {};
  const steps = {};
  for (const panel of board.panels) {
    // A panel whose points are to be apart has its windows side by side.
    const every = panel.interval ? window : step;
    steps[panel.id] = every;
    answers[panel.id] = await Promise.all((panel.targets ?? []).map((target) => {
      const query = filled(target.expr, one, every);
      return target.instant ? ask('query', { query, time: to }) : ask('query_range', { query, start: from, end: to, step: every });
    }));
  }
  withoutEmpty(board, answers);
  recorded.boards.push({ name: file.replace('.json', ''), board, answers, steps, chosen: one ? { namespace, function: name } : undefined });
}
writeFileSync(out, JSON.stringify(recorded));
console.log(`${recorded.boards.length} dashboards are recorded over ${to - from} s, a point each ${step} s`);
