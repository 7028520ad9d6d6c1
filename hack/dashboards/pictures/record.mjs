// Asks a Prometheus every query of the dashboards and keeps the answers:
//   PROMETHEUS=URL BEGAN=SECONDS ENDED=SECONDS node record.mjs DASHBOARDS FILE
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder, out] = process.argv.slice(2);
const { PROMETHEUS, BEGAN, ENDED } = process.env;
if (!folder || !out || !PROMETHEUS) throw new Error('usage: PROMETHEUS=URL BEGAN=SECONDS ENDED=SECONDS node record.mjs DASHBOARDS FILE');

/** How many points a graph has at least, and the shortest window of a rate, in seconds. */
const points = 150;
const window = 6;

async function ask(path, parameters) {
  const response = await fetch(`${PROMETHEUS}/api/v1/${path}`, { method: 'POST', body: new URLSearchParams(parameters) });
  const answer = await response.json();
  if (answer.status !== 'success') throw new Error(`${parameters.query}: ${answer.error}`);
  return answer.data.result;
}

// The load ends before the Windlass under it does, which takes some seconds more.
async function lastScrape() {
  const [up] = await ask('query_range', { query: 'max(up == 1)', start: BEGAN, end: ENDED, step: 1 });
  if (up === undefined) throw new Error('nothing was scraped');
  return up.values.at(-1)[0];
}

// The numbers of the last moment say most while instances are busy.
async function busiestMoment(last) {
  const [busy] = await ask('query_range', { query: 'sum(windlass_scheduler_instances{state="busy"})', start: last - 60, end: last, step: 1 });
  return busy.values.reduce((best, sample) => (Number(sample[1]) > Number(best[1]) ? sample : best))[0];
}

const to = await busiestMoment((await lastScrape()) - 3);
const from = Number(BEGAN) + window;
const step = Math.max(1, Math.floor((to - from) / points));

// The Function dashboard shows the function that was called most.
const [busiest] = await ask('query', { query: `topk(1, sum by (namespace, function) (increase(windlass_gateway_invocations_total[${to - from}s])))`, time: to });

function filled(expr, one, step) {
  const values = {
    __rate_interval: `${Math.max(window, step === window ? 0 : 4 * step)}s`, __range: `${to - from}s`, __interval: `${step}s`,
    namespace: one ? busiest.metric.namespace : '.*', function: one ? busiest.metric.function : '.*',
  };
  return expr.replace(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced, bare) => values[braced ?? bare] ?? all);
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
  recorded.boards.push({ name: file.replace('.json', ''), board, answers, steps, chosen: one ? busiest.metric : undefined });
}
writeFileSync(out, JSON.stringify(recorded));
console.log(`${recorded.boards.length} dashboards are recorded over ${to - from} s, a point each ${step} s`);
